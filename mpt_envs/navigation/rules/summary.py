"""What an episode is measured by: the field's metrics, from its record and its world."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.metrics import METRIC_NAMES, episode_metrics
from mpt_envs.navigation.world.layout import (
    COLLISIONS,
    DONE,
    DONE_STOPPED,
    F_DISTANCE,
    F_SHORTEST,
    STEPS,
    floats,
    ints,
    path,
)
from mpt_envs.navigation.world.space import distance_at, locate
from mpt_envs.navigation.world.worlds import World

#: Names of the metrics: ``success`` and the others of `metrics.episode_metrics`, and
#: ``primitive_steps`` (of 0.25 m and 15 degrees), ``collisions`` (decisions that met a wall).
METRICS: Final = (*METRIC_NAMES, "primitive_steps", "collisions")


@kernel
def _distances(heights, frame, field, way, out):
    """Geodesic distance to the goal of each position of a way, float32 ``(n, 3)``."""
    for k in range(way.shape[0]):
        x, y, z = np.float64(way[k, 0]), np.float64(way[k, 1]), np.float64(way[k, 2])
        layer = locate(heights, frame, x, y, z, 0.5)[2]
        out[k] = distance_at(heights, frame, field, x, z, layer) if layer >= 0 else np.inf


def metrics_of(record: NDArray[np.uint8], world: World) -> list[float]:
    """The metrics of a record, in the order of `METRICS`."""
    s, f = ints(record), floats(record)
    way = path(record)
    distances = np.empty(len(way))
    space = world.scene.space
    _distances(space.heights, space.frame, world.distances, way, distances)
    # What the rules went by, not the single precision of the way.
    distances[-1] = f[F_DISTANCE]
    found = episode_metrics(
        way.astype(np.float64),
        distances,
        bool(s[DONE] == DONE_STOPPED),
        float(f[F_SHORTEST]),
        world.episode.reference_path,
        world.episode.radius,
    )
    values = [found[name] for name in METRIC_NAMES]
    return [*values, float(s[STEPS]), float(s[COLLISIONS])]
