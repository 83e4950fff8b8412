"""Rollouts: episodes of many worlds in step, and what is kept of them for learning.

All arrays of a `Batch` are turn by world. Networks run on the worlds that are still active. A
rollout draws every random number from (episode key, turn), so it is a pure function of the worlds'
seeds, the parameters and a salt.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.flops import FlopCounter
from mpt_train.policy import Policy, SwarmPolicy, log_prob_rows, sample_rows
from mpt_train.text_policy import TextPolicy
from wrappers.errors import TaskError
from wrappers.game_snapshot import GameSnapshot
from wrappers.rng import STREAM_BRANCH, STREAM_POLICY_ACTION, hash4
from wrappers.vector import VectorGame

if TYPE_CHECKING:
    from mpt_train.coordination.base import Coordination


@dataclass
class TurnContext:
    """What a coordination strategy may look at in one turn of n active worlds.

    Attributes:
        policy: the agents.
        observations: ``float32 (n, D)`` where all agents observe the same, else ``(A, n, D)``.
        masks: legal actions, ``bool (n, K)`` per agent, padded with False to the largest K.
        present: ``bool (n, A)``.
        keys, turns: ``(n,)`` for counter-based noise.
        num_levels: L; level L - 1 is the highest bid.
        roles: role name of each agent.
        counter: where the strategy counts its operations, under `part`.
        features: the strategy may leave the action features ``(A, n, H)`` of `bid_logits` here.
        messages: the strategy may leave what agents told each other, ``float32 (n, M)``; it is
            recorded and given back to `Coordination.refine`.
        choice_logits: a strategy that learns leaves what its choice was drawn from, ``float32
            (n, ...)``; it is recorded and given back to `Coordination.choice_log_prob`.
        game: the game, for agents that read: in the bid phase, or in the act phase once the
            auction is over.
        rows: worlds of the game that the n rows are.
        transcript: where agents that answer in text keep their answers.
    """

    policy: Policy
    observations: Tensor
    masks: list[NDArray[np.bool_]]
    present: NDArray[np.bool_]
    keys: NDArray[np.uint64]
    turns: NDArray[np.int64]
    num_levels: int
    roles: tuple[str, ...]
    counter: FlopCounter
    part: str
    features: Tensor | None = None
    messages: Tensor | None = None
    choice_logits: Tensor | None = None
    game: VectorGame | None = None
    rows: NDArray[np.int64] | None = None
    transcript: Any = None

    @property
    def networks(self) -> SwarmPolicy:
        """The policy of a strategy that looks into the agents' networks.

        Raises:
            ValueError: the agents are no networks.
        """
        if not isinstance(self.policy, SwarmPolicy):
            raise ValueError(
                "this coordination strategy looks into the agents' networks, and these agents "
                "answer in text; choose another --coordination"
            )
        return self.policy

    def observation_of(self, agent: int) -> Tensor:
        """The agent's observations, ``(n, D)``."""
        return self.observations if self.observations.dim() == 2 else self.observations[agent]


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
        log_probs: of the actions when they were drawn, ``float32 (T, N)``, if they were asked for.
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
    log_probs: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
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


def stack_observations(
    observations: list[NDArray[np.float32]], shared: bool, width: int
) -> NDArray[np.float32]:
    """``(N, D)`` if shared, else ``(A, N, D)``, padded with zeros to ``width``."""
    if shared and observations[0].shape[1] == width:
        return observations[0]
    if shared:
        observations = observations[:1]
    padded = np.zeros((len(observations), observations[0].shape[0], width), np.float32)
    for agent, values in enumerate(observations):
        padded[agent, :, : values.shape[1]] = values
    return padded[0] if shared else padded


def pad_masks(masks: list[NDArray[np.bool_]], width: int) -> list[NDArray[np.bool_]]:
    """Masks padded with False to ``width`` columns."""
    padded = []
    for mask in masks:
        if mask.shape[1] < width:
            wide = np.zeros((mask.shape[0], width), np.bool_)
            wide[:, : mask.shape[1]] = mask
            mask = wide
        padded.append(mask)
    return padded


def salted(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Keys for the policies' noise; salt 0 leaves the episode's own keys."""
    if salt == 0:
        return keys
    words = [int(hash4(key, salt, STREAM_BRANCH, 0)) for key in keys]
    return np.array(words, np.uint64)


@torch.inference_mode()
def rollout(
    game: VectorGame,
    policy: Policy,
    coordination: Coordination,
    counter: FlopCounter,
    *,
    part: str = "rollout",
    first_bids: NDArray[np.int64] | None = None,
    save_turns: NDArray[np.bool_] | None = None,
    salt: int = 0,
    log_probs: bool = False,
) -> Batch:
    """Play every active world of ``game`` to the end of its episode.

    Args:
        game: after a reset or restore.
        policy: chooses the actions.
        coordination: chooses the bids.
        counter: operations are counted under ``part`` + "_bid" and "_act".
        first_bids: bid levels ``(N, A)`` for the first turn instead of the strategy's.
        save_turns: ``bool (max_turns, N)``: where to take snapshots before the auction.
        salt: changes the policies' noise, not the worlds' (repeated evaluations).
        log_probs: record the log-probability of each action.

    Returns:
        The episodes; turn 0 is the first one played here.
    """
    n, a, k = game.num_envs, game.num_agents, policy.num_actions
    levels = len(game.bid_levels)
    shared = game.shared_observation
    width = policy.observation_size
    keys = salted(game.keys.copy(), salt)
    horizon = int(game.max_turns - game.turn[game.active].min()) if game.active.any() else 0
    batch = Batch.empty(game, horizon, width, k, keys)
    in_text = isinstance(policy, TextPolicy)
    if isinstance(policy, TextPolicy):
        batch.transcript = policy.new_transcript()
    elif log_probs:
        batch.log_probs = np.zeros((horizon, n), np.float32)
    step = 0
    while game.active.any():
        rows = np.flatnonzero(game.active)
        everyone = len(rows) == n
        at = slice(None) if everyone else rows
        observations = stack_observations(game.observe(), shared, width)
        masks = pad_masks(game.action_masks(), k)
        present = game.present()
        part_obs = observations if everyone else observations[..., rows, :]
        context = TurnContext(
            policy=policy,
            observations=torch.from_numpy(part_obs),
            masks=masks if everyone else [mask[rows] for mask in masks],
            present=present[at],
            keys=keys[at],
            turns=game.turn[at],
            game=game,
            rows=rows,
            num_levels=levels,
            roles=game.roles,
            counter=counter,
            part=part,
            transcript=batch.transcript,
        )
        bids = np.zeros((n, a), np.int64)
        if step == 0 and first_bids is not None:
            bids[rows] = first_bids[rows]
        else:
            bids[rows] = coordination.bids(context)
        if save_turns is not None:
            chosen = rows[save_turns[step, rows]]
            snapshots = game.snapshot(chosen)
            batch.saved += [
                (step, int(w), s) for w, s in zip(chosen.tolist(), snapshots, strict=True)
            ]
        auction = game.auction(bids)
        actions, legal, logits = _act(context, coordination, auction.winners[at], counter)
        full_actions = np.zeros(n, np.int64)
        # Of agents that answer in text, -1 may also be an answer that says nothing.
        full_actions[rows] = actions if in_text else np.maximum(actions, 0)
        result = game.act(full_actions)
        winners = auction.winners
        acting = np.flatnonzero(winners >= 0)
        if shared:
            batch.observations[step] = observations
        else:
            batch.observations[:, step] = observations
        batch.masks[step, at] = legal
        batch.active[step, at] = True
        batch.present[step] = present
        batch.bids[step] = bids
        batch.winners[step] = winners
        batch.runners_up[step] = auction.runners_up
        batch.winning_bids[step, acting] = game.bid_levels[bids[acting, winners[acting]]]
        batch.actions[step, at] = actions
        batch.rewards[step] = result.rewards
        batch.illegal[step] = result.illegal
        if log_probs and not in_text:
            batch.log_probs[step, at] = log_prob_rows(logits, legal, actions)
        batch.messages = _record(batch.messages, context.messages, (horizon, n), step, at)
        batch.choice_logits = _record(
            batch.choice_logits, context.choice_logits, (horizon, n), step, at
        )
        step += 1
    batch.metrics = game.metrics()
    batch.metric_names = game.metric_names
    check_observations(batch, game)
    return batch


def _record(
    record: NDArray[np.float32] | None,
    values: Tensor | None,
    shape: tuple[int, int],
    step: int,
    rows: slice | NDArray[np.int64],
) -> NDArray[np.float32] | None:
    """Keep what a strategy has left in a turn's context, if it has."""
    if values is None:
        return record
    if record is None:
        record = np.zeros((*shape, *values.shape[1:]), np.float32)
    record[step, rows] = values.numpy()
    return record


def check_observations(batch: Batch, game: VectorGame) -> None:
    """Refuse episodes in which the task showed something that is not a finite number.

    Networks would learn nothing from it but NaN.

    Raises:
        TaskError: says where it was.
    """
    finite = np.isfinite(batch.observations)
    if finite.all():
        return
    *agent, turn, world, entry = np.argwhere(~finite)[0].tolist()
    who = "every agent" if batch.shared else game.possible_agents[agent[0]]
    raise TaskError(
        f"{game.task_id} showed {who} the value {batch.observations[(*agent, turn, world, entry)]} "
        f"in entry {entry} of its observation (turn {turn} of an episode); observations must be "
        "finite numbers: mend the task"
    )


_SMALL = 512
"""Up to this many rows (agents times worlds) the actions of all agents are computed together."""


def _act(
    context: TurnContext,
    coordination: Coordination,
    winners: NDArray[np.int64],
    counter: FlopCounter,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float32]]:
    """Actions of the winners, ``(n,)``, -1 where the turn is skipped; their masks and logits."""
    rows = np.arange(len(winners))
    if isinstance(context.policy, TextPolicy):
        masks = np.stack(context.masks)[winners, rows]
        return context.policy.act(context, winners), masks, np.zeros((0, 0), np.float32)
    policy = context.networks
    masks = context.masks[0] if policy.num_agents == 1 else np.stack(context.masks)[winners, rows]
    cost = policy.act_flop if context.features is None else policy.action_head_flop
    counter.add(context.part + "_act", cost * int((winners >= 0).sum()))
    if context.messages is None and policy.num_agents * len(rows) <= _SMALL:
        # All agents in one product are quicker than a product an agent; the others' results are
        # thrown away, and do not count: the method does not need them.
        if context.features is not None:
            everyone = policy.actor.output(context.features)
        else:
            everyone = policy.actor(context.observations)
        logits = everyone.numpy()[winners, rows]
    else:
        logits = np.zeros((len(winners), policy.num_actions), np.float32)
        for agent in range(policy.num_agents):
            mine = np.flatnonzero(winners == agent)
            if not len(mine):
                continue
            index = torch.from_numpy(mine)
            if context.features is not None:
                own = policy.action_head_one(agent, context.features[agent, index])
            else:
                own = policy.action_logits_one(agent, context.observation_of(agent)[index])
            if context.messages is not None:
                own = coordination.refine(agent, own, context.messages[index])
            logits[mine] = own.numpy()
    actions = sample_rows(logits, masks, context.keys, context.turns, STREAM_POLICY_ACTION, winners)
    actions[winners < 0] = -1
    return actions, masks, logits


def participation(batch: Batch, bins: int = 12) -> dict[str, list[float]]:
    """Share of each role among the acting agents, over ``bins`` equal parts of the turn budget.

    A bin in which nobody ever acted holds 0 for every role.
    """
    roles = list(dict.fromkeys(batch.roles))
    role_of_agent = np.array([roles.index(role) for role in batch.roles])
    counts = np.zeros((len(roles), bins))
    acted = batch.acted
    turn_index = np.nonzero(acted)[0] * bins // batch.max_turns
    np.add.at(counts, (role_of_agent[batch.winners[acted]], np.minimum(turn_index, bins - 1)), 1)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    return {role: shares[i].round(4).tolist() for i, role in enumerate(roles)}
