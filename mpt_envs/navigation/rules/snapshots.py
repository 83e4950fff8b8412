"""Checks of a snapshot's payload before it becomes a record: the compiled rules trust it.

A payload is a state only if it belongs to the same source of episodes, every number lies in its
range, the body stands where one can stand, and what it remembers exists in its scene.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world.facts import MAX_STEPS, N_ACTIONS, N_HEADINGS, ROLES
from mpt_envs.navigation.world.layout import (
    CLAUSE,
    CLAUSE_ROOM,
    CLAUSE_TURNED,
    COLLIDED,
    DONE,
    DONE_STEPS,
    DRAWS_LOW,
    ENTRY,
    F_DISTANCE,
    F_RADIUS,
    F_SHORTEST,
    F_START_HEADING,
    F_X,
    F_Y,
    F_Z,
    HEADING,
    LAST_ACTION,
    LAST_ROLE,
    LAYER,
    LAYOUT_VERSION,
    LOOKED,
    MAX_PATH,
    N_FLOATS,
    N_INTS,
    N_PATH,
    PASSED_LOW,
    ROOM,
    SEEN_LOW,
    SOURCE_LOW,
    STEPS,
    TURN,
    VERSION,
    VISIBLE_LOW,
    bits_of,
    floats,
    ints,
    path,
)
from mpt_envs.navigation.world.sources import EpisodeSource
from mpt_envs.navigation.world.space import distance_at, locate
from mpt_envs.navigation.world.worlds import World, Worlds
from wrappers.errors import SnapshotError

_MANY: Final = 1 << 30


def task_id(source: EpisodeSource) -> str:
    """Id of the task over a source."""
    return f"navigation/{source.name}-v0"


def set_draws(record: NDArray[np.uint8], key: np.uint64) -> None:
    """Draw what is random from another key. Nothing is, in this domain."""
    record[4 * DRAWS_LOW : 4 * DRAWS_LOW + 8].view(np.uint64)[0] = key


def is_sound(record: NDArray[np.uint8], world: World) -> bool:
    """Whether every number of a record is in its range, wherever the body stands."""
    s, f = ints(record), floats(record)
    space = world.scene.space
    layers = space.heights.shape[0]
    rooms = 1 if world.scene.room_kinds is None else len(world.scene.room_kinds)
    things = 0 if world.scene.things is None else len(world.scene.things)
    role = int(s[LAST_ROLE])
    actions = N_ACTIONS[role] if 0 <= role < len(ROLES) else 0
    turned = 3 * (int(s[TURN]) + 1)
    ranges = (
        (VERSION, LAYOUT_VERSION, LAYOUT_VERSION),
        (DONE, 0, DONE_STEPS),
        (TURN, 0, _MANY),
        (STEPS, 0, MAX_STEPS + 2),
        (HEADING, 0, N_HEADINGS - 1),
        (LAYER, 0, layers - 1),
        (N_PATH, 1, MAX_PATH),
        (COLLIDED, 0, 1),
        (LAST_ROLE, -1, len(ROLES) - 1),
        (LAST_ACTION, -1 if role < 0 else 0, actions - 1),
        (LOOKED, 0, 1),
        (ROOM, 0, rooms - 1),
        (CLAUSE, 0, len(world.clauses) - 1),
        (CLAUSE_TURNED, -turned, turned),
        (CLAUSE_ROOM, 0, rooms - 1),
        (ENTRY, -1, things - 1),
    )
    if any(not low <= int(s[at]) <= high for at, low, high in ranges):
        return False
    if not np.isfinite(f[N_INTS // 2 : N_INTS // 2 + N_FLOATS]).all():
        return False
    if not np.isfinite(path(record)).all():
        return False
    return not any(bits_of(record, at) >> things for at in (SEEN_LOW, VISIBLE_LOW, PASSED_LOW))


def is_valid(record: NDArray[np.uint8], world: World) -> bool:
    """Whether a record is a state in a world, as far as the rules rely on it."""
    if not is_sound(record, world):
        return False
    s, f = ints(record), floats(record)
    space = world.scene.space
    x, y, z = float(f[F_X]), float(f[F_Y]), float(f[F_Z])
    layer = locate(space.heights, space.frame, x, y, z, 1e-3)[2]
    if layer != s[LAYER]:
        return False
    distance = float(distance_at(space.heights, space.frame, world.distances, x, z, layer))
    shortest = space.distance(world.distances, world.episode.start)
    return bool(
        abs(distance - f[F_DISTANCE]) < 1e-6
        and abs(shortest - f[F_SHORTEST]) < 1e-6
        and f[F_RADIUS] == world.episode.radius
        and f[F_START_HEADING] == world.episode.heading
    )


def check_source(record: NDArray[np.uint8], worlds: Worlds) -> None:
    """Refuse a record of other episodes than those of these worlds.

    Raises:
        SnapshotError: it was taken from another source.
    """
    source = bits_of(record, SOURCE_LOW)
    if source != int(worlds.source_word):
        raise SnapshotError(
            f"this snapshot of {task_id(worlds.source)!r} was taken from other episodes (source "
            f"{source:016x}, here {int(worlds.source_word):016x}); restore it into a task with the "
            "same data and options"
        )
