"""R2R-CE on the connectivity backend: the source of episodes, and the task that plays them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from mpt_envs.navigation import r2r
from mpt_envs.navigation.episodes import EpisodeDataError
from mpt_envs.navigation.r2r import R2RSource, r2r_source
from mpt_envs.navigation.sources import EpisodeSource
from tests.mpt_envs.navigation.r2r_data import (
    DATA,
    ROUTES,
    episode,
    graph,
    needs_r2r,
    truth,
    write_house,
    write_json,
)


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
