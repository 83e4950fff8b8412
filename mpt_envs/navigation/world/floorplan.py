"""Generated houses: rooms with kinds, doors, furniture as landmarks, all on columns of 10 cm.

`dividing` makes the rooms and doors, `furniture` the landmarks; here every house is turned and
mirrored at random and becomes a scene. Everything is a function of the key (`random_sequence`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.dividing import ALONG_X, FIRST, KIND, SECOND, X0, X1, Z0, Z1, divide
from mpt_envs.navigation.world.facts import DOOR, ROOMS
from mpt_envs.navigation.world.furniture import ROOM, SOLID, furnish
from mpt_envs.navigation.world.sources import (
    MAX_THINGS,
    N_THING,
    T_KIND,
    T_RADIUS,
    T_ROOM_A,
    T_ROOM_B,
    T_X,
    T_Z,
    Scene,
)
from mpt_envs.navigation.world.space import FreeSpace
from wrappers.random_sequence import integer, sequence
from wrappers.rng import STREAM_DOMAIN, as_key

CELL: Final = 0.1  # metres
STREAM_HOUSE: Final = STREAM_DOMAIN + 200


class Rect(NamedTuple):
    """Columns x0 <= x < x1, z0 <= z < z1."""

    x0: int
    z0: int
    x1: int
    z1: int

    @property
    def width(self) -> int:
        """Columns along x."""
        return self.x1 - self.x0

    @property
    def depth(self) -> int:
        """Columns along z."""
        return self.z1 - self.z0

    @property
    def centre(self) -> tuple[float, float]:
        """x and z of the middle, in metres."""
        return (self.x0 + self.x1) / 2 * CELL, (self.z0 + self.z1) / 2 * CELL

    def grown(self, by: int) -> Rect:
        """The same with a margin."""
        return Rect(self.x0 - by, self.z0 - by, self.x1 + by, self.z1 + by)

    def touches(self, other: Rect) -> bool:
        """Whether they share a column."""
        return (
            self.x0 < other.x1 and other.x0 < self.x1 and self.z0 < other.z1 and other.z0 < self.z1
        )

    def within(self, other: Rect) -> bool:
        """Whether all its columns are the other's."""
        return (
            other.x0 <= self.x0
            and self.x1 <= other.x1
            and other.z0 <= self.z0
            and self.z1 <= other.z1
        )


class Room(NamedTuple):
    """A room: its columns, its kind (index into facts.ROOMS)."""

    rect: Rect
    kind: int


class Door(NamedTuple):
    """A door: the columns of its opening, the two rooms, whether one passes it along x."""

    rect: Rect
    first: int
    second: int
    along_x: bool


class Thing(NamedTuple):
    """A landmark: its columns, its kind (index into facts.THINGS), its room, what it does.

    Attributes:
        solid: whether it is in the way. A picture on the wall is not.
    """

    rect: Rect
    kind: int
    room: int
    solid: bool


class House:
    """A generated house.

    Attributes:
        width, depth: columns along x and z, outer walls included.
        room_rows, door_rows, thing_rows: what there is, for kernels: int64, columns as in
            `dividing` and `furniture`.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        room_rows: NDArray[np.int64],
        door_rows: NDArray[np.int64],
        thing_rows: NDArray[np.int64],
    ) -> None:
        self.width = width
        self.depth = depth
        self.room_rows = room_rows
        self.door_rows = door_rows
        self.thing_rows = thing_rows

    @cached_property
    def kinds(self) -> list[int]:
        """The kinds of the rooms."""
        kinds: list[int] = self.room_rows[:, KIND].tolist()
        return kinds

    @cached_property
    def rooms(self) -> tuple[Room, ...]:
        """The rooms."""
        return tuple(Room(Rect(*row[:KIND]), row[KIND]) for row in self.room_rows.tolist())

    @cached_property
    def doors(self) -> tuple[Door, ...]:
        """The doors."""
        return tuple(
            Door(Rect(*row[:FIRST]), row[FIRST], row[SECOND], bool(row[ALONG_X]))
            for row in self.door_rows.tolist()
        )

    @cached_property
    def things(self) -> tuple[Thing, ...]:
        """The landmarks."""
        return tuple(
            Thing(Rect(*row[:KIND]), row[KIND], row[ROOM], bool(row[SOLID]))
            for row in self.thing_rows.tolist()
        )

    def _content(self) -> tuple[object, ...]:
        return self.width, self.depth, self.rooms, self.doors, self.things

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, House) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        return (
            f"House(width={self.width!r}, depth={self.depth!r}, rooms={self.rooms!r}, "
            f"doors={self.doors!r}, things={self.things!r})"
        )

    def exits(self, room: int) -> list[int]:
        """Numbers of the doors of a room."""
        return [i for i, door in enumerate(self.doors) if room in (door.first, door.second)]

    def beyond(self, door: int, room: int) -> int:
        """The room on the other side of a door."""
        first, second = self.door_rows[door, FIRST], self.door_rows[door, SECOND]
        return int(second if first == room else first)

    def kind(self, room: int) -> str:
        """What a room is called."""
        return ROOMS[self.kinds[room]]


@kernel
def _turn(rows, width, depth, turn):
    """Mirror rectangles of a house (bits 0 and 1 of ``turn``), then transpose them (bit 2)."""
    for row in rows:
        x0, z0, x1, z1 = row[X0], row[Z0], row[X1], row[Z1]
        if turn & 1:
            x0, x1 = width - x1, width - x0
        if turn & 2:
            z0, z1 = depth - z1, depth - z0
        if turn & 4:
            x0, z0, x1, z1 = z0, x0, z1, x1
        row[X0], row[Z0], row[X1], row[Z1] = x0, z0, x1, z1


@kernel
def _build(key, attempt):
    """Width, depth and the rows of rooms, doors and things of a house; see `build_house`."""
    state = sequence(key, STREAM_HOUSE, attempt)
    width, depth, rooms, doors = divide(state)
    things = furnish(state, rooms, doors, MAX_THINGS - len(doors))
    turn = integer(state, 0, 7)
    for rows in (rooms, doors, things):
        _turn(rows, width, depth, turn)
    if turn & 4:
        width, depth = depth, width
        doors[:, ALONG_X] = 1 - doors[:, ALONG_X]
    # Copies, that hold no more than there is.
    return width, depth, rooms.copy(), doors.copy(), things.copy()


def build_house(key: int, attempt: int = 0) -> House:
    """The house of a key: one in which a way leads from every room to every other.

    Args:
        key: any number.
        attempt: another house of the same key, for each number.
    """
    return House(*_build(as_key(key), attempt))


@kernel
def _fill(grid, row, value):
    """Give all columns of a rectangle a value."""
    grid[row[Z0] : row[Z1], row[X0] : row[X1]] = value


@kernel
def _lay(width, depth, room_rows, door_rows, thing_rows):
    """The arrays of a `Scene`: heights, things, opaque, rooms, room_kinds."""
    opaque = np.ones((depth, width), np.uint8)
    rooms = np.zeros((depth, width), np.int8)
    kinds = np.zeros(len(room_rows) + 1, np.int8)
    for number in range(len(room_rows)):
        row = room_rows[number]
        _fill(opaque, row, 0)
        _fill(rooms, row, number + 1)
        kinds[number + 1] = row[KIND]
    for row in door_rows:
        _fill(opaque, row, 0)
    blocked = opaque.copy()
    for row in thing_rows:
        if row[SOLID]:
            _fill(blocked, row, 1)
    # Grown by the radius of the body, which is one column.
    heights = np.full((1, depth, width), np.nan, np.float32)
    wide = np.empty(width, np.uint8)
    for iz in range(1, depth - 1):
        above, here, below, out = blocked[iz - 1], blocked[iz], blocked[iz + 1], heights[0, iz]
        for ix in range(width):
            wide[ix] = above[ix] | here[ix] | below[ix]
        for ix in range(1, width - 1):
            free = wide[ix - 1] | wide[ix] | wide[ix + 1] == 0
            out[ix] = np.float32(0.0) if free else np.float32(np.nan)
    things = np.zeros((len(door_rows) + len(thing_rows), N_THING), np.float32)
    count = 0
    for row in door_rows:
        size = max(row[X1] - row[X0], row[Z1] - row[Z0]) * CELL / 2
        _enter(things[count], row, DOOR, size, row[FIRST], row[SECOND])
        count += 1
    for row in thing_rows:
        size = (row[X1] - row[X0] + row[Z1] - row[Z0]) * CELL / 4
        _enter(things[count], row, row[KIND], size, row[ROOM], row[ROOM])
        count += 1
    return heights, things, opaque, rooms, kinds


@kernel
def _enter(thing, row, kind, size, first, second):
    """Write a row of `Scene.things`."""
    thing[T_KIND] = kind
    thing[T_X] = (row[X0] + row[X1]) / 2 * CELL
    thing[T_Z] = (row[Z0] + row[Z1]) / 2 * CELL
    thing[T_RADIUS] = size
    thing[T_ROOM_A] = first + 1
    thing[T_ROOM_B] = second + 1


def build_scene(house: House, scene_id: str) -> Scene:
    """The house as a place to walk in and to look at."""
    heights, things, opaque, rooms, kinds = _lay(
        house.width, house.depth, house.room_rows, house.door_rows, house.thing_rows
    )
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    return Scene(scene_id, space, things, opaque, rooms, kinds, house)
