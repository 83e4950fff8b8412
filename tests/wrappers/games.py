"""Playing games in tests: random legal play through any view, and its trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.toys import RelayTask
from wrappers.bid_then_act import BidThenActEnv
from wrappers.population import PopulationTask


def relay(copies: int = 1, **kwargs: Any) -> BidThenActEnv:
    """The market game over the relay."""
    task = RelayTask()
    return BidThenActEnv(PopulationTask(task, copies) if copies > 1 else task, **kwargs)


def legal_action(env: Any, generator: np.random.Generator) -> Any:
    """A random legal action of the selected agent, as number or as text."""
    observation, *_, info = env.last()
    if "legal_answers" in info:
        return info["legal_answers"][generator.integers(len(info["legal_answers"]))]
    return int(generator.choice(np.flatnonzero(observation["action_mask"])))


def frozen(value: Any) -> Any:
    """Arrays as bytes and dicts as tuples, so that traces can be compared."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return tuple((key, frozen(x)) for key, x in sorted(value.items()))
    return value


def play(env: Any, seed: int, steps: int = 10_000) -> list[Any]:
    """Random legal play to the end (or so many steps), with everything that can be seen of it."""
    generator = np.random.default_rng(seed)
    trace: list[Any] = []
    while env.agents and steps:
        steps -= 1
        agent = env.agent_selection
        observation, reward, terminated, truncated, info = env.last()
        assert env.observation_space(agent).contains(observation)
        trace.append((agent, frozen(observation), reward, terminated, truncated, frozen(info)))
        for other in env.possible_agents:
            trace.append((other, frozen(env.observe(other))))
        over = terminated or truncated
        action = None if over else legal_action(env, generator)
        assert over or env.action_space(agent).contains(action)
        env.step(action)
        trace.append((frozen(env.rewards), frozen(env.terminations), frozen(env.truncations)))
    return trace
