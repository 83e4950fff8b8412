"""The scripted expert reaches every goal, in time, by legal decisions, without memory."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.crafting.batch import CraftingBatch
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, goals, layout

WORLDS = 300
FIRST_SEED = 5_000_000


def play(goal: str, tick_budget: int | None) -> tuple[CraftingBatch, int]:
    """Let the expert play `WORLDS` worlds; returns them and how many decisions were illegal."""
    batch = CraftingBatch(goal, WORLDS, tick_budget=tick_budget)
    rows = np.arange(WORLDS)
    batch.reset(rows, FIRST_SEED + rows, np.zeros(WORLDS, np.int64))
    bids, actions = np.zeros((WORLDS, 3)), np.zeros((WORLDS, 3), np.int64)
    rewards, illegal = np.zeros(WORLDS), np.zeros(WORLDS, np.bool_)
    terminated = np.zeros(WORLDS, np.bool_)
    wrong = 0
    for _ in range(batch.default_max_turns):
        batch.expert(bids, actions)
        roles = np.where(terminated, -2, bids.argmax(axis=1))
        done = terminated.copy()
        batch.act(roles, actions[rows, bids.argmax(axis=1)], rewards, terminated, illegal)
        terminated |= done
        wrong += int(illegal.sum())
    return batch, wrong


@pytest.mark.parametrize("goal", goals.GOAL_NAMES)
def test_it_reaches_the_goal(goal: str) -> None:
    batch, wrong = play(goal, tick_budget=50_000)
    assert wrong == 0
    s = layout.scalars(batch.records)
    assert (s[:, layout.DONE] == layout.DONE_GOAL).mean() >= 0.98
    assert (s[:, layout.SCORE] >= 0.9 * goals.max_return(goal)).mean() >= 0.98


@pytest.mark.parametrize("goal", goals.GOAL_NAMES)
def test_the_tick_budget_is_enough_and_leaves_no_slack(goal: str) -> None:
    batch, _ = play(goal, tick_budget=None)
    s = layout.scalars(batch.records)
    success = s[:, layout.DONE] == layout.DONE_GOAL
    assert success.mean() >= 0.87
    budget = goals.GOALS[goals.goal_index(goal)].tick_budget
    assert np.median(s[success, layout.TICK]) >= 0.5 * budget


def test_bids_say_who_should_act() -> None:
    task = CraftingTask("iron-pickaxe")
    for seed in range(5):
        task.reset(seed)
        for _ in range(60):
            bids = [task.expert_bid(agent) for agent in task.possible_agents]
            assert sorted(bids)[2] > sorted(bids)[1] + 0.3
            assert min(bids) > 0
            for agent in task.possible_agents:
                action = task.expert_action(agent)
                assert task.action_mask(agent)[action], (agent, action)
            agent = task.possible_agents[int(np.argmax(bids))]
            if task.act(agent, task.expert_action(agent)).terminated:
                break
        assert task.metrics()["reached_iron_ore"] or task.metrics()["ticks"] > 0


def test_every_role_is_needed() -> None:
    batch, _ = play("iron-pickaxe", None)
    s = layout.scalars(batch.records)
    for item in (facts.I_LOG, facts.I_COBBLESTONE, facts.I_PLANKS):
        assert (s[:, layout.SEEN] >> item & 1).mean() > 0.95


def test_random_play_stays_far_below() -> None:
    batch = CraftingBatch("iron-pickaxe", WORLDS)
    rows = np.arange(WORLDS)
    batch.reset(rows, FIRST_SEED + rows, np.zeros(WORLDS, np.int64))
    rng = np.random.default_rng(0)
    masks = [np.zeros((WORLDS, count), np.bool_) for count in batch.action_counts]
    rewards, illegal = np.zeros(WORLDS), np.zeros(WORLDS, np.bool_)
    terminated = np.zeros(WORLDS, np.bool_)
    for _ in range(120):
        batch.action_masks(masks)
        roles = rng.integers(0, 3, WORLDS)
        actions = np.zeros(WORLDS, np.int64)
        for role in range(3):
            mine = roles == role
            noise = rng.random((mine.sum(), batch.action_counts[role]))
            actions[mine] = (noise * masks[role][mine]).argmax(axis=1)
        batch.act(roles, actions, rewards, terminated, illegal)
        assert not illegal.any()
    score = layout.scalars(batch.records)[:, layout.SCORE]
    assert 3 < score.mean() < 25
