"""Many worlds are the same worlds as one by one; snapshots move freely between them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from mpt_envs.crafting import make_batch, make_task
from mpt_envs.crafting.batch import CraftingBatch
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.views.observation import FEATURE_NAMES, OBSERVATION_SIZE
from mpt_envs.crafting.world import facts, layout
from tests.mpt_envs.crafting.worlds import random_legal
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot


def step(batch: CraftingBatch, roles: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    count = batch.num_envs
    outputs = np.full(count, 9.0), np.ones(count, np.bool_), np.ones(count, np.bool_)
    batch.act(roles, actions, *outputs)
    return outputs


def test_single_and_batch_are_the_same() -> None:
    count, turns = 16, 90
    rng = np.random.default_rng(1)
    tasks = [CraftingTask("iron-pickaxe") for _ in range(count)]
    batch = make_batch(count, "iron-pickaxe")
    rows = np.arange(count)
    batch.reset(rows, 40 + rows, rows % 3)
    for k, task in enumerate(tasks):
        task.reset(40 + k, k % 3)
    observations = [np.full((count, OBSERVATION_SIZE + 1), 7, np.float32)]
    masks = [np.zeros((count, n), np.bool_) for n in batch.action_counts]
    for turn in range(turns):
        roles = rng.integers(-1, 3, count)
        actions = np.zeros(count, np.int64)
        batch.observe(observations)
        batch.action_masks(masks)
        expected = []
        for k, task in enumerate(tasks):
            agent = task.possible_agents[roles[k]]
            assert (observations[0][k, :-1] == task.observe(agent)).all()
            for role, name in enumerate(task.possible_agents):
                assert (masks[role][k] == task.action_mask(name)).all()
            # Any action now and then, legal ones most of the time.
            choices = np.flatnonzero(task.action_mask(agent)) if turn % 5 else np.arange(30)
            actions[k] = rng.choice(choices)
            result = task.skip() if roles[k] < 0 else task.act(agent, int(actions[k]))
            expected.append((*result[:2], result.info.get("illegal", False)))
        found = list(zip(*(o.tolist() for o in step(batch, roles, actions)), strict=True))
        assert found == expected
        for k, task in enumerate(tasks):
            assert (batch.records[k] == task.record).all()
    assert (observations[0][:, -1] == 7).all()
    values = batch.metrics()
    for k, task in enumerate(tasks):
        assert dict(zip(batch.metric_names, values[k].tolist(), strict=True)) == task.metrics()


def test_the_order_of_worlds_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    roles, actions = rng.integers(0, 3, (40, 12)), rng.integers(0, 9, (40, 12))
    records = []
    for order in (np.arange(12), np.arange(12)[::-1]):
        batch = make_batch(12)
        batch.reset(np.arange(12), 100 + order, np.zeros(12, np.int64))
        for turn in range(40):
            step(batch, roles[turn, order].copy(), actions[turn, order].copy())
        records.append(batch.records[np.argsort(order)])
    assert (records[0] == records[1]).all()


def test_worlds_left_alone_stay_as_they_are() -> None:
    batch = make_batch(4)
    batch.reset(np.arange(4), np.arange(4), np.zeros(4, np.int64))
    before = batch.records.copy()
    rewards, terminated, illegal = step(batch, np.array([-2, 0, -2, -1]), np.zeros(4, np.int64))
    assert (batch.records[[0, 2]] == before[[0, 2]]).all()
    assert (batch.records[[1, 3]] != before[[1, 3]]).any(axis=1).all()
    assert rewards.tolist() == [0, 0, 0, 0]
    assert not terminated.any()
    assert not illegal.any()


def test_reset_of_some_rows() -> None:
    batch = make_batch(3)
    batch.reset(np.arange(3), np.array([1, 2, 3]), np.zeros(3, np.int64))
    other = batch.records[1].copy()
    batch.reset(np.array([2, 0]), np.array([1, 3]), np.zeros(2, np.int64))
    task = make_task()
    task.reset(1)
    assert (batch.records[2] == task.record).all()
    task.reset(3)
    assert (batch.records[0] == task.record).all()
    assert (batch.records[1] == other).all()
    with pytest.raises(IndexError):
        batch.reset(np.array([3]), np.array([1]), np.zeros(1, np.int64))


def test_negative_and_large_seeds() -> None:
    task, batch = make_task(), make_batch(2)
    batch.reset(np.arange(2), np.array([-5, 2**62]), np.zeros(2, np.int64))
    for row, seed in enumerate((-5, 2**62)):
        task.reset(seed)
        assert (batch.records[row] == task.record).all()


def play_on(task: CraftingTask, seed: int, turns: int) -> list[object]:
    rng = np.random.default_rng(seed)
    trace: list[object] = []
    for _ in range(turns):
        agent, action = random_legal(task, rng)
        result = task.act(agent, action)
        masks = tuple(task.action_mask(a).tobytes() for a in task.possible_agents)
        trace.append((agent, action, result[:2], masks, task.observe(agent).tobytes()))
        if result.terminated:
            break
    trace.append(task.snapshot().digest)
    return trace


def test_snapshots_are_exact_under_random_continuations() -> None:
    task = make_task()
    other = make_task()
    batch = make_batch(2)
    rng = np.random.default_rng(3)
    for seed in range(12):
        task.reset(seed)
        play_on(task, seed, int(rng.integers(0, 60)))
        snapshot = task.snapshot()
        digest = snapshot.digest
        expected = play_on(task, 1000 + seed, 40)
        for holder in (task, other):
            holder.restore(snapshot)
            assert holder.snapshot() == snapshot
            assert play_on(holder, 1000 + seed, 40) == expected
        batch.restore(1, pickle.loads(pickle.dumps(snapshot)))
        assert batch.snapshot(1) == snapshot
        assert batch.snapshot(1).digest == digest


def test_a_snapshot_continues_in_another_process() -> None:
    task = make_task()
    task.reset(11)
    play_on(task, 0, 30)
    snapshot = task.snapshot()
    expected = play_on(task, 5, 25)[-1]
    code = (
        "import pickle, sys\n"
        "from mpt_envs.crafting import make_task\n"
        "from tests.mpt_envs.crafting.test_batch import play_on\n"
        "task = make_task()\n"
        "task.restore(pickle.load(sys.stdin.buffer))\n"
        "print(play_on(task, 5, 25)[-1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(snapshot),
        capture_output=True,
        check=True,
        timeout=240,
    )
    assert done.stdout.decode().strip() == expected


def test_reseeding_changes_the_draws_and_nothing_else() -> None:
    task = make_task()
    task.reset(0)
    before = task.record.copy()
    task.reseed(123)
    different = np.flatnonzero(task._s != before.view(np.int32))
    assert set(different.tolist()) <= {layout.KEY_LOW, layout.KEY_HIGH}
    batch = make_batch(1)
    batch.restore(0, task.snapshot())
    batch.reseed(0, 2**64 - 1)
    assert layout.scalars(batch.records)[0, [layout.KEY_LOW, layout.KEY_HIGH]].tolist() == [-1, -1]


def test_wrong_snapshots_are_refused_and_change_nothing() -> None:
    task = make_task()
    task.reset(0)
    good = task.snapshot()

    def spoilt(at: int, value: int) -> Snapshot:
        ints = np.frombuffer(good.payload, np.uint8).copy()
        ints.view(np.int32)[at] = value
        return Snapshot(good.task_id, good.version, ints.tobytes())

    other_goal = make_task("torch").snapshot()
    bad = [
        other_goal,
        Snapshot(good.task_id, good.version + 1, good.payload),
        Snapshot(good.task_id, good.version, good.payload[:-1]),
        Snapshot(good.task_id, good.version, other_goal.payload),
        spoilt(layout.X, 0),
        spoilt(layout.Y, 500),
        spoilt(layout.N_TREES, 10**6),
        spoilt(layout.TREES, 77),
        spoilt(layout.TABLE_CELL, 3),
        spoilt(layout.FURNACE_INPUT, 99),
        spoilt(layout.VERSION, 99),
        Snapshot(good.task_id, good.version, good.payload[:-1] + b"\xff"),
    ]
    batch = make_batch(1)
    batch.restore(0, good)
    for snapshot in bad:
        with pytest.raises(SnapshotError):
            task.restore(snapshot)
        with pytest.raises(SnapshotError):
            batch.restore(0, snapshot)
        assert task.snapshot() == good
        assert batch.snapshot(0) == good


def test_clones_and_pickles_are_independent() -> None:
    task = make_task("furnace", tick_budget=777)
    task.reset(3)
    play_on(task, 1, 10)
    for twin in (task.clone(), pickle.loads(pickle.dumps(task))):
        assert isinstance(twin, CraftingTask)
        assert twin.snapshot() == task.snapshot()
        twin.skip()
        assert twin.snapshot() != task.snapshot()


def test_observations_are_fresh_named_and_bounded() -> None:
    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == OBSERVATION_SIZE
    rng = np.random.default_rng(4)
    seen = []
    for goal in ("iron-pickaxe", "torch", "stone-bricks"):
        task = make_task(goal)
        for seed in range(40):
            task.reset(seed)
            first = task.observe("logger_0")
            assert first.dtype == np.float32
            first[:] = 9  # the caller's own
            for _ in range(80):
                observation = task.observe("miner_0")
                assert np.abs(observation).max() <= 1
                seen.append(observation)
                agent, action = random_legal(task, rng)
                if rng.random() < 0.9:
                    agent = max(task.possible_agents, key=task.expert_bid)
                    action = task.expert_action(agent)
                if task.act(agent, action).terminated:
                    break
    moved = np.ptp(np.stack(seen), axis=0) > 0
    still = [name for name, m in zip(FEATURE_NAMES, moved, strict=True) if not m]
    # What hardly ever happens to someone who plays well.
    rare = {"has_charcoal", "smelting_log", "smelted_charcoal", "iron_pickaxe_condition"}
    rare |= {"has_iron_pickaxe", "reached_iron_pickaxe", "has_torch", "reached_torch"}
    rare |= {
        "has_stone_bricks",
        "reached_stone_bricks",
        "last_skipped",
        "below_fixed",
        "below_water",
    }
    rare |= {
        "swimming",
        "below_water",
        "health",
        "gave_up_log",
        "gave_up_stone",
        "gave_up_coal_ore",
    }
    rare |= {"gave_up_iron_ore", "last_blocked", "can_smelt_charcoal"}
    assert set(still) <= rare


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="iron-pickaxe"):
        make_task("gold-pickaxe")
    with pytest.raises(ValueError, match="tick_budget"):
        make_task(tick_budget=0)
    with pytest.raises(ValueError, match="num_envs"):
        make_batch(0)
    with pytest.raises(ValueError, match="render mode"):
        make_task().render("human")


def test_an_observation_says_what_the_record_says() -> None:
    task = make_task()
    task.reset(0)
    s = task._s
    s[layout.INVENTORY + facts.I_LOG] = 2
    s[layout.TICK] = 675
    s[layout.HEADING] = 2
    task._observed = False
    values = dict(zip(FEATURE_NAMES, task.observe("smith_0").tolist(), strict=True))
    assert values["has_log"] == 0.5
    assert values["ticks_left"] == 0.75
    assert values["heading_south"] == 1
    assert values["heading_north"] == 0
    assert values["health"] == 1
    assert values["log_seen"] == float(s[layout.TARGET_CELL] != 0)
