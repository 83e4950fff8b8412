"""Free space from the triangles of a navigation mesh (Recast's, as Habitat uses it).

A mesh is what a simulator walks on; policies observe, and the expert plans, on a `FreeSpace`. The
mesh keeps its distance from walls by the body's radius already, so a column is free where a
triangle covers any part of it (to within half a column). Plans and looks need the opposite, a place
that surely is on the mesh: `inner_space` leaves out the rim, and `snap` finds the way in.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.world.space import FreeSpace, enter, linked, locate

CELL: Final = 0.05
"""Width of a column in metres."""

STEP: Final = 0.3
"""Largest step between neighbouring columns, in metres; Recast's default climb is 0.2."""

MERGE: Final = 0.6
"""Heights of one column that differ by no more, in metres, are one floor."""


# A little more than a half: a body at the very edge of the mesh stands in a column that is free.
_SLACK: Final = 0.501


@kernel
def _count_cells(triangles: Any, origin: Any, cell: float) -> int:
    """How many columns the bounding rectangles of all triangles have."""
    total = 0
    for t in range(triangles.shape[0]):
        nx = math.floor((triangles[t, :, 0].max() - origin[0]) / cell) - math.floor(
            (triangles[t, :, 0].min() - origin[0]) / cell
        )
        nz = math.floor((triangles[t, :, 2].max() - origin[1]) / cell) - math.floor(
            (triangles[t, :, 2].min() - origin[1]) / cell
        )
        total += (nx + 3) * (nz + 3)
    return total


@kernel
def _cover(triangles: Any, origin: Any, cell: float, nx: int, columns: Any, heights: Any) -> int:
    """Write the columns that each triangle covers and their heights; returns how many."""
    count = 0
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        area = (b[0] - a[0]) * (c[2] - a[2]) - (c[0] - a[0]) * (b[2] - a[2])
        if abs(area) < 1e-9:
            continue
        low, high = triangles[t, :, 1].min(), triangles[t, :, 1].max()
        # Half a column of slack, in the barycentric coordinate of each side.
        slack_u = _SLACK * cell * math.hypot(c[0] - a[0], c[2] - a[2]) / abs(area)
        slack_v = _SLACK * cell * math.hypot(b[0] - a[0], b[2] - a[2]) / abs(area)
        slack_w = _SLACK * cell * math.hypot(c[0] - b[0], c[2] - b[2]) / abs(area)
        for iz in range(
            math.floor((triangles[t, :, 2].min() - origin[1]) / cell) - 1,
            math.floor((triangles[t, :, 2].max() - origin[1]) / cell) + 2,
        ):
            z = origin[1] + (iz + 0.5) * cell
            for ix in range(
                math.floor((triangles[t, :, 0].min() - origin[0]) / cell) - 1,
                math.floor((triangles[t, :, 0].max() - origin[0]) / cell) + 2,
            ):
                x = origin[0] + (ix + 0.5) * cell
                u = ((x - a[0]) * (c[2] - a[2]) - (c[0] - a[0]) * (z - a[2])) / area
                v = ((b[0] - a[0]) * (z - a[2]) - (x - a[0]) * (b[2] - a[2])) / area
                if u < -slack_u or v < -slack_v or u + v > 1.0 + slack_w:
                    continue
                y = a[1] + u * (b[1] - a[1]) + v * (c[1] - a[1])
                columns[count] = iz * nx + ix
                heights[count] = min(max(y, low), high)
                count += 1
    return count


def space_of_mesh(vertices: ArrayLike, indices: ArrayLike) -> FreeSpace:
    """The free space that a triangulated navigation mesh covers.

    Args:
        vertices: ``(V, 3)`` metres, y up.
        indices: ``(3 T,)`` three vertices a triangle.

    Raises:
        ValueError: there is no triangle, or an index or a number makes no sense.
    """
    points = np.asarray(vertices, np.float64).reshape(-1, 3)
    corners = np.asarray(indices, np.int64).reshape(-1)
    if not len(corners) or len(corners) % 3:
        raise ValueError(f"a navigation mesh needs three indices a triangle, got {len(corners)}")
    if corners.min() < 0 or corners.max() >= len(points) or not np.isfinite(points).all():
        raise ValueError("the navigation mesh has a vertex that is missing or not finite")
    triangles = points[corners].reshape(-1, 3, 3)
    flat = triangles[:, :, [0, 2]].reshape(-1, 2)
    if np.ptp(flat, axis=0).max() > 1000:
        raise ValueError("the navigation mesh is more than 1 km wide")
    low = np.floor(flat.min(axis=0) / CELL) - 3
    high = np.ceil(flat.max(axis=0) / CELL) + 3
    origin = low * CELL
    nx, nz = (int(n) for n in high - low)
    capacity = _count_cells(triangles, origin, CELL)
    columns, heights = np.empty(capacity, np.int64), np.empty(capacity)
    count = _cover(triangles, origin, CELL, nx, columns, heights)
    layers = stack_layers(columns[:count], heights[:count], np.ones(count), nx * nz)[0]
    return FreeSpace(layers.reshape(-1, nz, nx), (float(origin[0]), float(origin[1])), CELL, STEP)


@kernel
def _erode(heights: Any, step: float, out: Any) -> None:
    for k in range(heights.shape[0]):
        for iz in range(1, heights.shape[1] - 1):
            for ix in range(1, heights.shape[2] - 1):
                inside = not np.isnan(heights[k, iz, ix])
                for direction in range(9):
                    if not inside:
                        break
                    dz, dx = direction // 3 - 1, direction % 3 - 1
                    inside = linked(heights, step, k, iz, ix, dz, dx) >= 0
                if inside:
                    out[k, iz, ix] = heights[k, iz, ix]


def inner_space(space: FreeSpace) -> FreeSpace:
    """A space without its rim: the columns that are joined to all eight around them."""
    out = np.full(space.heights.shape, np.nan, np.float32)
    _erode(space.heights, space.step, out)
    return FreeSpace(out, space.origin, space.cell, space.step)


@kernel
def snap(
    heights: Any, frame: Any, x: float, y: float, z: float, reach: int
) -> tuple[float, float, int]:
    """The free place nearest to a body, within some columns.

    Args:
        heights, frame: of a `FreeSpace`.
        x, y, z: the body.
        reach: columns to look at in each direction.

    Returns:
        x, z and layer: the body's own where it stands in a free column, else the middle of the
        nearest one; a layer of -1: there is none.
    """
    tolerance = 0.5
    cell = frame[2]
    iz, ix, layer = locate(heights, frame, x, y, z, tolerance)
    if layer >= 0:
        return x, z, layer
    best, best_x, best_z = -1, x, z
    least = np.inf
    for jz in range(max(0, iz - reach), min(heights.shape[1], iz + reach + 1)):
        for jx in range(max(0, ix - reach), min(heights.shape[2], ix + reach + 1)):
            k = enter(heights, tolerance, y, jz, jx)
            if k < 0:
                continue
            px, pz = frame[0] + (jx + 0.5) * cell, frame[1] + (jz + 0.5) * cell
            away = (px - x) ** 2 + (pz - z) ** 2
            if away < least:
                least, best, best_x, best_z = away, k, px, pz
    return best_x, best_z, best


def stack_layers(
    columns: NDArray[np.int64],
    heights: NDArray[np.float64],
    weights: NDArray[np.float64],
    size: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Sort heights over columns into floors, the lowest first.

    Heights of a column are of one floor as long as each is within `MERGE` of the next.

    Args:
        columns: ``(P,)`` column that is covered.
        heights: ``(P,)`` at which height.
        weights: ``(P,)`` how much it counts in the mean height of its floor.
        size: number of columns.

    Returns:
        float32 ``(K, size)``: the layers, NaN where there is none; int64 ``(P,)``: flat index into
        them of each point.
    """
    order = np.lexsort((heights, columns))
    column, height = columns[order], heights[order]
    new_column = np.ones(len(column), bool)
    new_column[1:] = column[1:] != column[:-1]
    new_floor = new_column.copy()
    new_floor[1:] |= np.diff(height) > MERGE
    floor = np.cumsum(new_floor) - 1
    mean = np.bincount(floor, weights[order] * height) / np.bincount(floor, weights[order])
    column_of = column[new_floor]
    first = np.flatnonzero(new_column[new_floor])
    layer = np.arange(len(column_of)) - np.repeat(first, np.diff([*first, len(column_of)]))
    out = np.full((int(layer.max()) + 1, size), np.nan, np.float32)
    out[layer, column_of] = mean
    where = np.empty(len(column), np.int64)
    where[order] = (layer * size + column_of)[floor]
    return out, where
