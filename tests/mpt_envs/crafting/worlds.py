"""Hand-made worlds and short ways to play them, for the tests of the crafting domain."""

from __future__ import annotations

import numpy as np

from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, layout

#: Feet of the body in a flat world: on grass over stone.
START = (20, 11, 20)

ROLE_OF = {action: role for role in facts.ROLES for action in facts.ACTIONS[role]}


def flat(goal: str = "iron-pickaxe", tick_budget: int = 100_000) -> CraftingTask:
    """A world of stone up to layer 9 with grass on top, nothing else, the body in it."""
    task = CraftingTask(goal, tick_budget=tick_budget)
    task.reset(0)
    blocks = layout.blocks(task.record)
    ring = np.ones((layout.WIDTH, layout.WIDTH), np.bool_)
    ring[1:-1, 1:-1] = False
    blocks[:] = facts.AIR
    blocks[:, :, 1:10] = facts.STONE
    blocks[:, :, 10] = facts.GRASS
    blocks[:, :, 0] = facts.BEDROCK
    blocks[:, :, layout.HEIGHT - 1] = facts.BARRIER
    blocks[ring] = facts.BARRIER
    layout.ground(task.record)[:] = 10
    s = scalars(task)
    for count in (layout.N_TREES, layout.N_COAL, layout.N_IRON, layout.N_OUTCROPS):
        s[count] = 0
    stand(task, *START)
    return task


def scalars(task: CraftingTask) -> np.ndarray:
    """The scalars of a task's record."""
    return layout.scalars(task.record)


def look(task: CraftingTask) -> None:
    """Let the body perceive what the test has changed."""
    perceive(task.record.view(np.int32), task.record)
    task.changed()


def stand(task: CraftingTask, x: int, y: int, z: int) -> None:
    """Put the body somewhere."""
    scalars(task)[[layout.X, layout.Y, layout.Z]] = (x, y, z)
    look(task)


def put(task: CraftingTask, block: int, x: int, y: int, z: int) -> int:
    """Set a block, list it as what it is, return its cell."""
    cell = layout.cell_of(x, y, z)
    task.record[cell] = block
    s = scalars(task)
    lists = {
        facts.COAL_ORE: (layout.N_COAL, layout.COAL),
        facts.IRON_ORE: (layout.N_IRON, layout.IRON),
    }
    if block in lists:
        count, first = lists[block]
        s[first + s[count]] = layout.spot_of(cell)
        s[count] += 1
    look(task)
    return cell


def grow(task: CraftingTask, x: int, z: int, height: int, base: int = 11) -> None:
    """A trunk without leaves."""
    for y in range(base, base + height):
        task.record[layout.cell_of(x, y, z)] = facts.LOG
    s = scalars(task)
    s[layout.TREES + s[layout.N_TREES]] = layout.spot_of(layout.cell_of(x, base, z))
    s[layout.N_TREES] += 1
    look(task)


def give(task: CraftingTask, **items: int) -> None:
    """Put items into the inventory, by name."""
    s = scalars(task)
    for name, amount in items.items():
        s[layout.INVENTORY + facts.ITEM_NAMES.index(name)] = amount
    look(task)


def has(task: CraftingTask, name: str) -> int:
    """How many of an item the body carries."""
    return int(scalars(task)[layout.INVENTORY + facts.ITEM_NAMES.index(name)])


def block(task: CraftingTask, x: int, y: int, z: int) -> int:
    """The block at a place."""
    return int(layout.blocks(task.record)[x, z, y])


def position(task: CraftingTask) -> tuple[int, int, int]:
    """Feet of the body."""
    s = scalars(task)
    return int(s[layout.X]), int(s[layout.Y]), int(s[layout.Z])


def legal(task: CraftingTask, action: str, role: str | None = None) -> bool:
    """Whether an action is legal now."""
    role = role or ROLE_OF[action]
    return bool(task.action_mask(f"{role}_0")[facts.ACTIONS[role].index(action)])


def do(task: CraftingTask, action: str, role: str | None = None) -> int:
    """Take a legal action; returns the ticks that it took."""
    role = role or ROLE_OF[action]
    assert legal(task, action, role), f"{action} is not legal"
    before = int(scalars(task)[layout.TICK])
    result = task.act(f"{role}_0", facts.ACTIONS[role].index(action))
    assert "illegal" not in result.info
    return int(scalars(task)[layout.TICK]) - before


def random_legal(task: CraftingTask, rng: np.random.Generator) -> tuple[str, int]:
    """An agent and one of its legal actions, uniformly."""
    agent = task.possible_agents[rng.integers(3)]
    return agent, int(rng.choice(np.flatnonzero(task.action_mask(agent))))
