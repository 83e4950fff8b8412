"""REINFORCE on actions; bids by preference (Bradley-Terry), by policy gradient, by both, or not.

The learner of all methods here (`ActionLearning`, `BidLearning`, `OptimizerConfig`). A step learns
actions, bids or both; a central critic may learn on the side, as a baseline; with several
mini-batches a batch the policy gradients are clipped as in PPO.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.agents import Agents
from mpt_train.config import TrainConfig
from mpt_train.coordination.base import central_size
from mpt_train.credit import (
    advantages,
    credit_by_role,
    discounted_returns,
    subtract_turn_mean,
)
from mpt_train.flops import FlopCounter
from mpt_train.learners.base import (
    Experience,
    Learner,
    Plan,
    mean_report,
    minibatches,
    register,
)
from mpt_train.learners.critic import CREDIT, TEAM, Critic, critic_loss
from mpt_train.learners.optimizer import Adam


class Reinforce(Learner):
    """See the top of this file.

    Args:
        config: the run.
        agents: what learns; a critic is put beside them where the configuration wants one.
    """

    def __init__(self, config: TrainConfig, agents: Agents) -> None:
        self._config = config
        self._agents = agents
        market, kind = config.coordination == "learned", config.bids.kind
        self.branches = market and kind in ("preference", "both")
        # Whether who acts is learned by policy gradient: bids, or a strategy's own parameters.
        self._learns_choices = agents.coordination.module is not None
        if market:
            self._learns_choices = kind in ("policy_gradient", "both")
        self._joint = config.action_steps == 0 or kind == "none" or not market
        several = min(config.optimizer.minibatches, config.num_envs) > 1
        self._clip = config.optimizer.clip if several else None
        self._critic: Critic | None = None
        if config.action.baseline == "value":
            shape = agents.shape
            inputs = central_size(shape.shared, shape.observation_size, shape.num_agents)
            self._critic = Critic(inputs, config.network.critic_hidden, config.seed * 7919 + 3)
            agents.beside["critic"] = self._critic
        self._adam = Adam(agents.named_parameters(), config.optimizer, config.budget_gflop * 1e9)

    def plan(self, step: int) -> Plan:
        """Bids and actions together, or `TrainConfig.action_steps` of actions, then one of bids."""
        config = self._config
        bid_step = step % (config.action_steps + 1) == config.action_steps
        phase = "both" if self._joint else ("bid" if bid_step else "action")
        branching = self.branches and phase != "action"
        return Plan(phase, self._clip is not None, config.bids.contested_turns * branching)

    def update(self, experience: Experience, plan: Plan, counter: FlopCounter) -> dict[str, Any]:
        """An update for each mini-batch."""
        worlds = experience.batch.active.shape[1]
        report = mean_report(
            [
                self._update(experience.of_worlds(own), plan, counter)
                for own in minibatches(worlds, self._config.optimizer.minibatches)
            ]
        )
        if experience.pairs is not None:
            pairs = experience.pairs
            report["pairs"] = {**pairs.counts, **pairs.shares, **report.get("pairs", {})}
        return report

    def _update(self, experience: Experience, plan: Plan, counter: FlopCounter) -> dict[str, Any]:
        """One update from some episodes."""
        config, agents = self._config, self._agents
        batch, pairs, credit = experience.batch, experience.pairs, experience.credit
        record: dict[str, Any] = {}
        losses: list[Tensor] = []

        if pairs is not None and len(pairs.agents):
            loss, statistics = agents.policy.preference_loss(pairs, counter)
            losses.append(config.bids.coefficient * loss)
            record |= {"pairs": statistics, "loss_preference": float(loss.detach())}

        advantage, team_advantage = self._advantages(experience, losses, counter)

        if self._learns_choices and plan.phase != "action":
            chosen, statistics = agents.coordination.choice_loss(
                agents.policy, batch, team_advantage, config.bids.entropy, counter, self._clip
            )
            record |= statistics
            if chosen is not None:
                losses.append(config.bids.coefficient * chosen)
                record["loss_bid"] = float(chosen.detach())

        if plan.phase != "bid":
            loss, entropy = agents.policy.action_loss(
                batch,
                agents.coordination.refine,
                advantage,
                config.action.entropy,
                counter,
                self._clip,
            )
            losses.append(loss)
            record |= {
                "loss_action": float(loss.detach()),
                "credit": {**credit_by_role(batch, credit), "action_entropy": entropy},
            }

        if losses:
            record["grad_norm"] = self._adam.step(losses, counter)
        return record

    def _advantages(
        self, experience: Experience, losses: list[Tensor], counter: FlopCounter
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advantage of the actors, and the team's advantage, ``(T, N)`` each.

        A critic's own loss is appended to ``losses``.
        """
        config, batch, credit = self._config, experience.batch, experience.credit
        returns = discounted_returns(batch.rewards, batch.active, config.bids.discount)
        values = None
        if self._critic is None:
            team = subtract_turn_mean(returns, batch.active)
        else:
            output, values = self._critic.predict(batch, counter)
            losses.append(critic_loss(output, batch, credit, returns))
            team = np.where(batch.active, returns - values[:, :, TEAM], 0.0)
            values = values[:, :, CREDIT]
        team /= team[batch.active].std() + 1e-6
        count = self._agents.policy.num_agents
        own = advantages(config.action, credit, batch.winners, batch.active, count, values)
        return own, team

    def tensors(self) -> dict[str, Tensor]:
        """Adam's."""
        return self._adam.tensors()

    def load(self, tensors: Mapping[str, Tensor], path: Path) -> None:
        """Adam's."""
        self._adam.load(tensors, path)


register("reinforce", Reinforce)
