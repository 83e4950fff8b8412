"""Checks of a snapshot's payload before it becomes a record: the compiled rules trust it.

The rules look nothing up twice: a position, a count or a block out of range would lead them out of
their arrays, and a mask that allows what cannot be done would let them dig the bottom out of the
world. So a payload is a state only if every scalar lies in its range, the world is closed, what is
listed is there, and what the body perceives is what it would perceive.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOALS
from mpt_envs.crafting.world.layout import cell_of, cell_x, cell_y, cell_z

_MANY: Final = 1 << 20  # more than a world holds of anything
_LONG: Final = (1 << 30) + _MANY  # more than a budget can be and an action can take


def task_id(goal: str) -> str:
    """Id of the task of a goal."""
    return f"crafting/{goal}-v0"


def _bounds() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Least and largest value of each scalar, ``int32 (N_INTS,)`` each.

    Seeds and keys may be anything; what is perceived is compared with what it should be instead.
    """
    low = np.full(at.N_INTS, np.iinfo(np.int32).min, np.int32)
    high = np.full(at.N_INTS, np.iinfo(np.int32).max, np.int32)
    ranges: list[tuple[int, int, int, int]] = [
        # first scalar, how many, least, largest
        (at.VERSION, 1, at.LAYOUT_VERSION, at.LAYOUT_VERSION),
        (at.GOAL, 1, 0, len(GOALS) - 1),
        (at.BUDGET, 1, 1, (1 << 30) - 1),
        (at.DONE, 1, 0, at.DONE_DEATH),
        (at.TURN, 1, 0, _LONG),
        (at.TICK, 1, 0, _LONG),
        (at.MILLITICK, 1, 0, 999),
        (at.X, 1, 1, at.WIDTH - 2),
        (at.Y, 1, 1, at.HEIGHT - 3),
        (at.Z, 1, 1, at.WIDTH - 2),
        (at.WOUND, 1, 0, (facts.MAX_HEALTH + at.HEIGHT) * facts.REGENERATION_TICKS),
        (at.SEEN, 1, 0, (1 << facts.N_ITEMS) - 1),
        (at.SCORE, 1, 0, _MANY),
        (at.HEADING, 1, -1, len(facts.DIRECTIONS) - 1),
        (at.BLOCKED, 1, 0, _LONG),
        (at.INVENTORY, facts.N_ITEMS, 0, _MANY),
        (at.TABLE_CELL, 2, 0, at.RECORD_BYTES - 1),
        (at.FURNACE_INPUT, 1, facts.NO_ITEM, facts.N_ITEMS - 1),
        (at.FURNACE_INPUT_COUNT, 1, 0, _MANY),
        (at.FURNACE_FUEL, 1, facts.NO_ITEM, facts.N_ITEMS - 1),
        (at.FURNACE_FUEL_COUNT, 1, 0, _MANY),
        (at.FURNACE_OUTPUT, 1, facts.NO_ITEM, facts.N_ITEMS - 1),
        (at.FURNACE_OUTPUT_COUNT, 1, 0, _MANY),
        (at.FURNACE_BURN, 1, 0, int(facts.BURN.max())),
        (at.FURNACE_PROGRESS, 1, 0, facts.SMELT_TICKS - 1),
        (at.LAST_ROLE, 1, -1, len(facts.ROLES) - 1),
        (at.LAST_ACTION, 1, -1, max(facts.N_ACTIONS) - 1),
        (at.LAST_OUTCOME, 1, 0, len(at.OUTCOME_NAMES) - 1),
        (at.LAST_TICKS, 1, 0, _LONG),
        (at.DUG, facts.N_BLOCKS, 0, _LONG),
        (at.PLACED, facts.N_BLOCKS, 0, _LONG),
        (at.MARKS, 2 * at.N_MARKS, 0, _LONG),
        (at.MARK_NEXT, 1, 0, at.N_MARKS - 1),
        (at.EVENT_COUNT, 1, 0, _LONG),
        (at.N_TREES, 1, 0, at.MAX_TREES),
        (at.N_COAL, 1, 0, at.MAX_COAL),
        (at.N_IRON, 1, 0, at.MAX_IRON),
        (at.N_OUTCROPS, 1, 0, at.MAX_OUTCROPS),
        (at.FURNACE_TICK, 1, 0, _LONG),
        (at.MARK_UNTIL, 1, 0, _LONG),
        (at.TREES, at.N_INTS - at.TREES, 0, 1 << 24),
    ]
    ranges += [
        (at.WEAR + kind, 1, 0, uses - 1) for kind, uses in enumerate(facts.PICKAXE_DURABILITY)
    ]
    for event in range(at.N_EVENTS):
        slot = at.EVENTS + at.EVENT_FIELDS * event
        ranges += [
            (slot, 1, 0, _LONG),
            (slot + 1, 1, 0, len(at.EVENT_NAMES) - 1),
            (slot + 2, 1, 0, _MANY),
            (slot + 3, 1, 0, _LONG),
        ]
    for first, count, least, largest in ranges:
        low[first : first + count] = least
        high[first : first + count] = largest
    return low, high


def _argument_limits() -> NDArray[np.int64]:
    """How many values the argument of each kind of event can have, ``int64 (events,)``."""
    limits = np.ones(len(at.EVENT_NAMES), np.int64)
    for event in (
        at.EVENT_GOT,
        at.EVENT_CRAFTED,
        at.EVENT_PLACED,
        at.EVENT_SMELTING,
        at.EVENT_TOOK,
        at.EVENT_TOOL_BROKE,
        at.EVENT_MILESTONE,
    ):
        limits[event] = facts.N_ITEMS
    limits[at.EVENT_BROKE] = facts.N_BLOCKS
    limits[at.EVENT_WALKED] = limits[at.EVENT_TUNNELLED] = len(facts.DIRECTIONS)
    limits[at.EVENT_BLOCKED] = len(at.TARGET_NAMES) + 2
    return limits


_LOW, _HIGH = _bounds()
_ARGUMENTS: Final = _argument_limits()
_N_ACTIONS: Final = np.array(facts.N_ACTIONS, dtype=np.int64)


@kernel
def _scalars_are_sound(s):
    """Whether every scalar of a record (int32) is in its range, alone and beside the others."""
    sound = True
    for k in range(at.N_INTS):
        sound &= _LOW[k] <= s[k] and s[k] <= _HIGH[k]
    if not sound or s[at.FURNACE_TICK] > s[at.TICK]:
        return False
    if s[at.LAST_ROLE] < 0:
        if s[at.LAST_ACTION] >= 0:
            return False
    elif s[at.LAST_ACTION] < 0 or s[at.LAST_ACTION] >= _N_ACTIONS[s[at.LAST_ROLE]]:
        return False
    if s[at.FURNACE_INPUT_COUNT] > 0 and (
        s[at.FURNACE_INPUT] == facts.NO_ITEM
        or facts.SMELTS_TO[s[at.FURNACE_INPUT]] == facts.NO_ITEM
    ):
        return False
    if s[at.FURNACE_FUEL_COUNT] > 0 and (
        s[at.FURNACE_FUEL] == facts.NO_ITEM or facts.BURN[s[at.FURNACE_FUEL]] == 0
    ):
        return False
    if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] == facts.NO_ITEM:
        return False
    for k in range(at.N_EVENTS):
        slot = at.EVENTS + at.EVENT_FIELDS * k
        if s[slot + 2] >= _ARGUMENTS[s[slot + 1]]:
            return False
    return True


@kernel
def _world_is_closed(b):
    """Whether the blocks of a record (uint8) are blocks, and nothing leads out of the world."""
    highest = np.uint8(0)
    for k in range(at.GROUND_OFFSET, at.BLOCKS_OFFSET):
        highest = max(highest, b[k])
    if highest >= at.HEIGHT:
        return False
    highest = np.uint8(0)
    for k in range(at.BLOCKS_OFFSET, at.RECORD_BYTES):
        highest = max(highest, b[k])
    if highest > facts.BARRIER:
        return False
    closed = True
    for x in range(at.WIDTH):
        for z in range(at.WIDTH):
            column = cell_of(x, 0, z)
            if x == 0 or z == 0 or x == at.WIDTH - 1 or z == at.WIDTH - 1:
                for y in range(at.HEIGHT):
                    closed &= b[column + y] == facts.BARRIER
            else:
                closed &= b[column] == facts.BEDROCK and b[column + at.HEIGHT - 1] == facts.BARRIER
    return closed


@kernel
def _is_inside(x, y, z):
    """Whether a place is off the shell of the world, so that it has all its neighbours."""
    return 1 <= x < at.WIDTH - 1 and 1 <= y < at.HEIGHT - 1 and 1 <= z < at.WIDTH - 1


@kernel
def _is_there(b, cell, block):
    """Whether a cell is 0 (none), or inside of the world and this block."""
    if cell == 0:
        return True
    if cell < at.BLOCKS_OFFSET or cell >= at.RECORD_BYTES:
        return False
    return _is_inside(cell_x(cell), cell_y(cell), cell_z(cell)) and b[cell] == block


@kernel
def _are_there(s, b, first, count, block):
    """Whether the spots of a list are inside of the world and such blocks."""
    for k in range(first, first + count):
        spot = np.int64(s[k])
        x, z, y = spot >> 16, (spot >> 8) & 255, spot & 255
        if not _is_inside(x, y, z) or b[cell_of(x, y, z)] != block:
            return False
    return True


@kernel
def is_sound(s, b, goal):
    """Whether a record of a goal holds nothing that could lead a rule out of its arrays.

    That what is perceived fits the rest is for the caller to check, by perceiving again.

    Args:
        s, b: the record as int32 and as uint8.
        goal: index into goals.GOALS.
    """
    if not _scalars_are_sound(s) or s[at.GOAL] != goal or not _world_is_closed(b):
        return False
    feet = cell_of(np.int64(s[at.X]), np.int64(s[at.Y]), np.int64(s[at.Z]))
    return (
        b[feet] <= facts.WATER
        and b[feet + 1] <= facts.WATER
        and _is_there(b, np.int64(s[at.TABLE_CELL]), facts.TABLE)
        and _is_there(b, np.int64(s[at.FURNACE_CELL]), facts.FURNACE)
        and _are_there(s, b, at.TREES, s[at.N_TREES], facts.LOG)
        and _are_there(s, b, at.COAL, s[at.N_COAL], facts.COAL_ORE)
        and _are_there(s, b, at.IRON, s[at.N_IRON], facts.IRON_ORE)
        and _are_there(s, b, at.OUTCROPS, s[at.N_OUTCROPS], facts.STONE)
    )


def is_valid(record: NDArray[np.uint8], goal: int) -> bool:
    """Whether a record, uint8 ``(RECORD_BYTES,)``, is a state of a goal that rules may play on."""
    if not is_sound(record.view(np.int32), record, goal):
        return False
    again = record.copy()
    perceive(again.view(np.int32), again)
    return np.array_equal(again, record)
