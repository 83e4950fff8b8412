"""Strategies with nothing to learn: round-robin, random bids, fixed priority, a single agent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpt_train.config import TrainConfig
from mpt_train.coordination.base import Coordination, Shape, one_hot_bids, register
from mpt_train.policies.base import TurnContext
from wrappers.rng import STREAM_COORDINATION, hash_rows


class RoundRobin(Coordination):
    """Agents take turns; an absent agent's turn goes to the next one in the order."""

    name = "round-robin"

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """The highest bid for agent ``turn mod A``."""
        count = context.policy.num_agents
        order = (context.turns[:, None] + np.arange(count)) % count
        here = np.take_along_axis(context.present, order, axis=1)
        first = order[np.arange(len(order)), here.argmax(axis=1)]
        return one_hot_bids(np.where(here.any(axis=1), first, -1), count, context.num_levels)


class RandomBids(Coordination):
    """Every present agent bids a level drawn uniformly."""

    name = "random"

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """Uniform levels, keyed by (episode, turn, agent)."""
        words = np.empty(context.present.shape, np.uint64)
        hash_rows(context.keys, context.turns, STREAM_COORDINATION, words)
        scaled = ((words >> np.uint64(32)) * np.uint64(context.num_levels)) >> np.uint64(32)
        levels = scaled.astype(np.int64)
        levels[~context.present] = 0
        return levels


class FixedPriority(Coordination):
    """The first role of a fixed order that can do more than its default action.

    An agent whose only legal action is its first one (which idles, by convention of our domains)
    passes; if all pass, the first present agent of the order acts.
    """

    name = "priority"

    def __init__(self, order: tuple[str, ...], roles: tuple[str, ...]) -> None:
        known = tuple(dict.fromkeys(roles))
        order = order or tuple(reversed(known))
        if sorted(order) != sorted(known):
            raise ValueError(f"priority must name each of the roles {known} once, got {order}")
        self._agents = np.array(
            [agent for role in order for agent, r in enumerate(roles) if r == role]
        )

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """The highest bid for the first agent that is present and has something to do."""
        busy = np.stack([mask[:, 1:].any(axis=1) for mask in context.masks], axis=1)
        able = (context.present & busy)[:, self._agents]
        here = context.present[:, self._agents]
        pick = np.where(able.any(axis=1), able.argmax(axis=1), here.argmax(axis=1))
        winners = np.where(here.any(axis=1), self._agents[pick], -1)
        return one_hot_bids(winners, context.policy.num_agents, context.num_levels)


class Solo(Coordination):
    """One agent acts in every turn: the monolithic policy in the same game."""

    name = "solo"

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """The highest bid for agent 0 wherever it is present."""
        winners = np.where(context.present[:, 0], 0, -1)
        return one_hot_bids(winners, context.policy.num_agents, context.num_levels)


def _priority(config: TrainConfig, shape: Shape) -> Coordination:
    return FixedPriority(config.priority, shape.roles)


register("round-robin", lambda config, shape: RoundRobin())
register("random", lambda config, shape: RandomBids())
register("priority", _priority)
register("solo", lambda config, shape: Solo())
