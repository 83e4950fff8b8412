"""Jobs in worker processes: several at once, the longest first, each failure on its own.

A worker is a fresh process (spawn) with one torch and one numba thread, and takes one job after
the other, so that imports and compiled kernels are loaded once. A job is a top-level function with
plain arguments. What a worker prints goes to a file of the log folder.

* A job that raises is reported with its traceback; the worker goes on with the next one.
* A worker that dies (out of memory, a crash in native code) loses its job; a new one takes over.
* Ctrl-C reaches only this process. Workers are asked to stop (SIGTERM): their job may write a last
  checkpoint; after a grace period, or a second Ctrl-C, they are killed.
* If this process dies, the workers end themselves.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from typing import Any

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
GRACE_SECONDS = 20.0


@dataclass(frozen=True)
class Job:
    """A call of a function in a worker.

    Attributes:
        name: unique, for people.
        target: ``"module:function"``.
        kwargs: its arguments; they are sent to the worker.
        cost: expected seconds, from which the order and the remaining time are estimated.
        after: name of a job that must have ended well before.
        progress: share of the job that is done, asked in this process while the job runs.
        typical: whether the time it takes says how fast the others are going to be.
    """

    name: str
    target: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0
    after: str | None = None
    progress: Callable[[], float] | None = None
    typical: bool = True


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        job: which one.
        value: what it returned; None if it failed.
        error: one line; None if it ended well.
        details: traceback, or what is known of a process that died.
        seconds: how long it ran.
        skipped: it never started, because the job that it waits for failed.
    """

    job: Job
    value: Any = None
    error: str | None = None
    details: str = ""
    seconds: float = 0.0
    skipped: bool = False


class Interrupted(KeyboardInterrupt):
    """The user stopped the jobs; the workers have ended.

    Attributes:
        outcomes: of the jobs that had ended before.
    """

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__("interrupted")
        self.outcomes = outcomes


@dataclass
class Running:
    """A job in a worker."""

    job: Job
    started: float

    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.started

    def progress(self) -> float:
        """Share that is done, 0 if nobody knows."""
        if self.job.progress is None:
            return 0.0
        return min(max(self.job.progress(), 0.0), 1.0)


@dataclass
class State:
    """Where the jobs stand; what a display shows.

    Attributes:
        workers: how many jobs run at once.
        waiting: in the order in which they start.
        running: now.
        outcomes: of those that have ended.
        started: `time.monotonic` of the beginning.
    """

    workers: int
    waiting: list[Job]
    running: list[Running] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def speed(self) -> float:
        """Measured by expected seconds, over what is done; 1 as long as nothing is known."""
        measured = expected = 0.0
        for outcome in self.outcomes:
            if outcome.error is None and outcome.job.typical:
                measured += outcome.seconds
                expected += outcome.job.cost
        for running in self.running:
            share = running.progress()
            if share > 0.03 and running.job.typical:
                measured += running.seconds()
                expected += share * running.job.cost
        return measured / expected if expected > 0.0 and measured > 0.0 else 1.0

    def remaining(self) -> float:
        """Expected seconds until all is done, by playing the schedule on."""
        speed = self.speed()
        free = [0.0] * self.workers
        for i, running in enumerate(self.running[: self.workers]):
            share = running.progress()
            total = running.job.cost * speed
            if share > 0.1:
                total = 0.5 * total + 0.5 * running.seconds() / share
            free[i] = max(total * (1.0 - share) if share else total - running.seconds(), 0.0)
        for job in self.waiting:
            free.sort()
            free[0] += job.cost * speed
        return max(free)

    def share(self) -> float:
        """Share of the expected work that is done."""
        done = sum(outcome.job.cost for outcome in self.outcomes)
        part = sum(r.progress() * r.job.cost for r in self.running)
        total = done + sum(r.job.cost for r in self.running) + sum(j.cost for j in self.waiting)
        return (done + part) / total if total else 1.0


Watcher = Callable[[State, Outcome | None], None]
"""Called with the state every moment, and with each job that ends."""


def usable_cores() -> int:
    """Cores that this process may use, by its affinity and by the limit of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    return max(cores, 1)


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    log_folder: Path,
    watch: Watcher | None = None,
    poll: float = 0.5,
) -> list[Outcome]:
    """Run the jobs, the most expensive first.

    Args:
        jobs: in any order; one with ``after`` starts once that job has ended well.
        workers: processes at once.
        log_folder: where the output of the workers goes.
        watch: called about every ``poll`` seconds and whenever a job ends.

    Returns:
        One outcome per job, in the order in which they ended.

    Raises:
        Interrupted: Ctrl-C; it has the outcomes so far.
    """
    names = [job.name for job in jobs]
    if len(set(names)) != len(names):
        raise ValueError("jobs must have different names")
    missing = {job.after for job in jobs if job.after is not None} - set(names)
    if missing:
        raise ValueError(f"jobs wait for unknown ones: {', '.join(sorted(missing))}")
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    log_folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(jobs, key=lambda job: -job.cost)
    state = State(workers, ordered)
    pool: list[_Worker] = []
    try:
        _work(state, pool, log_folder, watch or (lambda state, outcome: None), poll)
    except KeyboardInterrupt:
        _stop(pool)
        raise Interrupted(state.outcomes) from None
    except BaseException:
        for worker in pool:
            worker.kill()
        raise
    for worker in pool:
        worker.close()
    return state.outcomes


def _work(state: State, pool: list[_Worker], log_folder: Path, watch: Watcher, poll: float) -> None:
    ended: dict[str, bool] = {}

    def finish(outcome: Outcome) -> None:
        state.outcomes.append(outcome)
        ended[outcome.job.name] = outcome.error is None
        watch(state, outcome)

    def next_job() -> Job | None:
        for job in list(state.waiting):
            if job.after is not None and ended.get(job.after) is False:
                state.waiting.remove(job)
                finish(Outcome(job, error=f"{job.after} failed", skipped=True))
            elif job.after is None or ended.get(job.after):
                state.waiting.remove(job)
                return job
        return None

    started = 0
    while state.waiting or state.running:
        while len(state.running) < state.workers:
            job = next_job()
            if job is None:
                break
            idle = next((w for w in pool if w.running is None), None)
            if idle is None:
                started += 1
                idle = _Worker(started, log_folder)
                pool.append(idle)
            idle.begin(job)
            assert idle.running is not None
            state.running.append(idle.running)
        if not state.running:
            continue
        busy = {w.pipe: w for w in pool if w.running is not None}
        # A pipe is ready when there is an answer, and when its worker has died.
        ready = connection.wait(list(busy), timeout=poll)
        for pipe in ready:
            worker = busy[pipe]  # type: ignore[index]
            running = worker.running
            assert running is not None
            outcome = worker.collect()
            state.running.remove(running)
            if not worker.alive:
                pool.remove(worker)
            finish(outcome)
        watch(state, None)


def _stop(pool: list[_Worker]) -> None:
    """Let the workers write their checkpoints; a second Ctrl-C ends them at once."""
    try:
        for worker in pool:
            worker.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for worker in pool:
            worker.process.join(max(0.0, deadline - time.monotonic()))
    except KeyboardInterrupt:
        pass
    finally:
        for worker in pool:
            worker.kill()


class _Worker:
    """A process that takes one job after the other."""

    def __init__(self, number: int, log_folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.log = log_folder / f"worker-{number}.log"
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, str(self.log)), name=f"worker-{number}", daemon=True
        )
        with _ctrl_c_blocked(), _environment(ONE_THREAD):
            self.process.start()
        theirs.close()
        self.running: Running | None = None
        self.alive = True

    def begin(self, job: Job) -> None:
        self.running = Running(job, time.monotonic())
        # A worker that has just died is noticed when its answer is awaited.
        with contextlib.suppress(OSError):
            self.pipe.send((job.target, dict(job.kwargs)))

    def collect(self) -> Outcome:
        assert self.running is not None
        job, seconds = self.running.job, self.running.seconds()
        self.running = None
        try:
            value, error, details = self.pipe.recv()
        except (EOFError, OSError):
            self.alive = False
            self.pipe.close()
            self.process.join(5.0)
            return Outcome(job, None, *self._obituary(), seconds)
        return Outcome(job, value, error, details, seconds)

    def _obituary(self) -> tuple[str, str]:
        code = self.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = ": perhaps out of memory (try fewer --jobs)" if name == "SIGKILL" else ""
            why = f"its process was ended by {name}{hint}"
        else:
            why = f"its process ended with code {code}"
        return why, f"{why}; its output is in {self.log}"

    def terminate(self) -> None:
        if self.process.is_alive():
            self.process.terminate()

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5.0)
        self.pipe.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join(10.0)
        self.kill()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Processes started here never see Ctrl-C, not even while they are importing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for processes started here."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# -- in the worker ---------------------------------------------------------------------------


def _serve(pipe: connection.Connection, log: str) -> None:
    """Take jobs until there are no more."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A job without a handler of its own stops where it is.
    signal.signal(signal.SIGTERM, _raise_interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while (task := pipe.recv()) is not None:
            pipe.send(_answer(*task))
    except (EOFError, OSError, KeyboardInterrupt):
        pass
    sys.stdout.flush()


def _answer(target: str, kwargs: dict[str, Any]) -> tuple[Any, str | None, str]:
    try:
        module, _, name = target.partition(":")
        return getattr(importlib.import_module(module), name)(**kwargs), None, ""
    except Exception as error:
        text = str(error).strip().split("\n")[0]
        line = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return None, line, traceback.format_exc()


def _raise_interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
