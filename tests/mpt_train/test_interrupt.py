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
from mpt_train.runs.interrupt import graceful_interrupt
from tests.mpt_train.killed import BUDGET, METHOD
from tests.mpt_train.relay import tiny
from tests.mpt_train.runs import assert_same_run
from tests.mpt_train.stops import StopAfter, StopIn

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from tests.mpt_train.relay import register_relay
register_relay()
from mpt_train.cli.main import main
sys.exit(main())
"""


PLACES: dict[str, tuple[tuple[str, ...], int, bool]] = {
    "demonstrations": (("demonstrate",), 3, False),
    "replayed demonstrations": (("replay_solo",), 3, False),
    "cold start": (("fit",), 2, False),
    "its evaluation": (("_start", "evaluate"), 7, False),
    "between steps": (("_steps",), 1, True),
    "rollout": (("step", "rollout"), 60, True),
    "branches": (("collect", "rollout"), 10, True),
    "learning curve": (("_curve",), 5, True),
    "last point of the curve": (("_curve",), 25, True),
    "final evaluation": (("_finish",), 9, True),
}
"""Where a stop can arrive: functions, how often it is let pass, whether there is a checkpoint."""


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
        assert "Stopping, with a checkpoint" in capfd.readouterr().err
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
            config, tmp_path / "parts", resume=True, stop=StopAfter(choose.randint(1, 300))
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
        assert stopped.saved == has_checkpoint(tmp_path / "parts" / "checkpoint")
        if stopped.saved:
            _, state = load_checkpoint(tmp_path / "parts" / "checkpoint")
            assert state["step"] == stopped.step
    assert stops >= 1
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize("place", PLACES)
def test_a_stop_is_obeyed_wherever_it_arrives(place: str, tmp_path: Path) -> None:
    """At the next turn or mini-batch; and the resumed run comes to the same numbers."""
    names, skip, saved = PLACES[place]
    stop = StopIn(*names, skip=skip)
    config = tiny("monolithic" if "replayed" in place else "mpt")
    Trainer(config, tmp_path / "whole").train()
    run = RunFolder(tmp_path / "parts")
    trainer = Trainer(config, run.path, stop=stop)
    with pytest.raises(TrainingInterrupted, match="after step" if saved else "in the cold start"):
        trainer.train()
    assert stop.skip == -1, "asked once, and obeyed"
    assert has_checkpoint(run.checkpoint) == saved and not run.summary.exists()
    assert trainer.counter.total == trainer.progress.flop, "what was left is not counted"
    if place == "final evaluation":
        steps = load_checkpoint(run.checkpoint)[1]["step"]
        resumed = Trainer(config, run.path, resume=True)
        assert resumed.train().steps == steps
    else:
        Trainer(config, run.path, resume=True).train()
    assert_same_run(run.path, tmp_path / "whole")


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
        while "Stopping, with a checkpoint" not in program.stderr.readline():
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
