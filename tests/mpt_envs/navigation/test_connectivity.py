"""Free space from connectivity graphs: what is free, what is not, and what graphs are refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpt_envs.navigation.backends.connectivity import (
    CORRIDOR,
    DISC,
    Graph,
    build_space,
    graph_distances,
    load_graph,
    parse_graph,
    triangles,
)
from mpt_envs.navigation.data.episodes import EpisodeDataError
from mpt_envs.navigation.world.space import FreeSpace
from tests.mpt_envs.navigation.r2r_data import (
    DATA,
    NODES,
    graph,
    needs_r2r,
    write_json,
)


def made(nodes: list[list[float]], edges: list[tuple[int, int]]) -> Graph:
    return Graph("made", np.array(nodes, float), np.array(edges, np.int64).reshape(-1, 2))


def walks(space: FreeSpace, start: Any, end: Any) -> bool:
    """Whether walking straight from one point to another arrives there, on the right storey."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    at = space.locate(start)
    if at is None:
        return False
    way = end - start
    x, z, layer, collided = space.move(
        start[0], start[2], at[0], math.atan2(-way[0], -way[2]), math.hypot(way[0], way[2])
    )
    found = space.locate((x, end[1], z))
    return not collided and found is not None and found[0] == layer


def test_what_is_free_around_an_edge_and_a_node() -> None:
    space = build_space(made([[0, 0, 0], [4, 0, 0]], [(0, 1)]))
    for x, z, free in (
        (2.0, 0.0, True),
        (2.0, CORRIDOR - 0.06, True),
        (2.0, CORRIDOR + 0.11, False),
        (2.0, -CORRIDOR - 0.11, False),
        (-DISC + 0.11, 0.0, True),
        (-DISC - 0.11, 0.0, False),
        (4.0, DISC - 0.11, True),
        (4.0 + DISC + 0.11, 0.0, False),
    ):
        assert (space.locate((x, 0.0, z)) is not None) == free, (x, z)
    assert space.locate((2.0, 1.0, 0.0)) is None  # another height
    area = np.isfinite(space.heights).sum() * space.cell**2
    assert area == pytest.approx(math.pi * DISC**2 + 4 * 2 * CORRIDOR, abs=0.2)


def test_the_middle_of_a_room_is_free() -> None:
    corners = [[0.0, 0, 0], [4.0, 0, 0], [2.0, 0, 3.5]]
    centre = np.mean(corners, axis=0)
    sides = [(0, 1), (1, 2), (0, 2)]
    assert triangles(made(corners, sides)) == [(0, 1, 2)]
    assert build_space(made(corners, sides)).locate(centre) is not None
    assert build_space(made(corners, sides[:2])).locate(centre) is None


def test_stairs_lead_to_a_storey_above_the_one_below() -> None:
    space = build_space(parse_graph("house", graph()))
    loft = np.array(NODES["loft"])
    below = np.array([loft[0], NODES["hall_m"][1], 0.0])  # in the hall, under the loft's disc
    assert space.heights.shape[0] == 2
    assert space.locate(below) is not None
    to_loft = space.distances_to(loft)
    away = space.distance(to_loft, below)
    flat = [NODES[n] for n in ("hall_e", "stairs", "landing", "loft")]
    along = math.dist(below, flat[0]) + sum(map(math.dist, flat[:-1], flat[1:]))
    assert 0.85 * along < away <= 1.02 * along
    assert space.distance(to_loft, NODES["cellar"]) == math.inf
    for a, b in parse_graph("house", graph()).edges.tolist():
        names = list(NODES)
        assert walks(space, NODES[names[a]], NODES[names[b]]), (names[a], names[b])
        assert walks(space, NODES[names[b]], NODES[names[a]]), (names[b], names[a])


def test_there_is_a_wall_where_the_graph_goes_round() -> None:
    # Two corridors side by side, 0.7 m apart, joined only at their far end.
    u_turn = [[0, 0, 0], [5, 0, 0], [5, 0, 2], [5, 0, 0.7], [0, 0, 0.7]]
    far = build_space(made(u_turn, [(0, 1), (1, 2), (2, 3), (3, 4)]))
    assert far.locate((2.0, 0.0, 0.35)) is None
    assert not walks(far, (2.0, 0, 0.05), (2.0, 0, 0.65))
    # The same with a way across: one room.
    near = build_space(made(u_turn, [(0, 1), (1, 3), (3, 4), (0, 4)]))
    assert near.locate((2.0, 0.0, 0.35)) is not None
    assert walks(near, (2.0, 0, 0.05), (2.0, 0, 0.65))
    # Corridors that cross have no wall between them.
    cross = build_space(made([[-3, 0, 0], [3, 0, 0], [0, 0, -3], [0, 0, 3]], [(0, 1), (2, 3)]))
    assert walks(cross, (-3, 0, 0), (3, 0, 0))
    assert walks(cross, (0, 0, -3), (0, 0, 3))


def test_viewpoints_outside_are_joined() -> None:
    base = made([[0, 0, 0], [4, 0, 0], [0, 3, 0.5], [4, 3, 0.5]], [(0, 1), (2, 3)])
    outside = np.array([[2.0, 0.0, 1.0], [4.5, 3.0, 1.5]])
    plain, joined = build_space(base), build_space(base, outside)
    for point, storey in zip(outside, (0.0, 3.0), strict=True):
        assert plain.locate(point) is None
        assert joined.locate(point) is not None
        away = joined.distance(joined.distances_to(point), (0.0, storey, storey / 6))
        assert 1.0 < away < 6.0
    assert build_space(base, np.array([[1.0, 0.1, 0.1]])) == plain
    assert build_space(base, np.zeros((0, 3))) == plain


def test_ways_along_the_graph() -> None:
    distances = graph_distances(
        made([[0, 0, 0], [3, 0, 0], [3, 4, 0], [9, 9, 9]], [(0, 1), (1, 2)])
    )
    assert distances[0].tolist() == [0, 3, 7, math.inf]
    assert np.array_equal(distances, distances.T)


def test_it_is_the_same_every_time() -> None:
    one, other = (build_space(parse_graph("house", graph())) for _ in range(2))
    assert one == other
    moved = copy.deepcopy(graph())
    moved["nodes"]["room"][0] += 1.0
    assert build_space(parse_graph("house", moved)) != one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.pop("nodes"), "has no 'nodes'"),
        (lambda g: g.pop("edges"), "has no 'edges'"),
        (lambda g: g["nodes"].clear(), "has no 'nodes'"),
        (lambda g: g["nodes"].update(room=[1, 2]), "not a connectivity graph"),
        (lambda g: g["nodes"].update(room=[1, 2, None]), "not finite|not a connectivity graph"),
        (lambda g: g["nodes"].update(room=[1, 2, 2000.0]), "1 km apart"),
        (lambda g: g["nodes"].update(room=[1, 2, 1e6]), "from the origin"),
        (lambda g: g["nodes"].update(room=[1, 2, 10**400]), "not a connectivity graph"),
        (
            lambda g: g.update(nodes={n: [1e12 + x, y, z] for n, (x, y, z) in g["nodes"].items()}),
            "from the origin",
        ),
        (lambda g: g.update(nodes=dict.fromkeys(g["nodes"], [1e300] * 3)), "from the origin"),
        (lambda g: g["edges"].update(e={"nodes": ["room", "attic"]}), "joins no two of its nodes"),
        (lambda g: g["edges"].update(e={}), "not a connectivity graph"),
        (lambda g: g["edges"].update(e=5), "not a connectivity graph"),
    ],
)
def test_what_is_no_graph(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    content = copy.deepcopy(graph())
    change(content)
    write_json(tmp_path / "house.json.gz", content)
    with pytest.raises(EpisodeDataError, match=message):
        load_graph(tmp_path, "house")


def test_files_of_graphs(tmp_path: Path) -> None:
    with pytest.raises(
        EpisodeDataError, match=r"no connectivity graph of the scene 'house'.*graphs"
    ):
        load_graph(tmp_path, "house")
    listed = graph()
    listed["edges"] = list(listed["edges"].values())  # a list serves as well
    write_json(tmp_path / "house.json", listed)
    plain = load_graph(tmp_path, "house")
    assert np.array_equal(plain.edges, parse_graph("house", graph()).edges)
    (tmp_path / "house.json").write_text("[1, 2")
    with pytest.raises(EpisodeDataError, match="damaged or not JSON"):
        load_graph(tmp_path, "house")
    write_json(tmp_path / "house.json", [1])
    with pytest.raises(EpisodeDataError, match="not a connectivity graph: it is no JSON object"):
        load_graph(tmp_path, "house")


@needs_r2r
@pytest.mark.parametrize("scan", ["oLBMNvg9in8", "TbHJrupSAjP", "zsNo4HB9uLZ"])
def test_every_edge_of_a_real_scan_can_be_walked_both_ways(scan: str) -> None:
    real = load_graph(DATA / "graphs", scan)
    space = build_space(real)
    for a, b in real.nodes[real.edges]:
        assert walks(space, a, b)
        assert walks(space, b, a)
