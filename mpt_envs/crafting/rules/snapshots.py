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
from mpt_envs.crafting.world.facts import (
    BARRIER,
    BEDROCK,
    BURN,
    COAL_ORE,
    DIRECTIONS,
    FURNACE,
    IRON_ORE,
    LOG,
    MAX_HEALTH,
    N_ACTIONS,
    N_BLOCKS,
    N_ITEMS,
    NO_ITEM,
    PICKAXE_DURABILITY,
    REGENERATION_TICKS,
    ROLES,
    SMELT_TICKS,
    SMELTS_TO,
    STONE,
    TABLE,
    WATER,
)
from mpt_envs.crafting.world.goals import GOALS
from mpt_envs.crafting.world.layout import (
    BLOCKED,
    BLOCKS_OFFSET,
    BUDGET,
    COAL,
    DONE,
    DONE_DEATH,
    DUG,
    EVENT_BLOCKED,
    EVENT_BROKE,
    EVENT_COUNT,
    EVENT_CRAFTED,
    EVENT_FIELDS,
    EVENT_GOT,
    EVENT_MILESTONE,
    EVENT_NAMES,
    EVENT_PLACED,
    EVENT_SMELTING,
    EVENT_TOOK,
    EVENT_TOOL_BROKE,
    EVENT_TUNNELLED,
    EVENT_WALKED,
    EVENTS,
    FURNACE_BURN,
    FURNACE_CELL,
    FURNACE_FUEL,
    FURNACE_FUEL_COUNT,
    FURNACE_INPUT,
    FURNACE_INPUT_COUNT,
    FURNACE_OUTPUT,
    FURNACE_OUTPUT_COUNT,
    FURNACE_PROGRESS,
    FURNACE_TICK,
    GOAL,
    GROUND_OFFSET,
    HEADING,
    HEIGHT,
    INVENTORY,
    IRON,
    LAST_ACTION,
    LAST_OUTCOME,
    LAST_ROLE,
    LAST_TICKS,
    LAYOUT_VERSION,
    MARK_NEXT,
    MARK_UNTIL,
    MARKS,
    MAX_COAL,
    MAX_IRON,
    MAX_OUTCROPS,
    MAX_TREES,
    MILLITICK,
    N_COAL,
    N_EVENTS,
    N_INTS,
    N_IRON,
    N_MARKS,
    N_OUTCROPS,
    N_TREES,
    OUTCOME_NAMES,
    OUTCROPS,
    PLACED,
    RECORD_BYTES,
    SCORE,
    SEEN,
    TABLE_CELL,
    TARGET_NAMES,
    TICK,
    TREES,
    TURN,
    VERSION,
    WEAR,
    WIDTH,
    WOUND,
    X,
    Y,
    Z,
    cell_of,
    cell_x,
    cell_y,
    cell_z,
)

_MANY: Final = 1 << 20  # more than a world holds of anything
_LONG: Final = (1 << 30) + _MANY  # more than a budget can be and an action can take


def task_id(goal: str) -> str:
    """Id of the task of a goal."""
    return f"crafting/{goal}-v0"


def _bounds() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Least and largest value of each scalar, ``int32 (N_INTS,)`` each.

    Seeds and keys may be anything; what is perceived is compared with what it should be instead.
    """
    low = np.full(N_INTS, np.iinfo(np.int32).min, np.int32)
    high = np.full(N_INTS, np.iinfo(np.int32).max, np.int32)
    ranges: list[tuple[int, int, int, int]] = [
        # first scalar, how many, least, largest
        (VERSION, 1, LAYOUT_VERSION, LAYOUT_VERSION),
        (GOAL, 1, 0, len(GOALS) - 1),
        (BUDGET, 1, 1, (1 << 30) - 1),
        (DONE, 1, 0, DONE_DEATH),
        (TURN, 1, 0, _LONG),
        (TICK, 1, 0, _LONG),
        (MILLITICK, 1, 0, 999),
        (X, 1, 1, WIDTH - 2),
        (Y, 1, 1, HEIGHT - 3),
        (Z, 1, 1, WIDTH - 2),
        (WOUND, 1, 0, (MAX_HEALTH + HEIGHT) * REGENERATION_TICKS),
        (SEEN, 1, 0, (1 << N_ITEMS) - 1),
        (SCORE, 1, 0, _MANY),
        (HEADING, 1, -1, len(DIRECTIONS) - 1),
        (BLOCKED, 1, 0, _LONG),
        (INVENTORY, N_ITEMS, 0, _MANY),
        (TABLE_CELL, 2, 0, RECORD_BYTES - 1),
        (FURNACE_INPUT, 1, NO_ITEM, N_ITEMS - 1),
        (FURNACE_INPUT_COUNT, 1, 0, _MANY),
        (FURNACE_FUEL, 1, NO_ITEM, N_ITEMS - 1),
        (FURNACE_FUEL_COUNT, 1, 0, _MANY),
        (FURNACE_OUTPUT, 1, NO_ITEM, N_ITEMS - 1),
        (FURNACE_OUTPUT_COUNT, 1, 0, _MANY),
        (FURNACE_BURN, 1, 0, int(BURN.max())),
        (FURNACE_PROGRESS, 1, 0, SMELT_TICKS - 1),
        (LAST_ROLE, 1, -1, len(ROLES) - 1),
        (LAST_ACTION, 1, -1, max(N_ACTIONS) - 1),
        (LAST_OUTCOME, 1, 0, len(OUTCOME_NAMES) - 1),
        (LAST_TICKS, 1, 0, _LONG),
        (DUG, N_BLOCKS, 0, _LONG),
        (PLACED, N_BLOCKS, 0, _LONG),
        (MARKS, 2 * N_MARKS, 0, _LONG),
        (MARK_NEXT, 1, 0, N_MARKS - 1),
        (EVENT_COUNT, 1, 0, _LONG),
        (N_TREES, 1, 0, MAX_TREES),
        (N_COAL, 1, 0, MAX_COAL),
        (N_IRON, 1, 0, MAX_IRON),
        (N_OUTCROPS, 1, 0, MAX_OUTCROPS),
        (FURNACE_TICK, 1, 0, _LONG),
        (MARK_UNTIL, 1, 0, _LONG),
        (TREES, N_INTS - TREES, 0, 1 << 24),
    ]
    ranges += [(WEAR + kind, 1, 0, uses - 1) for kind, uses in enumerate(PICKAXE_DURABILITY)]
    for event in range(N_EVENTS):
        at = EVENTS + EVENT_FIELDS * event
        ranges += [
            (at, 1, 0, _LONG),
            (at + 1, 1, 0, len(EVENT_NAMES) - 1),
            (at + 2, 1, 0, _MANY),
            (at + 3, 1, 0, _LONG),
        ]
    for first, count, least, largest in ranges:
        low[first : first + count] = least
        high[first : first + count] = largest
    return low, high


def _argument_limits() -> NDArray[np.int64]:
    """How many values the argument of each kind of event can have, ``int64 (events,)``."""
    limits = np.ones(len(EVENT_NAMES), np.int64)
    for event in (
        EVENT_GOT,
        EVENT_CRAFTED,
        EVENT_PLACED,
        EVENT_SMELTING,
        EVENT_TOOK,
        EVENT_TOOL_BROKE,
        EVENT_MILESTONE,
    ):
        limits[event] = N_ITEMS
    limits[EVENT_BROKE] = N_BLOCKS
    limits[EVENT_WALKED] = limits[EVENT_TUNNELLED] = len(DIRECTIONS)
    limits[EVENT_BLOCKED] = len(TARGET_NAMES) + 2
    return limits


_LOW, _HIGH = _bounds()
_ARGUMENTS: Final = _argument_limits()
_N_ACTIONS: Final = np.array(N_ACTIONS, dtype=np.int64)


@kernel
def _scalars_are_sound(s):
    """Whether every scalar of a record (int32) is in its range, alone and beside the others."""
    sound = True
    for k in range(N_INTS):
        sound &= _LOW[k] <= s[k] and s[k] <= _HIGH[k]
    if not sound or s[FURNACE_TICK] > s[TICK]:
        return False
    if s[LAST_ROLE] < 0:
        if s[LAST_ACTION] >= 0:
            return False
    elif s[LAST_ACTION] < 0 or s[LAST_ACTION] >= _N_ACTIONS[s[LAST_ROLE]]:
        return False
    if s[FURNACE_INPUT_COUNT] > 0 and (
        s[FURNACE_INPUT] == NO_ITEM or SMELTS_TO[s[FURNACE_INPUT]] == NO_ITEM
    ):
        return False
    if s[FURNACE_FUEL_COUNT] > 0 and (s[FURNACE_FUEL] == NO_ITEM or BURN[s[FURNACE_FUEL]] == 0):
        return False
    if s[FURNACE_OUTPUT_COUNT] > 0 and s[FURNACE_OUTPUT] == NO_ITEM:
        return False
    for k in range(N_EVENTS):
        at = EVENTS + EVENT_FIELDS * k
        if s[at + 2] >= _ARGUMENTS[s[at + 1]]:
            return False
    return True


@kernel
def _world_is_closed(b):
    """Whether the blocks of a record (uint8) are blocks, and nothing leads out of the world."""
    highest = np.uint8(0)
    for k in range(GROUND_OFFSET, BLOCKS_OFFSET):
        highest = max(highest, b[k])
    if highest >= HEIGHT:
        return False
    highest = np.uint8(0)
    for k in range(BLOCKS_OFFSET, RECORD_BYTES):
        highest = max(highest, b[k])
    if highest > BARRIER:
        return False
    closed = True
    for x in range(WIDTH):
        for z in range(WIDTH):
            column = cell_of(x, 0, z)
            if x == 0 or z == 0 or x == WIDTH - 1 or z == WIDTH - 1:
                for y in range(HEIGHT):
                    closed &= b[column + y] == BARRIER
            else:
                closed &= b[column] == BEDROCK and b[column + HEIGHT - 1] == BARRIER
    return closed


@kernel
def _is_inside(x, y, z):
    """Whether a place is off the shell of the world, so that it has all its neighbours."""
    return 1 <= x < WIDTH - 1 and 1 <= y < HEIGHT - 1 and 1 <= z < WIDTH - 1


@kernel
def _is_there(b, cell, block):
    """Whether a cell is 0 (none), or inside of the world and this block."""
    if cell == 0:
        return True
    if cell < BLOCKS_OFFSET or cell >= RECORD_BYTES:
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
    if not _scalars_are_sound(s) or s[GOAL] != goal or not _world_is_closed(b):
        return False
    feet = cell_of(np.int64(s[X]), np.int64(s[Y]), np.int64(s[Z]))
    return (
        b[feet] <= WATER
        and b[feet + 1] <= WATER
        and _is_there(b, np.int64(s[TABLE_CELL]), TABLE)
        and _is_there(b, np.int64(s[FURNACE_CELL]), FURNACE)
        and _are_there(s, b, TREES, s[N_TREES], LOG)
        and _are_there(s, b, COAL, s[N_COAL], COAL_ORE)
        and _are_there(s, b, IRON, s[N_IRON], IRON_ORE)
        and _are_there(s, b, OUTCROPS, s[N_OUTCROPS], STONE)
    )


def is_valid(record: NDArray[np.uint8], goal: int) -> bool:
    """Whether a record, uint8 ``(RECORD_BYTES,)``, is a state of a goal that rules may play on."""
    if not is_sound(record.view(np.int32), record, goal):
        return False
    again = record.copy()
    perceive(again.view(np.int32), again)
    return np.array_equal(again, record)
