"""Kernels that find out what a person must be told of each room of a way: see `route.Leg`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.dividing import ALONG_X, FIRST, KIND, SECOND, X0, X1, Z0, Z1
from mpt_envs.navigation.world.facts import ROOMS, STEP_ANGLE
from mpt_envs.navigation.world.floorplan import CELL
from mpt_envs.navigation.world.furniture import MOST_PIECES, ROOM

# --- columns of a leg ---------------------------------------------------------------------------
L_ROOM: Final = 0
L_DOOR: Final = 1
L_TURN: Final = 2
L_SIDE: Final = 3
L_ORDINAL: Final = 4
L_ONLY: Final = 5
L_BY_ROOM: Final = 6
L_BY_SIDE: Final = 7
L_N_PASSED: Final = 8
L_PASSED: Final = 9  # and as many columns after it as there can be
N_LEG: Final = L_PASSED + MOST_PIECES

MOST_LEGS: Final = 5
_NEAR: Final = 1.2  # metres: a thing that one passes
_AHEAD: Final = 40.0  # degrees to each side that count as straight ahead
_BEHIND: Final = 140.0
_BORDER: Final = 8  # degrees from the border between two sides that leave it open
_APART: Final = 20.0  # degrees by which a door must be more to a side than another
_ACROSS: Final = 0.6  # metres along a hallway: a door that is neither left nor right
_HALLWAY: Final = ROOMS.index("hallway")


# --- places and angles --------------------------------------------------------------------------
@kernel
def angle_between(forward, to):
    """Degrees by which one turns to the left from one direction (x, z) to another."""
    along = forward[0] * to[0] + forward[1] * to[1]
    left = forward[1] * to[0] - forward[0] * to[1]
    return math.degrees(math.atan2(left, along))


@kernel
def _centre(row):
    """x and z of the middle of a rectangle, in metres."""
    return (row[X0] + row[X1]) / 2 * CELL, (row[Z0] + row[Z1]) / 2 * CELL


@kernel
def _towards(row, at):
    """The direction from a place to the middle of a rectangle."""
    x, z = _centre(row)
    return x - at[0], z - at[1]


@kernel
def _turn(angle):
    """LEFT, RIGHT or AROUND for an angle in degrees; 0: ahead."""
    if abs(angle) <= _AHEAD:
        return 0
    if abs(angle) > _BEHIND:
        return c.AROUND
    return c.LEFT if angle > 0 else c.RIGHT


@kernel
def _on_border(angle):
    """Whether nobody can tell on which side (ahead, left, right, behind) an angle lies."""
    return abs(abs(angle) - _AHEAD) < _BORDER or abs(abs(angle) - _BEHIND) < _BORDER


@kernel
def _aside(angle, middle):
    """Degrees by which an angle differs from the middle of a side."""
    return abs((angle - middle + 180.0) % 360.0 - 180.0)


# --- things -------------------------------------------------------------------------------------
@kernel
def alone(things, index):
    """Whether a thing is the only one of its kind in its room."""
    for other in range(len(things)):
        if (
            other != index
            and things[other, ROOM] == things[index, ROOM]
            and things[other, KIND] == things[index, KIND]
        ):
            return False
    return True


@kernel
def _nearest(thing, path, first, last):
    """The step of a part of a path (both ends included) that is nearest to a thing, and metres."""
    best, least = 0, np.inf
    x0, z0 = thing[X0] * CELL, thing[Z0] * CELL
    x1, z1 = thing[X1] * CELL, thing[Z1] * CELL
    for step in range(first, last + 1):
        x, z = path[step, 0], path[step, 2]
        dx = max(0.0, max(x0 - x, x - x1))
        dz = max(0.0, max(z0 - z, z - z1))
        away = math.hypot(dx, dz)
        if away < least:
            best, least = step - first, away
    return best, least


@kernel
def _pass(things, room, path, first, last, leg):
    """Write the kinds of the things of a room that one passes on a part of a path, in order.

    Args:
        things: rows of the house.
        room: number of the room.
        path: see `legs_of`.
        first, last: steps of the path in the room.
        leg: row of a leg.
    """
    steps = np.empty(MOST_PIECES, np.int64)
    kinds = leg[L_PASSED:]
    count = 0
    for index in range(len(things)):
        if things[index, ROOM] != room or not alone(things, index):
            continue
        step, least = _nearest(things[index], path, first, last)
        # Neither where one starts nor at the door: one must go by.
        if not (least < _NEAR and 4 <= step < last - first - 4):
            continue
        kind = things[index, KIND]
        at = count
        while at > 0 and (steps[at - 1], kinds[at - 1]) > (step, kind):
            steps[at], kinds[at] = steps[at - 1], kinds[at - 1]
            at -= 1
        steps[at], kinds[at] = step, kind
        count += 1
    leg[L_N_PASSED] = count


# --- doors --------------------------------------------------------------------------------------
@kernel
def _kind_beyond(rooms, door, room):
    """The kind of the room on the other side of a door."""
    return rooms[door[SECOND] if door[FIRST] == room else door[FIRST], KIND]


@kernel
def _between(doors, first, second, x, z):
    """The door between two rooms that is nearest to a place, or -1."""
    best, least = -1, np.inf
    for index in range(len(doors)):
        door = doors[index]
        if (door[FIRST] == first and door[SECOND] == second) or (
            door[FIRST] == second and door[SECOND] == first
        ):
            centre = _centre(door)
            away = abs(centre[0] - x) + abs(centre[1] - z)
            if away < least:
                best, least = index, away
    return best


@kernel
def _in_room(door, others, at, forward, came):
    """How to tell a door of a room from others, coming from a place in a direction.

    Args:
        door: its row.
        others: rows of the others.
        at: x, z of the place.
        forward: the direction, as x, z.
        came: whether one came in through a door; else one starts there.

    Returns:
        turn, side, ordinal, and whether side and ordinal tell it from the others.
    """
    own = angle_between(forward, _towards(door, at))
    sector = _turn(own)
    turn = 0
    side = c.AHEAD
    if not came:
        # At the start one first turns towards the door.
        turn = sector
    elif sector != 0:
        side = 0 if sector == c.AROUND else sector
    if side == 0 or _on_border(own):
        return turn, side, 0, False
    # The door lies on one side and no other does so nearly.
    middle = 0.0
    if sector == c.LEFT:
        middle = 90.0
    elif sector == c.RIGHT:
        middle = -90.0
    elif sector == c.AROUND:
        middle = 180.0
    for other in others:
        rival = angle_between(forward, _towards(other, at))
        if _turn(rival) == sector or not _aside(rival, middle) > _aside(own, middle) + _APART:
            return turn, side, 0, False
    return turn, side, 0, True


@kernel
def _place_in_hallway(rect, door, at, travel, end):
    """Side of a door of a hallway, and metres to it, going along in a direction.

    Args:
        rect: row of the hallway.
        door: row of the door.
        at: x, z of the place where one is.
        travel: the direction, as x, z.
        end: whether it is a door at an end of the hallway.
    """
    to = _towards(door, at)
    far = to[0] * travel[0] + to[1] * travel[1]
    if end:
        return c.END if far > 0 else 0, far
    left = angle_between(travel, _towards(door, _centre(rect))) > 0
    return c.LEFT if left else c.RIGHT, far


@kernel
def _in_hallway(rect, door, others, at, forward, came):
    """The same as `_in_room` in a hallway, whose row is ``rect``; the turn is one along it."""
    along_x = rect[X1] - rect[X0] >= rect[Z1] - rect[Z0]
    axis = (1.0, 0.0) if along_x else (0.0, 1.0)
    across = _towards(door, at)
    offset = across[0] * axis[0] + across[1] * axis[1]
    if abs(offset) < _ACROSS and came and abs(angle_between(forward, across)) <= _AHEAD:
        # Straight across; nothing else may be there.
        clear = True
        for other in others:
            to = _towards(other, at)
            if not abs(to[0] * axis[0] + to[1] * axis[1]) > 1.2:
                clear = False
        return 0, c.AHEAD, 0, clear
    travel = axis if offset > 0 else (-axis[0], -axis[1])
    angle = angle_between(forward, travel)
    turn = _turn(angle)
    clear = not _on_border(angle)
    end = (door[ALONG_X] == 1) == along_x
    side, far = _place_in_hallway(rect, door, at, travel, end)
    if far < 0.3:
        clear = False
    rivals = before = 0
    for other in others:
        beside, away = _place_in_hallway(rect, other, at, travel, (other[ALONG_X] == 1) == along_x)
        if beside != side or not away > -0.6:
            continue
        rivals += 1
        # A door beside which one stands is neither passed nor to come.
        if abs(away) < 0.6 or abs(away - far) < 0.5:
            clear = False
        if 0 < away < far:
            before += 1
    if end:
        return turn, c.END, 0, clear and rivals == 0
    ordinal = 1 + before
    return turn, side, ordinal if rivals > 0 else 0, clear and ordinal <= 3


@kernel
def _tell(rooms, doors, room, came, door, at, forward, leg):
    """Write how to tell a door of a room from its other doors; whether it can be told.

    Args:
        rooms, doors: rows of the house.
        room: number of the room.
        came, door: numbers of the doors through which one comes (-1: none) and leaves.
        at, forward: place and direction as one comes, as x, z.
        leg: row of a leg, overwritten but for what is passed.
    """
    others = np.empty_like(doors)
    count = 0
    by_room = True
    behind = _kind_beyond(rooms, doors[door], room)
    for index in range(len(doors)):
        other = doors[index]
        if index in (came, door) or (other[FIRST] != room and other[SECOND] != room):
            continue
        others[count] = other
        count += 1
        if _kind_beyond(rooms, other, room) == behind:
            by_room = False
    if rooms[room, KIND] == _HALLWAY:
        turn, side, ordinal, by_side = _in_hallway(
            rooms[room], doors[door], others[:count], at, forward, came >= 0
        )
    else:
        turn, side, ordinal, by_side = _in_room(doors[door], others[:count], at, forward, came >= 0)
    leg[L_ROOM], leg[L_DOOR] = room, door
    leg[L_TURN], leg[L_SIDE], leg[L_ORDINAL] = turn, side, ordinal
    leg[L_ONLY], leg[L_BY_ROOM], leg[L_BY_SIDE] = count == 0, by_room, by_side
    return count == 0 or by_room or by_side


# --- a way --------------------------------------------------------------------------------------
@kernel
def _stays(grid, path, stays):
    """Write room, first and last step of each stay of a way in a room, whatever doors lie between.

    Args:
        grid: `Scene.rooms`.
        path: see `legs_of`.
        stays: int64 ``(MOST_LEGS, 3)``, overwritten.

    Returns:
        the number of stays; 0 if there are too many or a room is entered twice.
    """
    count = 0
    for step in range(len(path)):
        room = np.int64(grid[np.int64(path[step, 2] / CELL), np.int64(path[step, 0] / CELL)]) - 1
        if room < 0:
            continue
        if count == 0 or stays[count - 1, 0] != room:
            if count == MOST_LEGS or (stays[:count, 0] == room).any():
                return 0
            stays[count, 0], stays[count, 1] = room, step
            count += 1
        stays[count - 1, 2] = step
    return count


@kernel
def legs_of(rooms, doors, things, grid, path, heading, legs):
    """What to say of each room along a way.

    Args:
        rooms, doors, things: rows of the house.
        grid: `Scene.rooms`.
        path: float64 ``(n, 3)``, from cell to cell.
        heading: at the start, in steps.
        legs: int64 ``(MOST_LEGS, N_LEG)``, overwritten.

    Returns:
        the number of legs; 0 if some door cannot be told apart.
    """
    stays = np.empty((MOST_LEGS, 3), np.int64)
    count = _stays(grid, path, stays)
    if count < 2:
        return 0
    turn = math.radians(np.float64(heading * STEP_ANGLE))
    forward = (-math.sin(turn), -math.cos(turn))
    at = (path[0, 0], path[0, 2])
    came = -1
    for index in range(count):
        room, last = stays[index, 0], stays[index, 2]
        leg = legs[index]
        leg[:L_PASSED] = 0
        _pass(things, room, path, stays[index, 1], last, leg)
        if index == count - 1:
            leg[L_ROOM], leg[L_DOOR] = room, -1
            break
        beyond = stays[index + 1, 0]
        door = _between(doors, room, beyond, path[last, 0], path[last, 2])
        if door < 0 or not _tell(rooms, doors, room, came, door, at, forward, leg):
            return 0
        came = door
        at = _centre(doors[door])
        centre = _centre(rooms[beyond])
        if doors[door, ALONG_X] == 1:
            forward = (1.0 if centre[0] > at[0] else -1.0, 0.0)
        else:
            forward = (0.0, 1.0 if centre[1] > at[1] else -1.0)
    return count
