"""Losses: what a batch records of its choices, and clipping once the policy has moved on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from mpt_train.agents import build_agents
from mpt_train.config import BidLearning, EnvConfig, OptimizerConfig
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.learners.base import minibatches
from mpt_train.learners.reinforce import Reinforce
from mpt_train.loop import Trainer
from mpt_train.policies.distributions import log_prob_rows, masked_log_softmax
from mpt_train.policies.surrogate import surrogate
from mpt_train.records import take
from mpt_train.rollout import rollout
from mpt_train.seeds import training_seeds
from tests.mpt_train.relay import tiny

LEARNERS = ("mpt-plus", "router", "graph-of-agents")


def test_log_probabilities_count_legal_actions_only() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = 5 * torch.randn(40, 6, generator=generator)
    mask = torch.rand(40, 6, generator=generator) < 0.6
    mask[:, 2] = True
    actions = torch.full((40,), 2)
    actions[7] = -1
    found = log_prob_rows(logits.numpy(), mask.numpy(), actions.numpy())
    expected = masked_log_softmax(logits, mask)[:, 2]
    expected[7] = 0.0
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("estimator", ["marginal", "sampled"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("method", LEARNERS)
def test_what_a_batch_records_is_what_learning_computes_again(
    method: str, dropout: float, estimator: str
) -> None:
    """Before the first update, the recorded choices have the probability that the losses give."""
    base = tiny(method)
    config = dataclasses.replace(
        base,
        env=EnvConfig(agents=4, dropout=dropout, bid_levels=base.env.bid_levels),
        bids=dataclasses.replace(base.bids, estimator=estimator),  # type: ignore[arg-type]
    )
    game = build_game(config, 12)
    agents = build_agents(config, game)
    # Far from uniform, so that an error cannot hide.
    with torch.no_grad():
        for parameter in agents.named_parameters().values():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator()))
    game.reset(training_seeds(0, 0, 12))
    counter = FlopCounter()
    batch = rollout(game, agents.policy, agents.coordination, counter, log_probs=True)
    strategy = agents.coordination
    where = strategy.chosen(batch)
    logits = strategy.choice_logits(agents.policy, batch, where, counter)
    assert logits is not None and batch.choice_logits is not None
    with torch.no_grad():
        now, entropy = strategy.choice_log_prob(logits, batch, where)
    recorded = torch.from_numpy(batch.choice_logits[where])
    then, _ = strategy.choice_log_prob(recorded, batch, where)
    torch.testing.assert_close(now, then, rtol=1e-4, atol=1e-4)
    assert float(then.max()) <= 1e-5 and float(then.std()) > 0.01 and float(entropy) > 0
    for agent in range(agents.policy.num_agents):
        mine = batch.acted & (batch.winners == agent)
        own = agents.policy.action_logits_one(agent, batch.rows_of(agent, mine))
        if batch.messages is not None:
            own = strategy.refine(agent, own, torch.from_numpy(batch.messages[mine]))
        log_probs = masked_log_softmax(own, torch.from_numpy(batch.masks[mine]))
        chosen = log_probs.gather(1, torch.from_numpy(batch.actions[mine])[:, None])[:, 0]
        np.testing.assert_allclose(chosen.detach(), batch.log_probs[mine], rtol=1e-4, atol=1e-4)


def test_an_update_on_fresh_data_is_that_of_reinforce() -> None:
    log_prob = torch.tensor([-0.5, -1.0, -3.0], requires_grad=True)
    weight = torch.tensor([1.0, -2.0, 0.5])
    plain = torch.autograd.grad(surrogate(log_prob, weight), log_prob)[0]
    fresh = torch.autograd.grad(surrogate(log_prob, weight, log_prob.detach(), 0.2), log_prob)[0]
    torch.testing.assert_close(fresh, plain)


def test_what_has_moved_far_enough_is_moved_no_further() -> None:
    old = torch.zeros(4)
    moved = torch.tensor([0.5, 0.5, -0.5, -0.5], requires_grad=True)
    weight = torch.tensor([1.0, -1.0, 1.0, -1.0])
    gradient = torch.autograd.grad(surrogate(moved, weight, old, 0.2), moved)[0]
    assert gradient[[0, 3]].tolist() == [0.0, 0.0], "already more, or less, probable by a fifth"
    assert gradient[1] > 0 > gradient[2], "the way back stays open"


def test_mini_batches_share_out_the_episodes() -> None:
    parts = minibatches(10, 4)
    assert sorted(np.concatenate(parts).tolist()) == list(range(10))
    assert [len(part) for part in parts] == [3, 3, 2, 2]
    assert [len(part) for part in minibatches(10, 16)] == [1] * 10, "one an episode"


@pytest.mark.parametrize("agents", [2, 4])
def test_rows_are_taken_as_numpy_indexes(agents: int) -> None:
    config = tiny("mpt-plus", env=EnvConfig(agents=agents))
    trainer = Trainer(config)
    trainer.game.reset(training_seeds(0, 0, config.num_envs))
    batch = rollout(trainer.game, trainer.agents.policy, trainer.agents.coordination, FlopCounter())
    part = batch.only(np.array([3, 7, 4]))
    assert part.active.sum(axis=0).nonzero()[0].tolist() == [3, 4, 7]
    assert np.array_equal(part.active[:, 3], batch.active[:, 3])
    where = part.acted
    for values in (batch.masks, batch.bids, batch.actions, batch.rewards):
        assert np.array_equal(take(values, where).numpy(), values[where])
    for agent in range(agents):
        source = batch.observations if batch.shared else batch.observations[agent]
        assert np.array_equal(part.rows_of(agent, where).numpy(), source[where])
    everyone = batch.observations[where] if batch.shared else batch.observations[:, where]
    assert np.array_equal(part.rows_of_all(where).numpy(), everyone)


@pytest.mark.parametrize("kind", ["preference", "both"])
def test_every_pair_serves_one_update(kind: str) -> None:
    config = tiny("mpt", bids=BidLearning(kind=kind), action_steps=0)  # type: ignore[arg-type]
    config = dataclasses.replace(config, optimizer=OptimizerConfig(minibatches=4))
    trainer = Trainer(config)
    seen = []
    learner = trainer.learner
    assert isinstance(learner, Reinforce)
    update = learner._update

    def spy(experience, *rest):  # type: ignore[no-untyped-def]
        seen.append((experience.batch, experience.pairs))
        return update(experience, *rest)

    learner._update = spy  # type: ignore[method-assign]
    record = trainer.step()
    counts = record["pairs"]
    used = counts["contested"] - counts["dropped"] - counts["tied"]
    assert used > 0 and sum(len(pairs.agents) for _, pairs in seen) == used
    for _, pairs in seen:
        assert len({int(w) % 4 for w in pairs.worlds}) <= 1


@pytest.mark.parametrize("method", [*LEARNERS, "mpt", "monolithic", "round-robin"])
def test_several_updates_a_batch_learn_as_well(method: str) -> None:
    """64 episodes in 4 clipped updates raise the return as 16 episodes in one do."""
    config = tiny(method, budget_gflop=0.1, num_envs=64)
    rate = config.optimizer.learning_rate
    config = dataclasses.replace(
        config, optimizer=OptimizerConfig(learning_rate=rate, minibatches=4)
    )
    summary = Trainer(config).train()
    assert np.isfinite(summary.final["return_mean"])
    if method != "mpt":
        assert summary.final["return_mean"] > summary.cold_start["return_mean"] + 0.3
