"""What is kept of episodes to learn from: a `Batch` of them, preference `Pairs`, `Demonstrations`.

Plain data, filled elsewhere: by rollouts, by counterfactual branches, by the scripted expert. All
arrays of a `Batch` are turn by world.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrappers.game_snapshot import GameSnapshot
from wrappers.vector import VectorGame


@dataclass
class Batch:
    """Recorded episodes; T turns, N worlds, A agents (see the top of this file).

    Attributes:
        observations: ``float32 (T, N, D)`` if `shared`, else ``(A, T, N, D)``.
        masks: legal actions of the winner, ``bool (T, N, K)``.
        active: whether the turn was played.
        present: ``bool (T, N, A)``.
        bids: bid levels ``(T, N, A)``.
        winning_bids: bid of the winner in [0, 1], 0 for skipped turns.
        winners, runners_up, actions: ``(T, N)``, -1 where there is none.
        rewards, illegal: ``(T, N)``.
        keys: ``uint64 (N,)``.
        metrics: ``(N, M)`` at the end of each episode, columns `metric_names`.
        saved: snapshots taken on request, as ``(turn, world, snapshot)``.
        messages: ``float32 (T, N, M)`` or None.
        choice_logits: what the strategy's choices were drawn from, ``float32 (T, N, ...)`` or None.
        log_probs: of the actions when they were drawn, ``float32 (T, N)`` or None.
        transcript: the answers of agents that answer in text (`TextPolicy`), by episode key.
    """

    shared: bool
    observations: NDArray[np.float32]
    masks: NDArray[np.bool_]
    active: NDArray[np.bool_]
    present: NDArray[np.bool_]
    bids: NDArray[np.int64]
    winning_bids: NDArray[np.float64]
    winners: NDArray[np.int64]
    runners_up: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    illegal: NDArray[np.bool_]
    keys: NDArray[np.uint64]
    metrics: NDArray[np.float64]
    metric_names: tuple[str, ...]
    roles: tuple[str, ...]
    max_turns: int
    saved: list[tuple[int, int, GameSnapshot]] = field(default_factory=list)
    messages: NDArray[np.float32] | None = None
    choice_logits: NDArray[np.float32] | None = None
    log_probs: NDArray[np.float32] | None = None
    transcript: Any = None

    @classmethod
    def empty(
        cls, game: VectorGame, turns: int, width: int, num_actions: int, keys: NDArray[np.uint64]
    ) -> Batch:
        """A batch of ``turns`` turns of ``game`` in which nothing has happened yet.

        Args:
            game: gives the numbers of worlds and agents.
            turns: T.
            width, num_actions: D and K, to which observations and masks are padded.
            keys: ``uint64 (N,)``.
        """
        shape, agents = (turns, game.num_envs), game.num_agents
        shared = game.shared_observation
        return cls(
            shared=shared,
            observations=np.zeros(
                (*shape, width) if shared else (agents, *shape, width), np.float32
            ),
            masks=np.zeros((*shape, num_actions), np.bool_),
            active=np.zeros(shape, np.bool_),
            present=np.zeros((*shape, agents), np.bool_),
            bids=np.zeros((*shape, agents), np.int64),
            winning_bids=np.zeros(shape),
            winners=np.full(shape, -1),
            runners_up=np.full(shape, -1),
            actions=np.full(shape, -1),
            rewards=np.zeros(shape),
            illegal=np.zeros(shape, np.bool_),
            keys=keys,
            metrics=np.zeros((game.num_envs, 0)),
            metric_names=(),
            roles=game.roles,
            max_turns=game.max_turns,
        )

    @property
    def acted(self) -> NDArray[np.bool_]:
        """``bool (T, N)``: turns in which an agent acted."""
        result: NDArray[np.bool_] = self.active & (self.winners >= 0)
        return result

    @property
    def num_turns(self) -> int:
        """Turns played, over all worlds."""
        return int(self.active.sum())

    @property
    def returns(self) -> NDArray[np.float64]:
        """Undiscounted return of each episode, ``(N,)``."""
        result: NDArray[np.float64] = self.rewards.sum(axis=0)
        return result

    def only(self, worlds: NDArray[np.int64]) -> Batch:
        """The same batch in which only these worlds count as played; arrays are shared."""
        mine = np.zeros(self.active.shape[1], np.bool_)
        mine[worlds] = True
        return dataclasses.replace(self, active=self.active & mine)

    def rows_of(self, agent: int, where: NDArray[np.bool_]) -> Tensor:
        """The agent's observations where ``where: bool (T, N)``, as ``(n, D)``."""
        return take(self.observations if self.shared else self.observations[agent], where)

    def rows_of_all(self, where: NDArray[np.bool_]) -> Tensor:
        """Every agent's observations: ``(n, D)`` where they are shared, else ``(A, n, D)``."""
        if self.shared:
            return take(self.observations, where)
        return torch.stack([take(own, where) for own in self.observations])

    def observations_at(
        self, turns: NDArray[np.int64], worlds: NDArray[np.int64], agents: NDArray[np.int64]
    ) -> Tensor:
        """What ``agents[i]`` observed in turn ``turns[i]`` of world ``worlds[i]``, ``(n, D)``."""
        if self.shared:
            return torch.from_numpy(self.observations[turns, worlds])
        return torch.from_numpy(self.observations[agents, turns, worlds])

    def metric(self, name: str) -> NDArray[np.float64]:
        """One metric of each episode, ``(N,)``."""
        return self.metrics[:, self.metric_names.index(name)]


def take(values: NDArray[Any], where: NDArray[np.bool_]) -> Tensor:
    """``values[where]`` as a tensor, by torch's own gathering, which is the quickest.

    Args:
        values: ``(T, N, ...)``, contiguous.
        where: ``bool (T, N)``.
    """
    rows = torch.from_numpy(values).flatten(0, 1)
    return rows.index_select(0, torch.from_numpy(np.flatnonzero(where)))


@dataclass
class Pairs:
    """Preference pairs: in ``observations[i]`` agent ``agents[i]`` should rather bid ``chosen[i]``.

    Attributes:
        observations: ``float32 (P, D)``.
        agents, chosen, rejected: ``int64 (P,)``; the bids are levels.
        weights: ``float32 (P,)``.
        worlds: of the batch, ``int64 (P,)``.
        responses: of agents that answer in text, P pairs of a chosen and a rejected answer.
        counts: how many snapshots were tried, contested, dropped (bid never low enough), tied,
            in how many pairs the original was better, and the turns played in branches.
    """

    observations: Tensor
    agents: NDArray[np.int64]
    chosen: NDArray[np.int64]
    rejected: NDArray[np.int64]
    weights: NDArray[np.float32]
    worlds: NDArray[np.int64]
    counts: dict[str, int]
    responses: list[Any] = field(default_factory=list)

    @property
    def shares(self) -> dict[str, float]:
        """Contested turns among those tried; dropped, and tied, branches among the contested."""
        contested = max(self.counts["contested"], 1)
        return {
            "contested_share": self.counts["contested"] / max(self.counts["tried"], 1),
            "dropped_share": self.counts["dropped"] / contested,
            "tied_share": self.counts["tied"] / contested,
        }

    def of_worlds(self, worlds: NDArray[np.int64]) -> Pairs:
        """The pairs that come from some worlds of the batch."""
        mine = np.flatnonzero(np.isin(self.worlds, worlds))
        return Pairs(
            self.observations[torch.from_numpy(mine)],
            self.agents[mine],
            self.chosen[mine],
            self.rejected[mine],
            self.weights[mine],
            self.worlds[mine],
            self.counts,
            [self.responses[i] for i in mine] if self.responses else [],
        )


@dataclass
class Demonstrations:
    """Demonstrated episodes as a `Batch`, and their mean return."""

    batch: Batch
    mean_return: float
