"""Against the running engine: `xvfb-run pytest -m minestudio`; skipped where it is missing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.crafting.backends.minestudio import make_task
from mpt_envs.crafting.backends.minestudio.install import why_missing
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from tests.mpt_envs.crafting.minestudio.play import play_expert

pytestmark = [
    pytest.mark.minestudio,
    pytest.mark.skipif(why_missing() is not None, reason=str(why_missing())),
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module", params=["command", "gui"])
def task(request: pytest.FixtureRequest) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task = make_task("wooden-pickaxe", crafting_mode=request.param)
        yield task
        task.close()


def test_the_body_stands_on_known_ground(task: Any) -> None:
    task.reset(0)
    s = task._s
    assert s[at.BELOW] >= facts.LEAVES and s[at.DEPTH] <= 1
    assert s[at.WALK_STEPS : at.WALK_STEPS + 4].max() > 0
    assert task.pov.std() > 0


def test_the_same_seed_is_the_same_world(task: Any) -> None:
    task.reset(3)
    place, first = task._engine.report.feet, at.blocks(task.record).copy()
    task.reset(3)
    assert task._engine.report.feet == place
    # Leaves and flowers may differ; the ground may not.
    same = (first == at.blocks(task.record)) | (first <= facts.LEAVES)
    assert same.mean() > 0.999


def test_walking_leads_where_it_should(task: Any) -> None:
    task.reset(1)
    direction = int(np.argmax(task._s[at.WALK_STEPS : at.WALK_STEPS + 4]))
    before = task._engine.report.place
    task.act("logger_0", facts.EXPLORE + direction)
    after = task._engine.report.place
    way = (after.x - before.x) * facts.STEP_X[direction]
    way += (after.z - before.z) * facts.STEP_Z[direction]
    assert way > 0.5


def test_the_expert_gets_wood_and_a_table(task: Any) -> None:
    for seed in range(4):
        task.reset(seed)
        play_expert(task, 40)
        if task.metrics()["reached_crafting_table"]:
            return
    raise AssertionError("the expert never made a table")


def test_a_snapshot_is_brought_back(task: Any) -> None:
    task.reset(2)
    play_expert(task, 3)
    if task._s[at.DONE]:
        pytest.skip("the episode was over too soon")
    snapshot = task.snapshot()
    play_expert(task, 3)
    task.restore(snapshot)
    assert task._s[at.TURN] == np.frombuffer(task.record, np.int32)[at.TURN]


def test_the_game_is_played() -> None:
    env = mpt_envs.make("crafting/crafting-table-v0", backend="minestudio", max_turns=5)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in env.agent_iter():
        _, _, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else int(rng.choice(np.flatnonzero(info["action_mask"]))))
    env.close()
