"""What an episode is measured by, from the scalars of its record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOALS, path


def metric_names(goal: int) -> tuple[str, ...]:
    """Names of the metrics of a goal.

    ``success`` (0 or 1), ``milestones`` (how many were reached), ``ticks`` (game time), ``blocked``
    (targets to which no way led), and ``reached_ITEM`` (0 or 1) for each milestone of the goal.
    """
    reached = [f"reached_{facts.ITEM_NAMES[item]}" for item in path(GOALS[goal].item)]
    return ("success", "milestones", "ticks", "blocked", *reached)


def metrics_of(s: NDArray[np.int32], goal: int) -> NDArray[np.float64]:
    """The metrics of worlds from their scalars ``(N, N_INTS)``: ``float64 (N, metrics)``."""
    items = np.array(path(GOALS[goal].item))
    reached = s[:, at.SEEN, None] >> items & 1
    columns = [s[:, at.DONE] == at.DONE_GOAL, reached.sum(axis=1), s[:, at.TICK], s[:, at.BLOCKED]]
    return np.concatenate([np.stack(columns, axis=1), reached], axis=1).astype(np.float64)
