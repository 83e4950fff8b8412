"""Checks of a snapshot's payload before it becomes a record: the compiled rules trust it.

A payload is a state only if it belongs to the same source of episodes, every number lies in its
range, the body stands where one can stand, and what it remembers exists in its scene.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import MAX_STEPS, N_ACTIONS, N_HEADINGS, ROLES
from mpt_envs.navigation.world.layout import bits_of, floats, ints, path
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
    record[4 * at.DRAWS_LOW : 4 * at.DRAWS_LOW + 8].view(np.uint64)[0] = key


def is_sound(record: NDArray[np.uint8], world: World) -> bool:
    """Whether every number of a record is in its range, wherever the body stands."""
    s, f = ints(record), floats(record)
    space = world.scene.space
    layers = space.heights.shape[0]
    rooms = 1 if world.scene.room_kinds is None else len(world.scene.room_kinds)
    things = 0 if world.scene.things is None else len(world.scene.things)
    role = int(s[at.LAST_ROLE])
    actions = N_ACTIONS[role] if 0 <= role < len(ROLES) else 0
    turned = 3 * (int(s[at.TURN]) + 1)
    ranges = (
        (at.VERSION, at.LAYOUT_VERSION, at.LAYOUT_VERSION),
        (at.DONE, 0, at.DONE_STEPS),
        (at.TURN, 0, _MANY),
        (at.STEPS, 0, MAX_STEPS + 2),
        (at.HEADING, 0, N_HEADINGS - 1),
        (at.LAYER, 0, layers - 1),
        (at.N_PATH, 1, at.MAX_PATH),
        (at.COLLIDED, 0, 1),
        (at.LAST_ROLE, -1, len(ROLES) - 1),
        (at.LAST_ACTION, -1 if role < 0 else 0, actions - 1),
        (at.LOOKED, 0, 1),
        (at.ROOM, 0, rooms - 1),
        (at.CLAUSE, 0, len(world.clauses) - 1),
        (at.CLAUSE_TURNED, -turned, turned),
        (at.CLAUSE_ROOM, 0, rooms - 1),
        (at.ENTRY, -1, things - 1),
    )
    if any(not low <= int(s[offset]) <= high for offset, low, high in ranges):
        return False
    if not np.isfinite(f[at.N_INTS // 2 : at.N_INTS // 2 + at.N_FLOATS]).all():
        return False
    if not np.isfinite(path(record)).all():
        return False
    return not any(
        bits_of(record, offset) >> things for offset in (at.SEEN_LOW, at.VISIBLE_LOW, at.PASSED_LOW)
    )


def is_valid(record: NDArray[np.uint8], world: World) -> bool:
    """Whether a record is a state in a world, as far as the rules rely on it."""
    if not is_sound(record, world):
        return False
    s, f = ints(record), floats(record)
    space = world.scene.space
    x, y, z = float(f[at.F_X]), float(f[at.F_Y]), float(f[at.F_Z])
    layer = locate(space.heights, space.frame, x, y, z, 1e-3)[2]
    if layer != s[at.LAYER]:
        return False
    distance = float(distance_at(space.heights, space.frame, world.distances, x, z, layer))
    shortest = space.distance(world.distances, world.episode.start)
    return bool(
        abs(distance - f[at.F_DISTANCE]) < 1e-6
        and abs(shortest - f[at.F_SHORTEST]) < 1e-6
        and f[at.F_RADIUS] == world.episode.radius
        and f[at.F_START_HEADING] == world.episode.heading
    )


def check_source(record: NDArray[np.uint8], worlds: Worlds) -> None:
    """Refuse a record of other episodes than those of these worlds.

    Raises:
        SnapshotError: it was taken from another source.
    """
    source = bits_of(record, at.SOURCE_LOW)
    if source != int(worlds.source_word):
        raise SnapshotError(
            f"this snapshot of {task_id(worlds.source)!r} was taken from other episodes (source "
            f"{source:016x}, here {int(worlds.source_word):016x}); restore it into a task with the "
            "same data and options"
        )
