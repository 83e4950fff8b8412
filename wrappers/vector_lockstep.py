"""`LockstepVectorGame`: AEC games stepped one after the other, for tasks without a `BatchTask`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import MissingCapabilityError, PhaseError, TaskError
from wrappers.game_snapshot import GameSnapshot
from wrappers.rng import as_key
from wrappers.task import agent_roles
from wrappers.vector import VectorAuction, VectorGame, VectorResult


class LockstepVectorGame(VectorGame):
    """A vector game over AEC games, stepped one after the other.

    Args:
        make_env: returns a new `BidThenActEnv` (or a wrapper that passes its attributes through).
        num_envs: N.
    """

    def __init__(self, make_env: Callable[[], BidThenActEnv], num_envs: int) -> None:
        self._make_env = make_env
        self.envs = [make_env() for _ in range(num_envs)]
        env = self.envs[0]
        self.num_envs = num_envs
        self.task_id = env.task.task_id
        self.snapshot_fidelity = env.task.snapshot_fidelity
        self.coverage = env.task.coverage
        self.possible_agents = tuple(env.possible_agents)
        self.roles = agent_roles(self.possible_agents)
        self.bid_levels = np.array(env.bid_levels)
        self.max_turns = env.max_turns
        self.dropout = env.dropout
        self._num_levels = len(env.bid_levels)
        self.observation_sizes = tuple(
            env.task.observation_size(agent) + 1 for agent in self.possible_agents
        )
        self.action_names = tuple(tuple(env.task.action_names(a)) for a in self.possible_agents)
        self.action_counts = tuple(len(names) for names in self.action_names)
        self.shared_observation = env.task.shared_observation
        self.has_expert = env.task.has_expert
        self._task_metrics: tuple[str, ...] | None = None
        self.active = np.zeros(num_envs, np.bool_)
        self.turn = np.zeros(num_envs, np.int64)
        self.keys = np.zeros(num_envs, np.uint64)
        self._illegal_before = np.zeros(num_envs, np.int64)
        self._winners = np.full(num_envs, -1)
        self._resolved = False

    @property
    def metric_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Known once the first episode has begun."""
        if self._task_metrics is None:
            raise PhaseError("call reset() before reading metric_names")
        return self._task_metrics

    def reset(
        self,
        seeds: Sequence[int] | NDArray[np.int64],
        episodes: Sequence[int] | NDArray[np.int64] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        seeds, episodes, rows = self._check_starts(seeds, episodes, rows)
        starts = zip(rows.tolist(), seeds.tolist(), episodes.tolist(), strict=True)
        for row, seed, episode in starts:
            env = self.envs[row]
            if episode:
                env.seed, env.episode = seed, episode - 1
                env.reset()
            else:
                env.reset(seed)
            self._sync(row)
        if self._task_metrics is None and len(rows):
            self._task_metrics = tuple(self.envs[int(rows[0])].metrics())
        self._resolved = False

    def _sync(self, row: int) -> None:
        env = self.envs[row]
        self.active[row] = bool(env.agents) and not (
            any(env.terminations.values()) or any(env.truncations.values())
        )
        self.turn[row] = env.turn
        self.keys[row] = as_key(env.random_key)

    def observe(self) -> list[NDArray[np.float32]]:
        agents = self.possible_agents[:1] if self.shared_observation else self.possible_agents
        observations = [
            np.stack([env.observe(agent)["observation"] for env in self.envs]) for agent in agents
        ]
        for agent, size, values in zip(agents, self.observation_sizes, observations, strict=False):
            if values.shape[1] != size:
                raise TaskError(
                    f"{self.task_id} shows {agent} {values.shape[1] - 1} numbers, but its "
                    f"observation_size is {size - 1}: mend the task"
                )
        return observations * self.num_agents if self.shared_observation else observations

    def action_masks(self) -> list[NDArray[np.bool_]]:
        return [
            np.stack([env.task.action_mask(agent).astype(np.bool_) for env in self.envs])
            for agent in self.possible_agents
        ]

    def present(self) -> NDArray[np.bool_]:
        out = np.ones((self.num_envs, self.num_agents), np.bool_)
        if self.dropout:
            for row, env in enumerate(self.envs):
                if self.active[row]:
                    for index, agent in enumerate(self.possible_agents):
                        mask = env.infos[agent]["action_mask"]
                        out[row, index] = mask[1 : self._num_levels].any()
        return out

    def auction(self, bids: NDArray[np.int64]) -> VectorAuction:
        if self._resolved:
            raise PhaseError("the auctions of this turn are resolved: call act() first")
        levels = self._check_bids(bids)
        winners = np.full(self.num_envs, -1)
        runners_up = np.full(self.num_envs, -1)
        for row in np.flatnonzero(self.active).tolist():
            env = self.envs[row]
            for level in levels[row].tolist():
                env.step(level)
            auction = env.last_auction
            assert auction is not None
            if auction.winner is not None:
                winners[row] = self.possible_agents.index(auction.winner)
            if auction.runner_up is not None:
                runners_up[row] = self.possible_agents.index(auction.runner_up)
            self._illegal_before[row] = env.counts["illegal"]
        self._winners = winners
        self._resolved = True
        # A copy: the winners are wanted in `act`.
        return VectorAuction(winners.copy(), runners_up)

    def act(self, actions: NDArray[np.int64]) -> VectorResult:
        if not self._resolved:
            raise PhaseError("resolve the auctions of this turn first: call auction()")
        actions = self._check_actions(actions, np.where(self.active, self._winners, -1))
        self._resolved = False
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        truncated = np.zeros(self.num_envs, np.bool_)
        illegal = np.zeros(self.num_envs, np.bool_)
        for row in np.flatnonzero(self.active).tolist():
            env = self.envs[row]
            # A skipped turn was already played when the last bid came in.
            if self._winners[row] >= 0:
                env.step(int(actions[row]) + self._num_levels)
                illegal[row] = env.counts["illegal"] > self._illegal_before[row]
            rewards[row] = next(iter(env.rewards.values()))
            terminated[row] = any(env.terminations.values())
            truncated[row] = any(env.truncations.values())
            self._sync(row)
        return VectorResult(rewards, terminated, truncated, illegal)

    def snapshot(self, rows: NDArray[np.int64]) -> list[GameSnapshot]:
        if self._resolved:
            raise PhaseError("snapshots are taken at the start of a bid phase: call act() first")
        return [self.envs[row].snapshot() for row in self._check_rows(rows).tolist()]

    def restore(self, rows: NDArray[np.int64], snapshots: Sequence[GameSnapshot]) -> None:
        self._check_snapshots(snapshots)
        rows = self._check_rows(rows)
        for row, snapshot in zip(rows.tolist(), snapshots, strict=True):
            self.envs[row].restore(snapshot)
            self._sync(row)
        self._resolved = False
        if self._task_metrics is None and len(snapshots):
            self._task_metrics = tuple(self.envs[int(rows[0])].metrics())

    def reseed(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        for row, key in zip(
            self._check_rows(rows).tolist(), np.asarray(keys).tolist(), strict=True
        ):
            self.envs[row].reseed(key)
            self.keys[row] = as_key(key)

    def metrics(self) -> NDArray[np.float64]:
        return np.array([list(env.metrics().values()) for env in self.envs])

    def expert(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if not self.has_expert:
            raise MissingCapabilityError(f"{self.task_id} has no scripted expert")
        agents = self.possible_agents
        bids = np.array([[env.task.expert_bid(a) for a in agents] for env in self.envs])
        actions = np.array([[env.task.expert_action(a) for a in agents] for env in self.envs])
        return bids, actions.astype(np.int64)

    def spawn(self, num_envs: int) -> LockstepVectorGame:
        return LockstepVectorGame(self._make_env, num_envs)

    def close(self) -> None:
        for env in self.envs:
            env.close()
