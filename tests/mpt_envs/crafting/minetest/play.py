"""Playing for tests: at random, by the expert, or a given list of moves."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from mpt_envs.crafting.backends.minetest.task import MinetestTask

Move = tuple[str | None, int]


def random_move(task: MinetestTask, rng: random.Random) -> Move:
    """A legal action of some agent, or now and then a skipped turn."""
    if rng.random() < 0.05:
        return None, -1
    agent = rng.choice(task.possible_agents)
    return agent, rng.choice(np.flatnonzero(task.action_mask(agent)).tolist())


def mixed_move(task: MinetestTask, rng: random.Random) -> Move:
    """Now and then what the expert would do, so that play gets far, but seldom to its goal."""
    return expert_move(task) if rng.random() < 0.25 else random_move(task, rng)


def expert_move(task: MinetestTask) -> Move:
    agent = max(task.possible_agents, key=task.expert_bid)
    return agent, task.expert_action(agent)


def do(task: MinetestTask, move: Move) -> float:
    agent, action = move
    return (task.skip() if agent is None else task.act(agent, action)).reward


def digests(task: MinetestTask, moves: Iterable[Move]) -> list[str]:
    """The digest of the state after each move."""
    found = []
    for move in moves:
        do(task, move)
        found.append(task.snapshot().digest)
    return found


def play_expert(task: MinetestTask, seed: int) -> float:
    """An episode of the expert; returns its return."""
    task.reset(seed)
    total = 0.0
    for _ in range(task.default_max_turns):
        total += do(task, expert_move(task))
        if task.metrics()["success"] or task.observe("smith_0")[_TICKS_LEFT] <= 0:
            break
    return total


_TICKS_LEFT = MinetestTask.feature_names.index("ticks_left")
