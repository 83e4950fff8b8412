"""The cold start: supervised learning on noisy demonstrations of the scripted expert.

The demonstrator lets the expert bid and act for every role, but with a given probability the wrong
role is eager, and with a given probability the winner acts at random. The swarm learns
each role's action in the turns the role acted in, and every agent's bid. The monolithic policy
learns from the *same* demonstrations: the recorded actions are replayed in its own view of the
same worlds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mpt_train.config import ColdStartConfig
from mpt_train.coordination.base import Coordination, central_rows
from mpt_train.errors import DivergedError
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policy import Policy, SwarmPolicy, masked_log_softmax
from mpt_train.rollout import Batch, check_observations, pad_masks, stack_observations
from mpt_train.seeds import demonstration_seeds
from wrappers.errors import MissingCapabilityError
from wrappers.rng import STREAM_EXPERT, uniform4
from wrappers.vector import VectorGame


@dataclass
class Demonstrations:
    """Demonstrated episodes as a `Batch`, and their mean return."""

    batch: Batch
    mean_return: float


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
    game: VectorGame, config: ColdStartConfig, seed: int, policy_width: int, policy_actions: int
) -> Demonstrations:
    """Play noisy expert episodes in ``game``, whose worlds are reset for it.

    Args:
        game: a swarm's game; its number of worlds is the number of episodes.
        config: the noise.
        seed: training seed of the run.
        policy_width, policy_actions: padding of observations and masks, as in `Batch`.

    Raises:
        MissingCapabilityError: the task has no expert.
    """
    require_expert(game)
    game.reset(demonstration_seeds(seed, game.num_envs))
    return _play(game, config, None, policy_width, policy_actions)


def replay_solo(
    game: VectorGame,
    demonstrations: Demonstrations,
    swarm: VectorGame,
    seed: int,
    policy_width: int,
    policy_actions: int,
) -> Demonstrations:
    """The same demonstrations seen by one agent that owns all roles' actions.

    Args:
        game: the one-agent game, with as many worlds as there are demonstrations.
        demonstrations: what to replay.
        swarm: the game they were recorded in.
        seed: training seed of the run.
        policy_width, policy_actions: padding, as in `Batch`.
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
    return _play(game, None, actions, policy_width, policy_actions)


def _play(
    game: VectorGame,
    config: ColdStartConfig | None,
    script: NDArray[np.int64] | None,
    width: int,
    num_actions: int,
) -> Demonstrations:
    n, a, top = game.num_envs, game.num_agents, len(game.bid_levels) - 1
    shared = game.shared_observation
    batch = Batch.empty(game, game.max_turns, width, num_actions, game.keys.copy())
    batch.present[:] = True
    step = 0
    while game.active.any():
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


def fit(
    demonstrations: Demonstrations,
    policy: Policy,
    coordination: Coordination,
    config: ColdStartConfig,
    seed: int,
    counter: FlopCounter,
) -> dict[str, float]:
    """Supervised epochs over the demonstrations; returns the losses of the last one.

    Agents that answer in text learn apart from this (`TextPolicy.fit`); of them, only the
    coordination learns here. The learner's Adam is not kept: reinforcement learning starts with a
    fresh one.
    """
    batch = demonstrations.batch
    turns, worlds = np.nonzero(batch.acted)
    parameters = list(policy.parameters()) if isinstance(policy, SwarmPolicy) else []
    if coordination.module is not None:
        parameters += list(coordination.module.parameters())
    optimizer = torch.optim.Adam(parameters, lr=config.learning_rate)
    generator = np.random.default_rng([seed, 0xC01D])
    losses: dict[str, float] = {}
    for _ in range(config.epochs):
        order = generator.permutation(len(turns))
        sums = {"action": 0.0, "bid": 0.0}
        starts = range(0, len(order), config.batch_size)
        for start in starts:
            pick = order[start : start + config.batch_size]
            where = np.zeros(batch.active.shape, np.bool_)
            where[turns[pick], worlds[pick]] = True
            action, bid = _losses(batch, where, policy, coordination, counter)
            loss = action + bid
            if not torch.isfinite(loss):
                raise DivergedError(
                    f"the cold start diverged: its loss is {float(loss.detach())}; try a lower "
                    "--cold-start.learning-rate"
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sums["action"] += float(action.detach())
            sums["bid"] += float(bid.detach())
        if not isinstance(policy, SwarmPolicy):
            sums = {"coordination": sums["bid"]}
        losses = {f"cold_start_{k}_loss": v / max(len(starts), 1) for k, v in sums.items()}
    return losses


def _losses(
    batch: Batch,
    where: NDArray[np.bool_],
    policy: Policy,
    coordination: Coordination,
    counter: FlopCounter,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropies of one mini-batch: actions of the winners, bids of all agents."""
    total = int(where.sum())
    action = torch.zeros(())
    bid = torch.zeros(())
    for agent in range(policy.num_agents):
        if not isinstance(policy, SwarmPolicy):
            break
        mine = where & (batch.winners == agent)
        count = int(mine.sum())
        if count:
            logits = policy.action_logits_one(agent, batch.rows_of(agent, mine))
            log_probs = masked_log_softmax(logits, torch.from_numpy(batch.masks[mine]))
            labels = torch.from_numpy(batch.actions[mine])[:, None]
            action = action - log_probs.gather(1, labels).sum() / total
            counter.add("cold_start", (1 + BACKWARD) * policy.act_flop * count)
        if policy.num_levels:
            logits = policy.bid_logits_one(agent, batch.rows_of(agent, where))
            labels = torch.from_numpy(batch.bids[:, :, agent][where])
            bid = bid + torch.nn.functional.cross_entropy(logits, labels) / policy.num_agents
            counter.add("cold_start", (1 + BACKWARD) * policy.bid_flop * total)
    own = coordination.cold_start_loss(
        central_rows(batch, where), torch.from_numpy(batch.winners[where]), counter
    )
    return action, bid if own is None else bid + own
