"""Goals, milestones and what they are worth, computed from the recipes.

The value of an item is its depth in the tech tree: a log is worth 1, everything else one more than
the most valuable thing that it needs. Needs are ingredients, the table of a 3x3 recipe, the
furnace of a smelted item, and the weakest pickaxe with which a block drops. So:

    log 1, planks 2, crafting_table 3, stick 3, wooden_pickaxe 4, cobblestone 5, coal 5,
    furnace 6, stone_pickaxe 6, torch 6, iron_ore 7, stone 7, iron_ingot 8, stone_bricks 8,
    iron_pickaxe 9

The milestones of a goal are all items on its path; each is rewarded with its value when it is first
obtained in an episode. Coal is the fuel on the path of everything smelted. (Planks, logs and sticks
burn too; then this milestone is missed and the goal is not.)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mpt_envs.crafting.world import facts


def needs(item: int) -> frozenset[int]:
    """Items that must be had before ``item`` can be had for the first time."""
    wanted: set[int] = set()
    if item in facts.RECIPES:
        recipe = facts.RECIPES[item]
        wanted.update(ingredient for ingredient, _ in recipe.ingredients)
        if recipe.table:
            wanted.add(facts.I_TABLE)
    elif item in facts.SMELTING.values():
        wanted.update(raw for raw, product in facts.SMELTING.items() if product == item)
        wanted.update((facts.I_FURNACE, facts.I_COAL))
    else:
        levels = [fact.level for fact in facts.BLOCK_FACTS.values() if fact.drop == item]
        if levels and min(levels) > 0:
            wanted.add(facts.PICKAXES[min(levels) - 1])
    return frozenset(wanted)


def value(item: int) -> int:
    """Depth of an item in the tech tree."""
    return 1 + max((value(need) for need in needs(item)), default=0)


def path(item: int) -> tuple[int, ...]:
    """``item`` and everything on the way to it, cheapest first."""
    found = {item}
    stack = [item]
    while stack:
        for need in needs(stack.pop()):
            if need not in found:
                found.add(need)
                stack.append(need)
    return tuple(sorted(found, key=lambda i: (value(i), i)))


class Goal(NamedTuple):
    """One task of the domain.

    Attributes:
        name: the part of the id after ``crafting/``, without version.
        item: obtaining it ends the episode.
        max_turns: default turn budget of the game.
        tick_budget: game ticks after which the episode ends. Chosen once by one rule: over 2,000
            worlds, the larger of 1.3 times the scripted expert's median and its 92nd percentile,
            rounded up to 50; so that there is no slack for idling.
    """

    name: str
    item: int
    max_turns: int
    tick_budget: int


GOALS: Final = (
    Goal("iron-pickaxe", facts.I_IRON_PICKAXE, 120, 2700),
    Goal("stone-pickaxe", facts.I_STONE_PICKAXE, 60, 700),
    Goal("wooden-pickaxe", facts.I_WOODEN_PICKAXE, 40, 400),
    Goal("crafting-table", facts.I_TABLE, 30, 150),
    Goal("furnace", facts.I_FURNACE, 60, 900),
    Goal("torch", facts.I_TORCH, 60, 1350),
    Goal("stone-bricks", facts.I_STONE_BRICKS, 80, 2350),
)
GOAL_NAMES: Final = tuple(goal.name for goal in GOALS)

#: int32 (goals, N_ITEMS): reward for obtaining an item first; 0 off the path.
MILESTONE_VALUE: Final = np.zeros((len(GOALS), facts.N_ITEMS), dtype=np.int32)
for _index, _goal in enumerate(GOALS):
    for _item in path(_goal.item):
        MILESTONE_VALUE[_index, _item] = value(_item)
#: int64 (goals,): the item that ends the episode.
GOAL_ITEM: Final = np.array([goal.item for goal in GOALS], dtype=np.int64)
#: Every item that is a milestone of some goal, cheapest first.
MILESTONES: Final = tuple(
    sorted(
        {item for goal in GOALS for item in path(goal.item)}, key=lambda item: (value(item), item)
    )
)


def goal_index(name: str) -> int:
    """Index of a goal by its name.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in GOAL_NAMES:
        raise ValueError(f"unknown crafting goal {name!r}; goals: {', '.join(GOAL_NAMES)}")
    return GOAL_NAMES.index(name)


def max_return(name: str) -> int:
    """Sum of all milestones of a goal: the return of a perfect episode."""
    return int(MILESTONE_VALUE[goal_index(name)].sum())
