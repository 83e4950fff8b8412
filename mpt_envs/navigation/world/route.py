"""Routes through a house, and what a person must be told of each room to find the way.

A route is a shortest way between two places in different rooms. For each room on it, `Leg` says
which door to take and how that door can be told from the others of the room: by the room behind it,
by the side on which it lies as one comes in, or, in a hallway, by the side and its number. A route
of which some door could not be told apart is not used, so that the instruction is sufficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.cues import (
    L_BY_ROOM,
    L_BY_SIDE,
    L_DOOR,
    L_N_PASSED,
    L_ONLY,
    L_ORDINAL,
    L_PASSED,
    L_ROOM,
    L_SIDE,
    L_TURN,
    MOST_LEGS,
    N_LEG,
    alone,
    legs_of,
)
from mpt_envs.navigation.world.dividing import ALONG_X, FIRST, KIND, SECOND, X0, X1, Z0, Z1
from mpt_envs.navigation.world.facts import N_HEADINGS
from mpt_envs.navigation.world.floorplan import CELL, House
from mpt_envs.navigation.world.furniture import ROOM
from mpt_envs.navigation.world.sources import Scene
from mpt_envs.navigation.world.space import descend, distance_field
from wrappers.random_sequence import chance, integer, sequence
from wrappers.rng import STREAM_DOMAIN, as_key

STREAM_ROUTE: Final = STREAM_DOMAIN + 201

#: Metres of the shortest way: as in R2R.
SHORTEST: Final = 4.5
LONGEST: Final = 14.0
_STARTS: Final = 10  # places tried as start for one goal


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


@kernel
def _beside(state, thing, inner, heights):
    """A free column on the edge of a rectangle around a thing, as ix, iz; -1, -1: none is found.

    Args:
        state: of `random_sequence.sequence`.
        thing: its row.
        inner: row of its room.
        heights: of the scene's space.
    """
    margin = integer(state, 4, 6)
    x0, z0 = thing[X0] - margin, thing[Z0] - margin
    x1, z1 = thing[X1] + margin, thing[Z1] + margin
    for _ in range(12):
        if chance(state, 0.5):
            x = integer(state, x0, x1 - 1)
            z = z0 if integer(state, 0, 1) == 0 else z1 - 1
        else:
            x = x0 if integer(state, 0, 1) == 0 else x1 - 1
            z = integer(state, z0, z1 - 1)
        if _is_free(x, z, inner, heights):
            return x, z
    return -1, -1


@kernel
def _inside(door, inner, heights):
    """A free column about a metre behind a door, as ix, iz; -1, -1: there is none.

    Args:
        door: its row.
        inner: row of the room.
        heights: of the scene's space.
    """
    x, z = (door[X0] + door[X1]) // 2, (door[Z0] + door[Z1]) // 2
    away = 10
    if door[ALONG_X] == 1:
        x += away if inner[X0] > door[X0] else -away
    else:
        z += away if inner[Z0] > door[Z0] else -away
    if _is_free(x, z, inner, heights):
        return x, z
    return -1, -1


@kernel
def _is_free(x, z, inner, heights):
    """Whether a column lies well inside a room and one can stand there."""
    return (
        inner[X0] < x < inner[X1] - 1 and inner[Z0] < z < inner[Z1] - 1 and heights[0, z, x] == 0.0
    )


@kernel
def _goal(state, rooms, doors, things, heights):
    """A random goal.

    Args:
        state: of `random_sequence.sequence`.
        rooms, doors, things: rows of the house.
        heights: of the scene's space.

    Returns:
        ix and iz (-1: none was found), room, kind of the thing at which it lies or -1, and the
        number of the door behind which it lies or -1.
    """
    room = integer(state, 0, len(rooms) - 1)
    found = np.empty(max(len(doors), len(things)), np.int64)
    count = 0
    for index in range(len(things)):
        if things[index, ROOM] == room and alone(things, index):
            found[count] = index
            count += 1
    if count > 0 and chance(state, 0.8):
        thing = things[found[integer(state, 0, count - 1)]]
        x, z = _beside(state, thing, rooms[room], heights)
        return x, z, room, thing[KIND], -1
    count = 0
    for index in range(len(doors)):
        if doors[index, FIRST] == room or doors[index, SECOND] == room:
            found[count] = index
            count += 1
    entrance = found[integer(state, 0, count - 1)]
    x, z = _inside(doors[entrance], rooms[room], heights)
    return x, z, room, -1, entrance


@kernel
def _find(key, attempt, rooms, doors, things, grid, heights, frame):
    """A route that can be described; see `find_route`.

    Args:
        key, attempt: of the draws.
        rooms, doors, things: rows of the house.
        grid: `Scene.rooms`.
        heights, frame: of the scene's space.

    Returns:
        numbers (ix and iz of the start, heading, ix and iz of the goal, target), legs, distances
        and path; without legs if none was found.
    """
    state = sequence(key, STREAM_ROUTE, attempt)
    numbers = np.empty(6, np.int64)
    legs = np.empty((MOST_LEGS, N_LEG), np.int64)
    goal_x, goal_z, goal_room, target, entrance = _goal(state, rooms, doors, things, heights)
    if goal_x < 0:
        return numbers, legs[:0], np.empty((0, 0, 0), np.float32), np.empty((0, 3))
    distances = distance_field(
        heights, frame, (goal_x + 0.5) * CELL, 0.0, (goal_z + 0.5) * CELL, 0.5
    )
    for _ in range(_STARTS):
        room = integer(state, 0, len(rooms) - 1)
        if room == goal_room:
            continue
        x = integer(state, rooms[room, X0] + 2, rooms[room, X1] - 3)
        z = integer(state, rooms[room, Z0] + 2, rooms[room, Z1] - 3)
        if heights[0, z, x] != 0.0 or not SHORTEST <= distances[0, z, x] <= LONGEST:
            continue
        heading = integer(state, 0, N_HEADINGS - 1)
        path = descend(heights, frame, distances, (x + 0.5) * CELL, (z + 0.5) * CELL, 0)
        count = legs_of(rooms, doors, things, grid, path, heading, legs)
        if count == 0 or (entrance >= 0 and legs[count - 2, L_DOOR] != entrance):
            continue
        numbers[0], numbers[1], numbers[2] = x, z, heading
        numbers[3], numbers[4], numbers[5] = goal_x, goal_z, target
        return numbers, legs[:count], distances, path
    return numbers, legs[:0], distances, np.empty((0, 3))


def find_route(house: House, scene: Scene, key: int, attempt: int = 0) -> Route | None:
    """A route that can be described, or None if none was found for a random goal.

    Args:
        house, scene: of `build_house` and `build_scene`.
        key: any number.
        attempt: another goal in the same house, for each number.
    """
    numbers, legs, distances, path = _find(
        as_key(key),
        attempt,
        house.room_rows,
        house.door_rows,
        house.thing_rows,
        scene.rooms,
        scene.space.heights,
        scene.space.frame,
    )
    if not len(legs):
        return None
    distances.setflags(write=False)
    x, z, heading, goal_x, goal_z, target = numbers.tolist()
    return Route(
        ((x + 0.5) * CELL, (z + 0.5) * CELL),
        heading,
        ((goal_x + 0.5) * CELL, (goal_z + 0.5) * CELL),
        target,
        tuple(_leg(row) for row in legs.tolist()),
        distances,
        path,
    )


def _leg(row: list[int]) -> Leg:
    return Leg(
        row[L_ROOM],
        row[L_DOOR],
        row[L_TURN],
        row[L_SIDE],
        row[L_ORDINAL],
        bool(row[L_ONLY]),
        bool(row[L_BY_ROOM]),
        bool(row[L_BY_SIDE]),
        tuple(row[L_PASSED : L_PASSED + row[L_N_PASSED]]),
    )
