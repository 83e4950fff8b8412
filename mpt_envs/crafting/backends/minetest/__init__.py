"""Crafting in a real voxel engine: Minetest (Luanti), driven over a local socket.

`make_task` gives one world of a goal as a turn task with the same roles, actions, rewards,
observations and text as the embedded one; the engine decides what happens. Files: `install` (finds
the engine), `server` (one process), `pool` (so many of them), `record` (the engine's report as a
record of `layout`), `snapshots`, `task`; ``mod/`` is the server's side, in Lua.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpt_envs.crafting.backends.minetest.task import MinetestTask


def make_task(goal: str = "iron-pickaxe", *, tick_budget: int | None = None) -> MinetestTask:
    """One world of a goal (see `goals.GOAL_NAMES`) in Minetest, as a `TurnTask`.

    Args:
        goal: e.g. ``"iron-pickaxe"``.
        tick_budget: game ticks of an episode; None takes the goal's.

    Raises:
        EngineMissingError: there is no Minetest here, or not all of it; says how to get it.
    """
    from mpt_envs.crafting.backends.minetest.task import MinetestTask

    return MinetestTask(goal, tick_budget=tick_budget)
