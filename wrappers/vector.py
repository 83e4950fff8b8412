"""The vector view: many games of one task played in step, one row per world.

This is what a trainer consumes. A turn of all worlds is four calls::

    observations = game.observe()            # one float32 (N, D) array per agent
    auction = game.auction(bids)             # int64 (N, A) bid levels -> who acts
    result = game.act(actions)               # int64 (N,) the winners' actions
    rows = np.flatnonzero(game.active)       # worlds that go on

`LockstepVectorGame` loops over AEC games of the shape of `BidThenActEnv`, so a task that someone
brings trains at once. `NativeVectorGame` plays on a `BatchTask`, whose rules are compiled. For the
same seeds, bids and actions both give the same trajectories, and their snapshots are
interchangeable with each other's and with those of the AEC game.

Worlds whose episode has ended stay as they are (their rows are ignored) until `reset` names them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.auction import Auction, check_levels, resolve_rows
from wrappers.bid_then_act import _GAME_VERSION, BidThenActEnv, GameSnapshot, check_game
from wrappers.dropout import check_probability, present_rows
from wrappers.errors import (
    ActionFormatError,
    MissingCapabilityError,
    PhaseError,
    SnapshotError,
    TaskError,
)
from wrappers.native import BatchTask
from wrappers.rng import as_key, episode_key
from wrappers.task import Fidelity, agent_roles

GAME_METRICS = ("return", "turns", "illegal", "skipped")


class VectorAuction(NamedTuple):
    """Resolved auctions: ``int64 (N,)`` agent indices, -1 where there is none.

    Rows of inactive worlds hold -1 in both.
    """

    winners: NDArray[np.int64]
    runners_up: NDArray[np.int64]


class VectorResult(NamedTuple):
    """One turn of all worlds, ``(N,)`` each; zero and False for worlds that were inactive."""

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    illegal: NDArray[np.bool_]


class VectorGame(abc.ABC):
    """N bid-then-act games of one task in step (see the top of this file).

    Attributes:
        task_id, snapshot_fidelity: as in `TurnTask`.
        num_envs: N.
        possible_agents: names; the A agents are addressed by their index here.
        roles: role name of each agent.
        bid_levels: ``float64 (L,)``.
        max_turns, dropout: as in `BidThenActEnv`.
        observation_sizes: length of each agent's observation, the game's feature included.
        action_counts: number of the task's actions of each agent (without the bid levels).
        action_names: their names, per agent.
        shared_observation: whether all agents observe the same vector; `observe` then returns the
            same array object for each.
        metric_names: columns of `metrics`.
        active: ``bool (N,)`` worlds whose episode is running.
        turn: ``int64 (N,)`` turn counters.
        keys: ``uint64 (N,)`` random key of each world's episode.
    """

    task_id: str
    snapshot_fidelity: Fidelity
    num_envs: int
    possible_agents: tuple[str, ...]
    roles: tuple[str, ...]
    bid_levels: NDArray[np.float64]
    max_turns: int
    dropout: float
    observation_sizes: tuple[int, ...]
    action_counts: tuple[int, ...]
    action_names: tuple[tuple[str, ...], ...]
    shared_observation: bool
    has_expert: bool
    metric_names: tuple[str, ...]
    active: NDArray[np.bool_]
    turn: NDArray[np.int64]
    keys: NDArray[np.uint64]

    @property
    def num_agents(self) -> int:
        """A, the number of agents."""
        return len(self.possible_agents)

    @abc.abstractmethod
    def reset(
        self,
        seeds: Sequence[int] | NDArray[np.int64],
        episodes: Sequence[int] | NDArray[np.int64] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        """Start episodes: world ``rows[i]`` (default i) with ``seeds[i]``, ``episodes[i]``."""

    @abc.abstractmethod
    def observe(self) -> list[NDArray[np.float32]]:
        """Fresh arrays, ``float32 (N, observation_sizes[a])`` per agent."""

    @abc.abstractmethod
    def action_masks(self) -> list[NDArray[np.bool_]]:
        """Fresh arrays, ``bool (N, action_counts[a])`` per agent; copies of a role share theirs."""

    @abc.abstractmethod
    def present(self) -> NDArray[np.bool_]:
        """``bool (N, A)``: who is not dropped out of the running turn."""

    @abc.abstractmethod
    def auction(self, bids: NDArray[np.int64]) -> VectorAuction:
        """Resolve the auctions of the running turn.

        Args:
            bids: integers ``(N, A)``: bid levels. An absent agent's counts as 0.

        Raises:
            ActionFormatError: they are no integers of this shape, or a running world's bid is no
                level; nothing has changed then.
            PhaseError: the auctions of this turn are resolved.
        """

    @abc.abstractmethod
    def act(self, actions: NDArray[np.int64]) -> VectorResult:
        """The winners act; worlds without a winner skip the turn.

        Args:
            actions: integers ``(N,)``: the task's actions, counted without the bid levels. Worlds
                in which nobody acts may hold anything. A masked action wastes the turn and is
                counted.

        Raises:
            ActionFormatError: they are no integers of this shape, or one is outside of its
                winner's action space; nothing has changed then.
            PhaseError: there was no auction in this turn.
            TaskError: the task gave a reward that is not a finite number.
        """

    @abc.abstractmethod
    def snapshot(self, rows: NDArray[np.int64]) -> list[GameSnapshot]:
        """Snapshots of worlds at the start of a bid phase."""

    @abc.abstractmethod
    def restore(self, rows: NDArray[np.int64], snapshots: Sequence[GameSnapshot]) -> None:
        """Put snapshots (taken at the start of a bid phase) into worlds.

        Raises:
            SnapshotError: one is foreign or was changed. Where the game's part of it tells, nothing
                has changed; where only the task can tell, the worlds before it were restored.
        """

    @abc.abstractmethod
    def reseed(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        """Replace the random key of worlds for all future draws."""

    @abc.abstractmethod
    def metrics(self) -> NDArray[np.float64]:
        """``(N, len(metric_names))``, valid at any time."""

    @abc.abstractmethod
    def expert(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The scripted expert's bids in [0, 1] and actions, ``(N, A)`` each."""

    @abc.abstractmethod
    def spawn(self, num_envs: int) -> VectorGame:
        """A new vector game of the same configuration with another number of worlds."""

    def close(self) -> None:
        """Release what the worlds hold; may be called twice."""

    def _check_bids(self, bids: NDArray[np.int64]) -> NDArray[np.int64]:
        bids = _integers("bids", bids, (self.num_envs, self.num_agents))
        played = bids[self.active]
        if played.size and (played.min() < 0 or played.max() >= len(self.bid_levels)):
            raise ActionFormatError(f"bids must be levels 0 to {len(self.bid_levels) - 1}")
        return bids.astype(np.int64)

    def _check_actions(
        self, actions: NDArray[np.int64], winners: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The actions as contiguous int64; winners are agent indices, -1 where nobody acts."""
        actions = _integers("actions", actions, (self.num_envs,))
        counts = np.array(self.action_counts)[winners]
        wrong = np.flatnonzero((winners >= 0) & ((actions < 0) | (actions >= counts)))
        if wrong.size:
            row = int(wrong[0])
            agent = int(winners[row])
            raise ActionFormatError(
                f"{self.possible_agents[agent]} acts in world {row} and was given the action "
                f"{actions[row]}; its actions are the integers 0 to {self.action_counts[agent] - 1}"
            )
        return np.ascontiguousarray(actions, np.int64)

    def _check_starts(
        self, seeds: Any, episodes: Any, rows: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Seeds, episodes and rows of a reset, as int64 arrays of one length."""
        worlds = np.arange(self.num_envs) if rows is None else self._check_rows(rows)
        starts = _integers("seeds", seeds, worlds.shape, ValueError)
        numbers = np.zeros_like(starts)
        if episodes is not None:
            numbers = _integers("episodes", episodes, worlds.shape, ValueError)
        return starts.astype(np.int64), numbers.astype(np.int64), worlds

    def _check_rows(self, rows: Any) -> NDArray[np.int64]:
        """Rows as int64; each is one of the game's."""
        rows = np.asarray(rows)
        if rows.size == 0:
            return np.zeros(0, np.int64)
        rows = _integers("rows", rows, (rows.size,), IndexError).astype(np.int64)
        if rows.min() < 0 or rows.max() >= self.num_envs:
            raise IndexError(f"rows must be 0 to {self.num_envs - 1}, got {rows.tolist()}")
        return rows

    def _check_snapshots(self, snapshots: Sequence[GameSnapshot]) -> None:
        """Refuse snapshots that belong to another game, before any world is touched."""
        levels = tuple(self.bid_levels.tolist())
        for snapshot in snapshots:
            game = check_game(
                snapshot, levels, self.max_turns, self.dropout, self.possible_agents
            ).game
            if game[4] != "bid" or game[5] != 0:
                raise SnapshotError("vector games restore snapshots of the start of a bid phase")


def _integers(
    name: str, values: Any, shape: tuple[int, ...], error: type[Exception] = ActionFormatError
) -> NDArray[Any]:
    """An array of integers of this shape, as it is given; floats and booleans are none."""
    array = np.asarray(values)
    if array.shape == shape and array.size == 0:
        return np.zeros(shape, np.int64)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise error(f"{name} must be integers of shape {shape}, got {array.dtype} {array.shape}")
    return array


class NativeVectorGame(VectorGame):
    """The market game on a `BatchTask`.

    Args:
        batch: the worlds; the game owns them from now on.
        copies: agents per role; ``logger_0, logger_1, ..., miner_0, ...``.
        bid_levels, max_turns, dropout: as in `BidThenActEnv`.
    """

    def __init__(
        self,
        batch: BatchTask,
        *,
        copies: int = 1,
        bid_levels: str | Sequence[float] | None = None,
        max_turns: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        self.batch = batch
        self.copies = copies
        self.task_id = batch.task_id
        self.snapshot_fidelity = batch.snapshot_fidelity
        self.num_envs = batch.num_envs
        self.roles = tuple(role for role in batch.roles for _ in range(copies))
        self.possible_agents = tuple(f"{r}_{i}" for r in batch.roles for i in range(copies))
        self._role_of_agent = np.repeat(np.arange(len(batch.roles)), copies)
        self._levels = check_levels(bid_levels)
        self.bid_levels = np.array(self._levels)
        self.max_turns = int(batch.default_max_turns if max_turns is None else max_turns)
        if self.max_turns < 1 or isinstance(max_turns, bool):
            raise ValueError(f"max_turns must be at least 1, got {max_turns!r}")
        self.dropout = check_probability(dropout)
        self.observation_sizes = tuple(batch.observation_sizes[r] + 1 for r in self._role_of_agent)
        self.action_counts = tuple(batch.action_counts[r] for r in self._role_of_agent)
        self.action_names = tuple(batch.action_names[r] for r in self._role_of_agent)
        self.shared_observation = batch.shared_observation
        self.has_expert = batch.has_expert
        self.metric_names = GAME_METRICS + tuple(
            name for name in batch.metric_names if name not in GAME_METRICS
        )
        n, a = self.num_envs, self.num_agents
        self.active = np.zeros(n, np.bool_)
        self.turn = np.zeros(n, np.int64)
        self.keys = np.zeros(n, np.uint64)
        # Python's integers: a snapshot of an AEC game may hold any seed.
        self._seeds = np.zeros(n, np.object_)
        self._episodes = np.zeros(n, np.object_)
        self._returns = np.zeros(n)
        self._illegal = np.zeros(n, np.int64)
        self._skipped = np.zeros(n, np.int64)
        self._last_reward = np.zeros(n)
        self._bids = np.zeros((n, a), np.int64)
        self._winners = np.full(n, -1)
        self._runners_up = np.full(n, -1)
        self._has_auction = np.zeros(n, np.bool_)
        self._terminated = np.zeros(n, np.bool_)
        self._resolved = False

    def reset(
        self,
        seeds: Sequence[int] | NDArray[np.int64],
        episodes: Sequence[int] | NDArray[np.int64] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        seeds, episodes, rows = self._check_starts(seeds, episodes, rows)
        self.batch.reset(rows, seeds, episodes)
        pairs = zip(seeds.tolist(), episodes.tolist(), strict=True)
        self.keys[rows] = np.array([episode_key(s, e) for s, e in pairs], np.uint64)
        self._seeds[rows] = seeds
        self._episodes[rows] = episodes
        for array in (self.turn, self._returns, self._illegal, self._skipped, self._last_reward):
            array[rows] = 0
        self._has_auction[rows] = False
        self._terminated[rows] = False
        self.active[rows] = True
        self._resolved = False

    def observe(self) -> list[NDArray[np.float32]]:
        left = 1.0 - self.turn / self.max_turns
        roles = range(1 if self.shared_observation else len(self.batch.roles))
        outputs = []
        for role in roles:
            size = self.batch.observation_sizes[role]
            out = np.empty((self.num_envs, size + 1), np.float32)
            out[:, size] = left
            outputs.append(out)
        self.batch.observe(outputs)
        if self.shared_observation:
            return outputs * self.num_agents
        return [outputs[role] for role in self._role_of_agent]

    def action_masks(self) -> list[NDArray[np.bool_]]:
        masks = [np.empty((self.num_envs, count), np.bool_) for count in self.batch.action_counts]
        self.batch.action_masks(masks)
        return [masks[role] for role in self._role_of_agent]

    def present(self) -> NDArray[np.bool_]:
        out = np.ones((self.num_envs, self.num_agents), np.bool_)
        if self.dropout:
            present_rows(self.keys, self.turn, self.dropout, out)
        return out

    def auction(self, bids: NDArray[np.int64]) -> VectorAuction:
        if self._resolved:
            raise PhaseError("the auctions of this turn are resolved: call act() first")
        levels = self._check_bids(bids)
        if self.dropout:
            # An absent agent's bid counts as an illegal no-op, as in the AEC game.
            absent = ~self.present()
            self._illegal += ((levels > 0) & absent).sum(axis=1) * self.active
            levels[absent] = 0
        levels[~self.active] = 0
        winners = np.empty(self.num_envs, np.int64)
        runners_up = np.empty(self.num_envs, np.int64)
        resolve_rows(levels, self.keys, self.turn, winners, runners_up)
        np.copyto(self._bids, levels, where=self.active[:, None])
        np.copyto(self._winners, winners, where=self.active)
        np.copyto(self._runners_up, runners_up, where=self.active)
        self._has_auction |= self.active
        self._resolved = True
        return VectorAuction(winners, runners_up)

    def act(self, actions: NDArray[np.int64]) -> VectorResult:
        if not self._resolved:
            raise PhaseError("resolve the auctions of this turn first: call auction()")
        active = self.active
        actions = self._check_actions(actions, np.where(active, self._winners, -1))
        self._resolved = False
        skipped = active & (self._winners < 0)
        roles = np.where(skipped, -1, self._role_of_agent[self._winners])
        roles[~active] = -2
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        illegal = np.zeros(self.num_envs, np.bool_)
        self.batch.act(roles, actions, rewards, terminated, illegal)
        if not np.isfinite(rewards).all():
            row = int(np.flatnonzero(~np.isfinite(rewards))[0])
            raise TaskError(
                f"{self.task_id} gave the reward {rewards[row]} in turn {self.turn[row]} (seed "
                f"{self._seeds[row]}, episode {self._episodes[row]}); a reward must be a finite "
                "number: mend the task"
            )
        self.turn[active] += 1
        truncated = active & ~terminated & (self.turn >= self.max_turns)
        self._returns += rewards
        self._illegal += illegal
        self._skipped += skipped
        np.copyto(self._last_reward, rewards, where=active)
        self._terminated |= terminated
        self.active = active & ~terminated & ~truncated
        return VectorResult(rewards, terminated, truncated, illegal)

    def snapshot(self, rows: NDArray[np.int64]) -> list[GameSnapshot]:
        if self._resolved:
            raise PhaseError("snapshots are taken at the start of a bid phase: call act() first")
        return [self._snapshot(row) for row in self._check_rows(rows).tolist()]

    def _snapshot(self, row: int) -> GameSnapshot:
        names = self.possible_agents
        auction = None
        if self._has_auction[row]:
            winner, runner_up = int(self._winners[row]), int(self._runners_up[row])
            auction = Auction(
                int(self.turn[row]) - 1,
                tuple([self._levels[b] for b in self._bids[row].tolist()]),
                names[winner] if winner >= 0 else None,
                names[runner_up] if runner_up >= 0 else None,
            )
        rewards = (float(self._last_reward[row]),) * len(names)
        return GameSnapshot(
            self.batch.snapshot(row),
            (
                _GAME_VERSION,
                self._levels,
                (self.max_turns, self.dropout, names),
                int(self.turn[row]),
                "bid",
                0,
                -1,
                (0,) * len(names),
                auction,
                int(self.keys[row]),
                int(self._seeds[row]),
                int(self._episodes[row]),
                not bool(self.active[row]),
                float(self._returns[row]),
                (int(self._illegal[row]), int(self._skipped[row])),
                names,
                rewards,
                rewards,
                bool(self._terminated[row]),
            ),
        ).verify()

    def restore(self, rows: NDArray[np.int64], snapshots: Sequence[GameSnapshot]) -> None:
        self._check_snapshots(snapshots)
        for row, snapshot in zip(self._check_rows(rows).tolist(), snapshots, strict=True):
            game = snapshot.game
            self.batch.restore(row, snapshot.task)
            self.turn[row] = game[3]
            auction = game[8]
            self._has_auction[row] = auction is not None
            if auction is not None:
                names = self.possible_agents
                self._bids[row] = [self._levels.index(b) for b in auction.bids]
                self._winners[row] = -1 if auction.winner is None else names.index(auction.winner)
                self._runners_up[row] = (
                    -1 if auction.runner_up is None else names.index(auction.runner_up)
                )
            self.keys[row] = as_key(game[9])
            self._seeds[row] = game[10]
            self._episodes[row] = game[11]
            self.active[row] = not game[12]
            self._returns[row] = game[13]
            self._illegal[row], self._skipped[row] = game[14]
            self._last_reward[row] = game[16][0] if game[16] else 0.0
            self._terminated[row] = game[18]
        self._resolved = False

    def reseed(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        for row, key in zip(
            self._check_rows(rows).tolist(), np.asarray(keys).tolist(), strict=True
        ):
            self.batch.reseed(row, key)
            self.keys[row] = as_key(key)

    def metrics(self) -> NDArray[np.float64]:
        game = np.stack(
            [self._returns, self.turn.astype(np.float64), self._illegal, self._skipped], axis=1
        )
        return np.concatenate([game, self.batch.metrics()], axis=1)

    def expert(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        shape = (self.num_envs, len(self.batch.roles))
        bids = np.zeros(shape)
        actions = np.zeros(shape, np.int64)
        self.batch.expert(bids, actions)
        return bids[:, self._role_of_agent], actions[:, self._role_of_agent]

    def spawn(self, num_envs: int) -> NativeVectorGame:
        return NativeVectorGame(
            self.batch.spawn(num_envs),
            copies=self.copies,
            bid_levels=self._levels,
            max_turns=self.max_turns,
            dropout=self.dropout,
        )


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
