"""The commands of `mpt` on this backend: counterfactual branches, evaluation, an episode to see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpt_train.cli.main import main

TASK = "crafting/crafting-table-v0"
TINY = (
    *("--task", TASK, "--backend", "minetest", "--num-envs", "2", "--budget-gflop", "0.03"),
    *("--cold-start.episodes", "2", "--optimizer.minibatches", "1", "--action-steps", "1"),
    *("--bids.contested-turns", "4", "--eval.worlds", "2", "--eval.repeats", "1"),
    *("--eval.curve-points", "1", "--eval.curve-worlds", "2", "--quiet"),
)


def test_branches_are_played_and_runs_are_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "run")
    assert main(["train", "mpt", *TINY, "--folder", folder]) == 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    branches = [step for step in steps if step.get("phase") in ("bid", "both")]
    assert branches and any(step["seconds_branch"] > 0.001 for step in branches)
    capsys.readouterr()
    for backend in ("minetest", "embedded"):
        assert (
            main(
                ["eval", folder, "--backend", backend, "--worlds", "2", "--repeats", "1", "--json"]
            )
            == 0
        )
        assert json.loads(capsys.readouterr().out)["worlds"] == 2
    assert main(["play", TASK, "--backend", "minetest", "--seed", "1"]) == 0
    assert "success" in capsys.readouterr().out
