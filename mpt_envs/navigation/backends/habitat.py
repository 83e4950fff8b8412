"""R2R in continuous environments in habitat-sim: the backend "habitat" of navigation/r2r-v0.

Roles, actions, reward, texts, observation and metrics are those of the embedded simulator; where
the body comes to stand, what it collides with, and every distance that counts for a reward or a
metric is the simulator's. The navigation mesh of the scene is made a `FreeSpace` besides, on which
the rays of the observation are cast and the expert plans; without the rim of the mesh, so that no
plan leads along the very edge. A body on the rim looks and plans from the nearest place inside.

A snapshot is exact: the record of the embedded simulator (counters, the way, what metrics add up)
with the state of the simulator's body beside it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.backends.habitat_body import (
    FORWARD,
    LEFT,
    POSE_BYTES,
    RIGHT,
    Body,
    check_pose,
)
from mpt_envs.navigation.backends.navmesh import inner_space, snap
from mpt_envs.navigation.batch import expert_rows, observe_rows
from mpt_envs.navigation.data.episodes import (
    EpisodeSet,
    R2REpisode,
    chosen_split,
    data_folder,
    load_split,
)
from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules import turn as rules
from mpt_envs.navigation.rules.metrics import METRIC_NAMES, episode_metrics
from mpt_envs.navigation.rules.perception import follow, look, notice_room
from mpt_envs.navigation.rules.snapshots import check_source, is_sound
from mpt_envs.navigation.rules.summary import METRICS
from mpt_envs.navigation.task import NavigationTask
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import (
    MAX_STEPS,
    MOVER,
    ROLES,
    STEP_ANGLE,
    STOP,
    TURN_RIGHT,
    TURNER,
)
from mpt_envs.navigation.world.layout import LAYOUT_VERSION, RECORD_BYTES, key_of
from mpt_envs.navigation.world.sources import Episode, Scene
from mpt_envs.navigation.world.worlds import Worlds, view
from wrappers.errors import SnapshotError, TaskError
from wrappers.task import Phase, Snapshot, TurnResult

_RIM: Final = 12  # columns that a body may be away from the heightfield
_KEPT: Final = 16  # worlds kept besides the one in play: their distance fields are megabytes
_PAYLOAD_VERSION: Final = 1000 + LAYOUT_VERSION  # so that the two backends' are told apart


@kernel
def _notice(s: Any, f: Any, row: Any) -> None:
    """Note in which room the body is after a step; ``row`` is the world's (`worlds.view`)."""
    _, frame, _, _, rooms, _, things, _ = view(row)
    notice_room(s, f, frame, rooms, things)


@kernel
def _perceive(s: Any, f: Any, row: Any, around: bool) -> None:
    """Look, and go on in the instruction: the end of every turn."""
    _, frame, _, opaque, _, kinds, things, clauses = view(row)
    look(s, f, frame, opaque, things, around)
    follow(s, f, clauses, things, kinds)


class HabitatSource:
    """The episodes of one split, in scenes of habitat-sim; see `sources.EpisodeSource`.

    Keys are those of `r2r.R2RSource`: the same key is the same episode on both backends.

    Args:
        data, split, scans: as for `R2RSource`.
        scenes: folder of the scenes; None takes the environment variable's (`habitat_body`).

    Raises:
        ValueError: there is no such split or scene.
        EpisodeDataError: a file is missing or damaged.
    """

    name = "r2r"

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        split: str | None = None,
        scans: str | Iterable[str] | None = None,
        scenes: str | os.PathLike[str] | None = None,
    ) -> None:
        folder = data_folder(data)
        split = chosen_split(split)
        self.episodes = EpisodeSet(load_split(folder, split), scans)
        self._body = Body(scenes)
        self._arguments = (
            str(folder.resolve()),
            split,
            None if scans is None else self.episodes.scans,
            str(self._body.folder.resolve()),
        )
        hasher = hashlib.blake2b(b"habitat", digest_size=16)
        for e in self.episodes.episodes:
            text = (e.episode_id, e.scene_id, e.instruction, e.heading, e.radius, len(e.locations))
            hasher.update(repr(text).encode())
            for array in (e.start, e.goal, e.locations):
                hasher.update(array.tobytes())
        self.digest = hasher.hexdigest()
        self._scenes: dict[str, tuple[Scene, Scene]] = {}
        # Asked for twice in a row.
        self._last: tuple[Any, NDArray[np.float32] | None] = (None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return HabitatSource, self._arguments

    def __deepcopy__(self, memo: dict[int, Any]) -> HabitatSource:
        return self

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def scenes(self) -> str:
        """Folder of the scenes."""
        return str(self._body.folder)

    def key_of(self, episode_id: object) -> int:
        """The key that gives the episode of an id; ValueError: there is none."""
        return self.episodes.index_of(episode_id)

    def key_for(self, seed: int, episode: int) -> int:
        """The key of an episode: seeds of training and of evaluation share no trajectory."""
        return self.episodes.key_for(seed, episode)

    def recorded(self, key: int) -> R2REpisode:
        """All that the files say of the episode of a key."""
        return self.episodes[key if key < len(self.episodes) else self.episodes.choose(key)]

    def episode(self, key: int) -> tuple[Scene, Episode]:
        found = self.recorded(key)
        scene, start = self._place(found)
        return scene, found.placed(found.scene_id, start)

    def _place(self, found: R2REpisode) -> tuple[Scene, NDArray[np.float64]]:
        """The scene, and where its space has the start; with the rim if no way leads without."""
        for scene in self._scenes_of(found.scene_id):
            space = scene.space
            start, goal = space.nearest(found.start), space.nearest(found.goal)
            if start is None or goal is None:
                continue
            if math.isfinite(space.distance(self._field(scene, goal), start)):
                return scene, start
        raise TaskError(
            f"episode {found.episode_id}: no way leads from its start to its goal on the mesh of "
            f"{found.scene_id}; is its .navmesh the one that comes with the scene?"
        )

    def _scenes_of(self, scene_id: str) -> tuple[Scene, Scene]:
        """A scene without the rim of its mesh, and with it."""
        scenes = self._scenes.get(scene_id)
        if scenes is None:
            self._body.open(scene_id)
            whole = self._body.space()
            scenes = Scene(scene_id, inner_space(whole)), Scene(f"{scene_id} with rim", whole)
            self._scenes[scene_id] = scenes
        return scenes

    def _field(self, scene: Scene, goal: NDArray[np.float64]) -> NDArray[np.float32]:
        name = scene.id, goal.tobytes()
        if self._last[0] != name:
            self._last = name, scene.space.distances_to(goal)
        field = self._last[1]
        assert field is not None
        return field

    def distances(self, scene: Scene, episode: Episode) -> NDArray[np.float32]:
        """Distances on the `FreeSpace`, for the expert; those that count are the simulator's."""
        goal = scene.space.nearest(episode.goal)
        assert goal is not None, "`episode` found it"
        return self._field(scene, goal)


class HabitatTask(NavigationTask):
    """One episode of R2R in habitat-sim; see `NavigationTask`, whose states and actions it has.

    Args:
        source: of the episodes.
        resolution: height and width of a camera's picture for ``render("rgb_array")``; None: no
            camera, no graphics context, and the map is drawn instead.
        gpu_device: number of the graphics device of the camera.
    """

    snapshot_version = _PAYLOAD_VERSION

    def __init__(
        self,
        source: HabitatSource,
        resolution: tuple[int, int] | None = None,
        gpu_device: int = 0,
    ) -> None:
        self._source = source
        self._resolution, self._gpu_device = resolution, gpu_device
        self._body = Body(source.scenes, resolution, gpu_device)
        super().__init__(Worlds(source, kept=_KEPT))
        self.begin(self.worlds.key_for(0, 0))

    # -- dynamics ----------------------------------------------------------------------------

    def begin(self, key: int) -> None:
        super().begin(key)
        episode = self.world.episode
        self._body.open(episode.scene_id)
        self._body.place(self._source.recorded(key).start, episode.heading)
        s, f, p = self.batch.ints[0], self.batch.doubles[0], self.batch.singles[0]
        position = self._body.position
        f[at.F_X : at.F_Z + 1] = position
        p[at.PATH_32 : at.PATH_32 + 3] = position
        s[at.LAYER] = self._layer(position)
        distance = self._body.distance(position, episode.goal)
        if not math.isfinite(distance):
            raise TaskError(
                f"episode {episode.id}: no way leads from its start to its goal on the navigation "
                f"mesh of {episode.scene_id}"
            )
        f[at.F_DISTANCE] = f[at.F_SHORTEST] = distance

    def _layer(self, position: NDArray[np.float32]) -> int:
        """Layer of the heightfield that is nearest to a position."""
        x, y, z = (float(v) for v in position)
        space = self.world.scene.space
        return max(0, int(snap(space.heights, space.frame, x, y, z, _RIM)[2]))

    def _seen_from(self) -> NDArray[np.uint8]:
        """A copy of the record ``(1, RECORD_BYTES)`` whose body stands on the heightfield."""
        records = self.batch.records.copy()
        f, space = records.view(np.float64)[0], self.world.scene.space
        x, y, z = (float(v) for v in f[at.F_X : at.F_Z + 1])
        f[at.F_X], f[at.F_Z], layer = snap(space.heights, space.frame, x, y, z, _RIM)
        records.view(np.int32)[0, at.LAYER] = max(0, int(layer))
        return records

    def observe(self, agent: str) -> NDArray[np.float32]:
        if not self._observed:
            r, batch = self._seen_from(), self.batch
            views = r.view(np.int32), r.view(np.float64), r.view(np.float32)
            observe_rows(
                *views, batch.table, batch.places, batch.distances, self._observation[None]
            )
            self._observed = True
        return self._observation.copy()

    def _expert(self) -> tuple[list[float], list[int]]:
        r = self._seen_from()
        bids, actions = np.empty((1, len(ROLES))), np.empty((1, len(ROLES)), np.int64)
        expert_rows(r.view(np.int32), r.view(np.float64), self.batch.table, bids, actions)
        return bids[0].tolist(), actions[0].tolist()

    def turn(self, role: int, action: int) -> TurnResult:
        s, f = self.batch.ints[0], self.batch.doubles[0]
        self.changed()
        info: dict[str, Any] = {}
        reward = 0.0
        if s[at.DONE] == at.DONE_RUNNING:
            if role >= 0 and not rules.is_legal(role, action):
                info["illegal"] = True
                role = -1
            reward = rules.skip(s, f) if role < 0 else self._decide(role, action)
        return TurnResult(float(reward), bool(s[at.DONE] != at.DONE_RUNNING), info)

    def _decide(self, role: int, action: int) -> float:
        """`rules.act`, with the simulator's steps."""
        s, f, p = self.batch.ints[0], self.batch.doubles[0], self.batch.singles[0]
        row = self.world.row
        reward, around = 0.0, False
        rules.open_turn(s, f, role, action)
        if role == TURNER:
            steps = action + 1 if action < TURN_RIGHT else TURN_RIGHT - 1 - action
            for _ in range(abs(steps)):
                self._body.step(LEFT if steps > 0 else RIGHT)
            s[at.STEPS] += abs(steps)
            s[at.LAST_STEPS] = abs(steps)
            rules.turn(s, steps)
        elif role == MOVER:
            for _ in range(action + 1):
                if self._body.step(FORWARD):
                    s[at.COLLIDED] = 1
                s[at.STEPS] += 1
                s[at.LAST_STEPS] += 1
                position = self._body.position
                x, y, z = (float(v) for v in position)
                rules.place(s, f, p, x, y, z, self._layer(position))
                _notice(s, f, row)
            distance = self._body.distance(self._body.position, self.world.episode.goal)
            if not math.isfinite(distance):
                # The simulator finds no way from a point that is a hair off the mesh.
                distance = float(f[at.F_DISTANCE])
            reward = float(rules.close_turn(s, f, distance))
        elif action == STOP:
            return float(rules.stop(s, f))
        else:
            s[at.LOOKED] = 1
            around = True
        _perceive(s, f, row, around)
        if s[at.STEPS] >= MAX_STEPS:
            s[at.DONE] = at.DONE_STEPS
        return reward

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        payload = self.batch.records.tobytes() + self._body.pose
        return Snapshot(self.task_id, _PAYLOAD_VERSION, payload, "exact").verify()

    def restore(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(f"expected a Snapshot of a task, got {type(snapshot).__name__}")
        if snapshot.task_id == self.task_id and snapshot.version == LAYOUT_VERSION:
            raise SnapshotError(
                f"this snapshot of {self.task_id!r} was taken on the backend 'connectivity' and "
                "cannot be restored into 'habitat'; take it on the backend that restores it"
            )
        snapshot.check(self.task_id, _PAYLOAD_VERSION, RECORD_BYTES + POSE_BYTES)
        record = np.frombuffer(snapshot.payload[:RECORD_BYTES], np.uint8).copy()
        pose = snapshot.payload[RECORD_BYTES:]
        check_source(record, self.worlds)
        world = self.worlds.world(key_of(record))
        if not snapshot.verified:
            if not is_sound(record, world) or not _fits(record, pose):
                raise SnapshotError(
                    f"this snapshot holds no valid state of {self.task_id!r}: it was changed after "
                    "it was taken; take it again"
                )
            snapshot.verify()
        self._put(record, pose, world)

    def _put(self, record: NDArray[np.uint8], pose: bytes, world: Any) -> None:
        self._body.open(world.episode.scene_id)
        self._body.pose = pose
        self.batch.records[0] = record
        self.batch.refresh(0)
        self.changed()

    def clone(self) -> HabitatTask:
        twin = type(self)(self._source, self._resolution, self._gpu_device)
        twin._put(self.batch.records[0], self._body.pose, self.world)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {
            "arguments": (self._source, self._resolution, self._gpu_device),
            "payload": self.batch.records.tobytes() + self._body.pose,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["arguments"])  # type: ignore[misc]
        self.restore(Snapshot(self.task_id, _PAYLOAD_VERSION, state["payload"], "exact"))

    # -- optional parts ----------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        s, f = self.batch.ints[0], self.batch.doubles[0]
        way = at.path(self.record)
        episode = self.world.episode
        distances = np.array([self._body.distance(point, episode.goal) for point in way])
        distances[-1] = f[at.F_DISTANCE]
        found = episode_metrics(
            way,
            distances,
            bool(s[at.DONE] == at.DONE_STOPPED),
            float(f[at.F_SHORTEST]),
            episode.reference_path,
            episode.radius,
        )
        values = [*(found[name] for name in METRIC_NAMES), s[at.STEPS], s[at.COLLISIONS]]
        return dict(zip(METRICS, map(float, values), strict=True))

    def prompt(self, agent: str, phase: Phase) -> str:
        from mpt_envs.navigation.views import text

        return text.prompt(self._seen_from()[0], self.world, self._role[agent], phase)

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode == "rgb_array" and self._resolution is not None:
            return self._body.picture()
        return super().render(mode, overlay)

    def close(self) -> None:
        self._body.close()


def _fits(record: NDArray[np.uint8], pose: bytes) -> bool:
    """Whether the body of the simulator stands and looks as the record says."""
    try:
        numbers = check_pose(pose).astype(np.float64)
    except ValueError:
        return False
    s, f = at.ints(record), at.floats(record)
    if not np.array_equal(numbers[:3], f[at.F_X : at.F_Z + 1]):
        return False
    heading = f[at.F_START_HEADING] + int(s[at.HEADING]) * math.radians(STEP_ANGLE)
    away = 2 * math.atan2(numbers[5], numbers[3]) - heading
    return bool(abs(math.remainder(away, 2 * math.pi)) < 0.05)


def make_task(
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    scans: str | Iterable[str] | None = None,
    scenes: str | os.PathLike[str] | None = None,
    resolution: tuple[int, int] | None = None,
    gpu_device: int = 0,
) -> HabitatTask:
    """navigation/r2r-v0 in habitat-sim.

    Args:
        data, split, scans: as for the connectivity backend (`r2r.make_task`).
        scenes: folder that holds mp3d/X/X.glb and X.navmesh; None takes the environment variable
            MPT_HABITAT_SCENES.
        resolution: height and width of a camera's picture; None: no camera.
        gpu_device: number of the graphics device of the camera.
    """
    return HabitatTask(HabitatSource(data, split, scans, scenes), resolution, gpu_device)
