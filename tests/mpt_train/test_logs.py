"""The log is valid JSON whatever happens, goes back to a step exactly, and TensorBoard agrees."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpt_train.errors import LogError
from mpt_train.runs.logs import RunLogger, read_metrics


def event_values(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows: steps and values of each tag."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / "tb"), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return {
        tag: [(e.step, e.value) for e in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def record(step: int) -> dict[str, Any]:
    return {"kind": "train", "return_mean": step / 3, "participation": {"miner": [0.25, step]}}


def test_records_come_back_with_all_digits(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        logger.log(3, {"kind": "train", "a": 0.1 + 0.2, "b": np.float32(0.1), "c": np.int64(7)})
        logger.log(
            4, {"step": 4.5, "kind": "curve", "d": torch.tensor([1.5, 2.5]), "e": {"f": (1, None)}}
        )
    assert read_metrics(tmp_path) == [
        {"step": 3, "kind": "train", "a": 0.1 + 0.2, "b": float(np.float32(0.1)), "c": 7},
        {"step": 4, "kind": "curve", "d": [1.5, 2.5], "e": {"f": [1, None]}},
    ]
    assert [r["step"] for r in read_metrics(tmp_path, kind="curve")] == [4]


def test_a_record_is_in_the_file_at_once(tmp_path: Path) -> None:
    logger = RunLogger(tmp_path)
    logger.log(1, record(1))
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1
    assert event_values(tmp_path)["train/return_mean"] == [(1, pytest.approx(1 / 3))]
    logger.close()
    logger.close()


def test_not_finite_numbers_are_valid_json(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        logger.log(1, {"kind": "train", "loss": math.nan, "more": [math.inf, np.float32("-inf")]})
    for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    (back,) = read_metrics(tmp_path)
    assert math.isnan(back["loss"])
    assert back["more"] == [math.inf, -math.inf]
    ((_, value),) = event_values(tmp_path)["train/loss"]
    assert math.isnan(value)


def test_what_is_no_number_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            logger.log(1, {"kind": "train", "a": object()})
        logger.log(1, record(1))
    assert len(read_metrics(tmp_path)) == 1


def test_half_a_line_at_the_end(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        logger.log(1, record(1))
        logger.log(2, record(2))
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in (first + 1, first + 20, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert [r["step"] for r in read_metrics(tmp_path)] == [1]
        with RunLogger(tmp_path) as logger:
            logger.log(2, record(2))
        assert path.read_bytes() == whole


def test_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        for step in (1, 2, 3):
            logger.log(step, record(step))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"step": 2', b'"step": \x00'))
    with pytest.raises(LogError, match=r"line 2 of .* is damaged"):
        read_metrics(tmp_path)
    with RunLogger(tmp_path) as logger:
        with pytest.raises(LogError, match=r"line 2 of .* is damaged"):
            logger.rewind(3)
        # What is behind the point to go back to is dropped anyway, damaged or not.
        logger.rewind(1)
    assert [r["step"] for r in read_metrics(tmp_path)] == [1]


@pytest.mark.parametrize("torn", [False, True])
def test_rewind_is_as_if_the_later_steps_had_never_been(tmp_path: Path, torn: bool) -> None:
    with RunLogger(tmp_path) as logger:
        for step in range(1, 8):
            logger.log(step, record(step))
            logger.sync()
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    if torn:
        path.write_bytes(whole[:-5])
    with RunLogger(tmp_path) as logger:
        logger.rewind(4)
        for step in range(5, 8):
            logger.log(step, {**record(step), "return_mean": 100.0 + step})
        # A second time, with the writers open.
        logger.rewind(5)
        for step in range(6, 8):
            logger.log(step, record(step))
    steps = [r["step"] for r in read_metrics(tmp_path)]
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    expected = [(s, 105.0 if s == 5 else pytest.approx(s / 3)) for s in steps]
    values = event_values(tmp_path)
    assert values["train/return_mean"] == expected
    assert values["train/participation/miner/01"] == [(s, s) for s in steps]


def logged(folder: Path, steps: int) -> Path:
    """A log of a cold start and some steps."""
    with RunLogger(folder) as logger:
        for step in range(steps + 1):
            logger.log(step, record(step))
    return folder / "metrics.jsonl"


REPLACED = {
    "deleted": lambda whole: None,
    "empty": lambda whole: b"",
    "cut in half": lambda whole: whole[: len(whole) // 2],
    "first lines": lambda whole: b"".join(whole.splitlines(keepends=True)[:4]),
    "garbage": lambda whole: b"\x00\xff" * 999,
    "lines of garbage": lambda whole: b"x{\n" * 9,
    "another file": lambda whole: b'{"a": 1}\n' * 9,
}


@pytest.mark.parametrize(
    ("how", "steps"),
    [
        (how, steps)
        for how in REPLACED
        for steps in (0, 1, 8)
        # A short log is whole in its first lines, or loses no more than half a line.
        if steps == 8 or how not in ("cut in half", "first lines")
    ],
)
def test_a_log_that_does_not_reach_the_checkpoint_is_refused(
    how: str, steps: int, tmp_path: Path
) -> None:
    path = logged(tmp_path, steps)
    content = REPLACED[how](path.read_bytes())
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with RunLogger(tmp_path) as logger, pytest.raises(LogError, match="cut or replaced"):
        logger.rewind(steps, begun=True)


@pytest.mark.parametrize("steps", [0, 1, 8])
@pytest.mark.parametrize("size", [1, 5, 12])
def test_half_a_line_may_have_been_the_last_record(size: int, steps: int, tmp_path: Path) -> None:
    path = logged(tmp_path, steps)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:size])
    with RunLogger(tmp_path) as logger:
        logger.rewind(steps, begun=True)
        logger.log(steps, record(steps))
    assert path.read_bytes() == b"".join(lines)


def test_rewind_to_the_last_step_changes_no_byte(tmp_path: Path) -> None:
    with RunLogger(tmp_path) as logger:
        logger.log(1, record(1))
        before = (tmp_path / "metrics.jsonl").read_bytes()
        logger.rewind(1)
        assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_event_files_of_one_second_are_read_in_their_order(tmp_path: Path) -> None:
    """Names carry the time in seconds; resumes within one second keep their order."""
    for step in range(1, 12):
        with RunLogger(tmp_path) as logger:
            logger.rewind(step - 1)
            logger.log(step, record(step))
            logger.log(step + 1, record(-1))
    values = event_values(tmp_path)["train/return_mean"]
    assert [v for _, v in values[:-1]] == [pytest.approx(s / 3) for s in range(1, 12)]


def test_without_tensorboard(tmp_path: Path) -> None:
    with RunLogger(tmp_path, tensorboard=False) as logger:
        logger.log(1, record(1))
        logger.sync()
    assert not (tmp_path / "tb").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with (
        RunLogger(tmp_path, tensorboard=False) as logger,
        pytest.raises(LogError, match=r"No space left on device; make room .*--resume"),
    ):
        logger.log(1, record(1))


def test_a_line_that_does_not_fit_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A file on a disk with room for 10 more bytes."""

        def __init__(self, file: Any) -> None:
            self.file = file
            self.room = 10

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            part = data[: self.room]
            self.room -= len(part)
            return int(self.file.write(part))

    with RunLogger(tmp_path, tensorboard=False) as logger:
        logger.log(1, record(1))
        before = (tmp_path / "metrics.jsonl").read_bytes()
        file = logger._file
        monkeypatch.setattr(logger, "_file", Full(file))
        with pytest.raises(LogError, match="No space left"):
            logger.log(2, record(2))
        assert (tmp_path / "metrics.jsonl").read_bytes() == before
        monkeypatch.setattr(logger, "_file", file)
        logger.log(2, record(2))
    assert [r["step"] for r in read_metrics(tmp_path)] == [1, 2]


def test_unusable_folder(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be written"):
        RunLogger(tmp_path / "missing")
    with pytest.raises(LogError, match="cannot be read"):
        read_metrics(tmp_path / "missing")
    if os.geteuid() == 0:
        return
    tmp_path.chmod(0o555)
    with pytest.raises(LogError, match="Permission denied"):
        RunLogger(tmp_path)
