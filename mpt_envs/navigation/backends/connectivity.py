"""Continuous free space from a scan's connectivity graph, without any mesh.

The graph of a scan has viewpoints in Habitat's frame as nodes, and an edge where one can walk
straight from one to the other. What is free around them is not in it, so it is built: a disc around
each node, a corridor along each edge, and the triangle between three nodes that are joined pairwise
(all three see each other, so the middle of a room is free too). Edges that climb are stairs. Where
two of these come close that are far apart along the graph, a wall stands between them: else one
could walk from room to room where the graph goes round. The result is a `FreeSpace`: storeys and
stairs become layers of its columns.

Heights are averages of what covers a column, weighted towards the nearest node, edge or triangle;
what lies further apart than `MERGE` is another layer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.backends.navmesh import stack_layers
from mpt_envs.navigation.data.episodes import FARTHEST, EpisodeDataError, find_file, read_json
from mpt_envs.navigation.world.space import FreeSpace

CELL: Final = 0.1
"""Width of a column in metres."""

CORRIDOR: Final = 0.4
"""Half the width of the corridor along an edge, in metres."""

DISC: Final = 0.5
"""Radius of the disc around a node, in metres."""

STEP: Final = 0.3
"""Largest step between neighbouring columns, in metres (see `FreeSpace`)."""

STEEP: Final = 2.0
"""Steepest edge, in metres of height per metre of ground, that is taken for a way."""

DETOUR: Final = 2.0
"""Metres by which the way along the graph is longer where there is a wall between two places."""

TOUCH: Final = 0.3
"""Edges that come closer than this, in metres, have no wall between them."""

WALL: Final = 0.2
"""Thickness of the walls that part what is far apart along the graph, in metres."""

_SHARP: Final = 0.05  # metres from a node or edge within which it alone fixes the height

GRAPHS_HOW_TO: Final = (
    "The connectivity backend needs one file SCAN.json.gz (or .json) per scan, with 'nodes' (id -> "
    "[x, y, z] in Habitat's frame) and 'edges' (each with 'nodes', 'start_coor' and 'end_coor'), "
    "in the folder graphs/ beside the episodes, or in the folder that graphs= names."
)


@dataclass(frozen=True, eq=False)
class Graph:
    """A scan's connectivity graph.

    Attributes:
        scan: the scan's name.
        nodes: ``float64 (N, 3)`` metres, y up.
        edges: ``int64 (E, 2)`` indices of nodes, the lower one first, each pair once.
    """

    scan: str
    nodes: NDArray[np.float64]
    edges: NDArray[np.int64]

    @functools.cached_property
    def distances(self) -> NDArray[np.float64]:
        """See `graph_distances`."""
        return graph_distances(self)

    @functools.cached_property
    def parts(self) -> NDArray[np.int64]:
        """Of each node the number of the part it is in; no way leads from one to another."""
        first: NDArray[np.int64] = np.isfinite(self.distances).argmax(axis=1)
        return first


def parse_graph(scan: str, content: Any) -> Graph:
    """A graph from the content of its file.

    Raises:
        ValueError: the content is no graph.
    """
    if not isinstance(content, Mapping):
        raise ValueError("it is no JSON object")
    for name in ("nodes", "edges"):
        if not content.get(name):
            raise ValueError(f"it has no {name!r}")
    names = {str(name): index for index, name in enumerate(content["nodes"])}
    nodes = np.array(list(content["nodes"].values()), np.float64)
    if nodes.ndim != 2 or nodes.shape[1] != 3 or not np.isfinite(nodes).all():
        raise ValueError("its nodes are not finite triples")
    if np.abs(nodes).max() > FARTHEST:
        raise ValueError(f"a node is more than {FARTHEST:.0f} m from the origin")
    if np.ptp(nodes, axis=0).max() > 1000:
        raise ValueError("its nodes are more than 1 km apart")
    edges = content["edges"]
    edges = edges.values() if isinstance(edges, Mapping) else edges
    pairs = set()
    for edge in edges:
        ends = [names.get(str(name), -1) for name in edge["nodes"]]
        if len(ends) != 2 or min(ends) < 0:
            raise ValueError(f"its edge {edge['nodes']} joins no two of its nodes")
        if ends[0] != ends[1]:
            pairs.add((min(ends), max(ends)))
    nodes.setflags(write=False)
    return Graph(scan, nodes, np.array(sorted(pairs), np.int64).reshape(-1, 2))


def load_graph(folder: Path, scan: str) -> Graph:
    """Read a scan's graph.

    Raises:
        EpisodeDataError: there is none, or it is damaged.
    """
    path = find_file(folder, (scan,))
    if path is None:
        raise EpisodeDataError(
            f"{folder} has no connectivity graph of the scene {scan!r}. {GRAPHS_HOW_TO}"
        )
    try:
        return parse_graph(scan, read_json(path))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, EpisodeDataError):
            raise
        raise EpisodeDataError(f"{path} is not a connectivity graph: {error}") from error


def graph_distances(graph: Graph) -> NDArray[np.float64]:
    """Shortest ways along the edges between all nodes: ``float64 (N, N)``, inf: none."""
    count = len(graph.nodes)
    distances = np.full((count, count), np.inf)
    np.fill_diagonal(distances, 0.0)
    a, b = graph.edges.T
    distances[a, b] = distances[b, a] = np.linalg.norm(graph.nodes[a] - graph.nodes[b], axis=1)
    for via in range(count):
        np.minimum(distances, distances[:, via, None] + distances[None, via], out=distances)
    return distances


def triangles(graph: Graph) -> list[tuple[int, int, int]]:
    """All triples of nodes that are joined pairwise, in order."""
    joined: list[set[int]] = [set() for _ in graph.nodes]
    for a, b in graph.edges.tolist():
        joined[a].add(b)
    return [(a, b, c) for a, b in graph.edges.tolist() for c in sorted(joined[a] & joined[b])]


class _Raster:
    """Collects which heights cover which columns, and how near to the middle."""

    def __init__(self, graph: Graph, margin: float) -> None:
        self.graph = graph
        self.nodes = nodes = graph.nodes
        low = np.floor((nodes[:, [0, 2]].min(axis=0) - margin) / CELL) - 1
        high = np.ceil((nodes[:, [0, 2]].max(axis=0) + margin) / CELL) + 1
        self.origin = (float(low[0] * CELL), float(low[1] * CELL))
        self.nx, self.nz = (int(n) for n in high - low)
        self._columns: list[NDArray[np.int64]] = []
        self._heights: list[NDArray[np.float64]] = []
        self._away: list[NDArray[np.float64]] = []
        self._owners: list[NDArray[np.int64]] = []
        #: Up to three nodes of each disc, corridor and triangle; the last is repeated.
        self.shapes: list[tuple[int, int, int]] = []

    def centres(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Indices and centres (x, z) of the columns in a rectangle."""
        ix = np.arange(
            max(1, math.floor((low[0] - self.origin[0]) / CELL)),
            min(self.nx - 1, math.ceil((high[0] - self.origin[0]) / CELL) + 1),
        )
        iz = np.arange(
            max(1, math.floor((low[1] - self.origin[1]) / CELL)),
            min(self.nz - 1, math.ceil((high[1] - self.origin[1]) / CELL) + 1),
        )
        zz, xx = np.repeat(iz, len(ix)), np.tile(ix, len(iz))
        return (
            zz * self.nx + xx,
            self.origin[0] + (xx + 0.5) * CELL,
            self.origin[1] + (zz + 0.5) * CELL,
        )

    def add(
        self,
        columns: NDArray[np.int64],
        heights: NDArray[np.float64],
        away: NDArray[np.float64],
        covered: NDArray[np.bool_],
        shape: tuple[int, int, int],
    ) -> None:
        self._columns.append(columns[covered])
        self._heights.append(heights[covered])
        self._away.append(away[covered])
        self._owners.append(np.full(int(covered.sum()), len(self.shapes)))
        self.shapes.append(shape)

    def segment(self, first: int, second: int, radius: float) -> None:
        """The columns within a radius of an edge (of a node, where both are the same)."""
        a, b = self.nodes[first], self.nodes[second]
        ends = np.stack([a, b])[:, [0, 2]]
        columns, x, z = self.centres(ends.min(axis=0) - radius, ends.max(axis=0) + radius)
        dx, dz = b[0] - a[0], b[2] - a[2]
        length = dx * dx + dz * dz
        along = ((x - a[0]) * dx + (z - a[2]) * dz) / length if length > 0 else np.zeros(len(x))
        along = np.clip(along, 0.0, 1.0)
        away = np.hypot(a[0] + along * dx - x, a[2] + along * dz - z)
        self.add(
            columns, a[1] + along * (b[1] - a[1]), away, away <= radius, (first, second, second)
        )

    def triangle(self, corners: tuple[int, int, int]) -> None:
        """The columns between three nodes."""
        a, b, c = self.nodes[list(corners)]
        area = (b[0] - a[0]) * (c[2] - a[2]) - (c[0] - a[0]) * (b[2] - a[2])
        if abs(area) < 1e-6:
            return
        flat = np.stack([a, b, c])[:, [0, 2]]
        columns, x, z = self.centres(flat.min(axis=0), flat.max(axis=0))
        u = ((x - a[0]) * (c[2] - a[2]) - (c[0] - a[0]) * (z - a[2])) / area
        v = ((b[0] - a[0]) * (z - a[2]) - (x - a[0]) * (b[2] - a[2])) / area
        inside = (u >= 0) & (v >= 0) & (u + v <= 1)
        height = a[1] + u * (b[1] - a[1]) + v * (c[1] - a[1])
        self.add(columns, height, np.zeros(len(x)), inside, corners)

    def layers(self) -> NDArray[np.float32]:
        """Heights ``(K, nz, nx)``: the layers of a column from the lowest up."""
        columns = np.concatenate(self._columns)
        heights = np.concatenate(self._heights)
        away = np.concatenate(self._away)
        owners = np.concatenate(self._owners)
        shapes = np.array(self.shapes)
        # An edge nearby knows the height better than the plane between three nodes does.
        is_plane = (shapes[:, 1] != shapes[:, 2])[owners]
        spread = np.where(is_plane, CORRIDOR, away)
        weights = 1.0 / (spread * spread + _SHARP * _SHARP) ** 2
        out, where = stack_layers(columns, heights, weights, self.nz * self.nx)
        # What is nearest to a place has it; where another one that is far by any way comes as near,
        # there is a wall between the two.
        order = np.lexsort((away, where))
        first = np.ones(len(order), bool)
        first[1:] = where[order][1:] != where[order][:-1]
        nearest = np.empty(len(order), np.int64)
        nearest[order] = order[first][np.cumsum(first) - 1]
        close = np.flatnonzero(away < away[nearest] + WALL)
        pairs, which = np.unique(
            owners[close] * len(shapes) + owners[nearest[close]], return_inverse=True
        )
        apart = _apart(self.graph, shapes, pairs // len(shapes), pairs % len(shapes))
        out.reshape(-1)[where[close[apart[which]]]] = np.nan
        return out.reshape(-1, self.nz, self.nx)


def _apart(
    graph: Graph, shapes: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pairs of shapes have a wall between them.

    Those that are much further apart along the graph than straight, and do not touch.

    Args:
        graph: the graph.
        shapes: ``(S, 3)`` corners of each shape.
        first, second: ``(P,)`` indices of shapes.
    """
    a, b = shapes[first], shapes[second]
    along = graph.distances[a[:, :, None], b[:, None, :]].min(axis=(1, 2))
    straight = _straight(graph.nodes[:, [0, 2]][a], graph.nodes[:, [0, 2]][b])
    return (straight > TOUCH) & (along > straight + DETOUR)


def _straight(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances between triangles ``(P, 3, 2)``, 0 where they overlap: ``(P,)``."""
    sides = ((0, 1), (1, 2), (2, 0))
    least = np.full(len(first), np.inf)
    for one, other in ((first, second), (second, first)):
        for corner in range(3):
            p = other[:, corner]
            for i, j in sides:
                a, d = one[:, i], one[:, j] - one[:, i]
                length = np.maximum((d * d).sum(axis=1), 1e-12)
                t = np.clip(((p - a) * d).sum(axis=1) / length, 0.0, 1.0)[:, None]
                np.minimum(least, np.linalg.norm(a + t * d - p, axis=1), out=least)
            turns = np.stack([np.sign(_side(one[:, i], one[:, j], p)) for i, j in sides])
            least[np.abs(turns.sum(axis=0)) == 3] = 0.0  # the corner is inside
    for i, j in sides:
        for k, m in sides:
            a, b, p, q = first[:, i], first[:, j], second[:, k], second[:, m]
            crossing = _side(a, b, p) * _side(a, b, q) < 0
            crossing &= _side(p, q, a) * _side(p, q, b) < 0
            least[crossing] = 0.0
    return least


def _side(
    a: NDArray[np.float64], b: NDArray[np.float64], p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """On which side of the lines from a to b points lie, by sign; all are ``(P, 2)``."""
    along, to = b - a, p - a
    return along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0]


def build_space(graph: Graph, viewpoints: NDArray[np.float64] | None = None) -> FreeSpace:
    """The free space around a graph.

    Args:
        graph: the scan's graph.
        viewpoints: ``float64 (V, 3)`` further places where one can stand. Those that lie outside
            of the space around the graph are joined to the nearest node.
    """
    space = _space(graph)
    if viewpoints is None or not len(viewpoints):
        return space
    outside = [point for point in viewpoints if space.locate(point) is None]
    if not outside:
        return space
    # A difference in height counts more than a distance: the nearest node of the same storey.
    scale = np.array([1.0, 4.0, 1.0])
    nodes, edges = [*graph.nodes], [*graph.edges]
    for point in outside:
        away = np.linalg.norm((graph.nodes - point) * scale, axis=1)
        edges.append(np.array([int(away.argmin()), len(nodes)]))
        nodes.append(point)
    return _space(Graph(graph.scan, np.array(nodes), np.array(edges)))


def _space(graph: Graph) -> FreeSpace:
    raster = _Raster(graph, max(DISC, CORRIDOR) + CELL)
    for node in range(len(graph.nodes)):
        raster.segment(node, node, DISC)
    for first, second in graph.edges.tolist():
        a, b = graph.nodes[first], graph.nodes[second]
        if abs(b[1] - a[1]) <= STEEP * math.hypot(b[0] - a[0], b[2] - a[2]):
            raster.segment(first, second, CORRIDOR)
    for corners in triangles(graph):
        raster.triangle(corners)
    return FreeSpace(raster.layers(), raster.origin, CELL, STEP)
