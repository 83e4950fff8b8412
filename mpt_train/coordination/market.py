"""The market: every agent bids for itself, from its own bid head."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpt_train.coordination.base import Coordination, register
from mpt_train.policy import sample_all
from mpt_train.rollout import TurnContext
from wrappers.rng import STREAM_POLICY_BID


class LearnedBids(Coordination):
    """Bids sampled from each present agent's bid distribution."""

    name = "learned"

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """One forward pass per present agent and turn."""
        policy = context.policy
        if not policy.num_levels:
            raise ValueError(
                "this policy was trained without bids; choose another coordination than 'learned'"
            )
        logits, context.features = policy.bid_logits(context.observations)
        levels = sample_all(logits.numpy(), context.keys, context.turns, STREAM_POLICY_BID)
        levels[~context.present] = 0
        cost = policy.bid_flop * int(context.present.sum())
        context.counter.add(context.part + "_bid", cost)
        return levels


register("learned", lambda config, shape: LearnedBids())
