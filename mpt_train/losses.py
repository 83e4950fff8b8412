"""The losses: REINFORCE for acting and for who acts, Bradley-Terry for bidding."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from mpt_train.branches import Pairs
from mpt_train.coordination.base import Coordination
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.policy import Policy, SwarmPolicy, masked_log_softmax
from mpt_train.rollout import Batch, take
from mpt_train.text_policy import TextPolicy


def action_loss(
    batch: Batch,
    policy: Policy,
    coordination: Coordination,
    credit: NDArray[np.float64],
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
    clip: float | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on the actions of the turns each agent acted in.

    Each agent's loss is a mean over its own turns; the agents' losses are added, which couples
    nothing, since they share no parameter.

    Args:
        batch: recorded episodes.
        policy, coordination: to learn; the coordination also refines actions.
        credit: ``(T, N)`` credit of the actors, for the statistics.
        advantage: ``(T, N)`` what multiplies the log-probabilities.
        entropy_weight: of an entropy bonus.
        counter: operations of the update.
        clip: see `surrogate`; the batch must hold the actions' log-probabilities then.

    Returns:
        The loss, and statistics of the credit per role.
    """
    statistics: dict[str, float] = {}
    for role in dict.fromkeys(batch.roles):
        mine = batch.acted & (np.array(batch.roles) == role)[batch.winners]
        if mine.any():
            statistics[f"credit_mean/{role}"] = float(credit[mine].mean())
            statistics[f"credit_std/{role}"] = float(credit[mine].std())
    if isinstance(policy, TextPolicy):
        loss, mean_entropy = policy.action_loss(batch, advantage, entropy_weight, counter, clip)
        return loss, {**statistics, "action_entropy": mean_entropy}
    assert isinstance(policy, SwarmPolicy)
    total = torch.zeros(())
    entropies = []
    for agent in range(policy.num_agents):
        where = batch.acted & (batch.winners == agent)
        count = int(where.sum())
        if not count:
            continue
        logits = policy.action_logits_one(agent, batch.rows_of(agent, where))
        if batch.messages is not None:
            logits = coordination.refine(agent, logits, take(batch.messages, where))
        log_probs = masked_log_softmax(logits, take(batch.masks, where))
        chosen = log_probs.gather(1, take(batch.actions, where)[:, None])[:, 0]
        weight = take(advantage, where).float()
        old = None if clip is None else take(batch.log_probs, where)
        total = total + surrogate(chosen, weight, old, clip)
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        entropies.append(float(entropy.detach()))
        if entropy_weight:
            total = total - entropy_weight * entropy
        counter.add("update_action", (1 + BACKWARD) * policy.act_flop * count)
    statistics["action_entropy"] = float(np.mean(entropies)) if entropies else 0.0
    return total, statistics


def preference_loss(
    pairs: Pairs, policy: Policy, counter: FlopCounter
) -> tuple[Tensor, dict[str, float]]:
    """Bradley-Terry: ``-log sigmoid(log pi(chosen) - log pi(rejected))``, weighted mean."""
    if isinstance(policy, TextPolicy):
        return policy.preference_loss(pairs, pairs.responses, counter)
    assert isinstance(policy, SwarmPolicy)
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


def choice_loss(
    batch: Batch,
    policy: Policy,
    coordination: Coordination,
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
    clip: float | None = None,
) -> tuple[Tensor | None, dict[str, float]]:
    """REINFORCE on who acts, with the team's advantage of the turn.

    What is learned is up to the strategy: the agents' bids in the market, a router's network, the
    judges of Graph-of-Agents.

    Args:
        batch: recorded episodes.
        policy, coordination: to learn.
        advantage: ``(T, N)`` team advantage of each turn.
        entropy_weight: of an entropy bonus.
        counter: operations of the update.
        clip: see `surrogate`.

    Returns:
        The loss, None if the strategy learns nothing; and the entropy of its choices.

    Raises:
        ValueError: the strategy does not record what it draws from, and ``clip`` needs it.
    """
    if isinstance(policy, TextPolicy) and coordination.name == "learned":
        return policy.bid_loss(batch, advantage, entropy_weight, counter, clip)
    where = coordination.chosen(batch)
    logits = coordination.choice_logits(policy, batch, where, counter)
    if logits is None:
        return None, {}
    log_prob, entropy = coordination.choice_log_prob(logits, batch, where)
    old = None
    if clip is not None:
        if batch.choice_logits is None:
            raise ValueError(
                f"the strategy {coordination.name!r} does not record what it draws from: leave it "
                "in context.choice_logits, or use --optimizer.minibatches 1"
            )
        recorded = take(batch.choice_logits, where)
        old, _ = coordination.choice_log_prob(recorded, batch, where)
    weight = take(advantage, where).float()
    loss = surrogate(log_prob, weight, old, clip)
    if entropy_weight:
        loss = loss - entropy_weight * entropy
    return loss, {"bid_entropy": float(entropy.detach())}


def surrogate(
    log_prob: Tensor, weight: Tensor, old: Tensor | None = None, clip: float | None = None
) -> Tensor:
    """The loss whose gradient is that of REINFORCE; clipped where the policy has moved on.

    A batch that serves several updates is played by an older policy from the second one on. Then
    the ratio of the two probabilities takes the place of the log-probability, and what would move
    it beyond ``1 - clip`` or ``1 + clip`` does not count (PPO, Schulman et al., 2017).

    Args:
        log_prob: ``(n,)`` of what was done, under the present parameters.
        weight: ``(n,)`` advantages.
        old: ``(n,)`` log-probabilities of the policy that did it.
        clip: None: plain REINFORCE.
    """
    if clip is None:
        return -(log_prob * weight).mean()
    assert old is not None
    ratio = (log_prob - old).exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -torch.minimum(ratio * weight, clipped * weight).mean()
