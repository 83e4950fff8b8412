"""Where episodes come from: `Scene`, `Episode`, and the `EpisodeSource` that gives both for a key.

Generated floorplans and files of recorded episodes are sources of one and the same simulator: what
it needs is a place to walk in, what can be seen in it, where the body starts, where it should end,
and the instruction that says so in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world.space import FreeSpace

#: Things of a scene that are remembered once they were seen: one bit each.
MAX_THINGS: Final = 64
#: Columns of `Scene.things`.
T_KIND: Final = 0  # index into facts.THINGS
T_X: Final = 1
T_Y: Final = 2
T_Z: Final = 3
T_RADIUS: Final = 4  # how much nearer than its centre one can get, in metres
T_ROOM_A: Final = 5  # number of the room that it stands in; of a door: of both its rooms
T_ROOM_B: Final = 6
N_THING: Final = 7


@dataclass(frozen=True, eq=False)
class Scene:
    """A place with what can be seen in it; shared by the episodes that take place there.

    Attributes:
        id: name of the scene.
        space: where a body can stand.
        things: float32 ``(n, N_THING)``, n at most `MAX_THINGS`: doors and landmarks, by the
            columns ``T_...``. None where nothing is known of what stands there.
        opaque: uint8 ``(nz, nx)``, on the columns of ``space``: 1 where nobody can see through
            (walls; furniture is lower than the eyes). None: one can see as far as one can walk.
        rooms: int8 ``(nz, nx)``: number of the room at each column, from 1 on; 0: none, or not
            known. None: nothing is known of rooms.
        room_kinds: int8 ``(rooms + 1,)``: kind of each room by its number, index into facts.ROOMS.
        plan: what only a picture needs.
    """

    id: str
    space: FreeSpace
    things: NDArray[np.float32] | None = None
    opaque: NDArray[np.uint8] | None = None
    rooms: NDArray[np.int8] | None = None
    room_kinds: NDArray[np.int8] | None = None
    plan: Any = None

    def __post_init__(self) -> None:
        shape = self.space.heights.shape[1:]
        things = self.things
        if things is not None and (
            things.ndim != 2 or things.shape[1] != N_THING or len(things) > MAX_THINGS
        ):
            raise ValueError(
                f"things must be (at most {MAX_THINGS}, {N_THING}), got {things.shape}"
            )
        for name in ("opaque", "rooms"):
            grid = getattr(self, name)
            if grid is not None and grid.shape != shape:
                raise ValueError(f"{name} must be {shape} like the space, got {grid.shape}")
        count = 0 if self.room_kinds is None else len(self.room_kinds)
        most = 0 if self.rooms is None else int(self.rooms.max())
        least = 0 if self.rooms is None else int(self.rooms.min())
        if things is not None and len(things):
            most = max(most, int(things[:, T_ROOM_A:].max()))
            least = min(least, int(things[:, T_ROOM_A:].min()))
        if least < 0 or (most and most >= count):
            raise ValueError(f"rooms {least} to {most} are named, but there are {count} room_kinds")


@dataclass(frozen=True, eq=False)
class Episode:
    """One task in a scene.

    Attributes:
        id: name of the episode.
        scene_id: name of its scene.
        start: float64 ``(3,)``: x, y, z in metres (Habitat's frame, y up), where a body can stand.
        heading: radians, 0 looks along -z, growing to the left.
        goal: float64 ``(3,)``.
        radius: metres around the goal within which a stop is a success.
        instruction: in English.
        reference: `reference_path`, or what makes it when it is asked for: an episode that is only
            played, as in training, never needs it.
        described: the same for `instruction_path`; None: there is none.
    """

    id: str
    scene_id: str
    start: NDArray[np.float64]
    heading: float
    goal: NDArray[np.float64]
    radius: float
    instruction: str
    reference: NDArray[np.float64] | Callable[[], NDArray[np.float64]]
    described: NDArray[np.float64] | Callable[[], NDArray[np.float64]] | None = None

    @cached_property
    def reference_path(self) -> NDArray[np.float64]:
        """The ground truth that paths are compared with (nDTW): float64 ``(n, 3)``."""
        return self.reference() if callable(self.reference) else self.reference

    @cached_property
    def instruction_path(self) -> NDArray[np.float64] | None:
        """The way that the instruction describes, for pictures: float64 ``(m, 3)``."""
        return self.described() if callable(self.described) else self.described


@runtime_checkable
class EpisodeSource(Protocol):
    """Gives the episode of a key; the same for the same key, in every process.

    A source may keep scenes and distance fields that many episodes share. One over a fixed stock of
    episodes also has ``key_for(seed, episode)``, so that the seeds of training, development and
    evaluation draw from different ones (`mpt_envs.splits`), and may have a ``coverage`` (see
    `TurnTask`).

    Attributes:
        name: the part of the task's id after ``navigation/``, without version.
        digest: hexadecimal digest of everything that the episodes depend on (the files, the
            options). A snapshot is restored only into a task whose source has the same one.
    """

    name: str
    digest: str

    def episode(self, key: int) -> tuple[Scene, Episode]:
        """The episode of an episode key (any number from 0 to 2**64 - 1).

        Raises:
            Exception: of the source's own, if it cannot be made; the message says what to do.
        """
        ...

    def distances(self, scene: Scene, episode: Episode) -> NDArray[np.float32]:
        """The distance field to the goal: ``scene.space.distances_to(episode.goal)``, or a cached
        one.
        """
        ...


class Sequenced:
    """A source over a list of episodes of known scenes: the key picks one of them.

    For tests and for worlds of one's own.

    Args:
        name: see `EpisodeSource`.
        episodes: scene and episode, at least one.
    """

    def __init__(self, name: str, episodes: Sequence[tuple[Scene, Episode]]) -> None:
        if not episodes:
            raise ValueError("give at least one episode")
        self.name = name
        self.digest = episodes[0][0].space.digest
        self._episodes = tuple(episodes)

    def episode(self, key: int) -> tuple[Scene, Episode]:
        return self._episodes[key % len(self._episodes)]

    def distances(self, scene: Scene, episode: Episode) -> NDArray[np.float32]:
        return scene.space.distances_to(episode.goal)
