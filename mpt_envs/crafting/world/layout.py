"""The record of a world: where every number of the state lies in one flat row of bytes.

A world is `RECORD_BYTES` bytes: `N_INTS` int32 scalars, one byte per column for the height of the
natural ground, and one byte per block. A thousand worlds are one C-contiguous uint8 array of shape
(N, RECORD_BYTES). Nothing that influences the future lies outside of it, so a snapshot is a copy of
the row and a restore is one assignment.

Rules are compiled functions of two views of the same row: `s`, the row as int32, indexed by the
scalar names below, and `b`, the row as uint8, indexed by a *cell*: the byte offset of a block in
the row. So a position is one integer, the neighbours of a cell are `cell + STEP_...`, and a column
of blocks is contiguous. Cell 0 is never a block and stands for "none".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mpt_envs.crafting.kernel import inlined
from mpt_envs.crafting.world import facts

#: Raised whenever the meaning of a byte changes: snapshots of another version are refused.
LAYOUT_VERSION: Final = 1

WIDTH: Final = 48  # along x and along z; the outermost ring of columns is barrier
HEIGHT: Final = 24  # layer 0 is bedrock, the topmost layer is barrier

# --- scalars: index into the row seen as int32 ---------------------------------------------------
VERSION: Final = 0
GOAL: Final = 1  # index into goals.GOALS
BUDGET: Final = 2  # ticks
DONE: Final = 3  # one of the DONE_... below
SEED_LOW: Final = 4  # the world's seed, as two halves of a uint64
SEED_HIGH: Final = 5
KEY_LOW: Final = 6  # the key of the random draws to come, as two halves of a uint64
KEY_HIGH: Final = 7
TURN: Final = 8  # actions and skips so far
TICK: Final = 9
MILLITICK: Final = 10  # 0 to 999: walking does not take whole ticks
X: Final = 11  # feet
Y: Final = 12
Z: Final = 13
WOUND: Final = 14  # ticks until health is full again
SEEN: Final = 15  # bit i: item i was obtained at least once
SCORE: Final = 16  # sum of the rewards so far
HEADING: Final = 17  # direction last walked or tunnelled, or -1
BLOCKED: Final = 18  # targets that could not be reached so far
MASKS: Final = 19  # 3: bit a: action a of the role is legal now
INVENTORY: Final = 22  # N_ITEMS counts
WEAR: Final = 42  # 3: uses of the pickaxe in hand, of each kind
TABLE_CELL: Final = 45  # where the body's last table stands, or 0
FURNACE_CELL: Final = 46
FURNACE_INPUT: Final = 47  # item or NO_ITEM
FURNACE_INPUT_COUNT: Final = 48
FURNACE_FUEL: Final = 49
FURNACE_FUEL_COUNT: Final = 50
FURNACE_OUTPUT: Final = 51
FURNACE_OUTPUT_COUNT: Final = 52
FURNACE_BURN: Final = 53  # ticks left of the fuel that burns
FURNACE_PROGRESS: Final = 54  # ticks into the item that smelts, of 200
LAST_ROLE: Final = 55  # -1 before the first turn and after a skip
LAST_ACTION: Final = 56
LAST_OUTCOME: Final = 57  # one of the OUTCOME_... below
LAST_TICKS: Final = 58
DUG: Final = 59  # N_BLOCKS counts: blocks dug by kind
PLACED: Final = 75  # N_BLOCKS counts: blocks placed by kind

# What the body perceives: a function of the rest of the record, kept because reading it is cheaper.
TARGET_CELL: Final = 91  # 4 kinds (TARGET_...): nearest visible and not given up, or 0
TARGET_DISTANCE: Final = 95  # 4: eyes to the block's centre, in tenths of a block
WALK_STEPS: Final = 99  # 4 directions: steps that can be walked straight, 0 to EXPLORE_STEPS
WALK_RISE: Final = 103  # 4: height gained over these steps
WALK_WATER: Final = 107  # 4: whether the way leads through water
NEAR_FEET: Final = 111  # 4: block beside the feet
NEAR_HEAD: Final = 115  # 4: block beside the head
BELOW: Final = 119  # block under the feet
ABOVE: Final = 120  # block over the head
DEPTH: Final = 121  # blocks below the natural ground here (0: standing on it)
COVERED: Final = 122  # whether something opaque is overhead
TABLE_NEAR: Final = 123  # one of the NEAR_... below
FURNACE_NEAR: Final = 124
GIVEN_UP: Final = 125  # bit k: a target of kind k is given up for now

# Targets given up because no way led to them: pairs of cell and tick from which it counts again.
N_MARKS: Final = 8
MARKS: Final = 126
MARK_NEXT: Final = 142

# The last events, newest at (EVENT_COUNT - 1) % N_EVENTS: turn, EVENT_..., argument, amount.
N_EVENTS: Final = 8
EVENT_COUNT: Final = 143
EVENTS: Final = 144
EVENT_FIELDS: Final = 4

# Entities, so that nothing has to search the blocks. A count, then as many spots (`spot_of`).
MAX_TREES: Final = 40
MAX_COAL: Final = 128
MAX_IRON: Final = 96
MAX_OUTCROPS: Final = 56
N_TREES: Final = 176
N_COAL: Final = 177
N_IRON: Final = 178
N_OUTCROPS: Final = 179
FURNACE_TICK: Final = 180  # the tick up to which the furnace has been simulated
MARK_UNTIL: Final = 181  # no mark holds from this tick on
TREES: Final = 182  # the lowest log that still stands (logs are contiguous upwards)
COAL: Final = TREES + MAX_TREES  # exposed coal ore
IRON: Final = COAL + MAX_COAL  # exposed iron ore
OUTCROPS: Final = IRON + MAX_IRON  # stone that shows at the surface

N_INTS: Final = OUTCROPS + MAX_OUTCROPS
assert N_INTS % 2 == 0

# --- bytes --------------------------------------------------------------------------------------
GROUND_OFFSET: Final = 4 * N_INTS  # height of the topmost natural solid block of column x, z
BLOCKS_OFFSET: Final = GROUND_OFFSET + WIDTH * WIDTH
RECORD_BYTES: Final = BLOCKS_OFFSET + WIDTH * WIDTH * HEIGHT
assert RECORD_BYTES % 8 == 0 and BLOCKS_OFFSET % 8 == 0

STEP_UP: Final = 1
STEP_SOUTH: Final = HEIGHT  # +z
STEP_EAST: Final = WIDTH * HEIGHT  # +x

# --- codes --------------------------------------------------------------------------------------
DONE_RUNNING: Final = 0
DONE_GOAL: Final = 1
DONE_TIME: Final = 2  # the tick budget is used up
DONE_DEATH: Final = 3
DONE_NAMES: Final = ("running", "goal", "out of time", "death")

TARGET_LOG, TARGET_STONE, TARGET_COAL, TARGET_IRON = range(4)
TARGET_NAMES: Final = ("log", "stone", "coal_ore", "iron_ore")

OUTCOME_NONE: Final = 0
OUTCOME_DONE: Final = 1
OUTCOME_BLOCKED: Final = 2  # legal, but no way led to the target
OUTCOME_SKIPPED: Final = 3  # nobody acted, or the action was not legal
OUTCOME_NAMES: Final = ("none", "done", "blocked", "skipped")

NEAR_NONE: Final = 0  # not placed, or too far away
NEAR_WALK: Final = 1  # known and close enough to walk back to
NEAR_REACH: Final = 2  # in reach
NEAR_NAMES: Final = ("none", "walk", "reach")

#: Events: what the argument and the amount mean.
EVENT_NONE: Final = 0
EVENT_GOT: Final = 1  # item, amount: dug or collected
EVENT_BROKE: Final = 2  # block, amount: dug without a drop
EVENT_CRAFTED: Final = 3  # item, amount
EVENT_PLACED: Final = 4  # item, amount
EVENT_SMELTING: Final = 5  # item loaded into the furnace, amount (0: only fuel was added)
EVENT_TOOK: Final = 6  # item taken out of the furnace, amount
EVENT_WALKED: Final = 7  # direction, blocks
EVENT_TUNNELLED: Final = 8  # direction, blocks
EVENT_CLIMBED: Final = 9  # -, levels
EVENT_FELL: Final = 10  # -, blocks
EVENT_BLOCKED: Final = 11  # target kind (TARGET_..., 4: table, 5: furnace), -
EVENT_TOOL_BROKE: Final = 12  # item, 1
EVENT_WAITED: Final = 13  # -, ticks
EVENT_SKIPPED: Final = 14  # -, ticks
EVENT_MILESTONE: Final = 15  # item, reward
EVENT_HURT: Final = 16  # -, points of health
EVENT_NAMES: Final = (
    "none", "got", "broke", "crafted", "placed", "smelting", "took", "walked", "tunnelled",
    "climbed", "fell", "blocked", "tool_broke", "waited", "skipped", "milestone", "hurt",
)  # fmt: skip
assert INVENTORY + facts.N_ITEMS == WEAR and DUG + facts.N_BLOCKS == PLACED


@inlined
def cell_of(x: int, y: int, z: int) -> int:
    """Byte offset in the row of the block at x, y, z."""
    return BLOCKS_OFFSET + (x * WIDTH + z) * HEIGHT + y


# Unsigned division by a constant compiles to one multiplication; signed floor division does not.
@inlined
def cell_x(cell: int) -> Any:
    """x of a cell."""
    return np.int64(np.uint64(cell - BLOCKS_OFFSET) // np.uint64(STEP_EAST))


@inlined
def cell_y(cell: int) -> Any:
    """y of a cell."""
    return np.int64(np.uint64(cell - BLOCKS_OFFSET) % np.uint64(HEIGHT))


@inlined
def cell_z(cell: int) -> Any:
    """z of a cell."""
    return np.int64(np.uint64(cell - BLOCKS_OFFSET) // np.uint64(HEIGHT) % np.uint64(WIDTH))


# A cell's coordinates, packed so that distances need no division.
@inlined
def spot_of(cell: int) -> int:
    """x, z and y of a cell in bits 16, 8 and 0."""
    return cell_x(cell) << 16 | cell_z(cell) << 8 | cell_y(cell)


@inlined
def cell_of_spot(spot: int) -> int:
    """The cell of a spot."""
    return cell_of(spot >> 16, spot & 255, (spot >> 8) & 255)


def new_records(num_worlds: int) -> np.ndarray:
    """Zeroed records, uint8 of shape (num_worlds, RECORD_BYTES)."""
    return np.zeros((num_worlds, RECORD_BYTES), dtype=np.uint8)


def scalars(record: np.ndarray) -> np.ndarray:
    """The scalars of one record or of many: an int32 view of shape (..., N_INTS)."""
    return record.view(np.int32)[..., :N_INTS]


def blocks(record: np.ndarray) -> np.ndarray:
    """The blocks of one record: a uint8 view of shape (WIDTH, WIDTH, HEIGHT), indexed x, z, y."""
    return record[BLOCKS_OFFSET:].reshape(WIDTH, WIDTH, HEIGHT)


def ground(record: np.ndarray) -> np.ndarray:
    """Height of the natural ground of one record: a uint8 view (WIDTH, WIDTH), indexed x, z."""
    return record[GROUND_OFFSET:BLOCKS_OFFSET].reshape(WIDTH, WIDTH)


def position(cell: int) -> tuple[int, int, int]:
    """x, y, z of a cell."""
    offset = int(cell) - BLOCKS_OFFSET
    return offset // STEP_EAST, offset % HEIGHT, offset // HEIGHT % WIDTH


def events(record: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The last events of one record, oldest first, as tuples of turn, event, argument, amount."""
    s = scalars(record)
    count = int(s[EVENT_COUNT])
    rows = s[EVENTS : EVENTS + N_EVENTS * EVENT_FIELDS].reshape(N_EVENTS, EVENT_FIELDS)
    found = []
    for index in range(max(0, count - N_EVENTS), count):
        turn, event, argument, amount = (int(v) for v in rows[index % N_EVENTS])
        found.append((turn, event, argument, amount))
    return found
