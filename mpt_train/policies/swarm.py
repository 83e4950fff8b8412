"""`SwarmPolicy`: an action head and a bid head per agent, over small independent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from mpt_train import flops
from mpt_train.config import NetworkConfig
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policies.base import Policy, Refine, TurnContext
from mpt_train.policies.distributions import (
    log_prob_rows,
    masked_log_softmax,
    sample_all,
    sample_rows,
)
from mpt_train.policies.networks import StackedLinear, StackedMLP
from mpt_train.policies.surrogate import surrogate
from mpt_train.records import Batch, Pairs, take
from wrappers.rng import STREAM_POLICY_ACTION, STREAM_POLICY_BID, STREAM_RESAMPLE

_SMALL = 512
"""Up to this many rows (agents times worlds) the actions of all agents are computed together."""


class SwarmPolicy(Policy):
    """Independent policies of A agents: small networks over vector observations.

    Args:
        observation_size: longest observation of any agent; shorter ones are padded with zeros.
        action_counts: number of actions of each agent; logits are padded to the largest.
        num_levels: L, the number of bid levels; 0 for a policy that never bids.
        config: widths.
        seed: of the initial weights.
    """

    def __init__(
        self,
        observation_size: int,
        action_counts: Sequence[int],
        num_levels: int,
        config: NetworkConfig,
        seed: int,
    ) -> None:
        super().__init__()
        if not config.hidden:
            raise ValueError("network.hidden needs at least one hidden layer")
        generator = torch.Generator().manual_seed(seed)
        self.observation_size = observation_size
        self.action_counts = tuple(action_counts)
        self.num_agents = len(action_counts)
        self.num_levels = num_levels
        self.num_actions = max(action_counts)
        sizes = (observation_size, *config.hidden)
        self.actor = StackedMLP(self.num_agents, (*sizes, self.num_actions), generator)
        self.shares_features = num_levels > 0 and config.bid_hidden is None
        self.bid_head: StackedLinear | None = None
        self.bidder: StackedMLP | None = None
        if self.shares_features:
            self.bid_head = StackedLinear(
                self.num_agents, config.hidden[-1], num_levels, 0.01, generator
            )
        elif num_levels:
            assert config.bid_hidden is not None
            bid_sizes = (observation_size, *config.bid_hidden, num_levels)
            self.bidder = StackedMLP(self.num_agents, bid_sizes, generator)
        self.feature_flop = flops.layers(sizes)
        self.action_head_flop = flops.layers((sizes[-1], self.num_actions))
        if self.shares_features:
            self.bid_flop = self.feature_flop + flops.layers((sizes[-1], num_levels))
        else:
            self.bid_flop = flops.layers(self.bidder.sizes) if self.bidder else 0

    @property
    def act_flop(self) -> int:
        """Forward cost of one action, without features computed for a bid before."""
        return self.feature_flop + self.action_head_flop

    @property
    def act_after_bid_flop(self) -> int:
        """Forward cost of one action right after a bid on the same observation."""
        return self.action_head_flop if self.shares_features else self.act_flop

    def bid_logits(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Bid logits ``(A, N, L)``, and the action features ``(A, N, H)`` if they are shared."""
        if self.bid_head is not None:
            features = self.actor.features(x)
            return self.bid_head(features), features
        assert self.bidder is not None
        return self.bidder(x), None

    def bid_logits_one(self, agent: int, x: Tensor) -> Tensor:
        """Bid logits of one agent, ``(N, L)``."""
        if self.bid_head is not None:
            return self.bid_head.one(agent, self.actor.features_one(agent, x))
        assert self.bidder is not None
        return self.bidder.one(agent, x)

    def action_logits_one(self, agent: int, x: Tensor) -> Tensor:
        """Action logits of one agent, ``(N, K)``, padded entries included."""
        return self.actor.one(agent, x)

    def action_head_one(self, agent: int, features: Tensor) -> Tensor:
        """Action logits of one agent from its features ``(N, H)``."""
        return self.actor.output.one(agent, features)

    # -- rollouts ----------------------------------------------------------------------------

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """One forward pass per present agent; leaves features and choice logits behind."""
        logits, context.features = self.bid_logits(context.observations)
        levels = sample_all(logits.numpy(), context.keys, context.turns, STREAM_POLICY_BID)
        levels[~context.present] = 0
        context.choice_logits = logits.permute(1, 0, 2)
        context.counter.add(context.part + "_bid", self.bid_flop * int(context.present.sum()))
        return levels

    def act(
        self, context: TurnContext, winners: NDArray[np.int64], refine: Refine, log_probs: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """See `Policy`."""
        rows = np.arange(len(winners))
        masks = context.masks[0] if self.num_agents == 1 else np.stack(context.masks)[winners, rows]
        cost = self.act_flop if context.features is None else self.action_head_flop
        context.counter.add(context.part + "_act", cost * int((winners >= 0).sum()))
        if context.messages is None and self.num_agents * len(rows) <= _SMALL:
            # All agents in one product are quicker than a product an agent; the others' results are
            # thrown away, and do not count: the method does not need them.
            if context.features is not None:
                everyone = self.actor.output(context.features)
            else:
                everyone = self.actor(context.observations)
            logits = everyone.numpy()[winners, rows]
        else:
            logits = np.zeros((len(winners), self.num_actions), np.float32)
            for agent in range(self.num_agents):
                mine = np.flatnonzero(winners == agent)
                if not len(mine):
                    continue
                index = torch.from_numpy(mine)
                if context.features is not None:
                    own = self.action_head_one(agent, context.features[agent, index])
                else:
                    own = self.action_logits_one(agent, context.observation_of(agent)[index])
                if context.messages is not None:
                    own = refine(agent, own, context.messages[index])
                logits[mine] = own.numpy()
        actions = sample_rows(
            logits, masks, context.keys, context.turns, STREAM_POLICY_ACTION, winners
        )
        actions[winners < 0] = -1
        return actions, log_prob_rows(logits, masks, actions) if log_probs else None

    # -- learning ----------------------------------------------------------------------------

    @torch.no_grad()
    def lower_bids(
        self,
        batch: Batch,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
        resamples: int,
        counter: FlopCounter,
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """See `Policy`."""
        lowered = np.full(len(turns), -1)
        winners = batch.winners[turns, worlds]
        limit = batch.bids[turns, worlds, batch.runners_up[turns, worlds]]
        for agent in range(self.num_agents):
            mine = np.flatnonzero(winners == agent)
            if not len(mine):
                continue
            rows = batch.observations_at(turns[mine], worlds[mine], winners[mine])
            logits = self.bid_logits_one(agent, rows).numpy()
            counter.add("branch_bid", self.bid_flop * len(mine))
            anything = np.ones(logits.shape, np.bool_)
            keys = batch.keys[worlds[mine]]
            for attempt in range(resamples):
                levels = sample_rows(
                    logits, anything, keys, turns[mine], STREAM_RESAMPLE, agent, attempt
                )
                found = (lowered[mine] < 0) & (levels < limit[mine])
                lowered[mine[found]] = levels[found]
        return lowered, []

    def action_loss(
        self,
        batch: Batch,
        refine: Refine,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None = None,
    ) -> tuple[Tensor, float]:
        """See `Policy`."""
        total = torch.zeros(())
        entropies = []
        for agent in range(self.num_agents):
            where = batch.acted & (batch.winners == agent)
            count = int(where.sum())
            if not count:
                continue
            log_probs = self.action_log_probs(agent, batch, where, refine)
            chosen = log_probs.gather(1, take(batch.actions, where)[:, None])[:, 0]
            weight = take(advantage, where).float()
            old = None
            if clip is not None:
                assert batch.log_probs is not None
                old = take(batch.log_probs, where)
            total = total + surrogate(chosen, weight, old, clip)
            entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
            entropies.append(float(entropy.detach()))
            if entropy_weight:
                total = total - entropy_weight * entropy
            counter.add("update_action", (1 + BACKWARD) * self.act_flop * count)
        return total, float(np.mean(entropies)) if entropies else 0.0

    def action_log_probs(
        self, agent: int, batch: Batch, where: NDArray[np.bool_], refine: Refine
    ) -> Tensor:
        """Log-probabilities ``(n, K)`` of an agent's actions under present parameters.

        Args:
            agent: who acted in these turns.
            batch: recorded episodes.
            where: n turns, ``bool (T, N)``.
            refine: of the strategy.
        """
        logits = self.action_logits_one(agent, batch.rows_of(agent, where))
        if batch.messages is not None:
            logits = refine(agent, logits, take(batch.messages, where))
        return masked_log_softmax(logits, take(batch.masks, where))

    def preference_loss(
        self, pairs: Pairs, counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """See `Policy`."""
        total = torch.zeros(())
        correct = 0.0
        for agent in range(self.num_agents):
            mine = np.flatnonzero(pairs.agents == agent)
            if not len(mine):
                continue
            logits = self.bid_logits_one(agent, pairs.observations[torch.from_numpy(mine)])
            log_probs = torch.log_softmax(logits, dim=-1)
            chosen = log_probs.gather(1, torch.from_numpy(pairs.chosen[mine])[:, None])[:, 0]
            rejected = log_probs.gather(1, torch.from_numpy(pairs.rejected[mine])[:, None])[:, 0]
            weight = torch.from_numpy(pairs.weights[mine])
            total = total + (weight * softplus(rejected - chosen)).mean()
            correct += float((chosen > rejected).sum())
            counter.add("update_bid", (1 + BACKWARD) * self.bid_flop * len(mine))
        count = len(pairs.agents)
        return total, {"pair_accuracy": correct / count if count else float("nan")}


def networks_of(policy: Policy) -> SwarmPolicy:
    """The agents' networks, for strategies and learners that look into them.

    Raises:
        ValueError: the agents are no networks.
    """
    if not isinstance(policy, SwarmPolicy):
        raise ValueError(
            "this coordination or learner looks into the agents' networks, and these agents answer "
            "in text; choose another --coordination or --learner"
        )
    return policy
