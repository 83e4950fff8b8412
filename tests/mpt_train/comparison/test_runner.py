from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpt_train.comparison.progress import Progress
from mpt_train.comparison.runner import Job, Outcome, Running, State, run_jobs, usable_cores

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def _workers_find_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    # Workers take over sys.path; programs that a test starts read the variable.
    monkeypatch.syspath_prepend(str(HERE))
    paths = [str(HERE), str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def by_name(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {outcome.job.name: outcome for outcome in outcomes}


def test_failures_stay_alone(tmp_path: Path) -> None:
    """A job that raises, one whose process dies and one that waits for it leave the rest alone."""
    jobs = [
        Job("good", "jobs:double", {"value": 4}, cost=1),
        Job("bad", "jobs:fail", {"message": "no such luck\nmore"}, cost=3),
        Job("dead", "jobs:die", cost=2),
        Job("waits", "jobs:double", {"value": 1}, after="dead"),
        Job("follows", "jobs:double", {"value": 5}, after="good"),
        Job("absent", "jobs:no_such_function"),
    ]
    seen: list[str] = []
    done = run_jobs(
        jobs, 2, tmp_path, lambda state, outcome: seen.append(outcome.job.name) if outcome else None
    )
    outcomes = by_name(done)
    assert len(done) == 6
    assert sorted(seen) == sorted(outcomes)
    assert outcomes["good"].value == 8
    assert outcomes["follows"].value == 10
    assert outcomes["bad"].error == "ValueError: no such luck"
    assert "Traceback" in outcomes["bad"].details
    assert "SIGKILL" in (outcomes["dead"].error or "")
    assert outcomes["waits"].skipped
    assert outcomes["waits"].error == "dead failed"
    assert "no_such_function" in (outcomes["absent"].error or "")


def test_longest_first_in_one_worker_with_one_thread(tmp_path: Path) -> None:
    def job(name: str, cost: float, after: str | None = None) -> Job:
        kwargs = {"folder": str(tmp_path), "name": name}
        return Job(name, "jobs:note", kwargs, cost=cost, after=after)

    jobs = [job("short", 1), job("long", 9), job("middle", 5), job("after-long", 0.1, "long")]
    outcomes = by_name(run_jobs([*jobs, Job("threads", "jobs:threads", cost=0)], 1, tmp_path))
    order = (tmp_path / "order.txt").read_text().split()
    assert order == ["long", "middle", "short", "after-long"]
    assert len({outcomes[name].value for name in order}) == 1, "one worker takes all jobs"
    assert outcomes["threads"].value == (1, "1")


def test_the_environment_of_this_process_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert run_jobs([Job("threads", "jobs:threads")], 1, tmp_path)[0].value == (1, "1")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_wrong_jobs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="different names"):
        run_jobs([Job("a", "jobs:double"), Job("a", "jobs:double")], 1, tmp_path)
    with pytest.raises(ValueError, match="unknown ones: b"):
        run_jobs([Job("a", "jobs:double", after="b")], 1, tmp_path)
    with pytest.raises(ValueError, match="at least 1"):
        run_jobs([], 0, tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from mpt_train.comparison.runner import Interrupted, Job, run_jobs

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    jobs = [Job(f"wait-{i}", "jobs:wait_for_stop", {"folder": str(folder)}) for i in range(3)]
    jobs.append(Job("quick", "jobs:double", {"value": 1}, cost=5))
    try:
        run_jobs(jobs, 2, folder / "logs")
    except Interrupted as stop:
        print("ended:", [outcome.job.name for outcome in stop.outcomes], flush=True)
        sys.exit(130)
"""


def start_script(folder: Path) -> subprocess.Popen[str]:
    """A program with two workers that wait, started as a shell does: in its own process group."""
    script = folder / "program.py"
    script.write_text(SCRIPT)
    program = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(folder.glob("started-*"))) < 2:
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return program


def pids(folder: Path) -> list[int]:
    return [int(path.name.split("-")[1]) for path in folder.glob("started-*")]


def wait_until_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 15
    for pid in processes:
        while Path(f"/proc/{pid}").exists():
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                break
            assert time.monotonic() < deadline, f"worker {pid} is still running"
            time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_ctrl_c_lets_the_jobs_keep_their_work(tmp_path: Path) -> None:
    program = start_script(tmp_path)
    os.killpg(program.pid, signal.SIGINT)
    output, errors = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "ended: ['quick']" in output
    assert "Traceback" not in errors
    workers = pids(tmp_path)
    assert len(workers) == 2
    assert all((tmp_path / f"kept-{pid}").exists() for pid in workers)
    wait_until_gone(workers)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_no_worker_outlives_a_killed_program(tmp_path: Path) -> None:
    program = start_script(tmp_path)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=60)
    wait_until_gone(pids(tmp_path))


def test_usable_cores() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def state_of_four() -> State:
    done = Outcome(Job("a", "x:y", cost=10.0), value=1, seconds=20.0)
    running = Running(Job("b", "x:y", cost=10.0, progress=lambda: 0.5), time.monotonic() - 10.0)
    waiting = [Job("c", "x:y", cost=10.0), Job("d", "x:y", cost=4.0)]
    return State(1, waiting, [running], [done])


def test_remaining_time_follows_the_measured_speed() -> None:
    state = state_of_four()
    assert state.speed() == pytest.approx(2.0, rel=0.01)
    assert state.remaining() == pytest.approx(10.0 + 20.0 + 8.0, rel=0.01)
    assert state.share() == pytest.approx(15.0 / 34.0)
    state.workers = 2
    assert state.remaining() == pytest.approx(20.0, rel=0.01)


def test_progress_in_a_log_file() -> None:
    stream = io.StringIO()
    progress = Progress(lambda o: f"done {o.job.name}", stream)
    state = state_of_four()
    progress.update(state, None)
    progress.update(state, state.outcomes[0])
    progress.update(state, Outcome(Job("e", "x:y"), error="ValueError: no"))
    progress._last -= 60
    progress.update(state, None)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "  done a in 0:20"
    assert lines[1] == "  FAILED e: ValueError: no"
    assert lines[2].startswith("[ 44 %] 0:00 gone, about 0:38 left; 1/4 jobs done; now b 50 %")
    assert "\r" not in stream.getvalue()


def test_progress_on_a_terminal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    progress = Progress(stream=stream, terminal=True)
    progress.update(state_of_four(), None)
    progress.update(state_of_four(), None)
    progress.close()
    assert "\n" not in stream.getvalue()
    assert all(len(part) <= 39 for part in stream.getvalue().split("\r"))
    assert stream.getvalue().endswith("\r" + " " * 39 + "\r")
