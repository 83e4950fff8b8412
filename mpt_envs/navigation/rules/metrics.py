"""The metrics of an episode, as VLN-CE defines them.

===================== ============ ===================================================
name                  abbreviation what it is
===================== ============ ===================================================
``path_length``       TL           metres travelled: the sum of all straight steps
``distance_to_goal``  NE           geodesic distance of the last position to the goal
``oracle_success``    OS           1 if any position, the start included, is within the
                                   success radius of the goal (geodesic, strictly less)
``success``           SR           1 if the agent called stop within the success radius
``spl``               SPL          success * l / max(l, TL), l = geodesic from the start
``ndtw``              nDTW         exp(-DTW(path, R) / (|R| * success radius))
``sdtw``              SDTW         success * nDTW
===================== ============ ===================================================

R is the reference path (the ground-truth locations of R2R-CE). A position that equals the one
before it is dropped from the path before it is compared with R, so turning costs nothing. Sources:
Anderson et al., "On Evaluation of Embodied Navigation Agents" (2018) for SPL; Magalhaes et al.
(2019) for nDTW and SDTW; Krantz et al., "Beyond the Nav-Graph" (2020) for their form in continuous
environments.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpt_envs.navigation.rules.dtw import dtw_rows

METRIC_NAMES: Final = (
    "path_length",
    "distance_to_goal",
    "oracle_success",
    "success",
    "spl",
    "ndtw",
    "sdtw",
)
"""Keys of `episode_metrics`, in this order."""

SUCCESS_RADIUS: Final = 3.0
"""Metres to the goal within which a stop is a success in R2R."""


def _points(values: ArrayLike, what: str) -> NDArray[np.float64]:
    points = np.asarray(values, np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
        raise ValueError(f"{what} must be (N, 3) with N at least 1, got {points.shape}")
    return np.ascontiguousarray(points)


def dtw(path: ArrayLike, reference: ArrayLike) -> float:
    """Exact dynamic time warping distance in metres.

    Args:
        path: ``(N, 3)`` points in metres, N at least 1.
        reference: ``(R, 3)`` points, R at least 1.
    """
    first, second = _points(path, "path"), _points(reference, "reference")
    return float(dtw_rows(first, second, np.empty(len(second))))


def without_repeats(path: ArrayLike) -> NDArray[np.float64]:
    """The path without positions that equal the one before them."""
    points = _points(path, "path")
    keep = np.ones(len(points), bool)
    keep[1:] = np.any(points[1:] != points[:-1], axis=1)
    return points[keep]


def path_length(path: ArrayLike) -> float:
    """Sum of the straight distances between consecutive positions, in metres."""
    points = _points(path, "path")
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def ndtw(path: ArrayLike, reference: ArrayLike, success_radius: float = SUCCESS_RADIUS) -> float:
    """Normalised dynamic time warping, in (0, 1]; 1 for the reference itself."""
    reference = _points(reference, "reference")
    return ndtw_of(dtw(without_repeats(path), reference), len(reference), success_radius)


def ndtw_of(distance: float, reference_length: int, success_radius: float) -> float:
    """Normalise a warping distance by the number of points of the reference."""
    return math.exp(-distance / (reference_length * success_radius))


def spl_of(success: float, shortest: float, length: float) -> float:
    """Success weighted by path length; an episode that starts at its goal counts as success."""
    longest = max(shortest, length)
    return success * (shortest / longest if longest > 0 else 1.0)


def episode_metrics(
    positions: Any,
    distances_to_goal: Any,
    stopped: bool,
    shortest: float,
    reference_path: Any,
    success_radius: float = SUCCESS_RADIUS,
) -> dict[str, float]:
    """All metrics of one episode; see the top of this file.

    Args:
        positions: ``(T, 3)`` metres: the start, and the position after each step.
        distances_to_goal: ``(T,)`` geodesic distance of each position to the goal.
        stopped: whether the agent called stop (and did not merely run out of turns).
        shortest: geodesic distance from start to goal.
        reference_path: ``(R, 3)`` the ground truth.
        success_radius: metres.

    Raises:
        ValueError: an array has the wrong shape, or ``shortest`` is not a finite distance.
    """
    positions = _points(positions, "positions")
    distances = np.asarray(distances_to_goal, np.float64)
    if distances.shape != (len(positions),):
        raise ValueError(
            f"distances_to_goal must have one entry per position ({len(positions)},), got "
            f"{distances.shape}"
        )
    if not (math.isfinite(shortest) and shortest >= 0):
        raise ValueError(f"shortest must be a distance in metres, got {shortest!r}")
    length = path_length(positions)
    distance = float(distances[-1])
    success = float(bool(stopped) and distance < success_radius)
    similarity = ndtw(positions, reference_path, success_radius)
    return {
        "path_length": length,
        "distance_to_goal": distance,
        "oracle_success": float(bool((distances < success_radius).any())),
        "success": success,
        "spl": spl_of(success, shortest, length),
        "ndtw": similarity,
        "sdtw": success * similarity,
    }
