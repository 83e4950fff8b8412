"""Rollouts: episodes of many worlds in step, recorded in a `Batch`.

Policies run on the worlds that are still active. A rollout draws every random number from (episode
key, turn), so it is a pure function of the worlds' seeds, the parameters and a salt.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.coordination.base import Coordination
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy, TurnContext
from mpt_train.records import Batch
from mpt_train.runs.interrupt import StopRequest
from wrappers.errors import TaskError
from wrappers.rng import STREAM_BRANCH, hash4
from wrappers.vector import VectorGame


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
    stop: StopRequest | None = None,
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
        stop: polled between turns.

    Returns:
        The episodes; turn 0 is the first one played here.

    Raises:
        StopRequested: a stop was requested; the episodes are lost.
    """
    n, a, k = game.num_envs, game.num_agents, policy.num_actions
    levels = len(game.bid_levels)
    shared = game.shared_observation
    width = policy.observation_size
    keys = salted(game.keys.copy(), salt)
    horizon = int(game.max_turns - game.turn[game.active].min()) if game.active.any() else 0
    batch = Batch.empty(game, horizon, width, k, keys)
    batch.transcript = policy.new_transcript()
    step = 0
    while game.active.any():
        if stop is not None:
            stop.check()
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
            saving = rows[save_turns[step, rows]]
            snapshots = game.snapshot(saving)
            batch.saved += [
                (step, int(w), s) for w, s in zip(saving.tolist(), snapshots, strict=True)
            ]
        auction = game.auction(bids)
        winners = auction.winners
        legal = np.stack(context.masks)[winners[at], np.arange(len(rows))]
        actions, chosen = policy.act(context, winners[at], coordination.refine, log_probs)
        full_actions = np.zeros(n, np.int64)
        full_actions[rows] = actions
        result = game.act(full_actions)
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
        batch.log_probs = _record(batch.log_probs, chosen, (horizon, n), step, at)
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
    values: Tensor | NDArray[np.float32] | None,
    shape: tuple[int, int],
    step: int,
    rows: slice | NDArray[np.int64],
) -> NDArray[np.float32] | None:
    """Keep what policy and strategy leave of a turn, if they do."""
    if values is None:
        return record
    if record is None:
        record = np.zeros((*shape, *values.shape[1:]), np.float32)
    record[step, rows] = np.asarray(values)
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
