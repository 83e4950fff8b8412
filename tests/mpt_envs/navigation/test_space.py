"""Free space: geodesics are right, nothing leaks, walking follows the ground."""

from __future__ import annotations

import heapq
import itertools
import math
import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.sight_lines import (
    LINE_FREE,
    LINE_REACH,
    LINE_X,
    LINE_Z,
    MAX_LINES,
    cast_lines,
    sight_lines,
)
from mpt_envs.navigation.world.space import FreeSpace, cast, cast_flat, clear, move

CELL = 0.1


def room(nz: int = 60, nx: int = 80, layers: int = 1) -> NDArray[np.float32]:
    heights = np.full((layers, nz, nx), np.nan, np.float32)
    heights[0, 1:-1, 1:-1] = 0.0
    return heights


def centres(heights: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    iz, ix = np.nonzero(np.isfinite(heights[0]))
    return (ix + 0.5) * CELL, (iz + 0.5) * CELL


def test_distances_in_the_open_are_euclidean() -> None:
    heights = room()
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    for goal in ((1.03, 1.17), (4.0, 3.0), (7.85, 5.85)):
        field = space.distances_to((goal[0], 0.0, goal[1]))
        x, z = centres(heights)
        true = np.hypot(x - goal[0], z - goal[1])
        found = field[0][np.isfinite(heights[0])]
        assert (found >= true - 1e-4).all()
        assert (found - true).max() < 0.5 * CELL
        far = true > 1.0
        assert (found[far] / true[far]).max() < 1.01


def test_distances_go_around_walls() -> None:
    heights = room()
    heights[0, 30, :60] = np.nan  # one cell thick
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    goal, start = (1.05, 1.05), (1.05, 5.05)
    field = space.distances_to((goal[0], 0.0, goal[1]))
    corner = 6.0
    true = math.hypot(corner - goal[0], 3.0 - goal[1]) + 0.1
    true += math.hypot(corner - start[0], 3.1 - start[1])
    found = space.distance(field, (start[0], 0.0, start[1]))
    assert true - 0.02 < found < true + 2.5 * CELL
    path = space.path(field, (start[0], 0.0, start[1]), (goal[0], 0.0, goal[1]))
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    assert len(path) <= 6
    assert true - 0.02 < length < true + 2.5 * CELL
    for first, second in itertools.pairwise(path):
        assert clear(space.heights, space.frame, first[0], first[2], 0, second[0], second[2])


@pytest.mark.parametrize("diagonal", [False, True])
def test_nothing_leaks_through_a_wall_of_one_cell(diagonal: bool) -> None:
    heights = room(60, 60)
    if diagonal:
        # Cells that touch at their corners only.
        for k in range(60):
            heights[0, k, k] = np.nan
        inside, outside = (1.55, 4.55), (4.55, 1.55)
    else:
        heights[0, :, 30] = np.nan
        inside, outside = (1.55, 3.0), (4.55, 3.0)
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    field = space.distances_to((inside[0], 0.0, inside[1]))
    assert math.isinf(space.distance(field, (outside[0], 0.0, outside[1])))
    rng = np.random.default_rng(0)
    x, z, layer = *outside, 0
    for _ in range(300):
        x, z, layer, _ = space.move(x, z, layer, float(rng.uniform(0, 2 * math.pi)), 0.25)
        assert math.isinf(space.distance(field, (x, 0.0, z)))
        assert not clear(space.heights, space.frame, x, z, layer, *inside)


def shortest(
    neighbours: dict[int, list[tuple[int, float]]], goal: int, count: int
) -> NDArray[np.float64]:
    """Dijkstra's algorithm."""
    found = np.full(count, np.inf)
    found[goal] = 0.0
    queue = [(0.0, goal)]
    while queue:
        length, place = heapq.heappop(queue)
        if length > found[place]:
            continue
        for other, step in neighbours[place]:
            if length + step < found[other]:
                found[other] = length + step
                heapq.heappush(queue, (length + step, other))
    return found


def test_distances_are_those_of_a_finer_graph() -> None:
    """Random obstacles, against paths over a hundred directions: far from the 8 % of a grid."""
    rng = np.random.default_rng(1)
    heights = room(40, 40)
    for _ in range(12):
        z, x = rng.integers(2, 36, 2)
        heights[0, z : z + rng.integers(1, 8), x : x + rng.integers(1, 8)] = np.nan
    heights[0, 17:24, 17:24] = 0.0
    heights[0, [0, -1], :] = heights[0, :, [0, -1]] = np.nan
    space = FreeSpace(heights, (0.0, 0.0), CELL)
    free = np.argwhere(np.isfinite(heights[0]))
    number = {tuple(c): i for i, c in enumerate(free.tolist())}
    neighbours: dict[int, list[tuple[int, float]]] = {i: [] for i in number.values()}
    for iz, ix in number:
        x, z = (ix + 0.5) * CELL, (iz + 0.5) * CELL
        for dz, dx in itertools.product(range(-5, 6), repeat=2):
            other = (iz + dz, ix + dx)
            if math.gcd(dz, dx) != 1 or other not in number:
                continue
            to_x, to_z = (other[1] + 0.5) * CELL, (other[0] + 0.5) * CELL
            if clear(space.heights, space.frame, x, z, 0, to_x, to_z):
                step = CELL * math.hypot(dz, dx)
                neighbours[number[iz, ix]].append((number[other], step))
    goal = (20, 20)
    true = shortest(neighbours, number[goal], len(free))
    field = space.distances_to(((goal[1] + 0.5) * CELL, 0.0, (goal[0] + 0.5) * CELL))
    found = field[0][tuple(free.T)]
    both = np.isfinite(found) & np.isfinite(true)
    assert both.mean() > 0.5
    # A straight line may graze a corner that a walk from cell to cell must not cut.
    assert not np.isfinite(found[~np.isfinite(true)]).any()
    known = both & (true > 0.5)
    ratio = found[known] / true[known]
    assert ratio.min() > 0.97
    assert ratio.max() < 1.07
    assert abs(ratio.mean() - 1.0) < 0.02


def two_storeys() -> FreeSpace:
    """Two floors above each other, 3 m apart, joined by stairs along one wall."""
    heights = np.full((2, 40, 60), np.nan, np.float32)
    heights[0, 1:-1, 1:-1] = 0.0
    heights[1, 1:-1, 1:-1] = 3.0
    # The stairs: one layer that rises by 0.15 m a column; the floors are cut out there.
    heights[0, 1:8, 20:41] = np.nan
    heights[1, 1:8, 20:41] = np.nan
    heights[0, 1:8, 20:41] = (0.15 * np.arange(21, dtype=np.float32))[None]
    heights[0, 7, 20:41] = np.nan
    heights[0, 8:10, 21:40] = np.nan  # nobody jumps off
    return FreeSpace(heights, (0.0, 0.0), CELL)


def test_storeys_are_joined_by_stairs_only() -> None:
    space = two_storeys()
    field = space.distances_to((5.0, 3.0, 0.4))
    below = space.distance(field, (5.0, 0.0, 0.4))
    above = space.distance(field, (5.0, 3.0, 1.0))
    assert above < 1.0
    # Down the stairs, and back under them.
    stairs = 2.1 * math.hypot(1.0, 1.5)
    assert below > 5.0
    start = (1.0, 0.0, 0.4)
    found = space.distance(field, start)
    straight = 1.0 + stairs + (5.0 - 4.1)
    assert straight - 0.3 < found < straight + 0.6
    path = space.path(field, start, (5.0, 3.0, 0.4))
    assert path[0, 1] == 0.0 and path[-1, 1] == 3.0


def test_walking_climbs_stairs() -> None:
    space = two_storeys()
    x, z, layer = 1.0, 0.4, 0
    for _ in range(18):
        x, z, layer, _ = space.move(x, z, layer, -math.pi / 2, 0.25)  # along +x
    height = float(space.heights[layer, int(z / CELL), int(x / CELL)])
    assert layer == 1 and height == 3.0 and x > 4.2


def test_walking_slides_along_walls() -> None:
    space = FreeSpace(room(), (0.0, 0.0), CELL)
    # 45 degrees into the wall at z = 0.1.
    x, z, _, hit = space.move(4.0, 0.2, 0, math.pi / 4, 0.25)
    assert hit
    assert 0.1 <= z < 0.2
    assert 4.0 - x == pytest.approx(0.25 * math.sqrt(0.5), abs=0.02)
    # Straight into it: no way.
    x, z, _, hit = space.move(4.0, 0.15, 0, 0.0, 0.25)
    assert hit and x == pytest.approx(4.0, abs=1e-9) and 0.1 <= z <= 0.15
    # In the open: exactly what was asked for.
    x, z, _, hit = space.move(4.0, 3.0, 0, 1.0, 0.25)
    assert not hit
    assert (x, z) == pytest.approx((4.0 - 0.25 * math.sin(1.0), 3.0 - 0.25 * math.cos(1.0)))


def test_walking_never_leaves_the_ground_and_never_goes_farther_than_asked() -> None:
    rng = np.random.default_rng(3)
    heights = room(50, 50)
    heights[0][rng.random((50, 50)) < 0.2] = np.nan
    heights[0, 25, 25] = 0.0
    space = FreeSpace(heights, (-1.0, 2.0), CELL)
    x, z, layer = -1.0 + 25.5 * CELL, 2.0 + 25.5 * CELL, 0
    for _ in range(2000):
        heading = float(rng.integers(24)) * math.pi / 12
        nx, nz, layer, _ = space.move(x, z, layer, heading, 0.25)
        assert math.hypot(nx - x, nz - z) <= 0.25 + 1e-9
        x, z = nx, nz
        assert space.locate((x, 0.0, z)) is not None


def test_rays_end_at_walls() -> None:
    space = FreeSpace(room(), (0.0, 0.0), CELL)
    for dx, dz, true in ((1.0, 0.0, 7.9 - 4.0), (-1.0, 0.0, 3.9), (0.0, -1.0, 2.9)):
        assert cast(space.heights, space.frame, 4.0, 3.0, 0, dx, dz, 20.0) == pytest.approx(true)
    half = math.sqrt(0.5)
    far = cast(space.heights, space.frame, 4.0, 3.0, 0, half, half, 20.0)
    assert far == pytest.approx(2.9 / half)
    assert cast(space.heights, space.frame, 4.0, 3.0, 0, 1.0, 0.0, 2.0) == 2.0


def test_strides_see_what_steps_see() -> None:
    rng = np.random.default_rng(5)
    heights = room(70, 90)
    heights[0][rng.random((70, 90)) < 0.03] = np.nan
    space = FreeSpace(heights, (-2.0, 3.0), CELL)
    assert space.clearance.shape == (70, 90)
    free = np.argwhere(np.isfinite(heights[0]))
    for iz, ix in free[rng.integers(0, len(free), 600)].tolist():
        x, z = -2.0 + (ix + rng.uniform()) * CELL, 3.0 + (iz + rng.uniform()) * CELL
        angle = rng.uniform(0, 2 * math.pi)
        way = math.cos(angle), math.sin(angle)
        steps = cast(space.heights, space.frame, x, z, 0, *way, 6.0)
        strides = cast_flat(space.clearance, space.frame, x, z, *way, 6.0)
        assert strides == pytest.approx(steps, abs=1e-5)
    # On the border between two columns, along it, as after walking at a right angle.
    tiny = math.cos(math.pi / 2)
    for dx, dz in ((-tiny, 1.0), (tiny, -1.0), (1.0, tiny), (-1.0, -tiny)):
        for iz, ix in free[rng.integers(0, len(free), 50)].tolist():
            x, z = -2.0 + ix * CELL, 3.0 + iz * CELL
            if not math.isfinite(heights[0, iz, ix]) or space.locate((x, 0.0, z)) is None:
                continue
            strides = cast_flat(space.clearance, space.frame, x, z, dx, dz, 6.0)
            assert 0.0 <= strides <= 6.0
    # The distance to the nearest closed column, by looking at all of them.
    closed = np.argwhere(np.isnan(heights[0]))
    for iz, ix in free[::97].tolist():
        assert space.clearance[iz, ix] == np.abs(closed - (iz, ix)).max(axis=1).min()
    assert len(two_storeys().clearance) == 0


@kernel
def fan_from(clearance, frame, x, z, ways, reaches):  # type: ignore[no-untyped-def]
    lines = sight_lines()
    count = len(reaches)
    for k in range(count):
        lines[LINE_X, k], lines[LINE_Z, k], lines[LINE_REACH, k] = (
            ways[k, 0],
            ways[k, 1],
            reaches[k],
        )
    cast_lines(clearance, frame, x, z, count, lines)
    return lines[LINE_FREE, :count].copy()


def test_a_fan_sees_exactly_what_its_lines_see() -> None:
    rng = np.random.default_rng(6)
    heights = room(70, 90)
    heights[0][rng.random((70, 90)) < 0.01] = np.nan
    space = FreeSpace(heights, (-2.0, 3.0), CELL)
    free = np.argwhere(np.isfinite(heights[0]))
    for iz, ix in free[rng.integers(0, len(free), 100)].tolist():
        x, z = -2.0 + (ix + rng.uniform()) * CELL, 3.0 + (iz + rng.uniform()) * CELL
        count = int(rng.integers(1, MAX_LINES + 1))
        angles = rng.choice([0.0, 0.5 * math.pi, math.pi, 1.0, 2.0, 4.0, 5.0], count)
        angles += rng.uniform(0, 0.1, count) * (rng.random(count) < 0.8)
        ways, reaches = np.stack([np.cos(angles), np.sin(angles)], axis=1), rng.uniform(0, 8, count)
        alone = [
            cast_flat(space.clearance, space.frame, x, z, *way, reach)
            for way, reach in zip(ways.tolist(), reaches.tolist(), strict=True)
        ]
        assert fan_from(space.clearance, space.frame, x, z, ways, reaches).tolist() == alone


def test_equal_spaces_are_equal() -> None:
    first, second = FreeSpace(room(), (0.0, 0.0)), FreeSpace(room(), (0.0, 0.0))
    moved = FreeSpace(room(), (0.0, 1.0))
    assert first == second and hash(first) == hash(second) and first != moved
    assert pickle.loads(pickle.dumps(first)) == first
    with pytest.raises(ValueError, match="read-only"):
        first.heights[0, 5, 5] = 1.0


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="margin"):
        FreeSpace(np.zeros((1, 5, 5), np.float32), (0.0, 0.0))
    with pytest.raises(ValueError, match="shape"):
        FreeSpace(np.zeros((5, 5), np.float32), (0.0, 0.0))
    with pytest.raises(ValueError, match="cell"):
        FreeSpace(room(), (0.0, 0.0), 0.0)
    with pytest.raises(ValueError, match="origin"):
        FreeSpace(room(), (0.0, math.nan))
    space = FreeSpace(room(), (0.0, 0.0))
    with pytest.raises(ValueError, match="nobody can stand"):
        space.distances_to((100.0, 0.0, 0.0))
    field = space.distances_to((1.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="no way"):
        space.path(field, (-5.0, 0.0, 0.0), (1.0, 0.0, 1.0))
    assert math.isinf(space.distance(field, (math.inf, 0.0, 0.0)))
    assert space.nearest((4.0, 0.0, -0.3), 1.0) is not None
    assert space.nearest((4.0, 0.0, -3.0), 1.0) is None


def test_amount_zero_moves_nothing() -> None:
    space = FreeSpace(room(), (0.0, 0.0))
    assert move(space.heights, space.frame, 4.0, 3.0, 0, 1.0, 0.0) == (4.0, 3.0, 0, False)


def test_the_quick_march_on_flat_ground_gives_the_numbers_of_the_general_one() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        heights = np.where(random.random((1, 40, 50)) < 0.2, np.nan, 0.5).astype(np.float32)
        heights[:, [0, -1], :] = np.nan
        heights[:, :, [0, -1]] = np.nan
        heights[0, 20, 20] = 0.5
        flat = FreeSpace(heights, (0.0, 0.0))
        # A second layer that leads nowhere: the same ground for the general march.
        above = np.full_like(heights, np.nan)
        above[0, 1, 1] = 100.0
        general = FreeSpace(np.concatenate([heights, above]), (0.0, 0.0))
        goal = (2.05, 0.5, 2.05)
        found = general.distances_to(goal)
        assert np.isfinite(found).sum() > 100
        assert np.array_equal(flat.distances_to(goal)[0], found[0])
