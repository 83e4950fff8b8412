"""The rules: what a decision does to the record of an episode, and what it earns.

A decision is a repetition of primitive steps: turns of 15 degrees, steps of 0.25 m that slide along
walls, a stop that ends the episode, or a look around that costs the turn and changes nothing but
what is remembered to be seen.

The reward of a turn (all distances geodesic, l the distance at the start)::

    progress   10 (d_before - d_after) / l
    success    20 l / max(l, metres walked), for a stop within the radius of success
    otherwise  0

Progress is a difference of potentials: going to and fro earns nothing. An episode is worth at most
30 (less what is left of the way).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.perception import angle_of, begin_clause, follow, look, notice_room
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import (
    MAX_STEPS,
    MOVER,
    N_ACTIONS,
    N_HEADINGS,
    STEP_LENGTH,
    STOP,
    STOPPER,
    TURN_RIGHT,
    TURNER,
)
from mpt_envs.navigation.world.space import distance_at, locate, move

PROGRESS: Final = 10.0
SUCCESS: Final = 20.0

_ACTIONS: Final = np.array(N_ACTIONS, np.int64)


@kernel
def set_word(s, low, word):
    """Write a uint64 as two scalars."""
    s[low] = np.int32(np.int64(word & np.uint64(0xFFFFFFFF)))
    s[low + 1] = np.int32(np.int64(word >> np.uint64(32)))


@kernel
def begin(s, f, p, world, start, key, source):
    """Start an episode.

    Args:
        s, f, p: the record as int32, float64 and float32; overwritten.
        world: arrays of the world, see `worlds.view`.
        start: float64 (5,): x, y, z, heading in radians, radius of success in metres.
        key: uint64 key of the episode.
        source: uint64, start of the digest of the source.
    """
    heights, frame, field, sight, rooms, _, things, _ = world
    s[:] = 0
    s[at.VERSION] = at.LAYOUT_VERSION
    set_word(s, at.KEY_LOW, key)
    set_word(s, at.DRAWS_LOW, key)
    set_word(s, at.SOURCE_LOW, source)
    s[at.LAST_ROLE] = -1
    s[at.LAST_ACTION] = -1
    s[at.ENTRY] = -1
    f[at.F_X], f[at.F_Y], f[at.F_Z] = start[0], start[1], start[2]
    f[at.F_START_HEADING] = start[3]
    f[at.F_RADIUS] = start[4]
    layer = locate(heights, frame, start[0], start[1], start[2], 0.5)[2]
    s[at.LAYER] = layer
    s[at.N_PATH] = 1
    p[at.PATH_32], p[at.PATH_32 + 1], p[at.PATH_32 + 2] = start[0], start[1], start[2]
    distance = np.float64(distance_at(heights, frame, field, start[0], start[2], layer))
    f[at.F_DISTANCE] = distance
    f[at.F_SHORTEST] = distance
    f[at.F_ENTRY_X], f[at.F_ENTRY_Z] = start[0], start[2]
    notice_room(s, f, frame, rooms, things)
    begin_clause(s, f, 0)
    look(s, f, frame, sight, things, False)


@kernel
def is_legal(role, action):
    """Every role can do everything at any time, even walk into a wall."""
    return 0 <= action < _ACTIONS[role]


@kernel
def place(s, f, p, x, y, z, layer):
    """Put the body where a step of `STEP_LENGTH` led it."""
    dx, dy, dz = x - f[at.F_X], y - f[at.F_Y], z - f[at.F_Z]
    moved = np.sqrt(dx * dx + dy * dy + dz * dz)
    f[at.F_X], f[at.F_Y], f[at.F_Z] = x, y, z
    s[at.LAYER] = layer
    f[at.F_LENGTH] += moved
    f[at.F_LAST_MOVED] += moved
    count = np.int64(s[at.N_PATH])
    if moved > 0.0 and count < at.MAX_PATH:
        p[at.PATH_32 + 3 * count] = x
        p[at.PATH_32 + 3 * count + 1] = y
        p[at.PATH_32 + 3 * count + 2] = z
        s[at.N_PATH] += 1


@kernel
def turn(s, steps):
    """Turn by steps of `STEP_ANGLE` to the left."""
    s[at.HEADING] = (s[at.HEADING] + steps + 2 * N_HEADINGS) % N_HEADINGS
    s[at.CLAUSE_TURNED] += steps


@kernel
def open_turn(s, f, role, action):
    """Note who decides what; the beginning of every turn."""
    s[at.TURN] += 1
    s[at.LAST_ROLE] = role
    s[at.LAST_ACTION] = action
    s[at.LAST_STEPS] = 0
    s[at.COLLIDED] = 0
    s[at.LOOKED] = 0
    s[at.LAST_CLAUSES] = 0
    f[at.F_LAST_MOVED] = 0.0


@kernel
def close_turn(s, f, distance):
    """Note where the turn led; returns its progress reward.

    Args:
        s, f: the record.
        distance: geodesic distance to the goal now.
    """
    gain = PROGRESS * (f[at.F_DISTANCE] - distance) / max(f[at.F_SHORTEST], 1e-6)
    f[at.F_DISTANCE] = distance
    s[at.COLLISIONS] += s[at.COLLIDED]
    f[at.F_SCORE] += gain
    return gain


@kernel
def stop(s, f):
    """The body stops for good; returns the reward of success, or 0."""
    s[at.DONE] = at.DONE_STOPPED
    if f[at.F_DISTANCE] >= f[at.F_RADIUS]:
        return 0.0
    longest = max(f[at.F_SHORTEST], f[at.F_LENGTH])
    reward = SUCCESS * (f[at.F_SHORTEST] / longest if longest > 0.0 else 1.0)
    f[at.F_SCORE] += reward
    return reward


@kernel
def skip(s, f):
    """Nobody acts; returns the reward, which is 0."""
    if s[at.DONE] != at.DONE_RUNNING:
        return 0.0
    open_turn(s, f, -1, -1)
    return 0.0


@kernel
def act(s, f, p, world, role, action):
    """A role decides; returns the reward. An illegal action is a skip.

    Args:
        s, f, p: the record as int32, float64 and float32.
        world: arrays of the world, see `worlds.view`.
        role: index into facts.ROLES.
        action: index into the role's actions.
    """
    if s[at.DONE] != at.DONE_RUNNING:
        return 0.0
    if not is_legal(role, action):
        return skip(s, f)
    heights, frame, field, sight, rooms, kinds, things, clauses = world
    open_turn(s, f, role, action)
    reward = 0.0
    if role == TURNER:
        steps = action + 1 if action < TURN_RIGHT else TURN_RIGHT - 1 - action
        s[at.LAST_STEPS] = abs(steps)
        s[at.STEPS] += abs(steps)
        turn(s, steps)
        look(s, f, frame, sight, things, False)
    elif role == MOVER:
        heading = angle_of(s, f)
        for _ in range(action + 1):
            x, z, layer, collided = move(
                heights, frame, f[at.F_X], f[at.F_Z], np.int64(s[at.LAYER]), heading, STEP_LENGTH
            )
            ix = np.int64(np.floor((x - frame[0]) / frame[2]))
            iz = np.int64(np.floor((z - frame[1]) / frame[2]))
            place(s, f, p, x, np.float64(heights[layer, iz, ix]), z, layer)
            if collided:
                s[at.COLLIDED] = 1
            s[at.STEPS] += 1
            s[at.LAST_STEPS] += 1
            notice_room(s, f, frame, rooms, things)
        distance = distance_at(heights, frame, field, f[at.F_X], f[at.F_Z], np.int64(s[at.LAYER]))
        reward = close_turn(s, f, np.float64(distance))
        look(s, f, frame, sight, things, False)
    elif role == STOPPER:
        if action == STOP:
            return stop(s, f)
        s[at.LOOKED] = 1
        look(s, f, frame, sight, things, True)
    follow(s, f, clauses, things, kinds)
    if s[at.STEPS] >= MAX_STEPS:
        s[at.DONE] = at.DONE_STEPS
    return reward
