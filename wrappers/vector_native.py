"""`NativeVectorGame`: the market game on a `BatchTask`, whose rules are compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wrappers.auction import Auction, check_levels, resolve_rows
from wrappers.dropout import check_probability, present_rows
from wrappers.errors import PhaseError, TaskError
from wrappers.game_snapshot import GAME_VERSION, GameSnapshot
from wrappers.native import BatchTask
from wrappers.rng import as_key, episode_key
from wrappers.vector import GAME_METRICS, VectorAuction, VectorGame, VectorResult


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
        self.coverage = batch.coverage
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
                GAME_VERSION,
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
        states = self._check_snapshots(snapshots)
        for row, snapshot, game in zip(
            self._check_rows(rows).tolist(), snapshots, states, strict=True
        ):
            self.batch.restore(row, snapshot.task)
            auction = game.last_auction
            self._has_auction[row] = auction is not None
            if auction is not None:
                self._bids[row] = [self._levels.index(b) for b in auction.bids]
                self._winners[row] = self._agent(auction.winner)
                self._runners_up[row] = self._agent(auction.runner_up)
            self.turn[row], self.keys[row] = game.turn, as_key(game.key)
            self._seeds[row], self._episodes[row] = game.seed, game.episode
            self.active[row], self._terminated[row] = not game.over, game.terminated
            self._returns[row] = game.total
            self._illegal[row], self._skipped[row] = game.counts
            self._last_reward[row] = game.rewards[0] if game.rewards else 0.0
        self._resolved = False

    def _agent(self, name: str | None) -> int:
        return -1 if name is None else self.possible_agents.index(name)

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
