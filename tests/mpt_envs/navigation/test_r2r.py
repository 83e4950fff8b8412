"""R2R-CE on the connectivity backend: the source of episodes, and the task that plays them."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.navigation.data import r2r
from mpt_envs.navigation.data.episodes import EpisodeDataError
from mpt_envs.navigation.data.r2r import R2RSource, r2r_source
from mpt_envs.navigation.world.sources import EpisodeSource
from mpt_envs.testing import TaskContractTests, VectorContractTests
from mpt_train.seeds import (
    demonstration_seeds,
    evaluation_seeds,
    training_seeds,
    validation_seeds,
)
from tests.mpt_envs.navigation.r2r_data import (
    DATA,
    NODES,
    ROUTES,
    episode,
    graph,
    needs_r2r,
    truth,
    write_house,
    write_json,
)
from wrappers.errors import SnapshotError, TaskError
from wrappers.task import TurnTask
from wrappers.vector import VectorGame

R2R = "navigation/r2r-v0"
FOLDER = tempfile.TemporaryDirectory(prefix="house")
HOUSE = write_house(Path(FOLDER.name))


@pytest.fixture
def house(tmp_path: Path) -> Path:
    return write_house(tmp_path / "house")


def test_it_is_a_source(house: Path) -> None:
    source = R2RSource(house)
    assert isinstance(source, EpisodeSource)
    assert len(source) == len(ROUTES)
    seen = set()
    for key in (0, 1, 2, 3, 2**64 - 1, *range(10**9, 10**9 + 40)):
        scene, found = source.episode(key)
        seen.add(found.id)
        assert scene.id == found.scene_id == "house"
        assert scene.space.locate(found.start) is not None
        assert scene.space.locate(found.goal) is not None
        field = source.distances(scene, found)
        assert field is source.distances(scene, found)
        assert np.array_equal(field, scene.space.distances_to(found.goal), equal_nan=True)
    assert seen == set(ROUTES)


def test_all_episodes_in_order_and_by_id(house: Path) -> None:
    source = R2RSource(house)
    assert [source.episode(key)[1].id for key in range(len(source))] == list(ROUTES)
    for name, (_, _, text) in ROUTES.items():
        assert source.episode(source.key_of(name))[1].instruction == text
        assert source.key_of(int(name)) == source.key_of(name)
    with pytest.raises(ValueError, match="no episode 3"):
        source.key_of(3)


def test_what_is_compared_is_the_ground_truth(house: Path) -> None:
    found = R2RSource(house).episode(1)[1]
    assert found.reference_path.tolist() == truth("2")["locations"]
    assert found.instruction_path is not None
    assert found.instruction_path.tolist() == episode("2")["reference_path"]
    assert found.radius == 3.0


def test_the_digest_follows_what_matters(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = R2RSource(house).digest
    assert R2RSource(house).digest == before
    write_house(house, "val_seen")
    assert R2RSource(house, "val_seen").digest == before  # the same content
    moved = graph()
    moved["nodes"]["room"][0] += 0.01
    write_json(house / "graphs" / "house.json.gz", moved)
    assert R2RSource(house).digest != before
    write_house(house)
    changed = [episode(name) for name in ROUTES]
    changed[1]["instruction"]["instruction_text"] = "Go."
    write_json(house / "val_unseen.json.gz", {"episodes": changed})
    assert R2RSource(house).digest != before
    write_house(house)
    monkeypatch.setattr(r2r.connectivity, "CORRIDOR", 0.45)
    assert R2RSource(house).digest != before


def test_one_source_for_a_process_and_a_twin_in_another(house: Path) -> None:
    source = r2r_source(house)
    assert r2r_source(str(house)) is source
    assert copy.deepcopy(source) is source
    assert r2r_source(house, scans="house") is not source
    twin = pickle.loads(pickle.dumps(R2RSource(house, scans=["house"])))
    assert twin.digest == source.digest
    assert twin.split == "val_unseen"
    # Changed files are read again.
    write_json(house / "val_unseen.json.gz", {"episodes": [episode("9")]})
    assert len(r2r_source(house)) == 1


def test_fields_are_kept_within_bounds(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = R2RSource(house)
    scene, first = source.episode(0)
    size = source.distances(scene, first).nbytes
    monkeypatch.setattr(r2r, "FIELD_BYTES", 2 * size)
    kept = source.distances(scene, first)
    for key in (1, 0, 2, 0, 3):
        source.distances(scene, source.episode(key)[1])
    assert source.distances(scene, first) is kept  # used again in between
    assert len(source._fields) == 2
    assert source._field_bytes == 2 * size


def test_a_scene_without_a_graph(house: Path) -> None:
    everything = [*(episode(name) for name in ROUTES), episode("1", "castle")]
    everything[-1]["episode_id"] = 11
    write_json(house / "val_unseen.json.gz", {"episodes": everything})
    write_json(house / "val_unseen_gt.json.gz", {**{n: truth(n) for n in ROUTES}, "11": truth("1")})
    with pytest.raises(EpisodeDataError, match="no connectivity graph of the scene 'castle'"):
        R2RSource(house)
    assert len(R2RSource(house, scans="house")) == 4
    for path in (house / "graphs").iterdir():
        path.unlink()
    with pytest.raises(EpisodeDataError, match="no connectivity graph of the scene"):
        R2RSource(house)
    (house / "graphs").rmdir()
    with pytest.raises(EpisodeDataError, match="there are no connectivity graphs in"):
        R2RSource(house)
    with pytest.raises(EpisodeDataError, match=r"graphs='.*nowhere' is not a folder"):
        R2RSource(house, graphs=house / "nowhere")
    write_json(house.parent / "elsewhere" / "house.json", graph())
    assert len(R2RSource(house, scans="house", graphs=house.parent / "elsewhere")) == 4


@needs_r2r
def test_every_real_episode_starts_and_ends_where_one_can_stand_and_has_a_way() -> None:
    source = r2r_source(DATA)
    ratios = []
    for key in range(len(source)):
        scene, found = source.episode(key)
        away = scene.space.distance(source.distances(scene, found), found.start)
        assert np.isfinite(away), found.id
        ratios.append(away / source.recorded(key).geodesic)
    # Against the distances on the meshes, which the files tell (docs/navigation.md).
    assert len(ratios) == 1839
    assert 0.98 < np.mean(ratios) < 1.01
    assert np.mean(np.abs(np.array(ratios) - 1)) < 0.035
    assert np.percentile(ratios, 1) > 0.85
    assert np.percentile(ratios, 99) < 1.15


# -- the task ------------------------------------------------------------------------------------


class TestHouseContract(TaskContractTests):
    """Every rule of a task, in the small house."""

    seeds = (0, 1)
    snapshot_pairs = 6
    pettingzoo_cycles = 40

    def make_task(self) -> TurnTask:
        return mpt_envs.make_task(R2R, data=HOUSE)


class TestHouseVectorContract(VectorContractTests):
    """The batch plays what the task plays."""

    num_envs = 4
    options: dict[str, Any] = {"data": HOUSE}  # noqa: RUF012

    def make_native(self, num_envs: int) -> VectorGame:
        return mpt_envs.make(
            R2R, api="vector", num_envs=num_envs, vectorization="native", **self.options
        )

    def make_lockstep(self, num_envs: int) -> VectorGame:
        return mpt_envs.make(
            R2R, api="vector", num_envs=num_envs, vectorization="lockstep", **self.options
        )


@needs_r2r
class TestRealContract(TaskContractTests):
    """Every rule of a task, in real buildings."""

    seeds = (0,)
    snapshot_pairs = 4
    pettingzoo_cycles = 0

    def make_task(self) -> TurnTask:
        return mpt_envs.make_task(R2R, data=DATA, scans=["zsNo4HB9uLZ", "oLBMNvg9in8"])


@needs_r2r
class TestRealVectorContract(TestHouseVectorContract):
    """The batch in real buildings."""

    options: dict[str, Any] = {"data": DATA, "scans": ["TbHJrupSAjP"]}  # noqa: RUF012


def test_episodes_by_id(house: Path) -> None:
    task = mpt_envs.make_task(R2R, backend="connectivity", data=house)
    for name, (nodes, degrees, text) in ROUTES.items():
        task.reset(5, options={"episode": name})
        assert task.world.episode.id == name
        assert text in task.prompt("mover_0", "bid")
        assert task.world.episode.start[[0, 2]].tolist() == [NODES[nodes[0]][0], NODES[nodes[0]][2]]
        assert np.degrees(task.world.episode.heading) == pytest.approx(degrees)
        # A snapshot takes the episode along.
        other = mpt_envs.make_task(R2R, data=house)
        other.reset(1)
        other.restore(task.snapshot())
        assert other.world.episode.id == name
    with pytest.raises(ValueError, match="no episode 'x'"):
        task.reset(0, options={"episode": "x"})
    env = mpt_envs.make(R2R, data=house)
    env.reset(seed=0, options={"episode": 9})
    assert env.unwrapped.task.world.episode.id == "9"


def test_the_seed_chooses_among_all_episodes(house: Path) -> None:
    task = mpt_envs.make_task(R2R, data=house)
    seen = []
    for episode_number in range(30):
        task.reset(3, episode_number)
        seen.append(task.world.episode.id)
    assert set(seen) == set(ROUTES)
    task.reset(3, 7)
    assert task.world.episode.id == seen[7]


def episodes_of(task: TurnTask, seeds: np.ndarray) -> list[str]:
    found = []
    for seed in seeds.tolist():
        task.reset(seed)
        found.append(task.world.episode.id)  # type: ignore[attr-defined]
    return found


def test_what_is_trained_on_and_evaluated_on_are_different_ways(tmp_path: Path) -> None:
    episodes = []
    for number in range(120):
        one = episode(list(ROUTES)[number % len(ROUTES)])
        episodes.append(one | {"episode_id": number, "trajectory_id": number // 3})
    write_house(tmp_path)
    write_json(tmp_path / "val_unseen.json.gz", {"episodes": episodes})
    truths = {str(e["episode_id"]): truth(list(ROUTES)[e["episode_id"] % 4]) for e in episodes}
    write_json(tmp_path / "val_unseen_gt.json.gz", truths)
    task = mpt_envs.make_task(R2R, data=tmp_path)
    used = [
        {int(id_) // 3 for id_ in episodes_of(task, seeds)}
        for seeds in (training_seeds(0, 0, 400), validation_seeds(200), evaluation_seeds(200))
    ]
    used[1] |= {int(id_) // 3 for id_ in episodes_of(task, demonstration_seeds(3, 200))}
    assert not (used[0] & used[1] or used[0] & used[2] or used[1] & used[2])
    assert set().union(*used) == set(range(40))
    assert len(used[0]) > 24
    # Several at once draw the same.
    batch = mpt_envs.make(R2R, api="vector", num_envs=8, data=tmp_path).batch
    seeds = evaluation_seeds(8)
    batch.reset(np.arange(8), seeds, np.zeros(8, np.int64))
    assert [batch.world(row).episode.id for row in range(8)] == episodes_of(task, seeds)


@needs_r2r
def test_real_episodes_are_held_out() -> None:
    task = mpt_envs.make_task(R2R, data=DATA)
    source: R2RSource = task.worlds.source  # type: ignore[attr-defined]
    index = {e.episode_id: e.trajectory_id for e in source.episodes.episodes}
    trained = {index[i] for i in episodes_of(task, training_seeds(0, 0, 1500))}
    assert not trained & {index[i] for i in episodes_of(task, evaluation_seeds(128))}
    assert [round(len(p) / len(index), 1) for p in source.episodes.parts] == [0.8, 0.1, 0.1]


def test_snapshots_stay_with_their_files(house: Path) -> None:
    task = mpt_envs.make_task(R2R, data=house)
    task.reset(0)
    snapshot = task.snapshot()
    write_json(house / "val_unseen.json.gz", {"episodes": [episode("1"), episode("9")]})
    with pytest.raises(SnapshotError, match="other episodes"):
        mpt_envs.make_task(R2R, data=house).restore(snapshot)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.update(start_position=[0, 60, 0]), "its start is .* nearest node"),
        (lambda e: e.update(start_position=[900, 0, 0]), "its start is .* nearest node"),
        (lambda e: e["goals"][0].update(position=[0, 0, 40]), "its goal is .* nearest node"),
        (lambda e: e["goals"][0].update(position=NODES["cellar"]), "no way leads"),
    ],
)
def test_no_episode_that_cannot_be_played_comes_up_in_the_middle_of_a_run(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    house = write_house(tmp_path)
    episodes = [episode(name) for name in ROUTES]
    change(episodes[2])
    write_json(house / "val_unseen.json.gz", {"episodes": episodes})
    with pytest.warns(UserWarning, match=r"1 of the 4 episodes .* are left out \(ids 7\)"):
        task = mpt_envs.make_task(R2R, data=house)
    assert set(episodes_of(task, np.arange(60))) == {"1", "2", "9"}
    assert task.coverage == (3, 4)
    for options in ({}, {"vectorization": "lockstep"}, {"one_agent": True}, {"agents": 6}):
        game = mpt_envs.make(R2R, api="vector", num_envs=1, data=house, **options)
        assert game.coverage == (3, 4), "whatever way it is played"
    with pytest.raises(TaskError, match=f"episode 7 cannot be played: .*{message}"):
        task.reset(0, options={"episode": 7})
    for one in episodes:
        change(one)
    write_json(house / "val_unseen.json.gz", {"episodes": episodes})
    if "goal is" not in message:
        with pytest.raises(EpisodeDataError, match="none of the 4 episodes"):
            mpt_envs.make(R2R, data=house)


def test_what_lies_beside_the_files_does_not_matter(tmp_path: Path) -> None:
    house = write_house(tmp_path)
    (house / "other.json.gz").symlink_to(tmp_path / "nowhere")
    (house / "circle.json").symlink_to(house / "circle.json")
    mpt_envs.make(R2R, data=house).reset(seed=0)


@pytest.mark.parametrize("keyword", ["data", "graphs"])
@pytest.mark.parametrize("value", [5, b"x", ["x"], "~nosuchuser/x", "a\0b", "/no/such/folder", ""])
def test_what_is_no_folder(house: Path, keyword: str, value: Any) -> None:
    with pytest.raises(EpisodeDataError, match=f"{keyword}|MPT_R2R_DATA|graphs"):
        mpt_envs.make(R2R, **({"data": house} | {keyword: value}))


def test_a_folder_that_may_not_be_entered(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("is_dir", "is_file"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, name, refuse)
            with pytest.raises(EpisodeDataError, match="check the permissions"):
                mpt_envs.make(R2R, data=house)


@pytest.mark.parametrize("scans", [5, [["house"]], [None], 1.5])
def test_what_are_no_names_of_scenes(house: Path, scans: Any) -> None:
    with pytest.raises(TypeError, match="scans must be names of scenes"):
        mpt_envs.make(R2R, data=house, scans=scans)


def test_mistakes_of_a_user_are_explained(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPT_R2R_DATA", raising=False)
    with pytest.raises(EpisodeDataError, match="set the environment variable MPT_R2R_DATA"):
        mpt_envs.make(R2R)
    with pytest.raises(ValueError, match="no episode is in the scene 'castle'"):
        mpt_envs.make(R2R, data=house, scans="castle")
    with pytest.raises(TypeError, match="dta"):
        mpt_envs.make(R2R, dta=house)
    monkeypatch.setenv("MPT_R2R_DATA", str(house))
    assert mpt_envs.make_task(R2R).task_id == R2R
    monkeypatch.setenv("MPT_R2R_SPLIT", "train")
    with pytest.raises(EpisodeDataError, match="no episodes of the split 'train'"):
        mpt_envs.make(R2R)
    write_house(house, "train")
    assert r2r_source().split == "train"
    assert r2r_source(split="val_unseen").split == "val_unseen"
    monkeypatch.setenv("MPT_R2R_SPLIT", "everything")
    with pytest.raises(ValueError, match="MPT_R2R_SPLIT must be one of train, val_seen"):
        mpt_envs.make(R2R)
