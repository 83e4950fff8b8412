"""The engine's report as a record of `layout`, which everything else reads.

Observation, masks, text, pictures, the expert and the metrics of the embedded world are functions
of a record. Here a record is not played on but written: after each turn the server reports the
numbers of the body and what it perceives (``mod/roles.lua``), and which blocks have changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.world.facts import (
    MAX_HEALTH,
    N_ITEMS,
    PICKAXE_DURABILITY,
    REGENERATION_TICKS,
    SMELT_TICKS,
)
from mpt_envs.crafting.world.layout import (
    BLOCKED,
    BLOCKS_OFFSET,
    DUG,
    EVENT_COUNT,
    EVENT_FIELDS,
    EVENTS,
    FURNACE_BURN,
    FURNACE_CELL,
    FURNACE_INPUT,
    FURNACE_PROGRESS,
    GIVEN_UP,
    GROUND_OFFSET,
    HEADING,
    INVENTORY,
    MASKS,
    MILLITICK,
    N_EVENTS,
    SEEN,
    TABLE_CELL,
    TARGET_CELL,
    TICK,
    TREES,
    TURN,
    WEAR,
    WOUND,
    X,
)

#: Scalars of the record that are used here: all but the embedded world's lists of entities.
USED_INTS: Final = TREES

# Places in the report; `mod/roles.lua` has the order.
_OUTCOME: Final = 0
_CLOCK: Final = 1
_PLACE: Final = 2  # x, y, z
_HEALTH: Final = 5
_SEEN: Final = 6
_BLOCKED: Final = 7
_HEADING: Final = 8
_STATIONS: Final = 9  # table, furnace
_FURNACE: Final = 11  # input, count, fuel, count, output, count
_BURN: Final = 17
_PROGRESS: Final = 18
_MASKS: Final = 19
_INVENTORY: Final = 22
_WEAR: Final = 42
_DUG: Final = 45  # dug, then placed: 16 each
_VIEW: Final = 77  # TARGET_CELL to GIVEN_UP
_EVENTS: Final = 112

_VIEW_SIZE: Final = GIVEN_UP + 1 - TARGET_CELL
_FULL_WEAR: Final = 65536
_DURABILITY: Final = np.array(PICKAXE_DURABILITY, np.int64)

assert _VIEW + _VIEW_SIZE == _EVENTS and FURNACE_CELL == TABLE_CELL + 1
assert MASKS + 3 == INVENTORY and INVENTORY + N_ITEMS == WEAR and FURNACE_BURN == FURNACE_INPUT + 6


def _offsets(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells of the server, -1 for none, as byte offsets of a record, 0 for none."""
    return np.where(cells < 0, 0, cells + BLOCKS_OFFSET)


def write_report(record: NDArray[np.uint8], text: bytes) -> int:
    """Write a report into a record: the body, what it perceives, changed blocks, new events.

    Args:
        record: uint8 ``(RECORD_BYTES,)``; its turn is that of the events.
        text: the report.

    Returns:
        The outcome of the turn, one of ``OUTCOME_...``.
    """
    r = np.array(text.split(b","), np.int64)
    s = record.view(np.int32)
    s[TICK], s[MILLITICK] = divmod(int(r[_CLOCK]), 1000)
    s[X : X + 3] = r[_PLACE : _PLACE + 3]
    s[WOUND] = (MAX_HEALTH - r[_HEALTH]) * REGENERATION_TICKS
    s[SEEN] = r[_SEEN]
    s[BLOCKED] = r[_BLOCKED]
    s[HEADING] = r[_HEADING]
    s[TABLE_CELL : TABLE_CELL + 2] = _offsets(r[_STATIONS : _STATIONS + 2])
    s[FURNACE_INPUT : FURNACE_INPUT + 7] = r[_FURNACE : _FURNACE + 7]
    s[FURNACE_PROGRESS] = min(SMELT_TICKS - 1, int(r[_PROGRESS]) * SMELT_TICKS // 1000)
    s[MASKS : MASKS + 3 + N_ITEMS] = r[_MASKS : _MASKS + 3 + N_ITEMS]
    s[WEAR : WEAR + 3] = r[_WEAR : _WEAR + 3] * _DURABILITY // _FULL_WEAR
    s[DUG : DUG + 32] = r[_DUG : _DUG + 32]
    s[TARGET_CELL : TARGET_CELL + _VIEW_SIZE] = r[_VIEW : _VIEW + _VIEW_SIZE]
    s[TARGET_CELL : TARGET_CELL + 4] = _offsets(r[_VIEW : _VIEW + 4])
    at = _EVENTS + 1
    for _ in range(int(r[_EVENTS])):
        add_event(s, int(r[at]), int(r[at + 1]), int(r[at + 2]))
        at += 3
    changes = r[at + 1 :]
    if len(changes):
        record[changes[0::2] + BLOCKS_OFFSET] = changes[1::2]
    return int(r[_OUTCOME])


def write_world(record: NDArray[np.uint8], blob: bytes) -> None:
    """Write all blocks, then the ground, as the server sends them at the start of an episode."""
    data = np.frombuffer(blob, np.uint8)
    cells = len(record) - BLOCKS_OFFSET
    record[BLOCKS_OFFSET:] = data[:cells]
    record[GROUND_OFFSET:BLOCKS_OFFSET] = data[cells:]


def add_event(s: NDArray[np.int32], event: int, argument: int, amount: int) -> None:
    """Write an event into the ring of the last ones, as `rules.add_event` does."""
    at = EVENTS + EVENT_FIELDS * (int(s[EVENT_COUNT]) % N_EVENTS)
    s[at : at + EVENT_FIELDS] = (s[TURN], event, argument, amount)
    s[EVENT_COUNT] += 1
