"""The auction of one turn: sealed bids in, winner and runner-up out.

Agents are ranked by their bid; equal bids are ranked by a random word keyed by (episode, turn,
agent), which breaks ties uniformly and identically in every branch that shares the key. The first
of the ranking wins if its bid is above 0, the second is the runner-up if *its* bid is above 0. A
turn with a runner-up is called contested.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.compiled import kernel
from wrappers.rng import STREAM_TIE, hash4

TENTHS: tuple[float, ...] = tuple(round(i / 10, 1) for i in range(11))
"""Bid levels 0, 0.1, ... 1: the default."""

CROWDED: tuple[float, ...] = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)
"""Levels crowded towards 1: a winning bid of b lets credit reach about 1 / (1 - b) turns back."""

LEVELS: dict[str, tuple[float, ...]] = {"tenths": TENTHS, "crowded": CROWDED}
"""Named bid levels that `make(bid_levels=...)` and the command line accept."""


class Auction(NamedTuple):
    """A resolved auction.

    Attributes:
        turn: the turn it belongs to, from 0.
        bids: the bid of each possible agent, in their order (0.0 for an absent agent).
        winner: who acts, or None if the turn was skipped.
        runner_up: the second of the ranking if its bid is above 0, else None.
    """

    turn: int
    bids: tuple[float, ...]
    winner: str | None
    runner_up: str | None

    @property
    def skipped(self) -> bool:
        """Whether every bid was 0, so that nobody acts in this turn."""
        return self.winner is None

    @property
    def contested(self) -> bool:
        """Whether a second agent bid more than 0."""
        return self.runner_up is not None


@kernel
def resolve(bids, key, turn):
    """Winner and runner-up of one auction.

    Args:
        bids: ``int64 (A,)`` bid levels (indices; level 0 is a bid of 0).
        key: random key of the episode.
        turn: turn counter.

    Returns:
        ``(winner, runner_up)``: agent indices, -1 where there is none.
    """
    first = -1
    second = -1
    for agent in range(bids.shape[0]):
        if bids[agent] <= 0:
            continue
        if first < 0 or _ranks_before(bids, key, turn, agent, first):
            second = first
            first = agent
        elif second < 0 or _ranks_before(bids, key, turn, agent, second):
            second = agent
    return first, second


@kernel
def _ranks_before(bids, key, turn, agent, other):
    if bids[agent] != bids[other]:
        return bids[agent] > bids[other]
    return hash4(key, turn, STREAM_TIE, agent) > hash4(key, turn, STREAM_TIE, other)


@kernel
def resolve_rows(bids, keys, turns, winners, runners_up):
    """`resolve` for every row of ``bids: int64 (N, A)`` into ``int64 (N,)`` outputs."""
    for row in range(bids.shape[0]):
        winners[row], runners_up[row] = resolve(bids[row], keys[row], turns[row])


def check_levels(levels: str | Sequence[float] | NDArray[np.float64] | None) -> tuple[float, ...]:
    """Bid levels as a tuple; accepts a name from `LEVELS`, a sequence, or None for the tenths.

    Raises:
        ValueError: an unknown name, or levels that do not start at 0, do not increase strictly,
            leave [0, 1], or are fewer than two.
    """
    if levels is None:
        return TENTHS
    if isinstance(levels, str):
        if levels not in LEVELS:
            raise ValueError(
                f"unknown bid levels {levels!r}: name one of {', '.join(LEVELS)} or give numbers"
            )
        return LEVELS[levels]
    try:
        values = tuple(float(level) for level in levels)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bid levels are a name ({', '.join(LEVELS)}) or numbers, not {levels!r}"
        ) from error
    increasing = all(a < b for a, b in itertools.pairwise(values))
    if len(values) < 2 or values[0] != 0.0 or values[-1] > 1.0 or not increasing:
        raise ValueError(
            f"bid levels must be at least two numbers that start at 0, increase strictly and stay "
            f"in [0, 1]; got {values}"
        )
    return values
