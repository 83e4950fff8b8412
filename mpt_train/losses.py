"""The losses: REINFORCE for acting, Bradley-Terry or REINFORCE for bidding."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from mpt_train.branches import Pairs
from mpt_train.config import ActionLearning
from mpt_train.coordination.base import Coordination
from mpt_train.credit import actor_credit, advantages
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policy import SwarmPolicy, masked_log_softmax
from mpt_train.rollout import Batch


def action_loss(
    batch: Batch,
    policy: SwarmPolicy,
    coordination: Coordination,
    config: ActionLearning,
    counter: FlopCounter,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on the actions of the turns each agent acted in.

    Each agent's loss is a mean over its own turns; the agents' losses are added, which couples
    nothing, since they share no parameter.

    Returns:
        The loss, and statistics of the credit per role.
    """
    credit = actor_credit(config, batch.rewards, batch.winning_bids, batch.winners, batch.active)
    advantage = advantages(config, credit, batch.winners, batch.active, policy.num_agents)
    statistics: dict[str, float] = {}
    total = torch.zeros(())
    entropies = []
    for agent in range(policy.num_agents):
        where = batch.acted & (batch.winners == agent)
        count = int(where.sum())
        if not count:
            continue
        logits = policy.action_logits_one(agent, batch.rows_of(agent, where))
        if batch.messages is not None:
            logits = coordination.refine(agent, logits, torch.from_numpy(batch.messages[where]))
        log_probs = masked_log_softmax(logits, torch.from_numpy(batch.masks[where]))
        chosen = log_probs.gather(1, torch.from_numpy(batch.actions[where])[:, None])[:, 0]
        weight = torch.from_numpy(advantage[where].astype(np.float32))
        total = total - (chosen * weight).mean()
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        entropies.append(float(entropy.detach()))
        if config.entropy:
            total = total - config.entropy * entropy
        counter.add("update_action", (1 + BACKWARD) * policy.act_flop * count)
        role = batch.roles[agent]
        statistics[f"credit_mean/{role}"] = float(credit[where].mean())
        statistics[f"credit_std/{role}"] = float(credit[where].std())
    statistics["action_entropy"] = float(np.mean(entropies)) if entropies else 0.0
    return total, statistics


def preference_loss(
    pairs: Pairs, policy: SwarmPolicy, counter: FlopCounter
) -> tuple[Tensor, dict[str, float]]:
    """Bradley-Terry: ``-log sigmoid(log pi(chosen) - log pi(rejected))``, weighted mean."""
    total = torch.zeros(())
    correct = 0.0
    for agent in range(policy.num_agents):
        mine = np.flatnonzero(pairs.agents == agent)
        if not len(mine):
            continue
        logits = policy.bid_logits_one(agent, pairs.observations[torch.from_numpy(mine)])
        log_probs = torch.log_softmax(logits, dim=-1)
        chosen = log_probs.gather(1, torch.from_numpy(pairs.chosen[mine])[:, None])[:, 0]
        rejected = log_probs.gather(1, torch.from_numpy(pairs.rejected[mine])[:, None])[:, 0]
        weight = torch.from_numpy(pairs.weights[mine])
        total = total + (weight * softplus(rejected - chosen)).mean()
        correct += float((chosen > rejected).sum())
        counter.add("update_bid", (1 + BACKWARD) * policy.bid_flop * len(mine))
    count = len(pairs.agents)
    return total, {"pair_accuracy": correct / count if count else float("nan")}


def bid_gradient_loss(
    batch: Batch,
    policy: SwarmPolicy,
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on every present agent's own bid with the team's advantage of the turn."""
    total = torch.zeros(())
    entropies = []
    for agent in range(policy.num_agents):
        where = batch.active & batch.present[:, :, agent]
        count = int(where.sum())
        if not count:
            continue
        logits = policy.bid_logits_one(agent, batch.rows_of(agent, where))
        log_probs = torch.log_softmax(logits, dim=-1)
        levels = torch.from_numpy(batch.bids[:, :, agent][where])
        chosen = log_probs.gather(1, levels[:, None])[:, 0]
        weight = torch.from_numpy(advantage[where].astype(np.float32))
        total = total - (chosen * weight).mean()
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        entropies.append(float(entropy.detach()))
        if entropy_weight:
            total = total - entropy_weight * entropy
        counter.add("update_bid", (1 + BACKWARD) * policy.bid_flop * count)
    return total, {"bid_entropy": float(np.mean(entropies)) if entropies else 0.0}
