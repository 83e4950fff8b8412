"""Exact dynamic time warping: against all warpings, and by its properties."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mpt_envs.navigation.rules.dtw import dtw_extend, dtw_start
from mpt_envs.navigation.rules.metrics import dtw


def warpings(n: int, m: int) -> Iterator[list[tuple[int, int]]]:
    """Every warping of n points onto m points, as the pairs that it matches."""

    def extend(i: int, j: int) -> Iterator[list[tuple[int, int]]]:
        if (i, j) == (n - 1, m - 1):
            yield [(i, j)]
            return
        for di, dj in ((1, 0), (0, 1), (1, 1)):
            if i + di < n and j + dj < m:
                for rest in extend(i + di, j + dj):
                    yield [(i, j), *rest]

    return extend(0, 0)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("m", [1, 2, 4, 5])
def test_it_is_the_least_cost_of_all_warpings(n: int, m: int) -> None:
    rng = np.random.default_rng(10 * n + m)
    for _ in range(4):
        a, b = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
        cost = np.linalg.norm(a[:, None] - b[None], axis=2)
        least = min(sum(cost[i, j] for i, j in pairs) for pairs in warpings(n, m))
        assert dtw(a, b) == pytest.approx(least, rel=1e-12)


def test_hand_computed() -> None:
    a = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    assert dtw(a, [[0, 0, 0], [2, 0, 0]]) == pytest.approx(1.0)
    assert dtw(a, [[0, 3, 4], [1, 3, 4], [2, 3, 4]]) == pytest.approx(15.0)
    assert dtw(a, [[1, 0, 0]]) == pytest.approx(2.0)
    # Repeats of the other path's points cost nothing.
    assert dtw(a, [a[0], a[0], a[1], a[2], a[2], a[2]]) == 0.0


def test_symmetric_reversible_and_zero_for_itself() -> None:
    rng = np.random.default_rng(0)
    for n, m in ((7, 12), (30, 4), (60, 61)):
        a, b = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
        assert dtw(a, b) == pytest.approx(dtw(b, a), rel=1e-12)
        assert dtw(a, b) == pytest.approx(dtw(a[::-1], b[::-1]), rel=1e-12)
        assert dtw(a, a) == 0.0
        assert dtw(a, b) > 0


def test_a_growing_path_gives_every_prefix() -> None:
    rng = np.random.default_rng(1)
    path, reference = rng.normal(size=(20, 3)), rng.normal(size=(9, 3))
    row = np.full(16, -1.0)  # longer than needed: the rest is left alone
    for i, point in enumerate(path):
        (dtw_extend if i else dtw_start)(row, reference, *point)
        assert row[8] == dtw(path[: i + 1], reference)
        assert row[3] == dtw(path[: i + 1], reference[:4])
    assert (row[9:] == -1.0).all()


@pytest.mark.parametrize("path", [np.zeros((0, 3)), np.zeros((3, 2)), np.zeros(3)])
def test_no_path(path: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"path must be \(N, 3\)"):
        dtw(path, [[0, 0, 0]])
    with pytest.raises(ValueError, match=r"reference must be \(N, 3\)"):
        dtw([[0, 0, 0]], path)
