"""What the backend promises in numbers; `minetest.measure` prints them."""

from __future__ import annotations

import random
import time

import pytest

from mpt_envs.crafting.backends.minetest.measure import (
    expert_episode,
    own_pool,
    random_turn,
    soak,
    turns_per_second,
)
from mpt_envs.crafting.backends.minetest.task import MinetestTask


def test_an_expert_episode_from_start_to_goal_takes_seconds() -> None:
    with own_pool(1) as pool:
        start = time.perf_counter()
        task = MinetestTask(pool=pool)
        episode = expert_episode(task, 0)
        assert episode.success and episode.total == 59
        assert time.perf_counter() - start < 10


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("goal", ["iron-pickaxe", "torch", "stone-bricks"])
def test_the_expert_reaches_its_goal(goal: str) -> None:
    with own_pool(1) as pool:
        task = MinetestTask(goal, pool=pool)
        assert sum(expert_episode(task, seed).success for seed in range(10)) >= 8


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_thousand_turns_a_second_on_one_core() -> None:
    with own_pool(1) as pool:
        task = MinetestTask(pool=pool)
        turns_per_second(task, 1000)
        # Processor time: other programs on the machine do not count.
        assert turns_per_second(task, 5000).processor > 1000


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_eight_servers_at_once() -> None:
    with own_pool(8) as pool:
        tasks = [MinetestTask(pool=pool) for _ in range(8)]
        for seed, task in enumerate(tasks):
            task.reset(seed)
        assert pool.running == 8
        rng = random.Random(0)
        for _ in range(50):
            for task in tasks:
                random_turn(task, rng)
        assert len({task.snapshot().digest for task in tasks}) == 8


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_memory_does_not_grow() -> None:
    growth = soak(50_000, 510)
    assert growth.restores >= 500
    assert growth.most < 1.5 * growth.first
