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
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.errors import (
    ActionFormatError,
    SnapshotError,
)
from wrappers.game_snapshot import GameSnapshot, GameState, check_game
from wrappers.task import Coverage, Fidelity

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
        task_id, snapshot_fidelity, coverage: as in `TurnTask`.
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
    coverage: Coverage | None
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

    def _check_snapshots(self, snapshots: Sequence[GameSnapshot]) -> list[GameState]:
        """Their states; those of another game are refused before any world is touched."""
        levels = tuple(self.bid_levels.tolist())
        states = []
        for snapshot in snapshots:
            game = check_game(snapshot, levels, self.max_turns, self.dropout, self.possible_agents)
            if game.phase != "bid" or game.cursor != 0:
                raise SnapshotError("vector games restore snapshots of the start of a bid phase")
            states.append(game)
        return states


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
