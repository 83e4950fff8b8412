"""Demonstrations: episodes of a noisy scripted expert, and the same seen by one agent.

The demonstrator lets the expert bid and act for every role, but with a given probability the wrong
role is eager, and with a given probability the winner acts at random. For the monolithic policy the
recorded actions are replayed in its own view of the same worlds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpt_train.config import ColdStartConfig
from mpt_train.records import Batch, Demonstrations
from mpt_train.rollout import check_observations, pad_masks, stack_observations
from mpt_train.runs.interrupt import StopRequest
from mpt_train.seeds import demonstration_seeds
from wrappers.errors import MissingCapabilityError
from wrappers.rng import STREAM_EXPERT, uniform4
from wrappers.vector import VectorGame


def require_expert(game: VectorGame) -> None:
    """Say what to do where there is nobody to learn a cold start from.

    Raises:
        MissingCapabilityError: the task has no expert.
    """
    if not game.has_expert:
        raise MissingCapabilityError(
            f"{game.task_id} has no scripted expert; train with --cold-start.episodes 0, let "
            "language models learn from a file (--language.demonstrations), or implement "
            "expert_bid and expert_action in your task"
        )


def demonstrate(
    game: VectorGame,
    config: ColdStartConfig,
    seed: int,
    policy_width: int,
    policy_actions: int,
    stop: StopRequest | None = None,
) -> Demonstrations:
    """Play noisy expert episodes in ``game``, whose worlds are reset for it.

    Args:
        game: a swarm's game; its number of worlds is the number of episodes.
        config: the noise.
        seed: training seed of the run.
        policy_width, policy_actions: padding of observations and masks, as in `Batch`.
        stop: polled between turns.

    Raises:
        MissingCapabilityError: the task has no expert.
    """
    require_expert(game)
    game.reset(demonstration_seeds(seed, game.num_envs))
    return _play(game, config, None, policy_width, policy_actions, stop)


def replay_solo(
    game: VectorGame,
    demonstrations: Demonstrations,
    swarm: VectorGame,
    seed: int,
    policy_width: int,
    policy_actions: int,
    stop: StopRequest | None = None,
) -> Demonstrations:
    """The same demonstrations seen by one agent that owns all roles' actions.

    Args:
        game: the one-agent game, with as many worlds as there are demonstrations.
        demonstrations: what to replay.
        swarm: the game they were recorded in.
        seed: training seed of the run.
        policy_width, policy_actions: padding, as in `Batch`.
        stop: polled between turns.
    """
    roles = list(dict.fromkeys(swarm.roles))
    counts = [swarm.action_counts[swarm.roles.index(role)] for role in roles]
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    role_of_agent = np.array([roles.index(role) for role in swarm.roles])
    source = demonstrations.batch
    actions = np.where(
        source.winners >= 0,
        source.actions + offsets[role_of_agent[source.winners]],
        -1,
    )
    game.reset(demonstration_seeds(seed, game.num_envs))
    return _play(game, None, actions, policy_width, policy_actions, stop)


def _play(
    game: VectorGame,
    config: ColdStartConfig | None,
    script: NDArray[np.int64] | None,
    width: int,
    num_actions: int,
    stop: StopRequest | None,
) -> Demonstrations:
    n, a, top = game.num_envs, game.num_agents, len(game.bid_levels) - 1
    shared = game.shared_observation
    batch = Batch.empty(game, game.max_turns, width, num_actions, game.keys.copy())
    batch.present[:] = True
    step = 0
    while game.active.any():
        if stop is not None:
            stop.check()
        rows = np.flatnonzero(game.active)
        observations = stack_observations(game.observe(), shared, width)
        masks = pad_masks(game.action_masks(), num_actions)
        if script is None:
            assert config is not None
            wanted, expert_actions = game.expert()
            bids = _demonstrated_bids(game, wanted >= 0.5, rows, step, config.bid_noise)
        else:
            bids = np.full((n, a), top)
        bids[~game.present()] = 0
        auction = game.auction(bids)
        actions = np.zeros(n, np.int64)
        for row in rows:
            winner = auction.winners[row]
            if winner < 0:
                continue
            if script is not None:
                actions[row] = script[step, row]
            else:
                assert config is not None
                actions[row] = expert_actions[row, winner]
                if uniform4(game.keys[row], step, STREAM_EXPERT, 1) < config.action_noise:
                    legal = np.flatnonzero(masks[winner][row])
                    draw = uniform4(game.keys[row], step, STREAM_EXPERT, 2)
                    actions[row] = legal[int(draw * len(legal))]
        result = game.act(actions)
        if shared:
            batch.observations[step] = observations
        else:
            batch.observations[:, step] = observations
        for agent in range(a):
            mine = auction.winners == agent
            batch.masks[step, mine] = masks[agent][mine]
        batch.active[step, rows] = True
        batch.bids[step] = bids
        batch.winners[step] = auction.winners
        batch.runners_up[step] = auction.runners_up
        batch.actions[step, rows] = np.where(auction.winners[rows] >= 0, actions[rows], -1)
        batch.rewards[step] = result.rewards
        step += 1
    batch.metrics = game.metrics()
    batch.metric_names = game.metric_names
    check_observations(batch, game)
    return Demonstrations(batch, float(batch.returns.mean()))


def _demonstrated_bids(
    game: VectorGame,
    eager: NDArray[np.bool_],
    rows: NDArray[np.int64],
    step: int,
    noise: float,
) -> NDArray[np.int64]:
    """Bid levels ``(N, A)``: eager agents bid in the upper half of the levels, others in the lower.

    Where in its half an agent bids is random, so that all levels are demonstrated and bids stay
    comparable. With probability ``noise`` the wrong agents are eager: the roles are rotated.
    """
    top, agents = len(game.bid_levels) - 1, game.num_agents
    half = top // 2
    bids = np.zeros(eager.shape, np.int64)
    for row in rows:
        key = game.keys[row]
        shift = 0
        if uniform4(key, step, STREAM_EXPERT, 0) < noise:
            shift = int(uniform4(key, step, STREAM_EXPERT, 3) * agents)
        for agent in range(agents):
            draw = uniform4(key, step, STREAM_EXPERT, 4 + agent)
            if eager[row, (agent + shift) % agents]:
                bids[row, agent] = half + 1 + int(draw * (top - half))
            else:
                bids[row, agent] = 1 + int(draw * half) if half else 0
    return bids
