"""Dropout: each turn, each agent is absent with a fixed probability.

An absent agent is still asked for its bid, so that the order of the game never changes, but only
bid level 0 is legal for it; it therefore never wins and its mask is never empty. Who is absent is a
pure function of the episode's key and the turn (`wrappers.rng`), so a branch restored from a
snapshot meets the same absences.
"""

from __future__ import annotations

from wrappers.compiled import kernel
from wrappers.rng import STREAM_DROPOUT, uniform4


@kernel
def is_present(key, turn, agent_index, probability):
    """Whether the agent takes part in this turn under the given dropout probability."""
    return uniform4(key, turn, STREAM_DROPOUT, agent_index) >= probability


@kernel
def present_rows(keys, turns, probability, out):
    """Fill ``out: bool (N, A)`` with `is_present` for every world and agent."""
    for row in range(out.shape[0]):
        for agent in range(out.shape[1]):
            out[row, agent] = is_present(keys[row], turns[row], agent, probability)


def check_probability(probability: float) -> float:
    """Return the dropout probability as float, or raise ``ValueError``."""
    try:
        value = float(probability)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value < 1.0:
        raise ValueError(f"dropout must be a probability in [0, 1), got {probability!r}")
    return value
