"""How far it is to the walls all around a body, kept while it stands still.

There is a ray for every heading, so that whoever turns sees the same distances in another order.
Only those who have moved need to look again.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.sight_lines import (
    LINE_FREE,
    LINE_REACH,
    LINE_X,
    LINE_Z,
    cast_lines,
    sight_lines,
)
from mpt_envs.navigation.world.facts import N_HEADINGS, N_RAYS, RAY_REACH, STEP_RADIANS
from mpt_envs.navigation.world.layout import F_START_HEADING, F_X, F_Z, HEADING, LAYER
from mpt_envs.navigation.world.space import cast

assert N_RAYS == N_HEADINGS

#: What distances in a world depend on: x, z, layer, heading at the start.
N_PLACE: Final = 4


def unmeasured(num_envs: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Places and distances of N bodies of which nothing is known yet.

    Returns:
        ``float64 (N, N_PLACE)``, whose rows are to be set to NaN whenever a row gets another world,
        and ``float32 (N, N_RAYS)``.
    """
    return np.full((num_envs, N_PLACE), np.nan), np.zeros((num_envs, N_RAYS), np.float32)


@kernel
def is_kept(place, s, f):
    """Whether distances are those of where the body is.

    Args:
        place: float64 ``(N_PLACE,)``: where they were taken; NaN where none were.
        s, f: the record as int32 and float64.
    """
    return (
        place[0] == f[F_X]
        and place[1] == f[F_Z]
        and place[2] == s[LAYER]
        and place[3] == f[F_START_HEADING]
    )


@kernel
def _measure(s, f, heights, frame, clearance, distances):
    """Write the distance to the walls at every heading, from that at the start to the left."""
    x, z, layer = f[F_X], f[F_Z], np.int64(s[LAYER])
    start = f[F_START_HEADING]
    dx, dz = -np.sin(start), -np.cos(start)
    # Turned step by step, so that only one sine and cosine are needed.
    step_cos, step_sin = np.cos(STEP_RADIANS), np.sin(STEP_RADIANS)
    flat = clearance.shape[0] > 0
    rays = sight_lines()
    for k in range(N_RAYS):
        rays[LINE_X, k], rays[LINE_Z, k], rays[LINE_REACH, k] = dx, dz, RAY_REACH
        if not flat:
            rays[LINE_FREE, k] = cast(heights, frame, x, z, layer, dx, dz, RAY_REACH)
        # To the left: (ahead_z, -ahead_x) is the left of (ahead_x, ahead_z).
        dx, dz = dx * step_cos + dz * step_sin, dz * step_cos - dx * step_sin
    if flat:
        cast_lines(clearance, frame, x, z, N_RAYS, rays)
    for k in range(N_RAYS):
        distances[k] = rays[LINE_FREE, k] / RAY_REACH


@kernel
def write_rays(s, f, world, clearance, place, distances, out):
    """Write the distances to the walls, ahead first and then to the left, as shares of their reach.

    Args:
        s, f: the record as int32 and float64.
        world: arrays of the world, see `worlds.view`.
        clearance: of the world, see `worlds.clearance_in`.
        place: float64 ``(N_PLACE,)``: where the distances were taken; kept up to date.
        distances: float32 ``(N_RAYS,)``: by heading; kept up to date.
        out: float32 ``(N_RAYS,)`` at least.
    """
    if not is_kept(place, s, f):
        _measure(s, f, world[0], world[1], clearance, distances)
        place[0], place[1], place[2], place[3] = f[F_X], f[F_Z], s[LAYER], f[F_START_HEADING]
    ahead = np.int64(s[HEADING])
    for k in range(N_RAYS - ahead):
        out[k] = distances[ahead + k]
    for k in range(ahead):
        out[N_RAYS - ahead + k] = distances[k]
