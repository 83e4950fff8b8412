"""Comparing finished runs in tests: everything but the wall clock has to be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from mpt_train.runs.checkpoint import load_checkpoint
from mpt_train.runs.folder import RunFolder

CLOCKS = ("wall_time", "wall_seconds", "seconds_rollout", "seconds_branch", "seconds_update")


def without_clocks(value: Any) -> Any:
    """A JSON value without the fields that hold times."""
    if isinstance(value, dict):
        return {k: without_clocks(v) for k, v in value.items() if k not in CLOCKS}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


def records(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log without clocks, as they are in the file."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [without_clocks(json.loads(line)) for line in lines]


def tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a run, without clocks; NaN as text, so that it equals itself."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / "tb"), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return {
        tag: [(e.step, repr(e.value)) for e in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
        if tag.split("/")[-1] not in CLOCKS
    }


def assert_same_run(folder: Path, reference: Path) -> None:
    """Both folders hold the same finished run."""
    run, other = RunFolder(folder), RunFolder(reference)
    mine, theirs = records(folder), records(reference)
    assert [r["step"] for r in mine] == [r["step"] for r in theirs]
    for a, b in zip(mine, theirs, strict=True):
        assert a == b
    assert tensorboard(folder) == tensorboard(reference)
    for place in ("checkpoint", "cold_start"):
        tensors, state = load_checkpoint(getattr(run, place))
        expected, expected_state = load_checkpoint(getattr(other, place))
        assert repr(without_clocks(state)) == repr(without_clocks(expected_state))
        assert tensors.keys() == expected.keys()
        for name, tensor in expected.items():
            assert torch.equal(tensors[name], tensor), name
    summaries = [without_clocks(r.read_summary()) | {"folder": ""} for r in (run, other)]
    assert repr(summaries[0]) == repr(summaries[1])
