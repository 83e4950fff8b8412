"""The market: every agent bids for itself, from its own bid head."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.coordination.base import Coordination, register
from mpt_train.coordination.outcome import outcome_log_prob
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policies.base import Policy, TurnContext
from mpt_train.policies.swarm import networks_of
from mpt_train.policies.text import TextPolicy
from mpt_train.records import Batch, take


class LearnedBids(Coordination):
    """Bids sampled from each present agent's bid distribution.

    Args:
        estimator: what the policy gradient differentiates, see `BidLearning`.
    """

    name = "learned"

    def __init__(self, estimator: Literal["sampled", "marginal"] = "marginal") -> None:
        self._estimator = estimator

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """One forward pass per present agent and turn."""
        if not context.policy.num_levels:
            raise ValueError(
                "this policy was trained without bids; choose another coordination than 'learned'"
            )
        return context.policy.bids(context)

    def chosen(self, batch: Batch) -> NDArray[np.bool_]:
        """Every turn: a skipped one is an outcome of the bids, too."""
        return batch.active

    def choice_logits(
        self, policy: Policy, batch: Batch, where: NDArray[np.bool_], counter: FlopCounter
    ) -> Tensor:
        """Bid logits ``(n, A, L)``."""
        networks = networks_of(policy)
        logits, _ = networks.bid_logits(batch.rows_of_all(where))
        counter.add(
            "update_bid", (1 + BACKWARD) * networks.bid_flop * int(batch.present[where].sum())
        )
        return logits.permute(1, 0, 2)

    def choice_log_prob(
        self, logits: Tensor, batch: Batch, where: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Of the auction's outcome ("marginal"), or of all present agents' own bids ("sampled")."""
        log_probs = torch.log_softmax(logits.permute(1, 0, 2), dim=-1)
        present = take(batch.present, where).T
        if self._estimator == "marginal":
            winners = take(batch.winners, where)
            chosen = outcome_log_prob(log_probs, present, winners)
        else:
            levels = take(batch.bids, where).T
            chosen = (log_probs.gather(2, levels[:, :, None])[:, :, 0] * present).sum(0)
        entropy = (-(log_probs.exp() * log_probs).sum(-1) * present).sum() / present.sum()
        return chosen, entropy

    def choice_loss(
        self,
        policy: Policy,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None = None,
    ) -> tuple[Tensor | None, dict[str, float]]:
        """See `Coordination`; of bids in text, whose distribution is not known as a whole."""
        if isinstance(policy, TextPolicy):
            return policy.bid_loss(batch, advantage, entropy_weight, counter, clip)
        return super().choice_loss(policy, batch, advantage, entropy_weight, counter, clip)


register("learned", lambda config, shape: LearnedBids(config.bids.estimator))
