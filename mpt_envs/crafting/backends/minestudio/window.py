"""What the body has seen, as blocks of a record: a window of the endless world that moves along.

Perception, masks, observations, text and pictures of the embedded world are functions of a record
of `layout`, a box of 48 x 48 x 24 blocks. Here that box is a window on Minecraft's world. What
MineStudio tells of the blocks around the body is written into it, what was told before stays, what
nobody has told yet is barrier, and when the body comes near the rim the window moves. A block that
is told to be another than before has changed: a snapshot is made from these changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.engine_errors import EngineError
from mpt_envs.crafting.backends.minestudio.geometry import Spot
from mpt_envs.crafting.backends.minestudio.names import DANGERS, kind_of, plain
from mpt_envs.crafting.world.facts import (
    AIR,
    BARRIER,
    BEDROCK,
    COAL_ORE,
    COBBLESTONE,
    GRASS,
    IRON_ORE,
    LEAVES,
    LOG,
    SIGHT,
    STONE,
    WATER,
)
from mpt_envs.crafting.world.layout import (
    BLOCKS_OFFSET,
    COAL,
    HEIGHT,
    IRON,
    MARKS,
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
    TREES,
    WIDTH,
    X,
    Y,
    Z,
    blocks,
    cell_of,
    ground,
    position,
)

#: How far around the body blocks are asked for: sight, and one more to know what is exposed.
REACH_FLAT: Final = SIGHT + 2
REACH_UP: Final = SIGHT + 1

SPAWN_HEIGHT: Final = 15  # layer of the feet at the start, as in the embedded worlds
_LOWEST: Final = 4  # layers of the feet within which the window stays where it is
_HIGHEST: Final = 18
_RIM: Final = REACH_FLAT + 2
_UNKNOWN: Final = 0

Place = tuple[int, int, int]


def box_around() -> tuple[int, int, int, int, int, int]:
    """The box of blocks to ask for, relative to the body."""
    return (-REACH_FLAT, REACH_FLAT, -REACH_UP, REACH_UP, -REACH_FLAT, REACH_FLAT)


def read_voxels(
    voxels: Sequence[Mapping[str, Any]] | None, feet: Spot, box: tuple[int, ...]
) -> dict[Place, str]:
    """Names of the blocks of a box that are not air, by place in the world.

    MineStudio lists each block with its place relative to the body; if an engine should list
    places in the world, they are told apart by lying in the box or not.

    Args:
        voxels: the list in a report.
        feet: where the body is.
        box: that was asked for.

    Raises:
        EngineError: there is no list, or not one of blocks in the box.
    """
    if voxels is None or isinstance(voxels, Mapping):
        raise EngineError(
            "MineStudio told nothing of the blocks that it was asked for; this backend is written "
            "for the engine mcprec-6.13 of MineStudio 1.1.6"
        )
    relative: dict[Place, str] = {}
    try:
        for voxel in voxels:
            at = (round(voxel["x"]), round(voxel["y"]), round(voxel["z"]))
            relative[at] = plain(str(voxel["type"]))
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(
            f"MineStudio lists blocks in a way that this backend does not know ({error!r})"
        ) from error
    if not relative:
        return {}
    spans = [(min(values), max(values)) for values in zip(*relative, strict=True)]
    limits = [(box[0], box[1]), (box[2], box[3]), (box[4], box[5])]

    def inside(shift: Place) -> bool:
        return all(
            low <= least - by and most - by <= high
            for (least, most), (low, high), by in zip(spans, limits, shift, strict=True)
        )

    if inside((0, 0, 0)):
        fx, fy, fz = feet
        return {(x + fx, y + fy, z + fz): name for (x, y, z), name in relative.items()}
    if inside(feet):
        return relative
    raise EngineError(
        f"MineStudio was asked for the blocks of {tuple(box)} around {tuple(feet)} and listed some "
        "outside of it"
    )


class Window:
    """The box of the world that a record shows.

    Args:
        record: uint8 ``(RECORD_BYTES,)``; the window writes its blocks, ground, lists and position.

    Attributes:
        origin: the place in the world of the record's first block.
        changes: blocks that have changed in this episode: what was there first, and what is now.
    """

    def __init__(self, record: NDArray[np.uint8]) -> None:
        self._record = record
        self._s = record.view(np.int32)
        self._blocks = blocks(record)  # x, z, y
        self._ground = ground(record)
        self._ids = np.zeros(self._blocks.shape, np.int32)
        self._names: list[str] = [""]
        self._index: dict[str, int] = {"": _UNKNOWN}
        self._kinds = np.array([BARRIER], np.uint8)
        self._known_ground = np.zeros(self._ground.shape, np.bool_)
        self._last_ground: int | None = None
        self.origin = Spot(0, 0, 0)
        self.changes: dict[Spot, tuple[str, str]] = {}

    def begin(self, feet: Spot) -> None:
        """Forget everything, and put the window around a body."""
        self.origin = Spot(feet.x - WIDTH // 2, feet.y - SPAWN_HEIGHT, feet.z - WIDTH // 2)
        self._ids[:] = _UNKNOWN
        self._known_ground[:] = False
        self._last_ground = None
        self._blocks[:] = BARRIER
        self._ground[:] = 0
        self.changes.clear()

    def resume(self, origin: Spot, changes: dict[Spot, tuple[str, str]]) -> None:
        """Go on in a record that was written before: its ground and its place in the world hold.

        What its blocks are called is not in a record: a change of those that are not seen again is
        not noticed.
        """
        self.origin = origin
        self.changes = changes
        self._ids[:] = _UNKNOWN
        self._known_ground[:] = self._ground > 0
        self._last_ground = None

    # -- places ------------------------------------------------------------------------------

    def cell(self, spot: Spot) -> int:
        """The cell of a place in the world, or 0 if it is outside of the window."""
        x, y, z = self._inner(spot)
        if 0 <= x < WIDTH and 0 <= y < HEIGHT and 0 <= z < WIDTH:
            return int(cell_of(x, y, z))
        return 0

    def nearest_cell(self, spot: Spot) -> int:
        """The cell of a place, or of the place in the window that is nearest to it."""
        x, y, z = self._inner(spot)
        return int(
            cell_of(
                min(max(x, 0), WIDTH - 1), min(max(y, 0), HEIGHT - 1), min(max(z, 0), WIDTH - 1)
            )
        )

    def spot(self, cell: int) -> Spot:
        """The place in the world of a cell."""
        return self.origin.moved(*position(cell))

    def kind(self, spot: Spot) -> int:
        """The kind of the block at a place, barrier where nothing is known."""
        cell = self.cell(spot)
        return int(self._record[cell]) if cell else BARRIER

    def name(self, spot: Spot) -> str:
        """Plain name of the block at a place, "" where nothing is known."""
        x, y, z = self._inner(spot)
        if not (0 <= x < WIDTH and 0 <= y < HEIGHT and 0 <= z < WIDTH):
            return ""
        return self._names[self._ids[x, z, y]]

    def _inner(self, spot: Spot) -> tuple[int, int, int]:
        return spot.x - self.origin.x, spot.y - self.origin.y, spot.z - self.origin.z

    # -- seeing ------------------------------------------------------------------------------

    def update(self, feet: Spot, told: Mapping[Place, str], box: tuple[int, ...]) -> None:
        """Write what was told of the blocks of a box around the body.

        Args:
            feet: where the body is.
            told: the blocks that are not air, by place in the world.
            box: x0, x1, y0, y1, z0, z1 relative to the body, both ends included.
        """
        self._follow(feet)
        x, y, z = self._inner(feet)
        low = (max(0, x + box[0]), max(0, z + box[4]), max(0, y + box[2]))
        high = (min(WIDTH, x + box[1] + 1), min(WIDTH, z + box[5] + 1), min(HEIGHT, y + box[3] + 1))
        region = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        new = np.full([b - a for a, b in zip(low, high, strict=True)], self._id("air"), np.int32)
        if told:
            places = np.array(list(told), np.int64) - np.array(self.origin)
            ids = np.fromiter(map(self._id, told.values()), np.int32, len(told))
            # Places are x, y, z, the arrays of a record x, z, y.
            x_, z_, y_ = (
                places[:, axis] - start for axis, start in zip((0, 2, 1), low, strict=True)
            )
            shape = new.shape
            here = (
                (x_ >= 0)
                & (x_ < shape[0])
                & (z_ >= 0)
                & (z_ < shape[1])
                & (y_ >= 0)
                & (y_ < shape[2])
            )
            new[x_[here], z_[here], y_[here]] = ids[here]
        old = self._ids[region]
        for i, j, k in np.argwhere((old != _UNKNOWN) & (old != new)):
            place = self.origin.moved(int(i) + low[0], int(k) + low[2], int(j) + low[1])
            first = self.changes.get(place, (self._names[old[i, j, k]], ""))[0]
            self.changes[place] = (first, self._names[new[i, j, k]])
        self._ids[region] = new
        self._blocks[region] = self._kinds[new]
        self._close(new, region)
        self._find_ground(region, high[2] - 1)
        self._enclose()
        self._place_body(x, y, z)
        self._list_targets(x, y, z, region)

    def set_block(self, spot: Spot, name: str) -> None:
        """Write one block that is known to have changed."""
        x, y, z = self._inner(spot)
        if not (0 < x < WIDTH - 1 and 0 < y < HEIGHT - 1 and 0 < z < WIDTH - 1):
            return
        old = self._names[self._ids[x, z, y]]
        if old not in ("", name):
            self.changes[spot] = (self.changes.get(spot, (old, ""))[0], name)
        self._ids[x, z, y] = self._id(name)
        self._blocks[x, z, y] = self._kinds[self._ids[x, z, y]]

    def stand(self, feet: Spot) -> None:
        """Write where the body is, without looking around."""
        self._follow(feet)
        self._place_body(*self._inner(feet))

    def _id(self, name: str) -> int:
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self._names)
            self._names.append(name)
            self._kinds = np.append(self._kinds, np.uint8(kind_of(name)))
        return found

    def _close(self, new: NDArray[np.int32], region: tuple[slice, ...]) -> None:
        """Make walls over what hurts, so that no way leads into it or over it."""
        for name in DANGERS:
            if name not in self._index:
                continue
            kinds = self._blocks[region]
            for i, j, k in np.argwhere(new == self._index[name]):
                column = kinds[i, j]
                up = k + 1
                while up < len(column) and column[up] <= WATER:
                    column[up] = BARRIER
                    up += 1

    def _find_ground(self, region: tuple[slice, ...], top: int) -> None:
        """Heights of the natural ground of columns whose sky was seen for the first time."""
        kinds = self._blocks[region]
        # What grows or stands on the ground is not ground.
        solid = (kinds >= GRASS) & (kinds != LOG) & (kinds < BARRIER)
        open_top = kinds[:, :, -1] <= LEAVES
        any_solid = solid.any(axis=2)
        height = top - np.argmax(solid[:, :, ::-1], axis=2)
        fresh = open_top & any_solid & ~self._known_ground[region[:2]]
        self._ground[region[:2]][fresh] = np.clip(height, 0, HEIGHT - 1)[fresh]
        self._known_ground[region[:2]] |= fresh

    def _enclose(self) -> None:
        """The shell of the record, which no rule looks beyond."""
        b = self._blocks
        b[:, :, 0] = BEDROCK
        b[:, :, -1] = BARRIER
        b[0] = b[-1] = BARRIER
        b[:, 0] = b[:, -1] = BARRIER

    def _place_body(self, x: int, y: int, z: int) -> None:
        s = self._s
        s[X], s[Y], s[Z] = x, y, z
        for up in (0, 1):
            # Where the body is nothing stands in its way, whatever it is called.
            if self._blocks[x, z, y + up] > WATER:
                self._blocks[x, z, y + up] = AIR
        if self._known_ground[x, z]:
            self._last_ground = int(self._ground[x, z]) + self.origin.y
        elif self._last_ground is not None:
            # Under the ground its height is not seen: that of the last place counts.
            self._ground[x, z] = min(max(self._last_ground - self.origin.y, 0), HEIGHT - 1)
        else:
            self._ground[x, z] = y - 1

    def _list_targets(self, x: int, y: int, z: int, region: tuple[slice, ...]) -> None:
        """Write the lists of targets that `perception` chooses from: what is open to the air."""
        b = self._blocks[region]
        offset = np.array([region[0].start, region[1].start, region[2].start])
        at = np.array([x, z, y]) - offset
        open_ = b <= LEAVES
        exposed = np.zeros(b.shape, np.bool_)
        for axis in range(3):
            low = [slice(None)] * 3
            high = [slice(None)] * 3
            low[axis], high[axis] = slice(None, -1), slice(1, None)
            exposed[tuple(low)] |= open_[tuple(high)]
            exposed[tuple(high)] |= open_[tuple(low)]
        lowest = np.ones(b.shape, np.bool_)
        lowest[:, :, 1:] = b[:, :, :-1] != LOG
        for wanted, count_at, list_at, most in (
            ((b == LOG) & lowest, N_TREES, TREES, MAX_TREES),
            ((b == COAL_ORE) & exposed, N_COAL, COAL, MAX_COAL),
            ((b == IRON_ORE) & exposed, N_IRON, IRON, MAX_IRON),
            (((b == STONE) | (b == COBBLESTONE)) & exposed, N_OUTCROPS, OUTCROPS, MAX_OUTCROPS),
        ):
            found = np.argwhere(wanted)
            far = ((found - at) ** 2).sum(axis=1)
            found = found[np.argsort(far, kind="stable")[:most]] + offset
            self._s[count_at] = len(found)
            self._s[list_at : list_at + most] = 0
            self._s[list_at : list_at + len(found)] = (
                found[:, 0] << 16 | found[:, 1] << 8 | found[:, 2]
            )

    # -- moving ------------------------------------------------------------------------------

    def _follow(self, feet: Spot) -> None:
        """Move the window if the body is near its rim."""
        x, y, z = self._inner(feet)
        dx = x - WIDTH // 2 if not _RIM <= x < WIDTH - _RIM else 0
        dz = z - WIDTH // 2 if not _RIM <= z < WIDTH - _RIM else 0
        dy = 0
        if y < _LOWEST:
            dy = y - (_LOWEST + 2)
        elif y > _HIGHEST:
            dy = y - (_HIGHEST - 2)
        if dx or dy or dz:
            self._shift(dx, dy, dz)

    def _shift(self, dx: int, dy: int, dz: int) -> None:
        marks = list(self._marks())
        self.origin = self.origin.moved(dx, dy, dz)
        _slide(self._ids, (dx, dz, dy), _UNKNOWN)
        _slide(self._blocks, (dx, dz, dy), BARRIER)
        heights = self._ground.astype(np.int64) - dy
        self._ground[:] = np.clip(heights, 0, HEIGHT - 1)
        _slide(self._ground, (dx, dz), 0)
        _slide(self._known_ground, (dx, dz), False)
        for slot, spot in marks:
            self._s[slot] = self.cell(spot)

    def _marks(self) -> Iterator[tuple[int, Spot]]:
        """Targets that are given up: where the record has them, and their places in the world."""
        for index in range(N_MARKS):
            slot = MARKS + 2 * index
            if self._s[slot] >= BLOCKS_OFFSET:
                yield slot, self.spot(int(self._s[slot]))


def _slide(array: NDArray[Any], by: tuple[int, ...], fill: Any) -> None:
    """Move what an array holds towards its start, in place; what comes in is ``fill``."""
    old = array.copy()
    array[:] = fill
    take, put = [], []
    for step, size in zip(by, array.shape, strict=True):
        take.append(slice(max(step, 0), size + min(step, 0)))
        put.append(slice(max(-step, 0), size - max(step, 0)))
    if all(s.start < s.stop for s in take):
        array[tuple(put)] = old[tuple(take)]
