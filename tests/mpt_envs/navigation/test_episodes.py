"""Reading R2R-CE episodes: layouts, contents, and what is said of files that are not right."""

from __future__ import annotations

import collections
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpt_envs.navigation.data.episodes import (
    DATA_VARIABLE,
    EpisodeDataError,
    EpisodeSet,
    load_split,
    scan_of,
)
from tests.mpt_envs.navigation.r2r_data import (
    DATA,
    ROUTES,
    episode,
    needs_r2r,
    truth,
    write_house,
    write_json,
)


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a.__annotations__)


def test_contents(tmp_path: Path) -> None:
    first = load_split(write_house(tmp_path), "val_unseen")[0]
    raw = episode("1")
    assert (first.episode_id, first.trajectory_id, first.scan) == ("1", "11", "house")
    assert first.instruction == ROUTES["1"][2]
    assert first.start.tolist() == raw["start_position"]
    assert first.goal.tolist() == raw["goals"][0]["position"]
    assert first.heading == pytest.approx(math.radians(270))
    assert first.geodesic == raw["info"]["geodesic_distance"]
    assert first.reference_path.tolist() == raw["reference_path"]
    assert first.locations.tolist() == truth("1")["locations"]
    assert first.actions.tolist() == truth("1")["actions"]


def test_every_layout_gives_the_same(tmp_path: Path) -> None:
    flat = write_house(tmp_path / "flat")
    episodes, gt = (
        {"episodes": [episode(name) for name in ROUTES]},
        {name: truth(name) for name in ROUTES},
    )
    layouts = {
        "released": ("val_unseen/val_unseen.json.gz", "val_unseen/val_unseen_gt.json.gz"),
        "unpacked": ("val_unseen.json", "val_unseen/val_unseen_gt.json"),
    }
    wanted = load_split(flat, "val_unseen")
    for name, (path, gt_path) in layouts.items():
        write_json(tmp_path / name / path, episodes)
        write_json(tmp_path / name / gt_path, gt)
        found = load_split(tmp_path / name, "val_unseen")
        assert len(found) == len(wanted)
        assert all(map(same, found, wanted))
    # Unpacked under the old name.
    (flat / "val_unseen.json.gz").write_text(json.dumps(episodes))
    assert all(map(same, load_split(flat, "val_unseen"), wanted))


def test_the_folder_is_named_by_keyword_or_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(EpisodeDataError, match="README of jacobkrantz/VLN-CE"):
        load_split(None, "val_unseen")
    monkeypatch.setenv(DATA_VARIABLE, str(write_house(tmp_path / "a")))
    assert len(load_split(None, "val_unseen")) == len(ROUTES)
    with pytest.raises(EpisodeDataError, match="is not a folder"):
        load_split(tmp_path / "absent", "val_unseen")
    with pytest.raises(ValueError, match="one of train, val_seen, val_unseen; got 'test'"):
        load_split(tmp_path / "a", "test")
    with pytest.raises(EpisodeDataError, match="no episodes of the split 'train'"):
        load_split(tmp_path / "a", "train")


def _truncate(folder: Path) -> None:
    path = folder / "val_unseen.json.gz"
    path.write_bytes(path.read_bytes()[:-40])


def _rewrite(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        raw = [episode(name) for name in ROUTES]
        change(raw[2])
        write_json(folder / "val_unseen.json.gz", {"episodes": raw})

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: (d / "val_unseen_gt.json.gz").unlink(), "no ground truth of the split"),
        (_truncate, "val_unseen.json.gz is damaged"),
        (lambda d: (d / "val_unseen.json.gz").write_bytes(b"\0\1\2"), "is damaged or not JSON"),
        (lambda d: (d / "val_unseen.json.gz").write_bytes(b""), "is damaged or not JSON"),
        (lambda d: write_json(d / "val_unseen.json.gz", []), 'it has no list "episodes"'),
        (lambda d: write_json(d / "val_unseen.json.gz", {"episodes": []}), "has no episodes"),
        (lambda d: write_json(d / "val_unseen_gt.json.gz", [1]), "is not a file of ground truth"),
        (lambda d: write_json(d / "val_unseen_gt.json.gz", {}), "no ground truth of episode 1"),
        (
            lambda d: write_json(d / "val_unseen.json.gz", {"episodes": [episode("1")] * 2}),
            "two episodes 1",
        ),
        (lambda d: write_json(d / "val_unseen.json.gz", {"episodes": [3]}), "no ground truth of"),
        (_rewrite(lambda e: e.pop("goals")), "episode 7 .* 'goals' is missing"),
        (_rewrite(lambda e: e["goals"].clear()), "episode 7 .* 0 goals"),
        (_rewrite(lambda e: e.update(start_position=[1, 2])), r"episode 7 .* shape \(3,\)"),
        (_rewrite(lambda e: e.update(start_position=[1, 2, "x"])), "episode 7 .* could not"),
        (_rewrite(lambda e: e.update(start_position=[1, 2, math.nan])), "episode 7 .* finite"),
        (_rewrite(lambda e: e.update(start_rotation=[1, 0, 0, 0])), "episode 7 .* vertical axis"),
        (_rewrite(lambda e: e.update(instruction={"instruction_text": " "})), "is empty"),
        (_rewrite(lambda e: e.update(reference_path=[])), "episode 7 .* shape"),
        (_rewrite(lambda e: e.update(scene_id="")), "names no scene"),
        (_rewrite(lambda e: e.update(info=None)), "episode 7 .* not as it should be"),
        *(
            (_rewrite(lambda e, r=r: e["goals"][0].update(radius=r)), "episode 7 .* as it should")
            for r in (0, -3, 1e-9, 1e6, 1e308, math.inf, math.nan, 10**400, None, "wide")
        ),
        *(
            (_rewrite(lambda e, d=d: e["info"].update(geodesic_distance=d)), "episode 7 ")
            for d in (-1.0, 1e9, math.inf, None)
        ),
        *(
            (_rewrite(lambda e, x=x: e.update(start_position=[x, 0, 0])), "from the origin")
            for x in (1e6, -1e300)
        ),
        (_rewrite(lambda e: e["reference_path"][0].__setitem__(2, 1e300)), "from the origin"),
        (_rewrite(lambda e: e["goals"][0].update(position=[0, -2e4, 0])), "from the origin"),
        (
            _rewrite(lambda e: e["goals"][0].update(position=e["start_position"])),
            "episode 7 .* less than 0.5 m from its start",
        ),
        (
            lambda d: (d / "val_unseen.json.gz").write_text(f'{{"episodes": [{"9" * 5000}]}}'),
            "damaged or not JSON",
        ),
        (
            lambda d: (d / "val_unseen_gt.json.gz").write_text(f'{{"1": {"9" * 5000}}}'),
            "damaged or not JSON",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, spoil: Callable[[Path], Any], message: str
) -> None:
    spoil(write_house(tmp_path))
    with pytest.raises(EpisodeDataError, match=message):
        load_split(tmp_path, "val_unseen")


def test_choosing(tmp_path: Path) -> None:
    episodes = EpisodeSet(load_split(write_house(tmp_path), "val_unseen"))
    assert len(episodes) == 4
    counts = collections.Counter(episodes.choose(key) for key in range(4000))
    assert set(counts) == {0, 1, 2, 3}
    assert max(counts.values()) < 1150  # 1,000 expected, 5 standard deviations
    assert [episodes.choose(k) for k in range(50)] == [episodes.choose(k) for k in range(50)]
    assert episodes[episodes.index_of(7)].episode_id == "7"
    assert episodes.index_of("9") == 3
    with pytest.raises(ValueError, match=r"no episode 8 among the 4 .*\(1, 2, 7, 9\)"):
        episodes.index_of(8)


def test_filters(tmp_path: Path) -> None:
    everything = load_split(write_house(tmp_path), "val_unseen")
    assert EpisodeSet(everything, scans="house").scans == ("house",)
    with pytest.raises(ValueError, match="no episode is in the scene 'castle'; scenes: house"):
        EpisodeSet(everything, scans=["house", "castle"])
    assert len(EpisodeSet(everything, keep=lambda e: e.geodesic < 7)) == 3
    with pytest.raises(ValueError, match="no episode is left"):
        EpisodeSet(everything, keep=lambda e: False)


@pytest.mark.parametrize(
    "scene_id", ["mp3d/X1/X1.glb", "X1", "data\\mp3d\\X1\\X1.glb", "mp3d/X1/X1.basis.glb"]
)
def test_names_of_scenes(scene_id: str) -> None:
    assert scan_of(scene_id) == "X1"


@needs_r2r
def test_the_real_split() -> None:
    episodes = load_split(DATA, "val_unseen")
    assert len(episodes) == 1839
    assert len({e.trajectory_id for e in episodes}) == 613
    assert len({e.scan for e in episodes}) == 11
    assert EpisodeSet(episodes, scans=["zsNo4HB9uLZ", "8194nk5LbLH"]).scans == (
        "8194nk5LbLH",
        "zsNo4HB9uLZ",
    )
    for e in episodes:
        assert e.start.tolist() == e.locations[0].tolist() == e.reference_path[0].tolist()
        assert e.goal.tolist() == e.reference_path[-1].tolist()
        assert (e.actions == 1).sum() == len(e.locations) - 1


@needs_r2r
def test_headings_agree_with_the_ground_truth() -> None:
    """Left is +15 degrees and forward is (-sin, 0, -cos): so the recorded steps land where told."""
    errors = []
    for e in load_split(DATA, "val_unseen")[:200]:
        heading, at = e.heading, 0
        for action in e.actions.tolist():
            heading += math.radians({2: 15, 3: -15}.get(action, 0))
            if action != 1:
                continue
            ahead = np.array([-math.sin(heading), 0.0, -math.cos(heading)])
            step = e.locations[at + 1] - e.locations[at]
            at += 1
            if abs(step[1]) < 1e-3 and abs(np.linalg.norm(step) - 0.25) < 1e-4:  # unhindered
                errors.append(np.linalg.norm(step - 0.25 * ahead))
    assert len(errors) > 4000
    assert np.mean(np.array(errors) < 1e-3) > 0.99  # the others slid along something
