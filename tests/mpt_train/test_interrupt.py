"""A run that is stopped, or killed, goes on to the same numbers as one that never was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpt_train.errors import TrainingInterrupted
from mpt_train.loop import Trainer
from mpt_train.runs.checkpoint import has_checkpoint, load_checkpoint
from mpt_train.runs.folder import RunFolder
from mpt_train.runs.interrupt import StopRequest, graceful_interrupt
from tests.mpt_train.killed import BUDGET, METHOD
from tests.mpt_train.relay import tiny
from tests.mpt_train.runs import assert_same_run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from tests.mpt_train.relay import register_relay
register_relay()
from benchmarks.main import main
sys.exit(main())
"""


class StopAfter(StopRequest):
    """A request that comes after so many polls."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        super().__init__()

    @property
    def requested(self) -> bool:
        self.polls -= 1
        return self.polls < 0

    @requested.setter
    def requested(self, value: bool) -> None:
        pass


def wait_for(condition: Callable[[], bool], program: subprocess.Popen[str]) -> None:
    """Wait until something has happened that a program does while it runs."""
    deadline = time.monotonic() + 120
    while not condition():
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def start_program(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_asks_and_second_raises(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with graceful_interrupt() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        assert stop.signal_number == number
        assert "Stopping after this step" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_other_threads_are_never_asked() -> None:
    found = []

    def work() -> None:
        with graceful_interrupt() as stop:
            found.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.parametrize("method", ["mpt", "mpt-plus", "monolithic", "router"])
def test_stopped_at_any_steps_and_resumed(method: str, tmp_path: Path) -> None:
    config = tiny(method)
    Trainer(config, tmp_path / "whole").train()
    stops = 0
    choose = random.Random(method)
    while True:
        trainer = Trainer(
            config, tmp_path / "parts", resume=True, stop=StopAfter(choose.randint(1, 12))
        )
        stopped = None
        try:
            trainer.train()
        except TrainingInterrupted as interrupted:
            stopped = interrupted
        if stopped is None:
            break
        stops += 1
        assert stopped.folder == tmp_path / "parts"
        _, state = load_checkpoint(tmp_path / "parts" / "checkpoint")
        assert state["step"] == stopped.step
    assert stops >= 1
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_stopping_without_a_folder() -> None:
    with pytest.raises(TrainingInterrupted, match="nothing was kept"):
        Trainer(tiny("mpt"), stop=StopAfter(1)).train()


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    config = tiny("mpt-plus")
    first = Trainer(config, tmp_path / "run").train()
    lines = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    again = Trainer(config, tmp_path / "run", resume=True).train()
    assert again.final == first.final
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == lines


def test_killed_at_random_moments(tmp_path: Path) -> None:
    Trainer(tiny(METHOD, BUDGET), tmp_path / "whole").train()
    seed = random.SystemRandom().randrange(10**6)
    done = subprocess.run(
        [sys.executable, "-m", "tests.mpt_train.killed", str(tmp_path / "parts"), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert int(done.stdout) >= 1, f"seed {seed}"
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    options = [
        *("--task", "toys/relay-v0", "--folder", str(run.path), "--num-envs", "8", "--quiet"),
        *("--network.hidden", "8", "--cold-start.episodes", "4", "--eval.worlds", "4"),
        *("--eval.curve-worlds", "2", "--checkpoint-every", "1000000"),
    ]
    with start_program("train", "mpt-plus", *options) as program:
        wait_for(lambda: run.metrics.is_file() and run.metrics.read_text().count("\n") > 3, program)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate()
    assert program.returncode == 130, errors
    assert f"mpt train --resume --folder {run.path}" in errors
    assert "Traceback" not in errors
    _, state = load_checkpoint(run.checkpoint)
    steps = sum(b'"kind": "train"' in line for line in run.metrics.read_bytes().splitlines())
    assert state["step"] == steps > 0, "not a step is lost"


def test_second_ctrl_c_quits_at_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    # A step of some seconds, so that the second one comes in the middle of it.
    options = ["--task", "toys/relay-v0", "--folder", str(run.path), "--num-envs", "4000"]
    options += ["--network.hidden", "8", "--cold-start.episodes", "4", "--eval.worlds", "4"]
    with start_program("train", "mpt-plus", *options) as program:
        assert program.stderr is not None
        wait_for(lambda: has_checkpoint(run.checkpoint), program)
        program.send_signal(signal.SIGINT)
        while "Stopping after this step" not in program.stderr.readline():
            assert program.poll() is None
        asked = time.monotonic()
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate()
    assert program.returncode == 130, errors
    assert time.monotonic() - asked < 5
    assert "Quit at once" in errors
    assert f"mpt train --resume --folder {run.path}" in errors
    assert "Traceback" not in errors
    assert load_checkpoint(run.checkpoint)[1]["step"] == 0
