"""R2R in continuous environments as a source of episodes (`sources.EpisodeSource`).

The instruction, start pose, goal and ground truth of each episode are those of the user's files
(`episodes`); the place to walk in is built from the scan's connectivity graph (`connectivity`).
Nothing is known of what stands in a scene, so its things and rooms are None.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.files import is_folder, stamp, user_path
from mpt_envs.navigation.backends import connectivity, navmesh
from mpt_envs.navigation.backends.connectivity import GRAPHS_HOW_TO, Graph, build_space, load_graph
from mpt_envs.navigation.data.episodes import (
    EpisodeDataError,
    EpisodeSet,
    R2REpisode,
    chosen_split,
    data_folder,
    load_split,
    scan_names,
)
from mpt_envs.navigation.world.sources import Episode, Scene
from wrappers.errors import TaskError
from wrappers.task import Coverage

if TYPE_CHECKING:
    from mpt_envs.navigation.batch import NavigationBatch
    from mpt_envs.navigation.task import NavigationTask
    from mpt_envs.navigation.world.worlds import Worlds

FIELD_BYTES: Final = 256 * 2**20
"""Distance fields that a source keeps, in bytes; the least recently used one goes first."""

FARTHEST_FROM_GRAPH: Final = 5.0
"""Metres from a start or goal to the nearest node of its scan's graph; in R2R it is at most 0.8."""

_GRAPH_FOLDERS: Final = ("graphs", "connectivity", "connectivity_graphs")


def graph_folder(data: Path, graphs: str | os.PathLike[str] | None) -> Path:
    """The folder of the connectivity graphs: the keyword's, or one beside the episodes.

    Raises:
        EpisodeDataError: there is none.
    """
    if graphs is None:
        places = [data / name for name in _GRAPH_FOLDERS]
    else:
        places = [user_path("graphs", graphs, EpisodeDataError)]
    for place in places:
        if is_folder(place, EpisodeDataError):
            return place
    if graphs is not None:
        raise EpisodeDataError(f"graphs={str(graphs)!r} is not a folder. {GRAPHS_HOW_TO}")
    raise EpisodeDataError(f"there are no connectivity graphs in {data}. {GRAPHS_HOW_TO}")


class R2RSource:
    """The episodes of one split on the connectivity backend.

    The key of an episode chooses it at random; a key below the number of episodes is the index of
    the episode itself, so that all of them can be played in order (`key_of` gives it by id).

    Args:
        data: folder of the episodes; None takes the environment variable's (`episodes`).
        split: "train", "val_seen" or "val_unseen"; None takes the environment variable
            MPT_R2R_SPLIT, or "val_unseen".
        scans: names of the scenes to keep; None keeps all.
        graphs: folder of the connectivity graphs; None: ``graphs/`` in the folder of the episodes.

    Raises:
        ValueError: there is no such split or scene.
        EpisodeDataError: a file is missing or damaged.

    Attributes:
        episodes: the episodes, an `EpisodeSet`.
        unreachable: why no way leads from start to goal, by the id of the episode. Such an episode
            is never drawn; asked for by its id, it is an error.
        coverage: how many of the episodes can be drawn.
    """

    name = "r2r"

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        split: str | None = None,
        scans: Iterable[str] | None = None,
        graphs: str | os.PathLike[str] | None = None,
    ) -> None:
        folder = data_folder(data)
        split = chosen_split(split)
        everything = load_split(folder, split)
        self.episodes = EpisodeSet(everything, scans)
        place = graph_folder(folder, graphs)
        self._graphs = {scan: load_graph(place, scan) for scan in self.episodes.scans}
        # All episodes of the split, so that a scene is the same whatever the filters.
        self.unreachable: dict[str, str] = {}
        places: dict[str, list[NDArray[np.float64]]] = {scan: [] for scan in self._graphs}
        for found in everything:
            if found.scan in self._graphs:
                why = _why_unreachable(found, self._graphs[found.scan])
                if why:
                    self.unreachable[found.episode_id] = why
                else:
                    places[found.scan] += (found.start, found.goal)
        self._viewpoints = {scan: np.reshape(ends, (-1, 3)) for scan, ends in places.items()}
        lost = self.episodes.leave_out(self.unreachable, folder)
        self.coverage = Coverage(len(self.episodes) - lost, len(self.episodes))
        self._arguments = (
            str(folder.resolve()),
            split,
            None if scans is None else self.episodes.scans,
            str(place.resolve()),
        )
        self.split = split
        self.digest = _digest(self.episodes, self._graphs, self._viewpoints)
        self._scenes: dict[str, Scene] = {}
        self._fields: OrderedDict[tuple[str, bytes], NDArray[np.float32]] = OrderedDict()
        self._field_bytes = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return r2r_source, self._arguments

    def __deepcopy__(self, memo: dict[int, Any]) -> R2RSource:
        return self  # nothing that a reader can see ever changes

    def __len__(self) -> int:
        return len(self.episodes)

    def key_of(self, episode_id: object) -> int:
        """The key that gives the episode of an id.

        Raises:
            ValueError: there is no such episode.
        """
        return self.episodes.index_of(episode_id)

    def key_for(self, seed: int, episode: int) -> int:
        """The key of an episode: seeds of training and of evaluation share no trajectory."""
        return self.episodes.key_for(seed, episode)

    def recorded(self, key: int) -> R2REpisode:
        """All that the files say of the episode of a key."""
        return self.episodes[key if key < len(self.episodes) else self.episodes.choose(key)]

    def episode(self, key: int) -> tuple[Scene, Episode]:
        found = self.recorded(key)
        if found.episode_id in self.unreachable:
            why = self.unreachable[found.episode_id]
            raise TaskError(f"episode {found.episode_id} cannot be played: {why}")
        scene = self.scene(found.scan)
        start = np.array(found.start)
        at = scene.space.locate(start)
        if at is not None:
            start[1] = scene.space.heights[at]  # the floor here, a few centimetres off the mesh's
        return scene, found.placed(found.scan, start)

    def scene(self, scan: str) -> Scene:
        """The scene of a scan, built when it is first asked for."""
        scene = self._scenes.get(scan)
        if scene is None:
            space = build_space(self._graphs[scan], self._viewpoints[scan])
            scene = self._scenes[scan] = Scene(scan, space, plan=self._graphs[scan])
        return scene

    def distances(self, scene: Scene, episode: Episode) -> NDArray[np.float32]:
        name = scene.id, episode.goal.tobytes()
        field = self._fields.get(name)
        if field is not None:
            self._fields.move_to_end(name)
            return field
        field = scene.space.distances_to(episode.goal)
        self._fields[name] = field
        self._field_bytes += field.nbytes
        while self._field_bytes > FIELD_BYTES and len(self._fields) > 1:
            self._field_bytes -= self._fields.popitem(last=False)[1].nbytes
        return field


def _why_unreachable(episode: R2REpisode, graph: Graph) -> str:
    """Why no way along the graph leads from start to goal; empty: one does."""
    reached = []
    for name, place in (("start", episode.start), ("goal", episode.goal)):
        away = np.linalg.norm(graph.nodes - place, axis=1)
        reached.append(graph.parts[int(away.argmin())])
        if away.min() > FARTHEST_FROM_GRAPH:
            return (
                f"its {name} is {away.min():.0f} m from the nearest node of the graph of "
                f"{episode.scan}; are episodes and graphs of the same release?"
            )
    if reached[0] != reached[1]:
        return (
            f"no way leads from its start to its goal in the graph of {episode.scan}; are episodes "
            "and graphs of the same release?"
        )
    return ""


def _digest(
    episodes: EpisodeSet, graphs: dict[str, Graph], viewpoints: dict[str, NDArray[np.float64]]
) -> str:
    """Digest of all that episodes and scenes are made from."""
    hasher = hashlib.blake2b(digest_size=16)
    geometry = (
        connectivity.CELL,
        connectivity.CORRIDOR,
        connectivity.DISC,
        navmesh.MERGE,
        connectivity.STEP,
        connectivity.STEEP,
        connectivity.DETOUR,
        connectivity.TOUCH,
        connectivity.WALL,
    )
    hasher.update(repr(geometry).encode())
    for scan in episodes.scans:
        hasher.update(scan.encode())
        for array in (graphs[scan].nodes, graphs[scan].edges, viewpoints[scan]):
            hasher.update(repr(array.shape).encode())
            hasher.update(array.tobytes())
    for e in episodes.episodes:
        text = (e.episode_id, e.scan, e.instruction, e.heading, e.radius, len(e.locations))
        hasher.update(repr(text).encode())
        for array in (e.start, e.goal, e.locations):
            hasher.update(array.tobytes())
    return hasher.hexdigest()


def r2r_source(
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    scans: str | Iterable[str] | None = None,
    graphs: str | os.PathLike[str] | None = None,
) -> R2RSource:
    """An `R2RSource`; the same one for the same arguments and unchanged files, within a process."""
    names = None if scans is None else scan_names(scans)
    folder = data_folder(data)
    place = None if graphs is None else graph_folder(folder, graphs)
    state = _state_of(folder, *([] if place is None else [place]))
    named = None if place is None else str(place)
    return _shared(str(folder), chosen_split(split), names, named, state)


@functools.lru_cache(maxsize=8)
def _shared(
    data: str, split: str, scans: tuple[str, ...] | None, graphs: str | None, state: Any
) -> R2RSource:
    return R2RSource(data, split, scans, graphs)


def _state_of(*folders: Path) -> tuple[Any, ...]:
    """Names, sizes and times of the files, so that changed ones are read again."""
    return tuple(
        (str(path), stamp(path))
        for folder in folders
        for path in sorted((*folder.glob("*.json*"), *folder.glob("*/*.json*")))
    )


def make_task(
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    scans: str | Iterable[str] | None = None,
    graphs: str | os.PathLike[str] | None = None,
) -> NavigationTask:
    """navigation/r2r-v0 on the connectivity backend, one episode at a time.

    Args:
        data: folder of the episodes; None takes the environment variable MPT_R2R_DATA.
        split: "train", "val_seen" or "val_unseen"; None takes the environment variable
            MPT_R2R_SPLIT, or "val_unseen".
        scans: names of the scenes to keep; None keeps all.
        graphs: folder of the connectivity graphs; None: ``graphs/`` in the folder of the episodes.
    """
    from mpt_envs.navigation.task import NavigationTask

    return NavigationTask(_worlds(r2r_source(data, split, scans, graphs)))


def make_batch(
    num_envs: int,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    scans: str | Iterable[str] | None = None,
    graphs: str | os.PathLike[str] | None = None,
) -> NavigationBatch:
    """``num_envs`` episodes of navigation/r2r-v0 as a `BatchTask`; arguments as for `make_task`."""
    from mpt_envs.navigation.batch import NavigationBatch

    return NavigationBatch(_worlds(r2r_source(data, split, scans, graphs)), num_envs)


@functools.lru_cache(maxsize=8)
def _worlds(source: R2RSource) -> Worlds:
    """The worlds of a source, shared by all tasks and batches over it."""
    from mpt_envs.navigation.world.worlds import Worlds

    return Worlds(source)
