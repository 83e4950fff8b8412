"""Learners: one of one's own fits into the unchanged loop, with checkpoints that resume."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mpt_train import learners
from mpt_train.config import ActionLearning, BidLearning
from mpt_train.errors import TrainingInterrupted
from mpt_train.loop import Trainer
from mpt_train.runs.checkpoint import load_checkpoint
from tests.mpt_train.relay import tiny
from tests.mpt_train.runs import assert_same_run
from tests.mpt_train.stops import StopAfter

# Multi-agent PPO: a central critic of values, generalised advantage estimation, and updates of one
# agent after the other, each on the ratios that those before it have left.
OWN = """
import numpy as np
import torch

from mpt_train.coordination.base import central_rows, central_size
from mpt_train.learners import Learner, Plan, register
from mpt_train.learners.optimizer import Adam
from mpt_train.policies.networks import StackedMLP
from mpt_train.policies.surrogate import surrogate
from mpt_train.policies.swarm import networks_of
from mpt_train.records import take


class AgentByAgent(Learner):
    def __init__(self, config, agents):
        self.config, self.agents = config, agents
        self.policy = networks_of(agents.policy)
        shape = agents.shape
        inputs = central_size(shape.shared, shape.observation_size, shape.num_agents)
        generator = torch.Generator().manual_seed(config.seed)
        agents.beside["values"] = self.values = StackedMLP(1, (inputs, 16, 1), generator)
        budget = config.budget_gflop * 1e9
        self.adams = [
            Adam(agents.named_parameters(), config.optimizer, budget, f"adam.{agent}")
            for agent in range(shape.num_agents)
        ]
        own = {n: p for n, p in agents.named_parameters().items() if n.startswith("values.")}
        self.critic_adam = Adam(own, config.optimizer, budget, "adam.critic")

    def plan(self, step):
        return Plan(log_probs=True)

    def update(self, experience, plan, counter):
        batch, refine = experience.batch, self.agents.coordination.refine
        predicted = self.values.one(0, central_rows(batch, batch.active))[:, 0]
        values = np.zeros((len(batch.active) + 1, batch.active.shape[1]))
        values[:-1][batch.active] = predicted.detach().numpy()
        advantage = np.zeros(batch.active.shape)
        carried = np.zeros(batch.active.shape[1])
        for turn in range(len(batch.active) - 1, -1, -1):
            error = batch.rewards[turn] + 0.99 * values[turn + 1] - values[turn]
            carried = np.where(batch.active[turn], error + 0.99 * 0.95 * carried, 0.0)
            advantage[turn] = carried
        target = take(advantage + values[:-1], batch.active).float()
        advantage /= advantage[batch.active].std() + 1e-6
        report = {}
        ratio = 1.0  # of the agents that were updated before, where they acted
        for agent, adam in enumerate(self.adams):
            where = batch.acted & (batch.winners == agent)
            if not where.any():
                continue
            log_probs = self.policy.action_log_probs(agent, batch, where, refine)
            chosen = log_probs.gather(1, take(batch.actions, where)[:, None])[:, 0]
            old = take(batch.log_probs, where)
            loss = surrogate(chosen, ratio * take(advantage, where).float(), old, 0.2)
            counter.add("update_action", 3 * self.policy.act_flop * len(old))
            report[f"loss/{agent}"] = float(loss.detach())
            adam.step([loss], counter)
            with torch.no_grad():
                now = self.policy.action_log_probs(agent, batch, where, refine)
                now = now.gather(1, take(batch.actions, where)[:, None])[:, 0]
                ratio = float((now - old).exp().mean())
        loss = (predicted - target).square().mean()
        self.critic_adam.step([loss], counter)
        return {**report, "loss_critic": float(loss.detach())}

    def tensors(self):
        return {n: t for adam in [*self.adams, self.critic_adam] for n, t in adam.tensors().items()}

    def load(self, tensors, path):
        for adam in [*self.adams, self.critic_adam]:
            adam.load(tensors, path)


register("agent-by-agent", AgentByAgent)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_learner.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield "own_learner:agent-by-agent"  # type: ignore[misc]


def test_a_learner_of_ones_own_trains_stops_and_resumes(own: str, tmp_path: Path) -> None:
    config = tiny("round-robin", budget_gflop=0.02, learner=own, num_envs=16)
    whole = Trainer(config, tmp_path / "whole")
    before = {n: p.detach().clone() for n, p in whole.agents.named_parameters().items()}
    summary = whole.train()
    after = whole.agents.named_parameters()
    assert all((after[name] != before[name]).any() for name in before)
    assert any(name.startswith("values.") for name in before)
    assert summary.steps > 3 and "critic" not in summary.flop_parts
    tensors, _ = load_checkpoint(tmp_path / "whole" / "checkpoint")
    assert {f"adam.{n}.step.policy.actor.output.weight" for n in (0, 1)} <= tensors.keys()
    assert "adam.critic.exp_avg.values.output.weight" in tensors
    with pytest.raises(TrainingInterrupted, match="after step"):
        Trainer(config, tmp_path / "parts", stop=StopAfter(150)).train()
    Trainer(config, tmp_path / "parts", resume=True).train()
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_it_runs_on_whatever_bids(own: str) -> None:
    """Who acts is another part of a method: bids that nobody learns here, or a strategy's."""
    for method in ("mpt", "random-bids"):
        record = Trainer(tiny(method, learner=own)).step()
        assert {"loss/0", "loss_critic"} <= record.keys() and "pairs" not in record


def test_a_learner_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="unknown learner 'reinfroce'; did you mean reinforce"):
        Trainer(tiny("mpt", learner="reinfroce"))
    with pytest.raises(ValueError, match="PYTHONPATH"):
        Trainer(tiny("mpt", learner="no_such_module:x"))
    with pytest.raises(ValueError, match="registered already"):
        learners.register("reinforce", lambda config, agents: None)  # type: ignore[arg-type]


def test_what_a_step_collects_follows_from_the_plan() -> None:
    """Preferences want branches in bid steps only; without them none is ever played."""
    config = dataclasses.replace(tiny("mpt"), action_steps=1)
    learner = Trainer(config).learner
    plans = [learner.plan(step) for step in range(4)]
    assert [p.phase for p in plans] == ["action", "bid", "action", "bid"]
    assert [bool(p.branch_turns) for p in plans] == [False, True, False, True]
    gradient = dataclasses.replace(
        config, bids=BidLearning(kind="policy_gradient"), action=ActionLearning(), action_steps=0
    )
    learner = Trainer(gradient).learner
    assert not learner.branches and learner.plan(0) == learners.Plan("both", False, 0)
