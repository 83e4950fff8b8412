"""A scripted expert: it knows the map and the goal, and walks the shortest way.

It is an oracle, not an instruction follower: it serves cold starts, reference paths and as an upper
bound. It aims at the farthest point of the shortest way that it can walk to straight, turns until
it looks there within half a step of 15 degrees, and stops close to the goal.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.facts import (
    LOOK_AROUND,
    MOVER,
    N_HEADINGS,
    STEP_ANGLE,
    STEP_LENGTH,
    STOP,
    STOPPER,
    TURN_RIGHT,
    TURNER,
)
from mpt_envs.navigation.world.layout import (
    F_DISTANCE,
    F_START_HEADING,
    F_X,
    F_Z,
    HEADING,
    LAYER,
)
from mpt_envs.navigation.world.space import distance_at, height_at, locate, move, waypoint

#: Bids: of the role that should act, of one that has something sensible to do, of one that has not.
BID_ACT: Final = 0.9
BID_COULD: Final = 0.3
BID_IDLE: Final = 0.1

_CLOSE: Final = 0.4  # metres to the goal at which it stops
_LOOK_AHEAD: Final = 48  # columns of the shortest way
_RADIANS: Final = np.pi / 180.0
_STUCK: Final = 0.08  # metres gained by a step of 0.25 m that are too few
_LONGEST: Final = 3  # primitive steps of one decision


@kernel
def _aim(heights, frame, field, x, z, layer, heading):
    """Steps to turn to the left towards the next point of the way, and metres to it."""
    to_x, to_z = waypoint(heights, frame, field, x, z, layer, _LOOK_AHEAD)
    dx, dz = to_x - x, to_z - z
    away = np.sqrt(dx * dx + dz * dz)
    if away < 1e-6:
        return 0, 0.0
    wanted = np.arctan2(-dx, -dz)
    steps = np.int64(np.round((wanted - heading) / (STEP_ANGLE * _RADIANS))) % N_HEADINGS
    if steps > N_HEADINGS // 2:
        steps -= N_HEADINGS
    return steps, away


@kernel
def _gain(heights, frame, field, x, z, layer, distance, heading, steps):
    """Metres by which a step forward brings one closer to the goal, after turning by steps."""
    heading = heading + steps * (STEP_ANGLE * _RADIANS)
    x, z, layer, _ = move(heights, frame, x, z, layer, heading, STEP_LENGTH)
    return distance - np.float64(distance_at(heights, frame, field, x, z, layer))


@kernel
def decide(heights, frame, field, x, z, layer, heading, distance, actions):
    """Each role's best decision in a place; returns the role that should act.

    Args:
        heights, frame, field: free space and distance field.
        x, z, layer: the place.
        heading: radians.
        distance: geodesic, to the goal.
        actions: int64 (3,), overwritten.
    """
    steps, away = _aim(heights, frame, field, x, z, layer, heading)
    gain = _gain(heights, frame, field, x, z, layer, distance, heading, steps)
    if gain < _STUCK and distance >= _CLOSE:
        # A corner is in the way: the heading whose next step leads nearest to the goal. One that
        # is nearly as good and is looked in already is kept, so that this ends.
        best, most = 0, 1.1 * _gain(heights, frame, field, x, z, layer, distance, heading, 0)
        for other in range(1, N_HEADINGS):
            value = _gain(heights, frame, field, x, z, layer, distance, heading, other)
            if value > most:
                best, most = other, value
        steps = best - N_HEADINGS if best > N_HEADINGS // 2 else best
        gain, away = most, STEP_LENGTH
    count = min(_LONGEST, abs(steps))
    if steps >= 0:
        actions[TURNER] = max(count, 1) - 1
    else:
        actions[TURNER] = TURN_RIGHT + count - 1
    wanted = min(_LONGEST, max(1, int(np.round(away / STEP_LENGTH))))
    actions[MOVER] = wanted - 1
    if distance < _CLOSE:
        actions[STOPPER] = STOP
        return STOPPER
    actions[STOPPER] = LOOK_AROUND
    if gain <= 0.0:
        # No step brings it closer.
        actions[STOPPER] = STOP
        return STOPPER
    if steps != 0:
        return TURNER
    return MOVER


@kernel
def expert(s, f, world, bids, actions):
    """Write the bid and the decision of each role.

    Args:
        s, f: the record as int32 and float64.
        world: arrays of the world, see `worlds.view`.
        bids: float64 (3,).
        actions: int64 (3,).
    """
    heights, frame, field = world[0], world[1], world[2]
    heading = f[F_START_HEADING] + s[HEADING] * (STEP_ANGLE * _RADIANS)
    layer = np.int64(s[LAYER])
    role = decide(heights, frame, field, f[F_X], f[F_Z], layer, heading, f[F_DISTANCE], actions)
    bids[TURNER] = BID_IDLE
    bids[MOVER] = BID_COULD
    bids[STOPPER] = BID_IDLE
    bids[role] = BID_ACT


@kernel
def expert_path(heights, frame, field, x, y, z, heading, most):
    """The expert's own way: float64 ``(n, 3)``, the start and the place after each step of 0.25 m.

    Args:
        heights, frame, field: free space and distance field.
        x, y, z, heading: the start.
        most: decisions after which it gives up.
    """
    out = np.empty((_LONGEST * most + 1, 3))
    layer = locate(heights, frame, x, y, z, 0.5)[2]
    out[0, 0], out[0, 1], out[0, 2] = x, y, z
    count = 1
    actions = np.zeros(3, np.int64)
    for _ in range(most):
        distance = np.float64(distance_at(heights, frame, field, x, z, layer))
        role = decide(heights, frame, field, x, z, layer, heading, distance, actions)
        if role == STOPPER:
            break
        if role == TURNER:
            action = actions[TURNER]
            steps = action + 1 if action < TURN_RIGHT else TURN_RIGHT - 1 - action
            heading += steps * (STEP_ANGLE * _RADIANS)
            continue
        for _step in range(actions[MOVER] + 1):
            x, z, layer, _ = move(heights, frame, x, z, layer, heading, STEP_LENGTH)
            out[count, 0], out[count, 1], out[count, 2] = (
                x,
                height_at(heights, frame, x, z, layer),
                z,
            )
            count += 1
    return out[:count].copy()
