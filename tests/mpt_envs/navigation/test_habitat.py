"""The adapter over habitat-sim: frames, turns, poses, snapshots, and what is said when it lacks.

The simulator itself is installed by conda only. Here a double with its documented interface stands
in for it; the test at the end runs where the real one and a scene are at hand.
"""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.navigation.data.episodes import EpisodeDataError
from mpt_envs.testing import TaskContractTests
from tests.mpt_envs.navigation.fake_habitat_sim import Simulator
from tests.mpt_envs.navigation.habitat import (
    adapter,
    double,
    house_space,
    put_double,
    write_scene,
)
from tests.mpt_envs.navigation.r2r_data import (
    NODES,
    ROUTES,
    episode,
    truth,
    write_house,
    write_json,
)
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot, TurnTask

__all__ = ["double"]

R2R = "navigation/r2r-v0"
FOLDER = tempfile.TemporaryDirectory(prefix="house")
HOUSE = write_house(Path(FOLDER.name))
SCENES = write_scene(HOUSE / "scenes")


@pytest.fixture
def world(double: ModuleType, tmp_path: Path) -> Any:
    world = adapter("habitat_body").Body(write_scene(tmp_path / "scenes"))
    world.open("mp3d/house/house.glb")
    return world


# -- the body ------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [0, 45, 90, 200, 345])
def test_headings_survive_the_quaternion(world: Any, degrees: int) -> None:
    world.place(NODES["hall_m"], math.radians(degrees))
    assert world.heading == pytest.approx(math.radians(degrees), abs=1e-5)
    assert world.position.tolist() == np.float32(NODES["hall_m"]).tolist()


def test_left_is_left_and_forward_is_where_the_body_looks(world: Any) -> None:
    w = adapter("habitat_body")
    world.place(NODES["hall_m"], 0.0)
    assert not world.step(w.FORWARD)  # along -z, towards the room
    assert np.allclose(world.position - np.float32(NODES["hall_m"]), [0, 0, -0.25], atol=1e-6)
    for _ in range(6):
        assert not world.step(w.LEFT)
    assert math.degrees(world.heading) == pytest.approx(90, abs=1e-3)
    world.place(NODES["hall_m"], world.heading)
    world.step(w.FORWARD)  # along -x
    assert np.allclose(world.position - np.float32(NODES["hall_m"]), [-0.25, 0, 0], atol=1e-6)
    for _ in range(12):
        world.step(w.RIGHT)
    assert math.degrees(world.heading) == pytest.approx(270, abs=1e-3)
    world.step(w.FORWARD)
    assert np.allclose(world.position - np.float32(NODES["hall_m"]), [0, 0, 0], atol=1e-6)


def test_walls_stop_the_body_and_say_so(world: Any) -> None:
    w = adapter("habitat_body")
    world.place(NODES["hall_w"], math.pi / 2)  # towards the end of the hall
    collisions = [world.step(w.FORWARD) for _ in range(6)]
    assert collisions[0] is False
    assert collisions[-1] is True
    assert world.position[0] > -0.7


def test_a_pose_is_put_back_to_the_bit(world: Any) -> None:
    w = adapter("habitat_body")
    rng = np.random.default_rng(0)
    world.place(NODES["hall_w"], 4.5)
    for _ in range(30):
        world.step((w.FORWARD, w.LEFT, w.RIGHT)[rng.integers(3)])
    pose = world.pose
    assert len(pose) == w.POSE_BYTES

    def future() -> list[bytes]:
        play = np.random.default_rng(1)
        poses = []
        for _ in range(40):
            world.step((w.FORWARD, w.LEFT, w.RIGHT)[play.integers(3)])
            poses.append(world.pose)
        return poses

    first = future()
    world.pose = pose
    assert world.pose == pose
    assert future() == first
    # In another simulator too.
    other = w.Body(world.folder)
    other.open("mp3d/house/house.glb")
    other.pose = pose
    world = other
    assert future() == first


@pytest.mark.parametrize(
    "pose",
    [b"", b"\0" * 28, np.full(7, np.nan, np.float32).tobytes(), np.ones(7, np.float32).tobytes()],
)
def test_what_is_no_pose(world: Any, pose: bytes) -> None:
    before = world.pose
    with pytest.raises(ValueError, match="pose"):
        world.pose = pose
    assert world.pose == before


# -- the scene -----------------------------------------------------------------------------------


def test_distances_are_those_of_the_mesh(world: Any) -> None:
    space = house_space()
    for start, goal in (("hall_w", "room"), ("hall_w", "loft")):
        wanted = space.distance(space.distances_to(NODES[goal]), NODES[start])
        assert world.distance(NODES[start], NODES[goal]) == pytest.approx(wanted, abs=1e-3)
    assert world.distance(NODES["hall_w"], NODES["cellar"]) == math.inf
    # What policies observe is the same place, to within a column.
    field = world.space().distances_to(NODES["loft"])
    assert world.space().distance(field, NODES["hall_w"]) == pytest.approx(
        world.distance(NODES["hall_w"], NODES["loft"]), abs=0.5
    )
    assert world.space() is world.space()


def test_one_simulator_goes_from_scene_to_scene(world: Any, tmp_path: Path) -> None:
    write_scene(tmp_path / "scenes", "twin")
    world.open("mp3d/twin/twin.glb")
    world.open("mp3d/twin/twin.glb")
    assert len(Simulator.opened) == 1
    world.close()
    assert Simulator.opened[0].closed
    world.close()
    world.open("mp3d/house/house.glb")
    assert len(Simulator.opened) == 2


def test_without_a_camera_there_is_no_renderer(world: Any) -> None:
    configuration = Simulator.opened[0].config
    assert configuration.sim_cfg.create_renderer is False
    assert configuration.sim_cfg.gpu_device_id == -1
    assert configuration.agents[0].sensor_specifications == []
    assert configuration.sim_cfg.allow_sliding is True
    assert (configuration.agents[0].height, configuration.agents[0].radius) == (1.5, 0.1)


def test_the_camera(double: ModuleType, tmp_path: Path) -> None:
    world = adapter("habitat_body").Body(write_scene(tmp_path), resolution=(48, 64))
    world.open("mp3d/house/house.glb")
    assert Simulator.opened[0].config.sim_cfg.create_renderer is True
    picture = world.picture()
    assert picture.shape == (48, 64, 3)
    assert picture.dtype == np.uint8


@pytest.mark.parametrize("place", ["mp3d/house", "house", ""])
def test_scenes_are_found_under_shorter_names_too(
    double: ModuleType, tmp_path: Path, place: str
) -> None:
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "house.glb").write_bytes(b"glb")
    found = adapter("habitat_body").scene_file(tmp_path, "mp3d/house/house.glb")
    assert found == tmp_path / place / "house.glb"


def test_what_is_said_of_missing_scenes(
    double: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = adapter("habitat_body")
    monkeypatch.delenv(w.SCENES_VARIABLE, raising=False)
    with pytest.raises(EpisodeDataError, match=r"needs scenes.*Matterport3D"):
        w.Body()
    with pytest.raises(EpisodeDataError, match="is not a folder"):
        w.Body(tmp_path / "nowhere")
    monkeypatch.setenv(w.SCENES_VARIABLE, str(write_scene(tmp_path / "s", with_mesh=False)))
    world = w.Body()
    with pytest.raises(EpisodeDataError, match=r"no scene .mp3d/castle/castle\.glb"):
        world.open("mp3d/castle/castle.glb")
    with pytest.raises(EpisodeDataError, match="leads out of the folder"):
        world.open("../secret.glb")
    with pytest.raises(EpisodeDataError, match=r"no navigation mesh.*\.navmesh file is missing"):
        world.open("mp3d/house/house.glb")
    assert world.scene_id is None


# -- the task ------------------------------------------------------------------------------------


def make(**options: Any) -> Any:
    return mpt_envs.make_task(R2R, backend="habitat", data=HOUSE, scenes=SCENES, **options)


@pytest.fixture
def task(double: ModuleType) -> Any:
    return make()


class TestHabitatContract(TaskContractTests):
    """Every rule of a task, over the double."""

    seeds = (0,)
    snapshot_pairs = 5
    pettingzoo_cycles = 30

    @pytest.fixture(autouse=True)
    def _double(self, double: ModuleType) -> None:
        return

    def make_task(self) -> TurnTask:
        if "habitat_sim" not in sys.modules:
            put_double()  # in a fresh process there are no fixtures
        return make()


def follow_expert(task: Any) -> float:
    """Let the expert play to the end; the return."""
    total = 0.0
    for _ in range(64):
        bids = [task.expert_bid(agent) for agent in task.possible_agents]
        agent = task.possible_agents[int(np.argmax(bids))]
        result = task.act(agent, task.expert_action(agent))
        total += result.reward
        if result.terminated:
            break
    return total


@pytest.mark.parametrize("name", list(ROUTES))
def test_it_plays_as_the_embedded_simulator_does(double: ModuleType, name: str) -> None:
    """The same place under both: the same ways, rewards and metrics, to within a column."""
    embedded = mpt_envs.make_task(R2R, data=HOUSE)
    habitat = make()
    returns = []
    for task in (embedded, habitat):
        task.reset(0, options={"episode": name})
        returns.append(follow_expert(task))
    first, second = embedded.metrics(), habitat.metrics()
    assert first["success"] == second["success"] == 1.0
    for metric in ("path_length", "distance_to_goal"):
        assert second[metric] == pytest.approx(first[metric], abs=0.6), metric
    for metric in ("spl", "ndtw", "sdtw"):
        assert second[metric] == pytest.approx(first[metric], abs=0.12), metric
    assert returns[0] == pytest.approx(returns[1], abs=2.0)


def test_the_same_actions_lead_to_the_same_place(task: Any) -> None:
    """Turn signs, headings and steps agree with the embedded simulator's, step by step."""
    embedded = mpt_envs.make_task(R2R, data=HOUSE)
    for task_ in (task, embedded):
        task_.reset(0, options={"episode": "2"})
    rng = np.random.default_rng(0)
    for _ in range(30):
        agent = ("turner_0", "mover_0")[rng.integers(2)]
        action = int(rng.integers(len(task.action_names(agent))))
        collided = []
        for task_ in (task, embedded):
            task_.act(agent, action)
            collided.append(int(task_.batch.ints[0, 13]))
        ours, theirs = task.batch.doubles[0], embedded.batch.doubles[0]
        # Sliding adds up differently; the first collisions do not.
        assert np.allclose(ours[17:20], theirs[17:20], atol=0.05)
        assert collided[0] == collided[1]
        assert task.batch.ints[0, 10] == embedded.batch.ints[0, 10]
        wanted = ours[20] + math.radians(15) * task.batch.ints[0, 10]
        assert math.cos(task._body.heading - wanted) > 0.9999


def test_rewards_and_metrics_are_the_simulators(task: Any) -> None:
    task.reset(0, options={"episode": "1"})
    goal = NODES["room"]
    body = task._body
    before = shortest = body.distance(body.position, goal)
    for _ in range(3):
        reward = task.act("mover_0", 2).reward
        after = body.distance(body.position, goal)
        assert reward == pytest.approx(10 * (before - after) / shortest, abs=1e-6)
        before = after
    metrics = task.metrics()
    assert metrics["distance_to_goal"] == pytest.approx(before)
    assert metrics["path_length"] == pytest.approx(2.25, abs=0.05)
    assert metrics["success"] == 0.0
    assert task.act("stopper_0", 1).terminated is False
    result = task.act("stopper_0", 0)
    assert result.terminated is True
    assert (result.reward > 0) == (before < 3.0) == bool(task.metrics()["success"])
    assert task.act("mover_0", 0).terminated is True
    assert task.metrics()["path_length"] == metrics["path_length"]


def test_texts_and_features_are_there(task: Any) -> None:
    task.reset(0, options={"episode": "7"})
    assert ROUTES["7"][2] in task.prompt("mover_0", "act")
    observation = task.observe("mover_0")
    embedded = mpt_envs.make_task(R2R, data=HOUSE)
    embedded.reset(0, options={"episode": "7"})
    assert np.abs(observation - embedded.observe("mover_0")).max() < 0.35


def test_snapshots_hold_the_body_and_refuse_what_does_not_fit(task: Any) -> None:
    task.reset(0, options={"episode": "1"})
    task.act("turner_0", 1)
    task.act("mover_0", 2)
    snapshot = task.snapshot()
    state = task._body.pose, task.metrics()
    task.act("mover_0", 2)
    task.restore(snapshot)
    assert (task._body.pose, task.metrics()) == state
    twin, copied = task.clone(), pickle.loads(pickle.dumps(task))
    for other in (task, twin, copied):
        assert other.snapshot() == snapshot
        other.act("turner_0", 4)
        other.act("mover_0", 1)
    assert task.snapshot() == twin.snapshot() == copied.snapshot()

    def changed(at: int, value: bytes) -> Snapshot:
        payload = bytearray(snapshot.payload)
        payload[at : at + len(value)] = value
        return Snapshot(snapshot.task_id, snapshot.version, bytes(payload))

    before = task.snapshot()
    end = len(snapshot.payload)
    for bad in (
        changed(end - 28, np.float32(1.0).tobytes()),  # another place
        changed(end - 16, np.float32([0, 0, 1, 0]).tobytes()),  # another direction
        changed(end - 16, np.float32([9, 9, 9, 9]).tobytes()),  # no rotation
        changed(44, np.int32(77).tobytes()),  # a layer that is not there
    ):
        with pytest.raises(SnapshotError, match="no valid state"):
            task.restore(bad)
    embedded = mpt_envs.make_task(R2R, data=HOUSE)
    with pytest.raises(SnapshotError, match="taken on the backend 'connectivity'"):
        task.restore(embedded.snapshot())
    with pytest.raises(SnapshotError):
        embedded.restore(snapshot)
    write_json(HOUSE / "val_seen.json", {"episodes": [episode("1")]})
    write_json(HOUSE / "val_seen_gt.json", {"1": truth("1")})
    with pytest.raises(SnapshotError, match="other episodes"):
        make(split="val_seen").restore(snapshot)
    assert task.snapshot() == before


def test_pictures_come_from_the_camera(double: ModuleType) -> None:
    task = make(resolution=(32, 40))
    assert task.render("rgb_array").shape == (32, 40, 3)
    task.close()
    assert all(s.closed for s in Simulator.opened if s.config.sim_cfg.create_renderer)


def test_without_habitat_sim_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("habitat", "habitat_body"):
        monkeypatch.delitem(sys.modules, f"mpt_envs.navigation.backends.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    with pytest.raises(mpt_envs.MissingBackendError, match="conda install habitat-sim"):
        make()
    # The other backend asks nothing of it.
    assert mpt_envs.make_task(R2R, backend="connectivity", data=HOUSE).task_id == R2R


# -- the real simulator --------------------------------------------------------------------------


@pytest.mark.skipif(
    importlib.util.find_spec("habitat_sim") is None or not os.environ.get("MPT_HABITAT_SCENES"),
    reason="needs habitat-sim (conda install habitat-sim headless -c conda-forge -c aihabitat) "
    "and MPT_HABITAT_SCENES naming a folder with mp3d/zsNo4HB9uLZ",
)
def test_the_real_simulator_moves_and_restores() -> None:
    w = adapter("habitat_body")
    world = w.Body()
    world.open("mp3d/zsNo4HB9uLZ/zsNo4HB9uLZ.glb")
    start = [15.068599700927734, 0.17162801325321198, -4.4848198890686035]
    goal = [13.04640007019043, 0.17162801325321198, 1.8739700317382812]
    world.place(start, math.radians(60))
    assert world.distance(start, goal) == pytest.approx(7.9608, abs=0.05)
    for action in (w.LEFT, w.LEFT):
        world.step(action)
    assert not world.step(w.FORWARD)
    # The first step of the ground truth of episode 1.
    assert np.allclose(world.position, [14.8186, 0.17163, -4.48482], atol=2e-3)
    pose = world.pose
    world.step(w.FORWARD)
    after = world.pose
    world.pose = pose
    assert world.pose == pose
    world.step(w.FORWARD)
    assert world.pose == after
