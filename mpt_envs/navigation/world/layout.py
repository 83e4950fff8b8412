"""The record of an episode in progress: one flat row of bytes, without the map.

A row holds the key of the episode (from which its source makes the scene, the instruction and the
goal again), the body's pose, the way it went, what it remembers to have seen, and how far it is in
the instruction. Nothing else influences the future, so a snapshot is a copy of the row.

Three views of a row: `s`, int32, by the scalar names; `f`, float64, by the ``F_...`` names; and the
way that was gone, float32 ``(MAX_PATH, 3)``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world.facts import MAX_STEPS

#: Raised whenever the meaning of a byte changes: snapshots of another version are refused.
LAYOUT_VERSION: Final = 1

# --- scalars: index into the row seen as int32 ---------------------------------------------------
VERSION: Final = 0
DONE: Final = 1  # one of the DONE_... below
KEY_LOW: Final = 2  # the episode's key, as two halves of a uint64
KEY_HIGH: Final = 3
DRAWS_LOW: Final = 4  # the key of random draws to come; nothing draws yet
DRAWS_HIGH: Final = 5
SOURCE_LOW: Final = 6  # start of the digest of the source of episodes
SOURCE_HIGH: Final = 7
TURN: Final = 8  # decisions and skips so far
STEPS: Final = 9  # primitive steps so far
HEADING: Final = 10  # in steps of 15 degrees to the left of the heading at the start, 0 to 23
LAYER: Final = 11  # of the free space
N_PATH: Final = 12  # positions of the way, the start included
COLLIDED: Final = 13  # whether the last decision met a wall
COLLISIONS: Final = 14  # decisions that did
LAST_ROLE: Final = 15  # -1 before the first decision and after a skip
LAST_ACTION: Final = 16
LAST_STEPS: Final = 17  # primitive steps of the last decision
ROOM: Final = 18  # room the body is in, number of the scene; 0 is unknown
DOORS: Final = 19  # doors gone through so far
CLAUSE: Final = 20  # clause of the instruction that is being followed
CLAUSE_TURNED: Final = 21  # steps turned to the left since this clause began
CLAUSE_DOORS: Final = 22  # doors gone through since then
CLAUSE_ROOM: Final = 23  # room in which it began
CLAUSE_TURNS: Final = 24  # decisions since then
LAST_CLAUSES: Final = 25  # clauses completed by the last decision
SEEN_LOW: Final = 26  # bit i: thing i of the scene was seen (two halves of a uint64)
SEEN_HIGH: Final = 27
VISIBLE_LOW: Final = 28  # bit i: it is in view now
VISIBLE_HIGH: Final = 29
PASSED_LOW: Final = 30  # bit i: door i was gone through
PASSED_HIGH: Final = 31
ENTRY: Final = 32  # the door last gone through, number of the thing; -1: none
LOOKED: Final = 33  # whether the last decision was to look around
N_INTS: Final = 34

# --- numbers: index into the row seen as float64 --------------------------------------------------
_FLOATS: Final = N_INTS // 2
F_X: Final = _FLOATS  # metres
F_Y: Final = _FLOATS + 1
F_Z: Final = _FLOATS + 2
F_START_HEADING: Final = _FLOATS + 3  # radians
F_LENGTH: Final = _FLOATS + 4  # of the way gone, in metres
F_DISTANCE: Final = _FLOATS + 5  # geodesic, to the goal
F_SHORTEST: Final = _FLOATS + 6  # the same at the start
F_SCORE: Final = _FLOATS + 7  # sum of the rewards
F_CLAUSE_LENGTH: Final = _FLOATS + 8  # F_LENGTH when the clause began
F_LAST_MOVED: Final = _FLOATS + 9  # metres moved by the last decision
F_RADIUS: Final = _FLOATS + 10  # of success
F_CLAUSE_Y: Final = _FLOATS + 11  # F_Y when the clause began
F_ENTRY_X: Final = _FLOATS + 12  # where the body came into this room (or started)
F_ENTRY_Z: Final = _FLOATS + 13
N_FLOATS: Final = 14

# --- the way ------------------------------------------------------------------------------------
MAX_PATH: Final = MAX_STEPS + 1
PATH_OFFSET: Final = 4 * N_INTS + 8 * N_FLOATS  # bytes
PATH_32: Final = PATH_OFFSET // 4  # as float32
RECORD_BYTES: Final = (PATH_OFFSET + 12 * MAX_PATH + 7) // 8 * 8

# --- codes --------------------------------------------------------------------------------------
DONE_RUNNING: Final = 0
DONE_STOPPED: Final = 1
DONE_STEPS: Final = 2  # the primitive steps are used up
DONE_NAMES: Final = ("running", "stopped", "out of steps")


def new_records(num_worlds: int) -> NDArray[np.uint8]:
    """Zeroed records, uint8 ``(num_worlds, RECORD_BYTES)``."""
    return np.zeros((num_worlds, RECORD_BYTES), dtype=np.uint8)


def ints(record: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The scalars of one record or of many: an int32 view ``(..., N_INTS)``."""
    return record.view(np.int32)[..., :N_INTS]


def floats(record: NDArray[np.uint8]) -> NDArray[np.float64]:
    """One record or many as float64, to be indexed by ``F_...``."""
    return record.view(np.float64)


def path(record: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The way of one record so far: a float32 view ``(N_PATH, 3)``."""
    count = int(ints(record)[N_PATH])
    return record.view(np.float32)[PATH_32 : PATH_32 + 3 * count].reshape(count, 3)


def key_of(record: NDArray[np.uint8]) -> int:
    """The episode's key of one record."""
    return int(record[4 * KEY_LOW : 4 * KEY_LOW + 8].view(np.uint64)[0])


def bits_of(record: NDArray[np.uint8], at: int) -> int:
    """A set of bits of one record, by the scalar of its lower half."""
    return int(record[4 * at : 4 * at + 8].view(np.uint64)[0])


assert PATH_OFFSET % 8 == 0 and KEY_LOW % 2 == 0 and SEEN_LOW % 2 == 0 and PASSED_LOW % 2 == 0
