"""The observation vector: one episode in progress as float32 features in [-1, 1].

It is the same for every role, and holds what a body with a range finder, a camera, a compass and a
step counter would know, and what the text says: never the goal, the map, or a distance to the goal.
Directions are those of the body: *ahead* and *left*. `FEATURE_NAMES` lists everything in order.

The instruction is shown through windows: the clause that is being followed (as far as
`perception.follow` can tell), the next one, and where the last one says to stop. Of the door or
thing that a clause speaks of the vector says where it is, once it was seen.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.perception import angle_of, get_bit, meant_door, seen_thing
from mpt_envs.navigation.rules.rays import write_rays
from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import (
    DOOR,
    N_HEADINGS,
    N_RAYS,
    N_ROOMS,
    ROLES,
    ROOMS,
    SIGHT,
    STEP_ANGLE,
    STEP_RADIANS,
)
from mpt_envs.navigation.world.sources import T_KIND, T_RADIUS, T_ROOM_A, T_ROOM_B, T_X, T_Z

_WINDOWS: Final = ("this", "next")
_SECTORS: Final = ("ahead", "left", "behind", "right")
_WINDOW_SIZE: Final = (c.N_KINDS - 1) + 3 + 3 + 3 + 1 + 5 + 5
_END_SIZE: Final = 3 + 5
_SECTOR_SIZE: Final = 5


def _feature_names() -> tuple[str, ...]:
    names = [f"ray_{i * STEP_ANGLE}" for i in range(N_RAYS)]
    for sector in _SECTORS:
        names += [f"longest_{sector}", f"longest_{sector}_left"]
    names += [f"last_{role}" for role in ROLES]
    names += ["last_skipped", "last_moved", "collided", "looked_around", "clause_done"]
    names += ["start_ahead", "start_left", "turned_cos", "turned_sin", "walked", "climbed"]
    names += [f"in_{ROOMS[kind].replace(' ', '_')}" for kind in range(1, N_ROOMS)]
    names += ["clause_number", "clauses_left", "clause_turned", "clause_walked"]
    names += ["clause_doors", "clause_turns"]
    for window in _WINDOWS:
        names += [f"{window}_{kind}" for kind in c.KINDS[1:]]
        names += [f"{window}_turn_{d}" for d in ("left", "right", "around")]
        names += [f"{window}_side_{d}" for d in ("left", "right", "ahead")]
        names += [f"{window}_ordinal", f"{window}_names_room", f"{window}_names_thing"]
        names += [f"{window}_in_room"]
        for what in ("door", "thing"):
            names += [f"{window}_{what}_{v}" for v in ("known", "visible", "ahead", "left", "near")]
    names += ["end_names_room", "end_names_thing", "end_in_room"]
    names += [f"end_thing_{v}" for v in ("known", "visible", "ahead", "left", "near")]
    for sector in _SECTORS:
        names += [f"door_{sector}_{v}" for v in ("known", "ahead", "left", "near", "passed")]
    return tuple(names)


#: Names of the features in order; the length is the observation size.
FEATURE_NAMES: Final = _feature_names()
OBSERVATION_SIZE: Final = len(FEATURE_NAMES)

#: Cosine and sine of every heading.
_TURNED: Final = np.array(
    [(math.cos(k * STEP_RADIANS), math.sin(k * STEP_RADIANS)) for k in range(N_HEADINGS)],
    np.float32,
)


@kernel
def _clip(value):
    return min(max(value, -1.0), 1.0)


@kernel
def _pointed(s, f, things, index, ahead_x, ahead_z, out, offset):
    """Write known, visible, direction (ahead, left) and nearness of a thing; zeros for -1."""
    if index < 0:
        for k in range(5):
            out[offset + k] = 0.0
        return
    dx, dz = things[index, T_X] - f[at.F_X], things[index, T_Z] - f[at.F_Z]
    away = max(np.sqrt(dx * dx + dz * dz), 1e-6)
    out[offset] = 1.0
    out[offset + 1] = np.float32(get_bit(s, at.VISIBLE_LOW, index))
    out[offset + 2] = (dx * ahead_x + dz * ahead_z) / away
    out[offset + 3] = (ahead_z * dx - ahead_x * dz) / away
    out[offset + 4] = max(0.0, 1.0 - max(0.0, away - things[index, T_RADIUS]) / SIGHT)


@kernel
def write_observation(s, f, p, world, clearance, place, distances, out):
    """Write the features of a record.

    Args:
        s, f, p: the record as int32, float64 and float32.
        world: arrays of the world, see `worlds.view`.
        clearance: of the world, see `worlds.clearance_in`.
        place, distances: see `rays.write_rays`.
        out: float32, at least `OBSERVATION_SIZE` entries; those beyond are left alone.
    """
    kinds, things, clauses = world[5], world[6], world[7]
    angle = angle_of(s, f)
    ahead_x, ahead_z = -np.sin(angle), -np.cos(angle)
    x, z = f[at.F_X], f[at.F_Z]
    offset = 0
    write_rays(s, f, world, clearance, place, distances, out)
    offset += N_RAYS
    for sector in range(4):
        # Six rays of which the first points at the sector's right end.
        best, where = np.float32(-1.0), 0.0
        for k in range(-3, 4):
            value = out[(sector * 6 + k) % N_RAYS]
            if value > best:
                best, where = value, k
        out[offset] = best
        out[offset + 1] = np.float32(where / 3.0)
        offset += 2
    for k in range(3):
        out[offset + k] = 1.0 if s[at.LAST_ROLE] == k else 0.0
    offset += 3
    out[offset] = 1.0 if s[at.LAST_ROLE] < 0 else 0.0
    out[offset + 1] = _clip(f[at.F_LAST_MOVED] / 0.75)
    out[offset + 2] = np.float32(s[at.COLLIDED])
    out[offset + 3] = np.float32(s[at.LOOKED])
    out[offset + 4] = 1.0 if s[at.LAST_CLAUSES] > 0 else 0.0
    offset += 5
    to_x, to_z = p[at.PATH_32] - x, p[at.PATH_32 + 2] - z
    out[offset] = _clip((to_x * ahead_x + to_z * ahead_z) / 10.0)
    out[offset + 1] = _clip((ahead_z * to_x - ahead_x * to_z) / 10.0)
    out[offset + 2] = _TURNED[s[at.HEADING], 0]
    out[offset + 3] = _TURNED[s[at.HEADING], 1]
    out[offset + 4] = _clip(f[at.F_LENGTH] / 20.0)
    out[offset + 5] = _clip((f[at.F_Y] - p[at.PATH_32 + 1]) / 3.0)
    offset += 6
    room = kinds[s[at.ROOM]]
    for k in range(1, N_ROOMS):
        out[offset + k - 1] = 1.0 if room == k else 0.0
    offset += N_ROOMS - 1
    count = clauses.shape[0]
    this = np.int64(s[at.CLAUSE])
    out[offset] = np.float32(this) / np.float32(c.MAX_CLAUSES)
    out[offset + 1] = np.float32(count - 1 - this) / np.float32(c.MAX_CLAUSES)
    out[offset + 2] = _clip(s[at.CLAUSE_TURNED] / 12.0)
    out[offset + 3] = _clip((f[at.F_LENGTH] - f[at.F_CLAUSE_LENGTH]) / 5.0)
    out[offset + 4] = _clip(s[at.CLAUSE_DOORS] / 2.0)
    out[offset + 5] = _clip(s[at.CLAUSE_TURNS] / 16.0)
    offset += 6
    for window in range(2):
        number = this + window
        for k in range(_WINDOW_SIZE):
            out[offset + k] = 0.0
        if number < count:
            clause = clauses[number]
            kind = clause[c.K_KIND]
            if kind > 0:
                out[offset + kind - 1] = 1.0
            base = offset + c.N_KINDS - 1
            if 1 <= clause[c.K_TURN] <= 3:
                out[base + clause[c.K_TURN] - 1] = 1.0
            if clause[c.K_SIDE] == c.LEFT:
                out[base + 3] = 1.0
            elif clause[c.K_SIDE] == c.RIGHT:
                out[base + 4] = 1.0
            elif clause[c.K_SIDE] >= c.AHEAD:
                out[base + 5] = 1.0
            out[base + 6] = _clip(clause[c.K_ORDINAL] / 3.0)
            out[base + 7] = 1.0 if clause[c.K_ROOM] > 0 else 0.0
            out[base + 8] = 1.0 if clause[c.K_THING] >= 0 else 0.0
            out[base + 9] = 1.0 if clause[c.K_ROOM] > 0 and room == clause[c.K_ROOM] else 0.0
            door = meant_door(s, f, things, kinds, clause, ahead_x, ahead_z)
            _pointed(s, f, things, door, ahead_x, ahead_z, out, base + 10)
            thing = np.int64(-1)
            if clause[c.K_THING] >= 0:
                thing = seen_thing(s, f, things, clause[c.K_THING])
            _pointed(s, f, things, thing, ahead_x, ahead_z, out, base + 15)
        offset += _WINDOW_SIZE
    end = clauses[count - 1]
    out[offset] = 1.0 if end[c.K_ROOM] > 0 else 0.0
    out[offset + 1] = 1.0 if end[c.K_THING] >= 0 else 0.0
    out[offset + 2] = 1.0 if end[c.K_ROOM] > 0 and room == end[c.K_ROOM] else 0.0
    thing = np.int64(-1)
    if end[c.K_THING] >= 0:
        thing = seen_thing(s, f, things, end[c.K_THING])
    _pointed(s, f, things, thing, ahead_x, ahead_z, out, offset + 3)
    offset += _END_SIZE
    # The nearest known door of this room in each quarter around the body.
    for k in range(4 * _SECTOR_SIZE):
        out[offset + k] = 0.0
    here = s[at.ROOM]
    for index in range(things.shape[0]):
        if things[index, T_KIND] != DOOR or get_bit(s, at.SEEN_LOW, index) == 0:
            continue
        if things[index, T_ROOM_A] != here and things[index, T_ROOM_B] != here:
            continue
        dx, dz = things[index, T_X] - x, things[index, T_Z] - z
        away = max(np.sqrt(dx * dx + dz * dz), 1e-6)
        ahead = (dx * ahead_x + dz * ahead_z) / away
        left = (ahead_z * dx - ahead_x * dz) / away
        if abs(ahead) >= abs(left):
            sector = 0 if ahead >= 0.0 else 2
        else:
            sector = 1 if left > 0.0 else 3
        near = np.float32(max(0.0, 1.0 - away / SIGHT))
        where = offset + sector * _SECTOR_SIZE
        if out[where] > 0.0 and out[where + 3] >= near:
            continue
        out[where] = 1.0
        out[where + 1] = ahead
        out[where + 2] = left
        out[where + 3] = near
        passed = get_bit(s, at.PASSED_LOW, index) == 1 or index == s[at.ENTRY]
        out[where + 4] = 1.0 if passed else 0.0
    offset += 4 * _SECTOR_SIZE


assert OBSERVATION_SIZE == (
    N_RAYS + 8 + 8 + 6 + (N_ROOMS - 1) + 6 + 2 * _WINDOW_SIZE + _END_SIZE + 4 * _SECTOR_SIZE
)
