"""Free space from a navigation mesh."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.navigation.backends.connectivity import build_space, parse_graph
from mpt_envs.navigation.backends.navmesh import CELL, inner_space, snap, space_of_mesh
from tests.mpt_envs.navigation.fake_habitat_sim import PathFinder
from tests.mpt_envs.navigation.r2r_data import NODES, graph

# A floor of 4 m by 2 m, a ramp up from its end, and a platform over the floor.
VERTICES = [
    *([0, 0, 0], [4, 0, 0], [4, 0, 2], [0, 0, 2]),
    *([8, 3, 0], [8, 3, 2]),
    *([1, 3, 0], [1, 3, 2], [3, 3, 0], [3, 3, 2]),
]
FLOOR = [0, 1, 2, 0, 2, 3]
RAMP = [1, 4, 2, 4, 5, 2]
PLATFORM = [6, 8, 9, 6, 9, 7]


def test_what_a_mesh_covers() -> None:
    space = space_of_mesh(VERTICES, FLOOR + RAMP + PLATFORM)
    assert space.heights.shape[0] == 2
    for x, y, z, free in (
        (2.0, 0.0, 1.0, True),
        (2.0, 3.0, 1.0, True),
        (2.0, 1.5, 1.0, False),
        (6.0, 1.5, 1.0, True),
        (6.0, 0.0, 1.0, False),
        (0.5, 3.0, 1.0, False),
        (0.02, 0.0, 0.02, True),
        (-0.2, 0.0, 1.0, False),
        (2.0, 0.0, 2.2, False),
        (8.2, 3.0, 1.0, False),
    ):
        assert (space.locate((x, y, z), 0.2) is not None) == free, (x, y, z)
    layer, iz, ix = space.locate((6.0, 1.5, 1.0)) or (0, 0, 0)
    assert space.heights[layer, iz, ix] == pytest.approx(1.5, abs=0.05)
    # Up the ramp, but not from the floor onto the platform.
    up = space.distances_to((8.0, 3.0, 1.0))
    assert space.distance(up, (0.5, 0.0, 1.0)) == pytest.approx(3.5 + 5.0, rel=0.02)
    assert space.distance(up, (2.0, 3.0, 1.0)) == np.inf
    area = np.isfinite(space.heights).sum() * CELL**2
    # A column more on each side, whose edge the mesh touches.
    width = 2 + 2 * CELL
    assert area == pytest.approx((8 + 2 * CELL) * width + width * width, abs=0.1)


def test_the_order_of_triangles_and_corners_does_not_matter() -> None:
    indices = np.array(FLOOR + RAMP + PLATFORM).reshape(-1, 3)
    reference = space_of_mesh(VERTICES, indices)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mixed = rng.permuted(rng.permutation(indices), axis=1)
        other = space_of_mesh(VERTICES, mixed)
        assert np.allclose(other.heights, reference.heights, atol=1e-5, equal_nan=True)


def test_a_space_survives_as_a_mesh() -> None:
    space = build_space(parse_graph("house", graph()))
    finder = PathFinder(space)
    again = space_of_mesh(finder.build_navmesh_vertices(), finder.build_navmesh_vertex_indices())
    for start, end in (("hall_w", "room"), ("hall_w", "loft"), ("room", "landing")):
        before = space.distance(space.distances_to(NODES[end]), NODES[start])
        after = again.distance(again.distances_to(NODES[end]), NODES[start])
        # The slack makes corridors half a column wider on each side.
        assert before - 0.35 < after <= before + 0.05


@pytest.mark.parametrize(
    ("vertices", "indices", "message"),
    [
        (VERTICES, [], "three indices a triangle, got 0"),
        (VERTICES, [0, 1], "three indices a triangle, got 2"),
        (VERTICES, [0, 1, 99], "a vertex that is missing"),
        ([[0, 0, np.nan], *VERTICES[1:]], FLOOR, "a vertex that is missing or not finite"),
        ([[0, 0, 5000], *VERTICES[1:]], FLOOR, "more than 1 km wide"),
    ],
)
def test_what_is_no_mesh(vertices: list[list[float]], indices: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        space_of_mesh(vertices, indices)


def test_the_inner_space_leaves_out_the_rim_and_bodies_there_find_in() -> None:
    whole = space_of_mesh(VERTICES, FLOOR + RAMP + PLATFORM)
    inner = inner_space(whole)
    assert (np.isfinite(inner.heights) <= np.isfinite(whole.heights)).all()
    # All of it lies on the mesh, and it still leads up the ramp.
    for x, y, z, free in (
        (-0.02, 0.0, 1.0, False),
        (0.12, 0.0, 1.0, True),
        (2.0, 0.0, 2.02, False),
        (0.98, 3.0, 1.0, False),
        (4.0, 0.0, 1.0, True),
    ):
        assert (inner.locate((x, y, z), 0.3) is not None) == free, (x, y, z)
    up = inner.distances_to((7.8, 2.85, 1.0))
    assert np.isfinite(inner.distance(up, (0.5, 0.0, 1.0)))
    x, z, layer = snap(inner.heights, inner.frame, -0.02, 0.0, 1.0, 6)
    assert inner.locate((x, 0.0, z)) is not None
    assert 0 < x < 0.15 and abs(z - 1.0) < 0.06
    assert layer == inner.locate((x, 0.0, z))[0]  # type: ignore[index]
    assert snap(inner.heights, inner.frame, 2.0, 0.0, 1.0, 6)[:2] == (2.0, 1.0)
    # On the platform, not under it; and far from everything there is nothing.
    assert snap(inner.heights, inner.frame, 0.98, 3.0, 1.0, 6)[2] == 1
    assert snap(inner.heights, inner.frame, -2.0, 0.0, 1.0, 6)[2] == -1
