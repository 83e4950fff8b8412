"""Credit: how the reward of an episode reaches the agent that acted in each turn.

`market_values` is the market's own rule (MPT paper): v_t = r_t + b_{t+1} v_{t+1}, where t + 1 is
the next turn in which somebody acted; the winner of turn t pays its bid on to the turn before and
keeps (1 - b_t) v_t. A skipped turn has no actor and takes no share; its reward joins the turn
before it.

All arrays are ``(T, N)``: turn by world; ``active`` marks turns that were played.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mpt_train.config import ActionLearning
from mpt_train.records import Batch
from wrappers.compiled import kernel


@kernel
def _market(rewards, bids, winners, active, values):
    turns, worlds = rewards.shape
    for n in range(worlds):
        carried = 0.0  # b_{t+1} v_{t+1} of the next turn with an actor
        extra = 0.0  # rewards of skipped turns since
        for t in range(turns - 1, -1, -1):
            if not active[t, n]:
                continue
            if winners[t, n] < 0:
                extra += rewards[t, n]
                continue
            values[t, n] = rewards[t, n] + extra + carried
            carried = bids[t, n] * values[t, n]
            extra = 0.0


def market_values(
    rewards: NDArray[np.float64],
    winning_bids: NDArray[np.float64],
    winners: NDArray[np.int64],
    active: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """v_t for each turn with an actor, 0 elsewhere.

    Args:
        rewards: team reward of each turn.
        winning_bids: b_t in [0, 1].
        winners: acting agent, -1 for a skipped turn.
        active: whether the turn was played.
    """
    values = np.zeros_like(rewards)
    _market(rewards, winning_bids, winners, active, values)
    return values


@kernel
def _discounted(rewards, active, discount, out):
    turns, worlds = rewards.shape
    for n in range(worlds):
        carried = 0.0
        for t in range(turns - 1, -1, -1):
            if active[t, n]:
                carried = rewards[t, n] + discount * carried
                out[t, n] = carried


def discounted_returns(
    rewards: NDArray[np.float64], active: NDArray[np.bool_], discount: float
) -> NDArray[np.float64]:
    """Sum over s >= t of ``discount**(s - t) r_s``, 0 where a turn was not played."""
    out = np.zeros_like(rewards)
    _discounted(rewards, active, discount, out)
    return out


def actor_credit(
    config: ActionLearning,
    rewards: NDArray[np.float64],
    winning_bids: NDArray[np.float64],
    winners: NDArray[np.int64],
    active: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The credit of the actor of each turn, as `ActionLearning.credit` says."""
    if config.credit == "discounted":
        return discounted_returns(rewards, active, config.discount)
    values = market_values(rewards, winning_bids, winners, active)
    if config.credit == "value":
        return values
    return (1.0 - winning_bids) * values


Credit = Callable[[Batch], NDArray[np.float64]]
"""From episodes to the credit of the actor of each turn, ``(T, N)``."""


def build_credit(config: ActionLearning) -> Credit:
    """The credit that a configuration names."""
    return lambda batch: actor_credit(
        config, batch.rewards, batch.winning_bids, batch.winners, batch.active
    )


def credit_by_role(batch: Batch, credit: NDArray[np.float64]) -> dict[str, float]:
    """Mean and standard deviation of the credit of each role's actors, for the log."""
    statistics = {}
    for role in dict.fromkeys(batch.roles):
        mine = batch.acted & (np.array(batch.roles) == role)[batch.winners]
        if mine.any():
            statistics[f"credit_mean/{role}"] = float(credit[mine].mean())
            statistics[f"credit_std/{role}"] = float(credit[mine].std())
    return statistics


def subtract_turn_mean(
    values: NDArray[np.float64], active: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Values minus the mean over the worlds that were played at the same turn."""
    count = np.maximum(active.sum(axis=1), 1)
    mean = np.where(active, values, 0.0).sum(axis=1) / count
    return np.where(active, values - mean[:, None], 0.0)


def advantages(
    config: ActionLearning,
    credit: NDArray[np.float64],
    winners: NDArray[np.int64],
    active: NDArray[np.bool_],
    num_agents: int,
    values: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Credit minus its baseline, optionally scaled per agent; 0 where nobody acted.

    Args:
        config: which baseline.
        credit, winners, active: ``(T, N)``.
        num_agents: A.
        values: ``(T, N)`` predicted credit, for the baseline "value".
    """
    acted = active & (winners >= 0)
    result = np.zeros_like(credit)
    if config.baseline == "value":
        assert values is not None
        result = np.where(acted, credit - values, 0.0)
    if config.baseline == "turn":
        result = subtract_turn_mean(credit, acted)
    for agent in range(num_agents):
        rows = acted & (winners == agent)
        if not rows.any():
            continue
        if config.baseline == "agent":
            result[rows] = credit[rows] - credit[rows].mean()
        if config.normalize:
            result[rows] /= result[rows].std() + 1e-6
    return result
