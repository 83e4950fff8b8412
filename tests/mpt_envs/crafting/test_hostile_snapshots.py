"""Records that were tampered with: refused, or played on without leaving their arrays.

Compiled rules check no bounds. So the same attack runs once more in a process whose kernels do
(``NUMBA_BOUNDSCHECK``), where an access out of bounds is an IndexError.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mpt_envs.crafting import make_batch, make_task
from mpt_envs.crafting.batch import CraftingBatch
from mpt_envs.crafting.rules.snapshots import is_valid
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, layout
from tests.mpt_envs.crafting.worlds import random_legal
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

ROOT = Path(__file__).resolve().parents[3]
EXTREMES = (-(2**31), -(2**20), -2, -1, 0, 1, 2**20, 2**31 - 1)


def states(goal: str, seeds: range) -> list[Snapshot]:
    """States of episodes that the expert plays, with some random actions."""
    task = make_task(goal)
    rng = np.random.default_rng(seeds.start)
    found = []
    for seed in seeds:
        task.reset(seed)
        for _ in range(int(rng.integers(0, 100))):
            agent, action = random_legal(task, rng)
            if rng.random() < 0.8:
                agent = max(task.possible_agents, key=task.expert_bid)
                action = task.expert_action(agent)
            if task.act(agent, action).terminated:
                break
        found.append(task.snapshot())
    return found


def spoil(payload: bytes, rng: np.random.Generator) -> bytes:
    """A record with something changed anywhere: scalars, runs of blocks, single bytes."""
    record = np.frombuffer(payload, np.uint8).copy()
    ints = record.view(np.int32)
    kind = rng.integers(4)
    if kind == 0:
        at = int(rng.integers(layout.N_INTS))
        near = int(ints[at]) + int(rng.choice([-24, -1, 1, 24]))
        value = int(rng.choice([*EXTREMES, near]))
        ints[at] = np.int64(value).astype(np.int32)
    elif kind == 1:
        for at in rng.integers(layout.N_INTS, size=int(rng.integers(1, 20))):
            ints[at] ^= np.int32(1 << int(rng.integers(31)))
    elif kind == 2:
        start = int(rng.integers(layout.GROUND_OFFSET, layout.RECORD_BYTES))
        record[start : start + int(rng.integers(1, 3000))] = rng.integers(facts.N_BLOCKS + 1)
    else:
        for at in rng.integers(layout.RECORD_BYTES, size=int(rng.integers(1, 20))):
            record[at] = rng.integers(256)
    return record.tobytes()


def use(task: CraftingTask, rng: np.random.Generator) -> None:
    """Everything that can be done with a state."""
    for turn in range(30):
        agent, action = random_legal(task, rng)
        for other in task.possible_agents:
            assert np.isfinite(task.observe(other)).all()
            task.expert_bid(other)
        if turn % 10 == 0:
            task.prompt(agent, "act")
            task.narrate()
            task.metrics()
            task.render("ansi")
        result = task.act(agent, action)
        assert result.reward >= 0
        if turn % 8 == 0:
            task.skip()
        if result.terminated:
            break


def attack(seed: int, count: int) -> tuple[int, int]:
    """Restore and play spoilt records; returns how many were refused and how many accepted."""
    rng = np.random.default_rng(seed)
    goals = ("iron-pickaxe", "torch", "stone-bricks")
    victims = [(make_task(goal), states(goal, range(4))) for goal in goals]
    refused = accepted = 0
    for _ in range(count):
        task, found = victims[rng.integers(len(victims))]
        good = found[rng.integers(len(found))]
        task.restore(good)
        bad = Snapshot(good.task_id, good.version, payload := spoil(good.payload, rng))
        started = time.perf_counter()
        try:
            task.restore(bad)
        except SnapshotError:
            refused += 1
            assert task.snapshot() == good
        else:
            accepted += 1
            assert task.record.tobytes() == payload
            use(task, rng)
        assert time.perf_counter() - started < 20, "a state that takes for ever"
    return refused, accepted


def test_spoilt_records_are_refused_or_harmless() -> None:
    refused, accepted = attack(0, 3000)
    # Some bytes are free: counts of what was dug, the random key, unused ends of lists.
    assert refused > 10 * accepted / 3 > 0


def test_the_same_where_every_access_is_checked(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """In a process of its own. Its kernels are compiled apart, and kept for the next run."""
    cache = getattr(pytestconfig, "cache", None)
    folder = tmp_path if cache is None else cache.mkdir("boundscheck")
    code = (
        "from tests.mpt_envs.crafting.test_hostile_snapshots import attack, east\n"
        "east()\n"
        "attack(1, 1500)\n"
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr


def east() -> None:
    """Explore to the eastern edge, behind which the record ends."""
    task = make_task()
    for seed in range(12):
        task.reset(seed)
        for _ in range(25):
            names = task.legal_action_names("logger_0")
            name = "explore_east" if "explore_east" in names else names[seed % len(names)]
            if task.act("logger_0", task.action_names("logger_0").index(name)).terminated:
                break


def test_every_scalar_has_a_range_or_is_free() -> None:
    """Each scalar on its own, at all extremes: what is accepted plays on."""
    rng = np.random.default_rng(3)
    task = make_task()
    good = states("iron-pickaxe", range(7, 8))[0]
    free = set()
    for at in range(layout.N_INTS):
        for value in EXTREMES:
            record = np.frombuffer(good.payload, np.uint8).copy()
            ints = record.view(np.int32)
            if ints[at] == value:
                continue
            ints[at] = value
            try:
                task.restore(Snapshot(good.task_id, good.version, record.tobytes()))
            except SnapshotError:
                continue
            if value in (-(2**31), 2**31 - 1):
                free.add(at)
            use(task, rng)
    keys = {layout.SEED_LOW, layout.SEED_HIGH, layout.KEY_LOW, layout.KEY_HIGH}
    assert free == keys, "nothing else may be anything"


def test_what_play_leads_to_is_always_valid() -> None:
    """No state that the rules reach is refused, nor one in which a test has put things."""
    for goal in ("iron-pickaxe", "torch", "stone-bricks"):
        task = make_task(goal)
        index = task._goal
        rng = np.random.default_rng(5)
        for seed in range(12):
            task.reset(seed)
            for turn in range(120):
                assert is_valid(task.record, index), (seed, turn)
                agent, action = random_legal(task, rng)
                if rng.random() < 0.6:
                    agent = max(task.possible_agents, key=task.expert_bid)
                    action = task.expert_action(agent)
                if rng.random() < 0.05:
                    task.skip()
                if task.act(agent, action).terminated:
                    assert is_valid(task.record, index), (seed, turn)
                    break


def open_shell(record: NDArray[np.uint8], where: str) -> None:
    blocks = layout.blocks(record)
    if where == "bottom":
        blocks[20, 20, 0] = facts.AIR
    elif where == "top":
        blocks[20, 20, -1] = facts.AIR
    elif where == "west":
        blocks[0, 20, 12] = facts.AIR
    elif where == "east":
        blocks[-1, 20, 12] = facts.WATER
    elif where == "north":
        blocks[20, 0, 12] = facts.STONE
    else:
        blocks[20, -1, 12] = facts.LEAVES


@pytest.mark.parametrize("where", ["bottom", "top", "west", "east", "north", "south"])
def test_a_hole_in_the_world_is_found(where: str) -> None:
    task = make_task()
    task.reset(0)
    record = task.record.copy()
    open_shell(record, where)
    with pytest.raises(SnapshotError, match="it was changed after it was taken"):
        task.restore(Snapshot(task.task_id, layout.LAYOUT_VERSION, record.tobytes()))


def test_masks_and_targets_must_be_what_the_body_perceives() -> None:
    """Else a legal action could dig through the bottom of the world."""
    task = make_task()
    task.reset(0)
    for at, value in (
        (layout.MASKS + facts.MINER, (1 << 9) - 1),
        (layout.TARGET_CELL + layout.TARGET_STONE, layout.cell_of(20, 0, 20)),
        (layout.TABLE_CELL, layout.cell_of(20, 0, 20)),
        (layout.WALK_STEPS, 7),
        (layout.BELOW, facts.WATER),
    ):
        record = task.record.copy()
        record.view(np.int32)[at] = value
        with pytest.raises(SnapshotError):
            task.restore(Snapshot(task.task_id, layout.LAYOUT_VERSION, record.tobytes()))


@pytest.mark.parametrize("payload", [b"", b"x", "text", None, 7, bytearray(layout.RECORD_BYTES)])
def test_payloads_of_other_kinds(payload: object) -> None:
    task, batch = make_task(), make_batch(1)
    task.reset(0)
    before = task.snapshot()
    bad = Snapshot(task.task_id, layout.LAYOUT_VERSION, payload)  # type: ignore[arg-type]
    for restore in (task.restore, lambda s: batch.restore(0, s)):
        with pytest.raises(SnapshotError):
            restore(bad)
        with pytest.raises(SnapshotError, match="expected a Snapshot"):
            restore(payload)  # type: ignore[arg-type]
    assert task.snapshot() == before


def test_a_snapshot_is_checked_once_and_again_where_it_is_new() -> None:
    task = make_task()
    task.reset(0)
    taken = task.snapshot()
    assert taken.verified
    copy = pickle.loads(pickle.dumps(taken))
    assert not copy.verified
    task.restore(copy)
    assert copy.verified
    assert copy == taken
    assert hash(copy) == hash(taken)
    record = task.record.copy()
    record.view(np.int32)[layout.X] = 0
    forged = pickle.loads(pickle.dumps(Snapshot(taken.task_id, taken.version, record.tobytes())))
    for _ in range(2):
        with pytest.raises(SnapshotError):
            task.restore(forged)


def test_pickled_tasks_are_checked() -> None:
    batch = make_task().batch
    state = batch.__getstate__()
    (kept,) = state["snapshots"]
    twin = CraftingBatch.__new__(CraftingBatch)
    for payload in (kept.payload[:-4], kept.payload[:-1] + b"\xff"):
        snapshot = Snapshot(kept.task_id, kept.version, payload)
        with pytest.raises(SnapshotError):
            twin.__setstate__({**state, "snapshots": [snapshot]})


def test_batches_refuse_arrays_of_another_length() -> None:
    """The compiled loops would read and write beyond their ends."""
    batch = make_batch(3)
    batch.reset(np.arange(3), np.arange(3), np.zeros(3, np.int64))
    right = [np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3)]
    right += [np.zeros(3, np.bool_), np.zeros(3, np.bool_)]
    before = batch.records.copy()
    for position in range(5):
        arguments = list(right)
        arguments[position] = arguments[position][:2]
        with pytest.raises(ValueError, match="one per world"):
            batch.act(*arguments)  # type: ignore[arg-type]
    for role in (-3, 3):
        with pytest.raises(ValueError, match="roles must be"):
            batch.act(np.full(3, role), *right[1:])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one per world"):
        batch.observe([np.zeros((2, 200), np.float32)])
    with pytest.raises(ValueError, match="columns"):
        batch.observe([np.zeros((3, 5), np.float32)])
    with pytest.raises(ValueError, match="one per world"):
        batch.action_masks([np.zeros((2, 7), np.bool_)])
    with pytest.raises(ValueError, match="one per world"):
        batch.expert(np.zeros((2, 3)), np.zeros((2, 3), np.int64))
    with pytest.raises(ValueError, match="one per role"):
        batch.expert(np.zeros((3, 2)), np.zeros((3, 2), np.int64))
    assert (batch.records == before).all()
