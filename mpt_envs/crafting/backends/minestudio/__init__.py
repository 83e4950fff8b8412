"""Crafting in Minecraft itself, through MineStudio's `MinecraftSim`.

`make_task` gives one world of a goal as a turn task with the same roles, actions, rewards,
observations and text as the embedded one; Minecraft decides what happens. Files: `install` (finds
the engine), `engine` (one simulator, step by step), `report` (what a step tells), `names`
(Minecraft's names as ours), `window` (what was seen, as a record of `layout`), `geometry`, `body`
(looking, walking, digging, placing), `screens` (clicks in Minecraft's windows), `crafters`
(crafting by clicks or by commands), `planner` (what each decision does), `snapshots`, `task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpt_envs.crafting.backends.minestudio.task import MineStudioTask


def make_task(
    goal: str = "iron-pickaxe",
    *,
    tick_budget: int | None = None,
    crafting_mode: str = "gui",
    biome: str = "forest",
) -> MineStudioTask:
    """One world of a goal (see `goals.GOAL_NAMES`) in Minecraft, as a `TurnTask`.

    Args:
        goal: e.g. ``"iron-pickaxe"``.
        tick_budget: game ticks of an episode; None takes the goal's.
        crafting_mode: ``"gui"``: items are crafted by clicks in Minecraft's own windows;
            ``"command"``: by ``/clear`` and ``/give``, which is faster and no test of clicking.
        biome: where episodes start, as Minecraft names it.

    Raises:
        EngineMissingError: MineStudio or its engine is not here; says how to get it and where it
            was looked for.
        ValueError: there is no such goal or crafting mode.
    """
    from mpt_envs.crafting.backends.minestudio.task import MineStudioTask

    return MineStudioTask(goal, tick_budget=tick_budget, crafting_mode=crafting_mode, biome=biome)
