"""Routes through a house, and what a person must be told of each room to find the way.

A route is a shortest way between two places in different rooms. For each room on it, `Leg` says
which door to take and how that door can be told from the others of the room: by the room behind it,
by the side on which it lies as one comes in, or, in a hallway, by the side and its number. A route
of which some door could not be told apart is not used, so that the instruction is sufficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation import clauses as c
from mpt_envs.navigation.draws import Draws
from mpt_envs.navigation.facts import N_HEADINGS, STEP_ANGLE
from mpt_envs.navigation.floorplan import CELL, House, Rect
from mpt_envs.navigation.sources import Scene
from mpt_envs.navigation.space import descend

#: Metres of the shortest way: as in R2R.
SHORTEST: Final = 4.5
LONGEST: Final = 14.0
_MOST_DOORS: Final = 4
_STARTS: Final = 10  # places tried as start for one goal
_NEAR: Final = 1.2  # metres: a thing that one passes
_AHEAD: Final = 40.0  # degrees to each side that count as straight ahead
_BEHIND: Final = 140.0
_APART: Final = 20.0  # degrees by which a door must be more to a side than another
_ACROSS: Final = 0.6  # metres along a hallway: a door that is neither left nor right


class Leg(NamedTuple):
    """One room of a route.

    Attributes:
        room: number of the room.
        door: number of the door through which one leaves it; -1 in the last room.
        turn: LEFT, RIGHT, AROUND or 0: how to turn first, from the way one came in.
        side: LEFT, RIGHT, AHEAD, END: where the door is then; 0: cannot be said.
        ordinal: number of the door on that side of a hallway, or 0.
        only: whether it is the only door besides the one one came through.
        by_room: whether the kind of the room behind tells it from the other doors.
        by_side: whether side (and ordinal) do.
        passed: kinds of things one passes, in order; each the only one of its kind in the room.
    """

    room: int
    door: int
    turn: int
    side: int
    ordinal: int
    only: bool
    by_room: bool
    by_side: bool
    passed: tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """A way from a start to a goal.

    Attributes:
        start: x, z in metres.
        heading: in steps of 15 degrees.
        goal: x, z in metres.
        target: kind of the thing at which it ends, or -1: just inside the last room.
        legs: the rooms in order.
        distances: distance field to the goal.
        path: float64 ``(n, 3)``: the way, from cell to cell.
    """

    start: tuple[float, float]
    heading: int
    goal: tuple[float, float]
    target: int
    legs: tuple[Leg, ...]
    distances: NDArray[np.float32]
    path: NDArray[np.float64]


def angle_between(forward: tuple[float, float], to: tuple[float, float]) -> float:
    """Degrees by which one turns to the left from one direction (x, z) to another."""
    along = forward[0] * to[0] + forward[1] * to[1]
    left = forward[1] * to[0] - forward[0] * to[1]
    return math.degrees(math.atan2(left, along))


def find_route(house: House, scene: Scene, draws: Draws) -> Route | None:
    """A route that can be described, or None if none was found for a random goal."""
    goal_room = draws.integer(0, len(house.rooms) - 1)
    free = scene.space.heights[0] == 0.0
    entrance = -1
    target = -1
    spot: tuple[int, int] | None = None
    kinds = [t.kind for t in house.things if t.room == goal_room]
    alone = [t for t in house.things if t.room == goal_room and kinds.count(t.kind) == 1]
    if alone and draws.chance(0.8):
        thing = draws.choice(alone)
        spot = _beside(thing.rect.grown(draws.integer(4, 6)), house, goal_room, free, draws)
        target = thing.kind
    else:
        doors = house.exits(goal_room)
        entrance = draws.choice(doors)
        spot = _inside(house, goal_room, entrance, free)
    if spot is None:
        return None
    goal = ((spot[0] + 0.5) * CELL, (spot[1] + 0.5) * CELL)
    space = scene.space
    distances = space.distances_to((goal[0], 0.0, goal[1]))
    for _ in range(_STARTS):
        room = draws.integer(0, len(house.rooms) - 1)
        if room == goal_room:
            continue
        rect = house.rooms[room].rect
        x = draws.integer(rect.x0 + 2, rect.x1 - 3)
        z = draws.integer(rect.z0 + 2, rect.z1 - 3)
        if not free[z, x] or not SHORTEST <= distances[0, z, x] <= LONGEST:
            continue
        start = ((x + 0.5) * CELL, (z + 0.5) * CELL)
        heading = draws.integer(0, N_HEADINGS - 1)
        path = descend(space.heights, space.frame, distances, start[0], start[1], 0)
        legs = _legs(house, scene, path, heading)
        if legs is None or (entrance >= 0 and legs[-2].door != entrance):
            continue
        return Route(start, heading, goal, target, tuple(legs), distances, path)
    return None


def _beside(
    ring: Rect, house: House, room: int, free: NDArray[np.bool_], draws: Draws
) -> tuple[int, int] | None:
    """A free column on the edge of a rectangle, inside a room."""
    x0, z0, x1, z1 = ring
    inner = house.rooms[room].rect
    for _ in range(12):
        if draws.chance(0.5):
            x, z = draws.integer(x0, x1 - 1), draws.choice((z0, z1 - 1))
        else:
            x, z = draws.choice((x0, x1 - 1)), draws.integer(z0, z1 - 1)
        if inner.x0 < x < inner.x1 - 1 and inner.z0 < z < inner.z1 - 1 and free[z, x]:
            return x, z
    return None


def _inside(house: House, room: int, door: int, free: NDArray[np.bool_]) -> tuple[int, int] | None:
    """A free column about a metre behind a door."""
    found = house.doors[door]
    rect, inner = found.rect, house.rooms[room].rect
    x, z = (rect.x0 + rect.x1) // 2, (rect.z0 + rect.z1) // 2
    away = 10
    if found.along_x:
        x += away if inner.x0 > rect.x0 else -away
    else:
        z += away if inner.z0 > rect.z0 else -away
    if inner.x0 < x < inner.x1 - 1 and inner.z0 < z < inner.z1 - 1 and free[z, x]:
        return x, z
    return None


def _legs(house: House, scene: Scene, path: NDArray[np.float64], heading: int) -> list[Leg] | None:
    """What to say of each room along a way, or None if some door cannot be told apart."""
    assert scene.rooms is not None
    ix, iz = (path[:, 0] / CELL).astype(np.int64), (path[:, 2] / CELL).astype(np.int64)
    rooms = scene.rooms[iz, ix].astype(np.int64) - 1
    inside = np.flatnonzero(rooms >= 0)
    if not len(inside):
        return None
    # Runs of steps in one room, whatever doors lie between.
    entered = np.flatnonzero(np.diff(rooms[inside], prepend=-1))
    order: list[int] = rooms[inside[entered]].tolist()
    spans = np.stack([inside[entered], inside[[*(entered[1:] - 1), -1]]], axis=1).tolist()
    if not 2 <= len(order) <= _MOST_DOORS + 1 or len(set(order)) != len(order):
        return None
    doors = []
    for first, second, span in zip(order, order[1:], spans, strict=False):
        x, z = path[span[1], 0], path[span[1], 2]
        between = [
            i for i, door in enumerate(house.doors) if {door.first, door.second} == {first, second}
        ]
        doors.append(
            min(
                between,
                key=lambda i: (
                    abs(house.doors[i].rect.centre[0] - x) + abs(house.doors[i].rect.centre[1] - z)
                ),
            )
        )
    turn = math.radians(heading * STEP_ANGLE)
    forward = (-math.sin(turn), -math.cos(turn))
    at = (float(path[0, 0]), float(path[0, 2]))
    legs: list[Leg] = []
    came = -1
    for index, room in enumerate(order):
        door = doors[index] if index < len(doors) else -1
        way = path[spans[index][0] : spans[index][1] + 1]
        passed = _passed(house, room, way)
        if door < 0:
            legs.append(Leg(room, -1, 0, 0, 0, False, False, False, passed))
            break
        leg = _tell(house, room, came, door, at, forward, passed)
        if not (leg.only or leg.by_room or leg.by_side):
            return None
        legs.append(leg)
        came = door
        at = house.doors[door].rect.centre
        beyond = house.rooms[house.beyond(door, room)].rect
        if house.doors[door].along_x:
            forward = (1.0 if beyond.centre[0] > at[0] else -1.0, 0.0)
        else:
            forward = (0.0, 1.0 if beyond.centre[1] > at[1] else -1.0)
    return legs


def _passed(house: House, room: int, way: NDArray[np.float64]) -> tuple[int, ...]:
    """Kinds of the things of a room that one passes on a way, in order."""
    things = [t for t in house.things if t.room == room]
    kinds = [t.kind for t in things]
    things = [t for t in things if kinds.count(t.kind) == 1]
    if not things:
        return ()
    sides = np.array([t.rect for t in things]) * CELL
    x, z = way[:, 0], way[:, 2]
    dx = np.maximum(0.0, np.maximum(sides[:, 0, None] - x, x - sides[:, 2, None]))
    dz = np.maximum(0.0, np.maximum(sides[:, 1, None] - z, z - sides[:, 3, None]))
    away = np.hypot(dx, dz)
    nearest = away.argmin(axis=1)
    # Neither where one starts nor at the door: one must go by.
    found = [
        (step, thing.kind)
        for thing, step, least in zip(things, nearest.tolist(), away.min(axis=1), strict=True)
        if least < _NEAR and 4 <= step < len(way) - 5
    ]
    return tuple(kind for _, kind in sorted(found))


def _tell(
    house: House,
    room: int,
    came: int,
    door: int,
    at: tuple[float, float],
    forward: tuple[float, float],
    passed: tuple[int, ...],
) -> Leg:
    """How to tell a door of a room from its other doors, coming from a place in a direction."""
    others = [i for i in house.exits(room) if i not in (came, door)]
    behind = [house.rooms[house.beyond(i, room)].kind for i in others]
    by_room = house.rooms[house.beyond(door, room)].kind not in behind
    only = not others
    hall = house.kind(room) == "hallway"
    if hall:
        turn, side, ordinal, by_side = _along_hallway(house, room, others, door, at, forward, came)
    else:
        angles = {i: angle_between(forward, _towards(house, i, at)) for i in (door, *others)}
        own = angles[door]
        ordinal = 0
        if came < 0:
            # At the start one first turns towards the door.
            turn = _turn(own)
            side = c.AHEAD
        else:
            turn = 0
            side = {0: c.AHEAD, c.LEFT: c.LEFT, c.RIGHT: c.RIGHT}.get(_turn(own), 0)
        by_side = side != 0 and _is_clear(own, [angles[i] for i in others])
    return Leg(room, door, turn, side, ordinal, only, by_room, by_side, passed)


def _is_clear(own: float, rivals: list[float]) -> bool:
    """Whether an angle lies on one side (ahead, left, right, behind), and no other does so nearly.

    What is nearly on the border between two sides nobody can tell.
    """
    if any(abs(abs(own) - border) < 8 for border in (_AHEAD, _BEHIND)):
        return False
    middle = {0: 0.0, c.LEFT: 90.0, c.RIGHT: -90.0, c.AROUND: 180.0}[_turn(own)]

    def away(angle: float) -> float:
        return abs((angle - middle + 180.0) % 360.0 - 180.0)

    return all(_turn(rival) != _turn(own) and away(rival) > away(own) + _APART for rival in rivals)


def _turn(angle: float) -> int:
    """LEFT, RIGHT or AROUND for an angle in degrees; 0: ahead."""
    if abs(angle) <= _AHEAD:
        return 0
    if abs(angle) > _BEHIND:
        return c.AROUND
    return c.LEFT if angle > 0 else c.RIGHT


def _towards(house: House, door: int, at: tuple[float, float]) -> tuple[float, float]:
    x, z = house.doors[door].rect.centre
    return x - at[0], z - at[1]


def _along_hallway(
    house: House,
    room: int,
    others: list[int],
    door: int,
    at: tuple[float, float],
    forward: tuple[float, float],
    came: int,
) -> tuple[int, int, int, bool]:
    """Turn into a hallway, then side and number of the door; and whether these are clear."""
    rect = house.rooms[room].rect
    axis = (1.0, 0.0) if rect.width >= rect.depth else (0.0, 1.0)
    across = _towards(house, door, at)
    offset = across[0] * axis[0] + across[1] * axis[1]
    if abs(offset) < _ACROSS and came >= 0 and abs(angle_between(forward, across)) <= _AHEAD:
        # Straight across; nothing else may be there.
        clear = all(
            abs(sum(v * a for v, a in zip(_towards(house, i, at), axis, strict=True))) > 1.2
            for i in others
        )
        return 0, c.AHEAD, 0, clear
    travel = (axis[0], axis[1]) if offset > 0 else (-axis[0], -axis[1])
    angle = angle_between(forward, travel)
    turn = _turn(angle)
    clear = not any(abs(abs(angle) - border) < 8 for border in (_AHEAD, _BEHIND))
    sides: dict[int, tuple[int, float]] = {}
    end = (house.doors[door].along_x) == (axis[0] != 0.0)
    for i in (door, *others):
        to = _towards(house, i, at)
        far = to[0] * travel[0] + to[1] * travel[1]
        if house.doors[i].along_x == (axis[0] != 0.0):
            side = c.END if far > 0 else 0
        else:
            middle = rect.centre
            x, z = house.doors[i].rect.centre
            side = c.LEFT if angle_between(travel, (x - middle[0], z - middle[1])) > 0 else c.RIGHT
        sides[i] = (side, far)
    side, far = sides[door]
    rivals = [f for i, (s, f) in sides.items() if i != door and s == side and f > -0.6]
    # A door beside which one stands is neither passed nor to come.
    if any(abs(f) < 0.6 for f in rivals) or any(abs(f - far) < 0.5 for f in rivals) or far < 0.3:
        clear = False
    if end:
        return turn, c.END, 0, clear and not rivals
    ordinal = 1 + sum(1 for f in rivals if 0 < f < far)
    return turn, side, ordinal if rivals else 0, clear and ordinal <= 3
