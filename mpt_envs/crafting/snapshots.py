"""Checks of a snapshot's payload before it becomes a record: the compiled rules trust it."""

from __future__ import annotations

import numpy as np

from mpt_envs.crafting.facts import BARRIER, N_ITEMS, NO_ITEM
from mpt_envs.crafting.goals import GOALS
from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.layout import (
    BLOCKS_OFFSET,
    BUDGET,
    COAL,
    DONE,
    DONE_DEATH,
    EVENT_COUNT,
    FURNACE_CELL,
    FURNACE_FUEL,
    FURNACE_INPUT,
    FURNACE_OUTPUT,
    GOAL,
    GROUND_OFFSET,
    HEADING,
    HEIGHT,
    IRON,
    LAYOUT_VERSION,
    MARK_NEXT,
    MAX_COAL,
    MAX_IRON,
    MAX_OUTCROPS,
    MAX_TREES,
    N_COAL,
    N_IRON,
    N_MARKS,
    N_OUTCROPS,
    N_TREES,
    OUTCROPS,
    RECORD_BYTES,
    TABLE_CELL,
    TARGET_CELL,
    TREES,
    VERSION,
    WIDTH,
    X,
    Y,
    Z,
)
from wrappers.errors import SnapshotError


def task_id(goal: str) -> str:
    """Id of the task of a goal."""
    return f"crafting/{goal}-v0"


@kernel
def _is_block(cell):
    """Whether a cell is 0 or a block off the outermost columns, so that it has all neighbours."""
    return cell == 0 or (
        cell >= BLOCKS_OFFSET + WIDTH * HEIGHT and cell < RECORD_BYTES - WIDTH * HEIGHT
    )


@kernel
def _spots_are_blocks(s, first, count):
    sound = True
    for k in range(first, first + count):
        spot = s[k]
        x, z, y = spot >> 16, (spot >> 8) & 255, spot & 255
        sound &= x >= 1 and x < WIDTH - 1 and z >= 1 and z < WIDTH - 1 and y >= 1 and y < HEIGHT - 1
    return sound


@kernel
def is_sound(s, b, goal):
    """Whether a record of a goal holds nothing that could lead a rule out of its arrays.

    Args:
        s, b: the record as int32 and as uint8.
        goal: index into goals.GOALS.
    """
    if s[VERSION] != LAYOUT_VERSION or s[GOAL] != goal or s[BUDGET] < 1:
        return False
    if s[DONE] < 0 or s[DONE] > DONE_DEATH or s[EVENT_COUNT] < 0:
        return False
    if not (1 <= s[X] < WIDTH - 1 and 1 <= s[Z] < WIDTH - 1 and 1 <= s[Y] < HEIGHT - 1):
        return False
    if not (0 <= s[MARK_NEXT] < N_MARKS and -1 <= s[HEADING] < 4):
        return False
    if not (0 <= s[N_TREES] <= MAX_TREES and 0 <= s[N_COAL] <= MAX_COAL):
        return False
    if not (0 <= s[N_IRON] <= MAX_IRON and 0 <= s[N_OUTCROPS] <= MAX_OUTCROPS):
        return False
    for k in (FURNACE_INPUT, FURNACE_FUEL, FURNACE_OUTPUT):
        if s[k] < NO_ITEM or s[k] >= N_ITEMS:
            return False
    for k in range(TARGET_CELL, TARGET_CELL + 4):
        if not _is_block(s[k]):
            return False
    if not (_is_block(s[TABLE_CELL]) and _is_block(s[FURNACE_CELL])):
        return False
    if not (
        _spots_are_blocks(s, TREES, s[N_TREES])
        and _spots_are_blocks(s, COAL, s[N_COAL])
        and _spots_are_blocks(s, IRON, s[N_IRON])
        and _spots_are_blocks(s, OUTCROPS, s[N_OUTCROPS])
    ):
        return False
    highest = np.uint8(0)
    for k in range(GROUND_OFFSET, BLOCKS_OFFSET):
        highest = max(highest, b[k])
    if highest >= HEIGHT:
        return False
    highest = np.uint8(0)
    for k in range(BLOCKS_OFFSET, RECORD_BYTES):
        highest = max(highest, b[k])
    return highest <= BARRIER


def check_payload(payload: bytes, goal: int) -> None:
    """Refuse a payload that is no record of the goal.

    Args:
        payload: `RECORD_BYTES` bytes.
        goal: index into goals.GOALS.

    Raises:
        SnapshotError: it was changed, or is a record of another goal.
    """
    record = np.frombuffer(payload, dtype=np.uint8)
    if not is_sound(record.view(np.int32), record, goal):
        raise SnapshotError(
            f"this snapshot holds no valid state of {task_id(GOALS[goal].name)!r}: it was changed "
            "after it was taken; take it again"
        )
