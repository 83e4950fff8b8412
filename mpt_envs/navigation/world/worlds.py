"""`World`: everything of an episode that does not change while it is played, ready for kernels.

A record holds the key of its episode; `Worlds` gives the world of a key, made once by the source
and kept while any batch or task plays it, and for some time after. A kernel is handed a row of
addresses (`ragged`) for each world and sees it as arrays through `view`.
"""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from typing import Any, Final

import numpy as np
from numba import carray
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import inlined, kernel
from mpt_envs.navigation.world.clauses import N_COLUMNS, as_array
from mpt_envs.navigation.world.lexicon import parse_instruction
from mpt_envs.navigation.world.sources import N_THING, Episode, EpisodeSource, Scene
from mpt_envs.navigation.world.space import N_FRAME, clearance_of
from wrappers.errors import TaskError
from wrappers.ragged import pointer
from wrappers.rng import episode_key

# Columns of a row of addresses and sizes.
W_HEIGHTS: Final = 0
W_LAYERS: Final = 1
W_NZ: Final = 2
W_NX: Final = 3
W_FRAME: Final = 4
W_FIELD: Final = 5
W_OPAQUE: Final = 6
W_ROOMS: Final = 7
W_KINDS: Final = 8
W_N_KINDS: Final = 9
W_THINGS: Final = 10
W_N_THINGS: Final = 11
W_CLAUSES: Final = 12
W_N_CLAUSES: Final = 13
W_START: Final = 14
W_OPAQUE_ROWS: Final = 15  # nz, or 0 where nothing is opaque
W_ROOMS_ROWS: Final = 16
W_CLEAR: Final = 17
W_CLEAR_ROWS: Final = 18
N_WORLD: Final = 19

#: Worlds that are kept although nobody plays them, a megabyte or less each.
_KEPT: Final = 256


class World:
    """The constant part of one episode.

    Attributes:
        key: of the episode.
        scene, episode: from the source.
        distances: distance field to the goal.
        clauses: of the instruction, int32 ``(n, N_COLUMNS)``.
        row: int64 ``(N_WORLD,)``: what `view` makes arrays of. Valid as long as the world lives.

    Raises:
        TaskError: the episode cannot be played; the message says why.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "clauses",
        "distances",
        "episode",
        "key",
        "row",
        "scene",
        "start",
    )

    def __init__(
        self, key: int, scene: Scene, episode: Episode, distances: NDArray[np.float32]
    ) -> None:
        space = scene.space
        if space.locate(episode.start) is None:
            raise TaskError(
                f"episode {episode.id} in {scene.id}: nobody can stand at its start; mend its "
                "data, or leave the scene out (scans=)"
            )
        if not math.isfinite(space.distance(distances, episode.start)):
            raise TaskError(
                f"episode {episode.id} in {scene.id}: no way leads from its start to its goal; "
                "mend its data, or leave the scene out (scans=)"
            )
        self.key = key
        self.scene = scene
        self.episode = episode
        self.clauses = as_array(parse_instruction(episode.instruction))
        self.distances = np.ascontiguousarray(distances, np.float32)
        if self.distances.shape != space.heights.shape:
            raise TaskError(f"episode {episode.id}: its distances do not fit its scene")
        self.start = np.array([*episode.start, episode.heading, episode.radius], np.float64)
        nothing = (0, space.heights.shape[2])
        things = np.zeros((0, N_THING), np.float32) if scene.things is None else scene.things
        things = np.ascontiguousarray(things, np.float32)
        if scene.opaque is None:
            opaque = np.zeros(nothing, np.uint8)
        else:
            opaque = clearance_of(scene.opaque != 0)
        rooms = np.zeros(nothing, np.int8) if scene.rooms is None else scene.rooms
        rooms = np.ascontiguousarray(rooms, np.int8)
        kinds = np.zeros(1, np.int8) if scene.room_kinds is None else scene.room_kinds
        kinds = np.ascontiguousarray(kinds, np.int8)
        self._arrays = (things, opaque, rooms, kinds)
        self.row = _row(
            space.heights,
            space.frame,
            self.distances,
            opaque,
            rooms,
            kinds,
            things,
            self.clauses,
            self.start,
            space.clearance,
        )


@kernel
def _row(heights, frame, distances, opaque, rooms, kinds, things, clauses, start, clearance):
    """The row of a `World`: the addresses and sizes of its arrays."""
    row = np.zeros(N_WORLD, np.int64)
    row[W_HEIGHTS] = heights.ctypes.data
    row[W_LAYERS], row[W_NZ], row[W_NX] = heights.shape
    row[W_FRAME] = frame.ctypes.data
    row[W_FIELD] = distances.ctypes.data
    row[W_OPAQUE] = opaque.ctypes.data
    row[W_OPAQUE_ROWS] = len(opaque)
    row[W_ROOMS] = rooms.ctypes.data
    row[W_ROOMS_ROWS] = len(rooms)
    row[W_KINDS], row[W_N_KINDS] = kinds.ctypes.data, len(kinds)
    row[W_THINGS], row[W_N_THINGS] = things.ctypes.data, len(things)
    row[W_CLAUSES], row[W_N_CLAUSES] = clauses.ctypes.data, len(clauses)
    row[W_START] = start.ctypes.data
    row[W_CLEAR], row[W_CLEAR_ROWS] = clearance.ctypes.data, len(clearance)
    return row


@inlined
def view(row: Any) -> Any:
    """The arrays of a world: heights, frame, field, sight, rooms, kinds, things, clauses.

    ``sight`` is the clearance (`space.clearance_of`) of what is opaque; empty: nothing is.
    """
    return (
        carray(pointer(row[W_HEIGHTS]), (row[W_LAYERS], row[W_NZ], row[W_NX]), np.float32),
        carray(pointer(row[W_FRAME]), (N_FRAME,), np.float64),
        carray(pointer(row[W_FIELD]), (row[W_LAYERS], row[W_NZ], row[W_NX]), np.float32),
        carray(pointer(row[W_OPAQUE]), (row[W_OPAQUE_ROWS], row[W_NX]), np.uint8),
        carray(pointer(row[W_ROOMS]), (row[W_ROOMS_ROWS], row[W_NX]), np.int8),
        carray(pointer(row[W_KINDS]), (row[W_N_KINDS],), np.int8),
        carray(pointer(row[W_THINGS]), (row[W_N_THINGS], N_THING), np.float32),
        carray(pointer(row[W_CLAUSES]), (row[W_N_CLAUSES], N_COLUMNS), np.int32),
    )


@inlined
def clearance_in(row: Any) -> Any:
    """The clearance of a world's free space; empty where `space.cast_flat` does not serve."""
    return carray(pointer(row[W_CLEAR]), (row[W_CLEAR_ROWS], row[W_NX]), np.uint8)


@inlined
def start_of(row: Any) -> Any:
    """Where an episode starts: float64 (5,), see `rules.begin`."""
    return carray(pointer(row[W_START]), (5,), np.float64)


class Worlds:
    """The worlds of a source, by key; shared by all batches and tasks over that source.

    Args:
        source: of the episodes.
        kept: worlds that are kept although nobody plays them.
    """

    def __init__(self, source: EpisodeSource, kept: int = _KEPT) -> None:
        self.source = source
        self.source_word = np.uint64(int(source.digest[:16], 16))
        self._kept = kept
        self._recent: OrderedDict[int, World] = OrderedDict()
        self._alive: weakref.WeakValueDictionary[int, World] = weakref.WeakValueDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process makes the worlds again.
        return Worlds, (self.source, self._kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> Worlds:
        return self  # nothing that a reader can see ever changes

    def key_for(self, seed: int, episode: int) -> int:
        """The key of an episode of a seed: the game's own, or the one that the source chooses."""
        choose = getattr(self.source, "key_for", None)
        return int(episode_key(seed, episode) if choose is None else choose(seed, episode))

    def world(self, key: int) -> World:
        """The world of an episode key."""
        key = int(key)
        found = self._alive.get(key)
        if found is None:
            scene, episode = self.source.episode(key)
            found = World(key, scene, episode, self.source.distances(scene, episode))
            self._alive[key] = found
        self._recent[key] = found
        self._recent.move_to_end(key)
        if len(self._recent) > self._kept:
            self._recent.popitem(last=False)
        return found
