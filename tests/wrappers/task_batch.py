"""A `BatchTask` over ordinary turn tasks, one object per world: slow, but plainly right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wrappers.native import BatchTask
from wrappers.task import Snapshot, TurnTask


class TaskBatch(BatchTask):
    """N worlds made by a factory."""

    def __init__(self, factory: Callable[[], TurnTask], num_envs: int) -> None:
        self.factory = factory
        self.tasks = [factory() for _ in range(num_envs)]
        first = self.tasks[0]
        self.task_id = first.task_id
        self.default_max_turns = first.default_max_turns
        self.num_envs = num_envs
        self.roles = first.roles
        self.agents = first.possible_agents
        self.observation_sizes = tuple(first.observation_size(a) for a in self.agents)
        self.action_counts = tuple(len(first.action_names(a)) for a in self.agents)
        self.action_names = tuple(first.action_names(a) for a in self.agents)
        self.metric_names = tuple(first.metrics())

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        for row, seed, episode in zip(rows, seeds, episodes, strict=True):
            self.tasks[row].reset(int(seed), int(episode))

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        for agent, size, array in zip(self.agents, self.observation_sizes, out, strict=True):
            for row, task in enumerate(self.tasks):
                array[row, :size] = task.observe(agent)

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        for agent, array in zip(self.agents, out, strict=True):
            for row, task in enumerate(self.tasks):
                array[row] = task.action_mask(agent)

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        rewards[:], terminated[:], illegal[:] = 0.0, False, False
        for row, task in enumerate(self.tasks):
            if roles[row] == -2:
                continue
            if roles[row] == -1:
                result = task.skip()
            else:
                result = task.act(self.agents[roles[row]], int(actions[row]))
            rewards[row], terminated[row] = result.reward, result.terminated
            illegal[row] = result.info.get("illegal", False)

    def snapshot(self, row: int) -> Snapshot:
        return self.tasks[row].snapshot()

    def restore(self, row: int, snapshot: Snapshot) -> None:
        self.tasks[row].restore(snapshot)

    def reseed(self, row: int, key: int) -> None:
        self.tasks[row].reseed(key)

    def metrics(self) -> NDArray[np.float64]:
        return np.array([list(task.metrics().values()) for task in self.tasks], np.float64)

    def spawn(self, num_envs: int) -> TaskBatch:
        return TaskBatch(self.factory, num_envs)

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        for row, task in enumerate(self.tasks):
            for role, agent in enumerate(self.agents):
                bids[row, role] = task.expert_bid(agent)
                actions[row, role] = task.expert_action(agent)
