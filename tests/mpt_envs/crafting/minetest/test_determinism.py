"""The same seed and the same moves give the same states, digest by digest, in every process."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mpt_envs.crafting.backends.minetest import make_task
from mpt_envs.crafting.backends.minetest.pool import Pool
from mpt_envs.crafting.backends.minetest.task import MinetestTask
from tests.mpt_envs.crafting.minetest.play import Move, digests, do, mixed_move
from wrappers.task import Snapshot

ROOT = Path(__file__).resolve().parents[4]

_OTHER_PROCESS = """
import json, pickle, sys
from mpt_envs.crafting.backends.minetest import make_task
from tests.mpt_envs.crafting.minetest.play import digests
jobs = pickle.load(sys.stdin.buffer)
task = make_task()
answers = []
for start, moves in jobs:
    task.reset(start) if isinstance(start, int) else task.restore(start)
    answers.append(digests(task, moves))
print(json.dumps(answers))
task.close()
"""


def in_other_process(jobs: list[tuple[int | Snapshot, list[Move]]]) -> list[list[str]]:
    """Play moves from seeds or snapshots in a new interpreter, with servers of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_PROCESS],
        input=pickle.dumps(jobs),
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77"},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answer: list[list[str]] = json.loads(done.stdout)
    return answer


def played(task: MinetestTask, seed: int, count: int) -> tuple[list[Move], list[str], Snapshot]:
    """A sequence of moves with the digests after each, and the state in its middle."""
    rng = random.Random(seed)
    moves, found = [], []
    task.reset(seed)
    middle = task.snapshot()
    for index in range(count):
        move = mixed_move(task, rng)
        moves.append(move)
        do(task, move)
        found.append(task.snapshot().digest)
        if index + 1 == count // 2:
            middle = task.snapshot()
    return moves, found, middle


def check_sequences(seeds: range, count: int) -> int:
    """Replay sequences here and elsewhere, whole and from the middle; returns distinct states."""
    # No episode ends before its sequence does.
    task = make_task("iron-pickaxe", tick_budget=100_000)
    other = MinetestTask("iron-pickaxe", tick_budget=100_000, pool=Pool(1))
    jobs: list[tuple[int | Snapshot, list[Move]]] = []
    wanted = []
    for seed in seeds:
        moves, found, middle = played(task, seed, count)
        half = count // 2
        task.reset(seed)
        assert digests(task, moves) == found
        other.restore(middle)
        assert digests(other, moves[half:]) == found[half:]
        # A server that was never told of this episode's beginning.
        jobs.append((pickle.loads(pickle.dumps(middle)), moves[half:]))
        wanted.append(found[half:])
    assert in_other_process(jobs) == wanted
    other.close()
    task.close()
    return len({digest for row in wanted for digest in row})


def test_sequences_replay_in_this_and_another_process() -> None:
    assert check_sequences(range(2), 40) >= 38


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_twenty_sequences_of_200_actions() -> None:
    assert check_sequences(range(20), 200) > 1700


def test_whole_episodes_are_the_same_in_another_process() -> None:
    task = make_task()
    jobs: list[tuple[int | Snapshot, list[Move]]] = []
    wanted = []
    for seed in (1, 2):
        rng = random.Random(seed)
        task.reset(seed)
        moves, found = [], []
        for _ in range(30):
            move = mixed_move(task, rng)
            moves.append(move)
            do(task, move)
            found.append(task.snapshot().digest)
        jobs.append((seed, moves))
        wanted.append(found)
    assert in_other_process(jobs) == wanted


def test_an_episode_does_not_depend_on_those_before_it() -> None:
    first, second = MinetestTask(pool=Pool(1)), MinetestTask(pool=Pool(1))
    for seed in (0, 1, 2):
        first.reset(seed)
    second.reset(2)
    assert first.snapshot() == second.snapshot()
    first.reset(2, episode=1)
    assert first.snapshot() != second.snapshot()
    for task in (first, second):
        task._pool.close()


def test_only_drops_depend_on_the_key() -> None:
    """Gravel drops flint by the engine's dice, which are thrown anew in each turn."""
    task = make_task()
    task.reset(0)
    before = task.snapshot()
    task.reseed(12345)
    assert task.snapshot() != before
    task.restore(before)
    moves = [("logger_0", 1), ("smith_0", 2)]
    plain = digests(task, moves)
    task.restore(before)
    assert digests(task, moves) == plain
