"""PettingZoo's own tests on every task and view, and seeds that hold for whole episodes.

PettingZoo's seed tests compare the first steps only; ours compare everything up to the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test

from tests.interop.games import TASKS, VIEWS, game
from tests.wrappers.games import frozen, legal_action

# The test warns of spaces that are neither Box nor Discrete and of observations that are no arrays.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")

each_task = pytest.mark.parametrize("task", TASKS)
each_view = pytest.mark.parametrize("view", VIEWS)


@each_task
@each_view
def test_api_test(task: str, view: str) -> None:
    api_test(game(task, view), num_cycles=30)


@each_task
@pytest.mark.parametrize("view", ["game", "padded", "text", "text to read", "image"])
def test_parallel_api_test(task: str, view: str) -> None:
    parallel_api_test(game(task, view, api="parallel"), num_cycles=60)


def _episode(env: Any, seed: int | None, actions: int) -> list[Any]:
    """Everything that the selected agents see of an episode under random legal play."""
    env.reset(seed=seed)
    generator = np.random.default_rng(actions)
    trace: list[Any] = []
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        assert env.observation_space(agent).contains(observation)
        trace.append((agent, frozen(observation), reward, terminated, truncated, frozen(info)))
        env.step(None if terminated or truncated else legal_action(env, generator))
    return trace


@each_task
@each_view
def test_a_seed_fixes_whole_episodes(task: str, view: str) -> None:
    env, other = game(task, view), game(task, view)
    if view == "image":
        env, other = game(task, view, max_turns=12), game(task, view, max_turns=12)
    first = _episode(env, 5, 0)
    # The other environment arrives at this seed by another way.
    other.reset(seed=77)
    for _ in range(3):
        *_, terminated, truncated, _ = other.last()
        if terminated or truncated:
            break
        other.step(legal_action(other, np.random.default_rng(0)))
    assert _episode(other, 5, 0) == first
    assert first[-1][3] or first[-1][4]
    second = _episode(env, None, 1)
    assert _episode(other, None, 1) == second


@each_task
def test_a_seed_fixes_whole_parallel_episodes(task: str) -> None:
    traces = []
    for _ in range(2):
        env = game(task, api="parallel")
        observations, infos = env.reset(seed=11)
        generator = np.random.default_rng(2)
        trace: list[Any] = [frozen(observations)]
        while env.agents:
            actions = {
                agent: int(generator.choice(np.flatnonzero(infos[agent]["action_mask"])))
                for agent in env.agents
            }
            *seen, infos = env.step(actions)
            trace.append((*map(frozen, seen), frozen(infos)))
        traces.append(trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 12, "several turns"
