"""The losses: REINFORCE for acting, Bradley-Terry or REINFORCE for bidding."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from mpt_train.branches import Pairs
from mpt_train.config import BidLearning
from mpt_train.coordination.base import Coordination
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policy import SwarmPolicy, masked_log_softmax
from mpt_train.rollout import Batch


def action_loss(
    batch: Batch,
    policy: SwarmPolicy,
    coordination: Coordination,
    credit: NDArray[np.float64],
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on the actions of the turns each agent acted in.

    Each agent's loss is a mean over its own turns; the agents' losses are added, which couples
    nothing, since they share no parameter.

    Args:
        batch: recorded episodes.
        policy, coordination: as they were when the batch was collected.
        credit: ``(T, N)`` credit of the actors, for the statistics.
        advantage: ``(T, N)`` what multiplies the log-probabilities.
        entropy_weight: of an entropy bonus.
        counter: operations of the update.

    Returns:
        The loss, and statistics of the credit per role.
    """
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
        if entropy_weight:
            total = total - entropy_weight * entropy
        counter.add("update_action", (1 + BACKWARD) * policy.act_flop * count)
    for role in dict.fromkeys(batch.roles):
        mine = batch.acted & (np.array(batch.roles) == role)[batch.winners]
        if mine.any():
            statistics[f"credit_mean/{role}"] = float(credit[mine].mean())
            statistics[f"credit_std/{role}"] = float(credit[mine].std())
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
    config: BidLearning,
    counter: FlopCounter,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on bids with the team's advantage of the turn, ``(T, N)``.

    The estimator "sampled" weighs the log-probability of every present agent's own bid, "marginal"
    that of the auction's outcome (`outcome_log_prob`).
    """
    where = batch.active
    rows = batch.rows_of_all(where)
    logits, _ = policy.bid_logits(rows)
    log_probs = torch.log_softmax(logits, dim=-1)
    present = torch.from_numpy(batch.present[where].T.copy())
    weight = torch.from_numpy(advantage[where].astype(np.float32))
    counter.add("update_bid", (1 + BACKWARD) * policy.bid_flop * int(present.sum()))
    if config.estimator == "marginal":
        winners = torch.from_numpy(batch.winners[where])
        loss = -(outcome_log_prob(log_probs, present, winners) * weight).mean()
    else:
        levels = torch.from_numpy(batch.bids[where].T.copy())
        chosen = log_probs.gather(2, levels[:, :, None])[:, :, 0]
        loss = -(chosen * weight * present).sum(0).mean()
    entropy = (-(log_probs.exp() * log_probs).sum(-1) * present).sum() / present.sum()
    if config.entropy:
        loss = loss - config.entropy * entropy
    return loss, {"bid_entropy": float(entropy.detach())}


def outcome_log_prob(log_probs: Tensor, present: Tensor, winners: Tensor) -> Tensor:
    """Log-probability of each auction's outcome, over all bids that could have been drawn.

    With independent bids, agent w wins at level l with probability p_w(l) times the integral over
    u in [0, 1] of prod_{j != w} (P_j(bid < l) + u p_j(l)), where u is w's rank among equal bids
    (ties are broken uniformly). The integrand is a polynomial in u of degree A - 1, which
    Gauss-Legendre quadrature integrates exactly. Nobody wins if all bid level 0.

    Args:
        log_probs: ``(A, n, L)`` of each agent's bid.
        present: ``bool (A, n)``; who is absent bids level 0.
        winners: ``int64 (n,)``, -1 where the turn was skipped.

    Returns:
        ``(n,)``.
    """
    agents, _, levels = log_probs.shape
    silent = torch.zeros(levels)
    silent[0] = 1.0
    probs = torch.where(present[:, :, None], log_probs.exp(), silent)
    below = probs.cumsum(-1) - probs
    nodes, node_weights = np.polynomial.legendre.leggauss((agents + 1) // 2)
    skipped = torch.where(present[:, :, None], log_probs, torch.zeros(()))[:, :, 0].sum(0)
    index = winners.clamp_min(0)
    own = torch.nn.functional.one_hot(index, agents).T.bool()
    own_probs = probs[index, torch.arange(len(index)), 1:]
    win = torch.zeros_like(own_probs)
    for node, node_weight in zip((nodes + 1) / 2, node_weights / 2, strict=True):
        factors = below[:, :, 1:] + float(node) * probs[:, :, 1:]
        others = torch.where(own[:, :, None], torch.ones(()), factors)
        win = win + float(node_weight) * others.prod(0)
    won = torch.log((own_probs * win).sum(-1).clamp_min(1e-12))
    return torch.where(winners >= 0, won, skipped)
