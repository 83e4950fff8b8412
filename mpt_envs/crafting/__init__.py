"""Crafting: Minecraft 1.16 rules on seeded voxel terrain, one body shared by three roles.

`make_task` gives one world as a turn task (`task`), `make_batch` many worlds (`batch`), both by the
same compiled rules. The way of an action through the rooms:

* `world`: `facts` are the numbers of Minecraft, `goals` what items are worth, `terrain` makes a
  world, `layout` is the one flat record that a world is.
* The game of `wrappers` takes a bid from each agent; the winner's action comes to `batch.act_row`.
* `rules.turn` refuses what the mask in the record forbids, else lets the action dig, walk, craft or
  smelt, lets time pass, and returns the worth of new milestones: the reward.
* `rules.perception` then writes into the record what the body sees from where it stands, and the
  masks of the next turn. `rules.metrics` and `rules.expert` only read the record;
  `rules.snapshots` checks one that comes from outside; `rules.prefetch` makes it quick.
* `views` show a record: `observation` to policies, `text` to language models, `render` and `ansi`
  (by `scene` and `sprites`) to people.
* `backends` play the same game in Minetest and in Minecraft: they write the record from what the
  engine tells (`engine_task`).
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
