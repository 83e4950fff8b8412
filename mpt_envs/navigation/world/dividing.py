"""Kernels that divide a generated house into rooms with doors between them.

Two ways: a *corridor* with rooms on both sides and a living area at one end, or rooms cut out of
each other without a corridor. Walls are one column thick; doors stand open. Sizes are those of real
flats: rooms of 2 to 6 metres, doors of 0.9 metres, hallways of 1.3 to 1.7 metres.

Rooms, doors and things are rows of int64 arrays; the first columns of each are those of its
rectangle: x0 <= x < x1, z0 <= z < z1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.facts import ROOMS
from wrappers.random_sequence import chance, integer, shuffle

# --- columns of the arrays ----------------------------------------------------------------------
X0: Final = 0
Z0: Final = 1
X1: Final = 2
Z1: Final = 3
KIND: Final = 4  # of a room: index into facts.ROOMS; of a thing: index into facts.THINGS
N_ROOM: Final = 5
FIRST: Final = 4  # of a door: its two rooms, and whether one passes it along x
SECOND: Final = 5
ALONG_X: Final = 6
N_DOOR: Final = 7

# --- columns of 10 cm ---------------------------------------------------------------------------
_DOOR: Final = 9  # width of a door
_ARCH: Final = 15  # of an archway
_NARROW: Final = 7  # of a door in a corner of a hallway
_SMALLEST: Final = 18  # width of a room along a corridor
_LARGEST: Final = 44
_MOST_ROOMS: Final = 48  # more than the largest house can be cut into

# --- kinds of rooms -----------------------------------------------------------------------------
_HALLWAY: Final = ROOMS.index("hallway")
_LIVING_ROOM: Final = ROOMS.index("living room")
_KITCHEN: Final = ROOMS.index("kitchen")
_DINING_ROOM: Final = ROOMS.index("dining room")
_BEDROOM: Final = ROOMS.index("bedroom")
_BATHROOM: Final = ROOMS.index("bathroom")
_CLOSET: Final = ROOMS.index("closet")
_LARGE: Final = np.array(
    [
        ROOMS.index(name)
        for name in ("kitchen", "dining room", "bedroom", "office", "gym", "library", "playroom")
    ]
)
_SMALL: Final = np.array(
    [ROOMS.index(name) for name in ("bathroom", "laundry room", "closet", "entryway")]
)


@kernel
def _rect(row, x0, z0, x1, z1):
    """Write a rectangle into a row."""
    row[X0], row[Z0], row[X1], row[Z1] = x0, z0, x1, z1


@kernel
def _wish(wanted, count, first, second, width):
    """Add a wanted door; the new number of them."""
    wanted[count, 0], wanted[count, 1], wanted[count, 2] = first, second, width
    return count + 1


@kernel
def _large_kinds(state, have, lead):
    """Kinds of large rooms in random order, with two bedrooms.

    Args:
        state: of `random_sequence.sequence`.
        have: a kind that is not wanted again; -1: none.
        lead: kinds between the first bedroom and the second.
    """
    kinds = _LARGE.copy()
    shuffle(state, kinds)
    out = np.empty(len(kinds) + 1, np.int64)
    out[0] = out[lead + 1] = _BEDROOM
    count = 1
    for kind in kinds:
        if kind != _BEDROOM and kind != have:
            out[count] = kind
            count += 2 if count == lead else 1
    return out[:count]


@kernel
def _with_corridor(state, rooms, wanted):
    """Divide a house along a corridor.

    Args:
        state: of `random_sequence.sequence`.
        rooms: int64 ``(n, N_ROOM)``, overwritten.
        wanted: int64 ``(n, 3)``, overwritten: two rooms and the width of a door between them.

    Returns:
        width, depth, number of rooms and of wanted doors.
    """
    width, depth = integer(state, 104, 142), integer(state, 84, 112)
    wishes = 0
    living = integer(state, 38, 52)
    hall = integer(state, 13, 17)
    hall_z = integer(state, 30, depth - hall - 30)
    right = width - 1
    # The living area: the whole depth, or cut in two.
    other = -1
    rooms[0, KIND] = _LIVING_ROOM
    if depth > 88 or chance(state, 0.6):
        at = integer(state, 36, depth - 37)
        other = _KITCHEN if integer(state, 0, 1) == 0 else _DINING_ROOM
        first = 0 if at - 1 > depth - 2 - at else 1  # the larger part is the living room
        _rect(rooms[first], 1, 1, 1 + living, at)
        _rect(rooms[1 - first], 1, at + 1, 1 + living, depth - 1)
        rooms[1, KIND] = other
        wishes = _wish(wanted, wishes, 0, 1, _ARCH)
        corridor = 2
    else:
        _rect(rooms[0], 1, 1, 1 + living, depth - 1)
        corridor = 1
    _rect(rooms[corridor], living + 2, hall_z, right, hall_z + hall)
    rooms[corridor, KIND] = _HALLWAY
    for index in range(corridor):
        wishes = _wish(wanted, wishes, index, corridor, _ARCH if chance(state, 0.5) else _DOOR)
    large = _large_kinds(state, other, 1)
    small = _SMALL[:3].copy()
    shuffle(state, small)
    # Both sides are cut into stretches, and these get their kinds.
    parts = np.empty((_MOST_ROOMS, N_ROOM), np.int64)
    n_parts = n_large = n_small = 0
    for side in range(2):
        z0 = 1 if side == 0 else hall_z + hall + 1
        z1 = hall_z - 1 if side == 0 else depth - 1
        x0 = living + 2
        while x0 < right:
            x1 = right
            if right - x0 > _LARGEST:
                most = min(_LARGEST, right - x0 - _SMALLEST - 1)
                x1 = x0 + integer(state, _SMALLEST, most)
            _rect(parts[n_parts], x0, z0, x1, z1)
            if x1 - x0 < 24 or n_large == len(large):
                parts[n_parts, KIND] = small[n_small] if n_small < len(small) else _CLOSET
                n_small += 1
            else:
                parts[n_parts, KIND] = large[n_large]
                n_large += 1
            n_parts += 1
            x0 = x1 + 1
    count = corridor + 1
    for part in parts[:n_parts]:
        number = count
        rooms[number] = part
        count += 1
        if part[KIND] == _BEDROOM and part[X1] - part[X0] >= 40 and chance(state, 0.7):
            # Its own bathroom or closet at the far side.
            size = integer(state, 15, 18)
            rooms[count] = part
            if chance(state, 0.5):
                rooms[number, X1] = part[X1] - size - 1
                rooms[count, X0] = part[X1] - size
            else:
                rooms[number, X0] = part[X0] + size + 1
                rooms[count, X1] = part[X0] + size
            rooms[count, KIND] = _BATHROOM if integer(state, 0, 1) == 0 else _CLOSET
            count += 1
            wishes = _wish(wanted, wishes, number, number + 1, _DOOR)
        wishes = _wish(wanted, wishes, corridor, number, _DOOR)
    for first in range(corridor + 1, count):
        for second in range(first + 1, count):
            private = False
            for kind in (rooms[first, KIND], rooms[second, KIND]):
                private |= kind in (_BATHROOM, _CLOSET)
            if not private and chance(state, 0.3):
                wishes = _wish(wanted, wishes, first, second, _DOOR)
    return width, depth, count, wishes


@kernel
def _without_corridor(state, rooms, wanted):
    """Divide a house into rooms that are cut out of each other; see `_with_corridor`."""
    width, depth = integer(state, 96, 128), integer(state, 82, 110)
    stack = np.empty((_MOST_ROOMS, N_ROOM), np.int64)
    _rect(stack[0], 1, 1, width - 1, depth - 1)
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        rect = stack[waiting]
        x0, z0, x1, z1 = rect[X0], rect[Z0], rect[X1], rect[Z1]
        long = x1 - x0 >= z1 - z0
        size = x1 - x0 if long else z1 - z0
        small_area = (x1 - x0) * (z1 - z0) < 2100
        if size < 46 or (small_area and chance(state, 0.5)) or size < 53:
            _rect(rooms[count], x0, z0, x1, z1)
            count += 1
            continue
        at = integer(state, int(0.38 * size), int(0.62 * size))
        if long:
            _rect(stack[waiting], x0, z0, x0 + at, z1)
            _rect(stack[waiting + 1], x0 + at + 1, z0, x1, z1)
        else:
            _rect(stack[waiting], x0, z0, x1, z0 + at)
            _rect(stack[waiting + 1], x0, z0 + at + 1, x1, z1)
        waiting += 2
    large = _large_kinds(state, -1, 3)
    small = _SMALL.copy()
    shuffle(state, small)
    n_large = n_small = 0
    # Kinds by size, the largest first; of equals the first.
    rooms[:count, KIND] = -1
    for rank in range(count):
        index, most = -1, -1
        for room in range(count):
            area = (rooms[room, X1] - rooms[room, X0]) * (rooms[room, Z1] - rooms[room, Z0])
            if rooms[room, KIND] < 0 and area > most:
                index, most = room, area
        if rank == 0:
            kind = _LIVING_ROOM
        elif rank >= 3 and n_small < len(small) and rank >= count - 2:
            kind = small[n_small]
            n_small += 1
        elif n_large < len(large):
            kind = large[n_large]
            n_large += 1
        else:
            kind = _CLOSET
        rooms[index, KIND] = kind
    # A random tree of doors joins all rooms; a few more make loops.
    pairs = np.empty(count * count, np.int64)
    n_pairs = 0
    for first in range(count):
        for second in range(first + 1, count):
            if _wall(rooms[first], rooms[second], _DOOR)[0] >= 0:
                pairs[n_pairs] = first * count + second
                n_pairs += 1
    shuffle(state, pairs[:n_pairs])
    group = np.arange(count)
    wishes = 0
    for pair in pairs[:n_pairs]:
        first, second = pair // count, pair % count
        joined = group[first] == group[second]
        if not joined or chance(state, 0.3):
            wishes = _wish(wanted, wishes, first, second, _ARCH if chance(state, 0.2) else _DOOR)
        if not joined:
            _join(group, first, second)
    return width, depth, count, wishes


@kernel
def _join(group, first, second):
    """Make one group of the groups of two rooms."""
    old, new = group[second], group[first]
    for room in range(len(group)):
        if group[room] == old:
            group[room] = new


@kernel
def _wall(first, second, width):
    """The wall between two rooms with room for a door, as along_x, wall, low, high.

    ``along_x`` is 1 if one passes it along x: then the wall is a column of constant x and the door
    may lie anywhere in low <= z < high; -1: there is no such wall.
    """
    low, high = max(first[Z0], second[Z0]) + 2, min(first[Z1], second[Z1]) - 2
    if high - low >= width:
        if first[X1] + 1 == second[X0]:
            return 1, first[X1], low, high
        if second[X1] + 1 == first[X0]:
            return 1, second[X1], low, high
    low, high = max(first[X0], second[X0]) + 2, min(first[X1], second[X1]) - 2
    if high - low >= width:
        if first[Z1] + 1 == second[Z0]:
            return 0, first[Z1], low, high
        if second[Z1] + 1 == first[Z0]:
            return 0, second[Z1], low, high
    return -1, 0, 0, 0


@kernel
def _doors(state, rooms, wanted):
    """Doors where they are wanted and a wall has room for them: int64 ``(n, N_DOOR)``."""
    doors = np.empty((len(wanted), N_DOOR), np.int64)
    count = 0
    for wish in wanted:
        first, second, width = wish[0], wish[1], wish[2]
        along_x, at, low, high = _wall(rooms[first], rooms[second], width)
        if along_x < 0 and width > _DOOR:
            width = _DOOR
            along_x, at, low, high = _wall(rooms[first], rooms[second], width)
        # Where even a door does not fit (a corner of a hallway), a narrow one may.
        if along_x < 0:
            width = _NARROW
            along_x, at, low, high = _wall(rooms[first], rooms[second], width)
        if along_x < 0:
            continue
        start = integer(state, low, high - width)
        door = doors[count]
        if along_x == 1:
            _rect(door, at, start, at + 1, start + width)
        else:
            _rect(door, start, at, start + width, at + 1)
        door[FIRST], door[SECOND], door[ALONG_X] = first, second, along_x
        count += 1
    return doors[:count]


@kernel
def divide(state):
    """Rooms and doors of a house in which a way leads from every room to every other.

    Args:
        state: of `random_sequence.sequence`.

    Returns:
        width and depth in columns, rooms ``(n, N_ROOM)`` and doors ``(n, N_DOOR)``, int64.
    """
    rooms = np.empty((_MOST_ROOMS, N_ROOM), np.int64)
    wanted = np.empty((_MOST_ROOMS * _MOST_ROOMS, 3), np.int64)
    while True:
        if chance(state, 0.65):
            width, depth, count, wishes = _with_corridor(state, rooms, wanted)
        else:
            width, depth, count, wishes = _without_corridor(state, rooms, wanted)
        doors = _doors(state, rooms[:count], wanted[:wishes])
        group = np.arange(count)
        for door in doors:
            _join(group, door[FIRST], door[SECOND])
        if (group == group[0]).all():
            return width, depth, rooms[:count], doors
