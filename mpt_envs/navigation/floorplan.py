"""Generated houses: rooms with kinds, doors, furniture as landmarks, all on columns of 10 cm.

Two ways to divide a house: a *corridor* with rooms on both sides and a living area at one end, or
rooms cut out of each other without a corridor. Walls are one column thick; doors stand open. Every
house is turned and mirrored at random. Sizes are those of real flats: rooms of 2 to 6 metres, doors
of 0.9 metres, hallways of 1.3 to 1.7 metres.

Everything is a function of the key (`draws`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.draws import Draws
from mpt_envs.navigation.facts import DOOR, ROOMS, THINGS
from mpt_envs.navigation.sources import MAX_THINGS, N_THING, Scene
from mpt_envs.navigation.space import FreeSpace
from wrappers.rng import STREAM_DOMAIN

CELL: Final = 0.1  # metres
STREAM_HOUSE: Final = STREAM_DOMAIN + 200

_DOOR: Final = 9  # columns: width of a door
_ARCH: Final = 15  # of an archway
_CLEARANCE: Final = 7  # columns in front of a door that stay free
_TRIES: Final = 6  # places tried for a piece of furniture


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
    def area(self) -> int:
        """Columns."""
        return self.width * self.depth

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


@dataclass(frozen=True)
class House:
    """A generated house.

    Attributes:
        width, depth: columns along x and z, outer walls included.
        rooms, doors, things: what there is.
    """

    width: int
    depth: int
    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]
    things: tuple[Thing, ...]

    def exits(self, room: int) -> list[int]:
        """Numbers of the doors of a room."""
        return [i for i, door in enumerate(self.doors) if room in (door.first, door.second)]

    def beyond(self, door: int, room: int) -> int:
        """The room on the other side of a door."""
        found = self.doors[door]
        return found.second if found.first == room else found.first

    def kind(self, room: int) -> str:
        """What a room is called."""
        return ROOMS[self.rooms[room].kind]


_R: Final = {name: index for index, name in enumerate(ROOMS)}
_T: Final = {name: index for index, name in enumerate(THINGS)}


class _Piece(NamedTuple):
    """A kind of furniture: columns along the wall and away from it, where it stands, how often."""

    name: str
    along: tuple[int, int]
    away: tuple[int, int]
    where: str  # wall, middle, hung (on the wall), flat (on the floor)
    chance: float


_HUNG: Final = ((5, 9), (1, 1))
_FURNITURE: Final[dict[str, tuple[_Piece, ...]]] = {
    "living room": (
        _Piece("couch", (16, 21), (8, 9), "wall", 0.95),
        _Piece("coffee table", (9, 11), (5, 6), "middle", 0.6),
        _Piece("television", (10, 14), (3, 4), "wall", 0.7),
        _Piece("armchair", (7, 8), (7, 8), "wall", 0.5),
        _Piece("fireplace", (12, 15), (3, 4), "wall", 0.4),
        _Piece("piano", (14, 15), (6, 7), "wall", 0.25),
        _Piece("plant", (4, 5), (4, 5), "wall", 0.5),
        _Piece("lamp", (3, 4), (3, 4), "wall", 0.4),
        _Piece("painting", *_HUNG, "hung", 0.4),
    ),
    "kitchen": (
        _Piece("refrigerator", (7, 9), (7, 7), "wall", 0.95),
        _Piece("stove", (6, 7), (6, 6), "wall", 0.9),
        _Piece("sink", (6, 8), (6, 6), "wall", 0.9),
        _Piece("counter", (14, 18), (6, 8), "middle", 0.5),
        _Piece("clock", (3, 4), (1, 1), "hung", 0.3),
    ),
    "dining room": (
        _Piece("dining table", (14, 20), (9, 11), "middle", 0.95),
        _Piece("cabinet", (10, 14), (4, 5), "wall", 0.7),
        _Piece("painting", *_HUNG, "hung", 0.5),
        _Piece("plant", (4, 5), (4, 5), "wall", 0.5),
    ),
    "bedroom": (
        _Piece("bed", (15, 17), (19, 20), "wall", 1.0),
        _Piece("dresser", (10, 13), (5, 5), "wall", 0.7),
        _Piece("wardrobe", (10, 14), (6, 6), "wall", 0.5),
        _Piece("nightstand", (4, 5), (4, 4), "wall", 0.4),
        _Piece("mirror", *_HUNG, "hung", 0.4),
        _Piece("lamp", (3, 4), (3, 4), "wall", 0.3),
    ),
    "bathroom": (
        _Piece("toilet", (4, 5), (6, 6), "wall", 1.0),
        _Piece("sink", (5, 6), (4, 5), "wall", 1.0),
        _Piece("bathtub", (14, 16), (7, 7), "wall", 0.6),
        _Piece("shower", (8, 9), (8, 9), "wall", 0.4),
        _Piece("mirror", *_HUNG, "hung", 0.4),
    ),
    "office": (
        _Piece("desk", (12, 15), (6, 7), "wall", 1.0),
        _Piece("bookshelf", (9, 12), (3, 4), "wall", 0.8),
        _Piece("armchair", (7, 8), (7, 8), "wall", 0.3),
        _Piece("plant", (4, 5), (4, 5), "wall", 0.4),
        _Piece("painting", *_HUNG, "hung", 0.4),
    ),
    "laundry room": (
        _Piece("washing machine", (6, 6), (6, 6), "wall", 1.0),
        _Piece("sink", (5, 6), (5, 5), "wall", 0.5),
        _Piece("cabinet", (8, 10), (4, 5), "wall", 0.5),
    ),
    "closet": (
        _Piece("shelf", (8, 12), (3, 3), "wall", 0.9),
        _Piece("mirror", *_HUNG, "hung", 0.6),
    ),
    "gym": (
        _Piece("treadmill", (7, 8), (14, 16), "wall", 1.0),
        _Piece("bench", (10, 12), (4, 5), "wall", 0.8),
        _Piece("mirror", *_HUNG, "hung", 0.7),
    ),
    "library": (
        _Piece("bookshelf", (12, 16), (3, 4), "wall", 1.0),
        _Piece("armchair", (7, 8), (7, 8), "wall", 0.8),
        _Piece("lamp", (3, 4), (3, 4), "wall", 0.6),
        _Piece("desk", (10, 13), (6, 6), "wall", 0.4),
    ),
    "playroom": (
        _Piece("pool table", (20, 22), (11, 12), "middle", 0.8),
        _Piece("couch", (14, 17), (7, 8), "wall", 0.6),
        _Piece("television", (9, 12), (3, 3), "wall", 0.6),
        _Piece("plant", (4, 5), (4, 5), "wall", 0.4),
    ),
    "hallway": (
        _Piece("painting", *_HUNG, "hung", 0.8),
        _Piece("mirror", *_HUNG, "hung", 0.4),
        _Piece("clock", (3, 4), (1, 1), "hung", 0.4),
        _Piece("plant", (3, 4), (3, 4), "wall", 0.4),
    ),
    "entryway": (
        _Piece("bench", (9, 11), (4, 4), "wall", 0.8),
        _Piece("mirror", *_HUNG, "hung", 0.6),
        _Piece("plant", (4, 5), (4, 5), "wall", 0.5),
    ),
}
_LARGE: Final = ("kitchen", "dining room", "bedroom", "office", "gym", "library", "playroom")
_SMALL: Final = ("bathroom", "laundry room", "closet", "entryway")


# --- dividing -----------------------------------------------------------------------------------
def _cut(draws: Draws, low: int, high: int, least: int, most: int) -> list[tuple[int, int]]:
    """Cut low <= v < high into stretches of least to most columns with walls of one between."""
    parts = []
    at = low
    while high - at > most:
        size = draws.integer(least, min(most, high - at - least - 1))
        parts.append((at, at + size))
        at += size + 1
    parts.append((at, high))
    return parts


def _with_corridor(draws: Draws) -> tuple[int, int, list[Room], list[tuple[int, int, int]]]:
    """A house along a corridor: width, depth, rooms, and wanted doors (room, room, width)."""
    width, depth = draws.integer(104, 142), draws.integer(84, 112)
    rooms: list[Room] = []
    wanted: list[tuple[int, int, int]] = []
    living = draws.integer(38, 52)
    hall = draws.integer(13, 17)
    hall_z = draws.integer(30, depth - hall - 30)
    right = width - 1
    # The living area: the whole depth, or cut in two.
    if depth > 88 or draws.chance(0.6):
        at = draws.integer(36, depth - 37)
        other = draws.choice(("kitchen", "dining room"))
        parts = [Rect(1, 1, 1 + living, at), Rect(1, at + 1, 1 + living, depth - 1)]
        first = 0 if parts[0].area > parts[1].area else 1
        rooms += [Room(parts[first], _R["living room"]), Room(parts[1 - first], _R[other])]
        wanted.append((0, 1, _ARCH))
    else:
        rooms.append(Room(Rect(1, 1, 1 + living, depth - 1), _R["living room"]))
    corridor = len(rooms)
    rooms.append(Room(Rect(living + 2, hall_z, right, hall_z + hall), _R["hallway"]))
    for index in range(corridor):
        wanted.append((index, corridor, _ARCH if draws.chance(0.5) else _DOOR))
    have = {room.kind for room in rooms}
    large = [k for k in draws.shuffled(_LARGE) if _R[k] not in have]
    large.remove("bedroom")
    large = ["bedroom", *large[:1], "bedroom", *large[1:]]
    small = draws.shuffled(_SMALL[:3])
    kinds: list[Room] = []
    for z0, z1 in ((1, hall_z - 1), (hall_z + hall + 1, depth - 1)):
        for x0, x1 in _cut(draws, living + 2, right, 18, 44):
            rect = Rect(x0, z0, x1, z1)
            if rect.width < 24 or not large:
                kind = small.pop(0) if small else "closet"
            else:
                kind = large.pop(0)
            kinds.append(Room(rect, _R[kind]))
    for room in kinds:
        number = len(rooms)
        if room.kind == _R["bedroom"] and room.rect.width >= 40 and draws.chance(0.7):
            # Its own bathroom or closet at the far side.
            size = draws.integer(15, 18)
            x0, z0, x1, z1 = room.rect
            if draws.chance(0.5):
                main, part = Rect(x0, z0, x1 - size - 1, z1), Rect(x1 - size, z0, x1, z1)
            else:
                main, part = Rect(x0 + size + 1, z0, x1, z1), Rect(x0, z0, x0 + size, z1)
            rooms += [Room(main, room.kind), Room(part, _R[draws.choice(("bathroom", "closet"))])]
            wanted.append((number, number + 1, _DOOR))
        else:
            rooms.append(room)
        wanted.append((corridor, number, _DOOR))
    for first in range(corridor + 1, len(rooms)):
        for second in range(first + 1, len(rooms)):
            private = {_R["bathroom"], _R["closet"]} & {rooms[first].kind, rooms[second].kind}
            if not private and draws.chance(0.3):
                wanted.append((first, second, _DOOR))
    return width, depth, rooms, wanted


def _without_corridor(draws: Draws) -> tuple[int, int, list[Room], list[tuple[int, int, int]]]:
    """Rooms cut out of each other; see `_with_corridor`."""
    width, depth = draws.integer(96, 128), draws.integer(82, 110)
    rects: list[Rect] = []
    stack = [Rect(1, 1, width - 1, depth - 1)]
    while stack:
        rect = stack.pop()
        long = rect.width >= rect.depth
        size = rect.width if long else rect.depth
        if size < 46 or (rect.area < 2100 and draws.chance(0.5)) or size < 53:
            rects.append(rect)
            continue
        at = draws.integer(int(0.38 * size), int(0.62 * size))
        x0, z0, x1, z1 = rect
        if long:
            stack += [Rect(x0, z0, x0 + at, z1), Rect(x0 + at + 1, z0, x1, z1)]
        else:
            stack += [Rect(x0, z0, x1, z0 + at), Rect(x0, z0 + at + 1, x1, z1)]
    order = sorted(range(len(rects)), key=lambda i: -rects[i].area)
    large = [k for k in draws.shuffled(_LARGE) if k != "bedroom"]
    large = ["bedroom", *large[:3], "bedroom", *large[3:]]
    small = draws.shuffled(_SMALL)
    kinds = [0] * len(rects)
    for rank, index in enumerate(order):
        if rank == 0:
            kind = "living room"
        elif rank >= 3 and small and rank >= len(order) - 2:
            kind = small.pop(0)
        else:
            kind = large.pop(0) if large else "closet"
        kinds[index] = _R[kind]
    rooms = [Room(rect, kind) for rect, kind in zip(rects, kinds, strict=True)]
    # A random tree of doors joins all rooms; a few more make loops.
    pairs = [
        (i, j)
        for i in range(len(rooms))
        for j in range(i + 1, len(rooms))
        if _wall(rooms[i].rect, rooms[j].rect, _DOOR) is not None
    ]
    group = list(range(len(rooms)))
    wanted = []
    for first, second in draws.shuffled(pairs):
        joined = group[first] == group[second]
        if not joined or draws.chance(0.3):
            wanted.append((first, second, _ARCH if draws.chance(0.2) else _DOOR))
        if not joined:
            old, new = group[second], group[first]
            group = [new if g == old else g for g in group]
    return width, depth, rooms, wanted


def _wall(first: Rect, second: Rect, width: int) -> tuple[bool, int, int, int] | None:
    """The wall between two rooms with room for a door: along_x, wall, low, high; or None.

    ``along_x``: one passes it along x; then the wall is a column of constant x and the door may lie
    anywhere in low <= z < high.
    """
    low, high = max(first.z0, second.z0) + 2, min(first.z1, second.z1) - 2
    if high - low >= width:
        if first.x1 + 1 == second.x0:
            return True, first.x1, low, high
        if second.x1 + 1 == first.x0:
            return True, second.x1, low, high
    low, high = max(first.x0, second.x0) + 2, min(first.x1, second.x1) - 2
    if high - low >= width:
        if first.z1 + 1 == second.z0:
            return False, first.z1, low, high
        if second.z1 + 1 == first.z0:
            return False, second.z1, low, high
    return None


def _doors(draws: Draws, rooms: list[Room], wanted: list[tuple[int, int, int]]) -> list[Door]:
    found = []
    for first, second, width in wanted:
        wall = _wall(rooms[first].rect, rooms[second].rect, width)
        if wall is None and width > _DOOR:
            width = _DOOR
            wall = _wall(rooms[first].rect, rooms[second].rect, width)
        # Where even a door does not fit (a corner of a hallway), a narrow one may.
        if wall is None:
            width = 7
            wall = _wall(rooms[first].rect, rooms[second].rect, width)
        if wall is None:
            continue
        along_x, at, low, high = wall
        start = draws.integer(low, high - width)
        rect = (
            Rect(at, start, at + 1, start + width)
            if along_x
            else Rect(start, at, start + width, at + 1)
        )
        found.append(Door(rect, first, second, along_x))
    return found


def _joined(count: int, doors: list[Door]) -> bool:
    """Whether doors join all rooms."""
    group = list(range(count))
    for door in doors:
        old, new = group[door.second], group[door.first]
        group = [new if g == old else g for g in group]
    return len(set(group)) == 1


# --- furniture ----------------------------------------------------------------------------------
def _place(draws: Draws, room: Rect, piece: _Piece) -> Rect | None:
    """A random place for a piece of furniture in a room."""
    along, away = draws.integer(*piece.along), draws.integer(*piece.away)
    if piece.where in ("middle", "flat"):
        if draws.chance(0.5):
            along, away = away, along
        # Room to walk around it on all sides.
        low_x, high_x = room.x0 + 8, room.x1 - 8 - along
        low_z, high_z = room.z0 + 8, room.z1 - 8 - away
        if low_x > high_x or low_z > high_z:
            return None
        x, z = draws.integer(low_x, high_x), draws.integer(low_z, high_z)
        return Rect(x, z, x + along, z + away)
    side = draws.integer(0, 3)
    length, across = (room.width, room.depth) if side % 2 == 0 else (room.depth, room.width)
    if along > length or (away > 1 and across - away < 9):
        return None
    at = draws.integer(0, length - along)
    if side == 0:
        return Rect(room.x0 + at, room.z0, room.x0 + at + along, room.z0 + away)
    if side == 1:
        return Rect(room.x1 - away, room.z0 + at, room.x1, room.z0 + at + along)
    if side == 2:
        return Rect(room.x0 + at, room.z1 - away, room.x0 + at + along, room.z1)
    return Rect(room.x0, room.z0 + at, room.x0 + away, room.z0 + at + along)


def _touches_any(rect: Rect, others: list[Rect]) -> bool:
    """Whether a rectangle shares a column with one of the others."""
    x0, z0, x1, z1 = rect
    # A loop: any() over a generator takes twice the time, and this is most of making a house.
    for ox0, oz0, ox1, oz1 in others:  # noqa: SIM110
        if x0 < ox1 and ox0 < x1 and z0 < oz1 and oz0 < z1:
            return True
    return False


def _furnish(draws: Draws, rooms: list[Room], doors: list[Door]) -> list[Thing]:
    things: list[Thing] = []
    for number, room in enumerate(rooms):
        before_doors = [door.rect for door in doors if number in (door.first, door.second)]
        kept_free = [rect.grown(_CLEARANCE) for rect in before_doors]
        openings = [rect.grown(1) for rect in before_doors]
        taken: list[Rect] = []
        for piece in _FURNITURE.get(ROOMS[room.kind], ()):
            if not draws.chance(piece.chance):
                continue
            solid = piece.where in ("wall", "middle")
            for _ in range(_TRIES):
                rect = _place(draws, room.rect, piece)
                if rect is None or _touches_any(rect, taken):
                    continue
                if _touches_any(rect, kept_free if solid else openings):
                    continue
                # Two pieces stand side by side, or far enough apart to walk between them.
                if piece.where == "middle" and _touches_any(rect.grown(7), taken):
                    continue
                taken.append(rect)
                things.append(Thing(rect, _T[piece.name], number, solid))
                break
    return things


# --- the whole ----------------------------------------------------------------------------------
def _turned(rect: Rect, width: int, depth: int, turn: int) -> Rect:
    """A rectangle of a house that is mirrored (bits 0 and 1) and transposed (bit 2)."""
    x0, z0, x1, z1 = rect
    if turn & 1:
        x0, x1 = width - x1, width - x0
    if turn & 2:
        z0, z1 = depth - z1, depth - z0
    return Rect(z0, x0, z1, x1) if turn & 4 else Rect(x0, z0, x1, z1)


def build_house(key: int, attempt: int = 0) -> House:
    """The house of a key: one in which a way leads from every room to every other.

    Args:
        key: any number.
        attempt: another house of the same key, for each number.
    """
    draws = Draws(key, STREAM_HOUSE, attempt)
    while True:
        divide = _with_corridor if draws.chance(0.65) else _without_corridor
        width, depth, rooms, wanted = divide(draws)
        doors = _doors(draws, rooms, wanted)
        if _joined(len(rooms), doors):
            break
    things = _furnish(draws, rooms, doors)[: MAX_THINGS - len(doors)]
    turn = draws.integer(0, 7)
    across = bool(turn & 4)
    return House(
        depth if across else width,
        width if across else depth,
        tuple(Room(_turned(r.rect, width, depth, turn), r.kind) for r in rooms),
        tuple(
            Door(_turned(d.rect, width, depth, turn), d.first, d.second, d.along_x != across)
            for d in doors
        ),
        tuple(Thing(_turned(t.rect, width, depth, turn), t.kind, t.room, t.solid) for t in things),
    )


def walls_of(house: House) -> NDArray[np.bool_]:
    """Columns that are wall: bool ``(depth, width)``."""
    walls = np.ones((house.depth, house.width), np.bool_)
    for room in house.rooms:
        x0, z0, x1, z1 = room.rect
        walls[z0:z1, x0:x1] = False
    for door in house.doors:
        x0, z0, x1, z1 = door.rect
        walls[z0:z1, x0:x1] = False
    return walls


def build_scene(house: House, scene_id: str) -> Scene:
    """The house as a place to walk in and to look at."""
    walls = walls_of(house)
    blocked = walls.copy()
    rooms = np.zeros(walls.shape, np.int8)
    for number, room in enumerate(house.rooms):
        x0, z0, x1, z1 = room.rect
        rooms[z0:z1, x0:x1] = number + 1
    for thing in house.things:
        if thing.solid:
            x0, z0, x1, z1 = thing.rect
            blocked[z0:z1, x0:x1] = True
    # Grown by the radius of the body, which is one column.
    wide = blocked.copy()
    wide[:, 1:] |= blocked[:, :-1]
    wide[:, :-1] |= blocked[:, 1:]
    grown = wide.copy()
    grown[1:] |= wide[:-1]
    grown[:-1] |= wide[1:]
    heights = np.where(grown, np.float32(np.nan), np.float32(0.0))[None]
    table = np.zeros((len(house.doors) + len(house.things), N_THING), np.float32)
    for row, door in enumerate(house.doors):
        x, z = door.rect.centre
        size = max(door.rect.width, door.rect.depth) * CELL / 2
        table[row] = (DOOR, x, 0.0, z, size, door.first + 1, door.second + 1)
    for row, thing in enumerate(house.things, len(house.doors)):
        x, z = thing.rect.centre
        size = (thing.rect.width + thing.rect.depth) * CELL / 4
        table[row] = (thing.kind, x, 0.0, z, size, thing.room + 1, thing.room + 1)
    kinds = np.array([0, *(room.kind for room in house.rooms)], np.int8)
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    return Scene(scene_id, space, table, walls.astype(np.uint8), rooms, kinds, house)
