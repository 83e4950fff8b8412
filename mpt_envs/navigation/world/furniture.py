"""Furniture of generated houses: what stands in which kind of room; the kernel that places it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.dividing import FIRST, KIND, SECOND, X0, X1, Z0, Z1
from mpt_envs.navigation.world.facts import ROOMS, THINGS
from wrappers.random_sequence import chance, integer

# Columns of a thing after those that rooms have as well: its room, and whether it is in the way (a
# picture on the wall is not).
ROOM: Final = 5
SOLID: Final = 6
N_THING_ROW: Final = 7

_CLEARANCE: Final = 7  # columns in front of a door that stay free
_TRIES: Final = 6  # places tried for a piece of furniture


class _Piece(NamedTuple):
    """A kind of furniture: columns along the wall and away from it, where it stands, how often."""

    name: str
    along: tuple[int, int]
    away: tuple[int, int]
    where: str  # wall, middle, hung (on the wall)
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


# --- the same as arrays -------------------------------------------------------------------------
_WALL: Final = 0
_MIDDLE: Final = 1
_HUNG_UP: Final = 2
_WHERE: Final = ("wall", "middle", "hung")
_PIECES: Final = [_FURNITURE.get(room, ()) for room in ROOMS]
#: Of each piece: kind, columns along the wall and away from it (least, most), where it stands.
_ROWS: Final = np.array(
    [
        (THINGS.index(piece.name), *piece.along, *piece.away, _WHERE.index(piece.where))
        for pieces in _PIECES
        for piece in pieces
    ]
)
_CHANCES: Final = np.array([piece.chance for pieces in _PIECES for piece in pieces])
#: The pieces of a kind of room are those from one of these numbers to the next.
_STARTS: Final = np.cumsum([0, *map(len, _PIECES)])
#: Pieces of a room at most.
MOST_PIECES: Final = max(map(len, _PIECES))


@kernel
def _place(state, room, piece, rect):
    """Write a random place for a piece of furniture in a room; whether there is one.

    Args:
        state: of `random_sequence.sequence`.
        room: its row.
        piece: row of ``_ROWS``.
        rect: int64 (4,), overwritten.
    """
    along, away = integer(state, piece[1], piece[2]), integer(state, piece[3], piece[4])
    width, depth = room[X1] - room[X0], room[Z1] - room[Z0]
    if piece[5] == _MIDDLE:
        if chance(state, 0.5):
            along, away = away, along
        # Room to walk around it on all sides.
        low_x, high_x = room[X0] + 8, room[X1] - 8 - along
        low_z, high_z = room[Z0] + 8, room[Z1] - 8 - away
        if low_x > high_x or low_z > high_z:
            return False
        rect[X0], rect[Z0] = integer(state, low_x, high_x), integer(state, low_z, high_z)
        rect[X1], rect[Z1] = rect[X0] + along, rect[Z0] + away
        return True
    side = integer(state, 0, 3)
    length, across = (width, depth) if side % 2 == 0 else (depth, width)
    if along > length or (away > 1 and across - away < 9):
        return False
    at = integer(state, 0, length - along)
    if side % 2 == 0:
        rect[X0], rect[X1] = room[X0] + at, room[X0] + at + along
        rect[Z0] = room[Z0] if side == 0 else room[Z1] - away
        rect[Z1] = rect[Z0] + away
    else:
        rect[Z0], rect[Z1] = room[Z0] + at, room[Z0] + at + along
        rect[X0] = room[X0] if side == 3 else room[X1] - away
        rect[X1] = rect[X0] + away
    return True


@kernel
def _touches(first, second, margin):
    """Whether two rectangles share a column when one of them has a margin around it."""
    return (
        first[X0] < second[X1] + margin
        and second[X0] - margin < first[X1]
        and first[Z0] < second[Z1] + margin
        and second[Z0] - margin < first[Z1]
    )


@kernel
def _fits(rect, where, things, near):
    """Whether a piece may stand in a place.

    Args:
        rect: the place.
        where: _WALL, _MIDDLE or _HUNG_UP.
        things: rows of the things of the room.
        near: rows of its doors.
    """
    # Two pieces stand side by side, or far enough apart to walk between them.
    margin = 7 if where == _MIDDLE else 0
    for thing in things:
        if _touches(rect, thing, margin):
            return False
    margin = 1 if where == _HUNG_UP else _CLEARANCE
    for door in near:  # noqa: SIM110
        if _touches(rect, door, margin):
            return False
    return True


@kernel
def furnish(state, rooms, doors, most):
    """Furniture for all rooms: int64 ``(n, N_THING_ROW)``.

    Args:
        state: of `random_sequence.sequence`.
        rooms, doors: of `dividing.divide`.
        most: things at most; of more, the last are left out.
    """
    things = np.empty((len(rooms) * MOST_PIECES, N_THING_ROW), np.int64)
    near = np.empty_like(doors)
    rect = np.empty(4, np.int64)
    count = 0
    for number in range(len(rooms)):
        room = rooms[number]
        exits = 0
        for door in doors:
            if door[FIRST] == number or door[SECOND] == number:
                near[exits] = door
                exits += 1
        before = count
        for index in range(_STARTS[room[KIND]], _STARTS[room[KIND] + 1]):
            if not chance(state, _CHANCES[index]):
                continue
            piece = _ROWS[index]
            for _ in range(_TRIES):
                if not _place(state, room, piece, rect):
                    continue
                if _fits(rect, piece[5], things[before:count], near[:exits]):
                    thing = things[count]
                    thing[:4] = rect
                    thing[KIND], thing[ROOM] = piece[0], number
                    thing[SOLID] = piece[5] != _HUNG_UP
                    count += 1
                    break
    return things[: max(0, min(count, most))]
