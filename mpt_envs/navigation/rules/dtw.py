"""Exact dynamic time warping between a path and a reference path, compiled.

A warping matches two paths point by point, in order, each point to at least one of the other; its
cost is the sum of the Euclidean distances of the pairs. The distance is the least cost of all
warpings (Magalhaes et al., "Effective and General Evaluation for Instruction Conditioned Navigation
using Dynamic Time Warping", 2019). Libraries that search a band of warpings only may give more.

The usual table of costs has a row per point of the path and a column per point of the reference,
and a row follows from the one before. So a path that grows needs its last row only: `dtw_start`
makes the row of the first point, `dtw_extend` takes one more point, and the last entry of the row
is the distance so far.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wrappers.compiled import kernel

_Floats = NDArray[np.floating]


@kernel
def dtw_start(row: _Floats, reference: _Floats, x: float, y: float, z: float) -> None:
    """Begin a path.

    Args:
        row: ``float64 (R,)`` or longer, overwritten: ``row[j]`` becomes the distance between the
            path and the first j + 1 points of the reference.
        reference: ``(R, 3)`` points in metres.
        x, y, z: the first point of the path.
    """
    total = 0.0
    for j in range(reference.shape[0]):
        dx, dy, dz = x - reference[j, 0], y - reference[j, 1], z - reference[j, 2]
        total += math.sqrt(dx * dx + dy * dy + dz * dz)
        row[j] = total


@kernel
def dtw_extend(row: _Floats, reference: _Floats, x: float, y: float, z: float) -> None:
    """Take one more point of the path; arguments as for `dtw_start`, ``row`` is updated."""
    before = math.inf  # the row before, one column to the left
    left = math.inf  # this row, one column to the left
    for j in range(reference.shape[0]):
        dx, dy, dz = x - reference[j, 0], y - reference[j, 1], z - reference[j, 2]
        above = row[j]
        left = min(above, min(before, left)) + math.sqrt(dx * dx + dy * dy + dz * dz)
        before = above
        row[j] = left


@kernel
def dtw_rows(path: _Floats, reference: _Floats, row: _Floats) -> float:
    """`dtw` with a row to work in: ``float64 (R,)`` or longer."""
    if path.shape[0] == 0 or reference.shape[0] == 0:
        return math.inf
    dtw_start(row, reference, path[0, 0], path[0, 1], path[0, 2])
    for i in range(1, path.shape[0]):
        dtw_extend(row, reference, path[i, 0], path[i, 1], path[i, 2])
    return row[reference.shape[0] - 1]
