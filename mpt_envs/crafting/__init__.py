"""Crafting: Minecraft 1.16 rules on seeded voxel terrain, one body shared by three roles.

`make_task` gives one world as a turn task, `make_batch` many worlds stepped by the same compiled
rules. Files: `facts` (numbers of Minecraft), `layout` (the record of a world), `terrain`,
`perception`, `rules`, `observation`, `goals`, `expert`, then `task` and `batch`; `text`, `render`
and `ansi` show a record to people and language models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpt_envs.crafting.batch import CraftingBatch
    from mpt_envs.crafting.task import CraftingTask


def make_task(goal: str = "iron-pickaxe", *, tick_budget: int | None = None) -> CraftingTask:
    """One world of a goal (see `goals.GOAL_NAMES`) as a `TurnTask`.

    Args:
        goal: e.g. ``"iron-pickaxe"``.
        tick_budget: game ticks of an episode; None takes the goal's.
    """
    from mpt_envs.crafting.task import CraftingTask

    return CraftingTask(goal, tick_budget=tick_budget)


def make_batch(
    num_envs: int, goal: str = "iron-pickaxe", *, tick_budget: int | None = None
) -> CraftingBatch:
    """``num_envs`` worlds of a goal as a `BatchTask`; arguments as for `make_task`."""
    from mpt_envs.crafting.batch import CraftingBatch

    return CraftingBatch(goal, num_envs, tick_budget=tick_budget)
