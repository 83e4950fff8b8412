"""The expert reaches what there is to reach, and the report says what it did not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import navigation_oracle
from benchmarks.navigation_oracle import OracleConfig, main, run_floorplans, run_r2r
from tests.mpt_envs.navigation.r2r_data import (
    DATA,
    NODES,
    episode,
    needs_r2r,
    write_house,
    write_json,
)


def test_a_small_house(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = write_house(tmp_path)
    out = tmp_path / "report.json"
    assert main(["--data", str(house), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "the expert on 4 episodes" in printed
    assert "not reached: 0" in printed
    report = json.loads(out.read_text("utf-8"))
    assert report["means"]["success"] == 1.0
    assert report["means"]["spl"] > 0.9
    assert 0.8 < report["geodesic"]["mean_ratio"] < 1.05


@pytest.mark.filterwarnings("ignore:1 of the 3 episodes")
def test_what_is_not_reached_is_listed_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    house = write_house(tmp_path)
    lost = episode("1")
    lost["goals"][0]["position"] = NODES["cellar"]
    write_json(house / "val_unseen.json.gz", {"episodes": [episode("2"), lost, episode("7")]})
    assert main(["--data", str(house), "--max-turns", "16"]) == 1
    printed = capsys.readouterr().out
    assert "not reached: 2" in printed
    assert "1: episode 1 cannot be played: no way leads from its start to its goal" in printed
    assert "7: ran out of turns" in printed
    report = run_r2r(OracleConfig(data=house, max_turns=16))
    assert report.episodes == 3
    assert report.means["success"] == pytest.approx(1 / 3)


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path)]) == 2
    assert "holds no episodes of the split 'val_unseen'" in capsys.readouterr().err
    house = write_house(tmp_path)
    assert main(["--data", str(house), "--scans", "castle"]) == 2
    assert "no episode is in the scene 'castle'" in capsys.readouterr().err


def test_floorplans() -> None:
    report = run_floorplans(OracleConfig(floorplans=12))
    assert report.task == navigation_oracle.FLOORPLAN
    assert not report.missed
    assert report.means["spl"] > 0.95


@needs_r2r
def test_some_real_episodes() -> None:
    """A sample of what the slow test plays as a whole."""
    report = run_r2r(OracleConfig(data=DATA, episodes=40))
    assert not report.missed
    assert report.means["spl"] > 0.95


@needs_r2r
@pytest.mark.slow
def test_all_real_episodes() -> None:
    report = run_r2r(OracleConfig(data=DATA))
    assert report.episodes == 1839
    assert not report.missed
    assert report.means["success"] == 1.0
    assert report.means["spl"] > 0.95
    assert report.means["ndtw"] > 0.85
    assert 0.98 < report.geodesic["mean_ratio"] < 1.01


@pytest.mark.slow
def test_two_hundred_floorplans() -> None:
    report = run_floorplans(OracleConfig(floorplans=200))
    assert not report.missed
    assert report.means["spl"] > 0.95
