"""Crafting: Minecraft 1.16 rules on seeded voxel terrain, one body shared by three roles.

`make_task` gives one world as a turn task, `make_batch` many, stepped by the same compiled rules.
The way of an action through the files:

* A state is one flat record (`world/layout`); `world/terrain` makes it from the episode's key, with
  the numbers of `world/facts`; `world/goals` says what is worth something.
* `batch` loops over records, `task` is a batch of one. A decision goes to `rules/turn`, it walks,
  digs and crafts in game ticks and pays milestones; then `rules/perception` writes into the record
  what the body sees and which actions are legal now. `rules/expert` reads nothing else.
* Agents observe it as numbers (`views/observation`) or words (`views/text`, which also reads their
  answers); people see `views/render` and `views/ansi`, both drawn from `views/scene`.
* `rules/snapshots` tells which records are states, `rules/metrics` measures an episode,
  `rules/prefetch` only makes it faster.
* `backends/minetest` and `backends/minestudio` play the same decisions in real engines, and write
  what happened into the same record.
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
