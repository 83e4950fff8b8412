"""The loop: every method runs, counts its operations, and is reproducible and resumable."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from mpt_train import flops
from mpt_train.agents import build_agents
from mpt_train.config import BidLearning, EnvConfig, from_json, to_json
from mpt_train.credit import credit_by_role
from mpt_train.demonstrations import demonstrate, replay_solo
from mpt_train.evaluate import evaluate
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.learners.optimizer import clip_per_agent
from mpt_train.loop import Trainer
from mpt_train.methods import METHODS, method_config
from mpt_train.rollout import rollout
from mpt_train.seeds import demonstration_seeds, evaluation_seeds, training_seeds, validation_seeds
from tests.mpt_train.relay import tiny


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_within_its_budget(method: str) -> None:
    trainer = Trainer(tiny(method))
    before = {name: p.detach().clone() for name, p in trainer.agents.named_parameters().items()}
    summary = trainer.train()
    budget = trainer.config.budget_gflop * 1e9
    largest_step = summary.flop / max(summary.steps, 1)
    assert budget <= summary.flop < budget + 3 * largest_step
    assert summary.flop == sum(summary.flop_parts.values())
    assert summary.steps > 2
    assert len(summary.curve) == trainer.config.eval.curve_points + 1
    assert np.array(summary.final["returns"]).shape == (2, 6)
    after = trainer.agents.named_parameters()
    changed = [name for name, p in after.items() if not torch.equal(p, before[name])]
    # Two agents that each judge the other have nothing to decide.
    expected = [name for name in before if "judges" not in name]
    assert changed == expected, "every parameter is trained"


@pytest.mark.parametrize("method", ["mpt", "mpt-plus", "graph-of-agents", "monolithic"])
def test_a_seed_fixes_the_run(method: str) -> None:
    runs = [Trainer(tiny(method, seed=seed)).train() for seed in (1, 1, 2)]
    first, second, other = (dataclasses.replace(run, wall_seconds=0.0).to_json() for run in runs)
    assert first == second
    assert first["curve"] != other["curve"]


def test_dropout_populations_and_both_ways_of_learning_bids() -> None:
    config = tiny(
        "mpt",
        env=EnvConfig(agents=4, dropout=0.3),
        bids=BidLearning(kind="both", branch_noise="independent", pair_weighting="difference"),
        action_steps=1,
    )
    trainer = Trainer(config)
    records = [trainer.step() for _ in range(4)]
    assert [r["phase"] for r in records] == ["action", "bid", "action", "bid"]
    assert trainer.game.num_agents == 4
    assert any("pairs" in r for r in records)
    assert set(records[0]["participation"]) == {"filler", "carrier"}


def test_absent_agents_never_act_nor_learn_to_bid() -> None:
    config = tiny("mpt", env=EnvConfig(dropout=0.5))
    game = build_game(config, 16)
    agents = build_agents(config, game)
    game.reset(training_seeds(0, 0, 16))
    batch = rollout(game, agents.policy, agents.coordination, FlopCounter())
    turns, worlds = np.nonzero(batch.acted)
    assert batch.present[turns, worlds, batch.winners[turns, worlds]].all()
    assert (batch.bids[~batch.present] == 0).all()
    assert 0.4 < batch.present[batch.active].mean() < 0.6


def test_rollout_operations_are_counted_by_hand() -> None:
    config = tiny("mpt-plus")
    game = build_game(config, 5)
    agents = build_agents(config, game)
    counter = FlopCounter()
    game.reset(training_seeds(0, 0, 5))
    batch = rollout(game, agents.policy, agents.coordination, counter)
    width = max(game.observation_sizes)
    bid = flops.layers((width, 6, len(game.bid_levels)))
    act = flops.layers((width, 8, max(game.action_counts)))
    assert flops.layers((width, 8)) == 2 * width * 8
    assert counter.parts["rollout_bid"] == bid * batch.num_turns * game.num_agents
    assert counter.parts["rollout_act"] == act * int(batch.acted.sum())


def test_the_monolithic_policy_learns_from_the_same_demonstrations() -> None:
    config = tiny("monolithic")
    swarm = build_game(config, 6, solo=False)
    demos = demonstrate(swarm, config.cold_start, 0, 8, 8)
    solo = build_game(config, 6, solo=True)
    same = replay_solo(solo, demos, swarm, 0, 8, 8)
    np.testing.assert_array_equal(same.batch.rewards, demos.batch.rewards)
    np.testing.assert_array_equal(same.batch.active, demos.batch.active)
    names = np.array([swarm.action_names[w] for w in range(2)], dtype=object)
    for turn, world in zip(*np.nonzero(demos.batch.acted), strict=True):
        own = names[demos.batch.winners[turn, world]][demos.batch.actions[turn, world]]
        assert solo.action_names[0][same.batch.actions[turn, world]].endswith(own)


def test_worlds_for_training_demonstrations_and_evaluation_are_disjoint() -> None:
    blocks = [evaluation_seeds(1000), validation_seeds(1000)]
    for seed in (0, 1, 4000):
        blocks += [training_seeds(seed, 0, 1000), demonstration_seeds(seed, 1000)]
    everything = np.concatenate(blocks)
    assert len(np.unique(everything)) == len(everything)


def test_validation_plays_other_worlds() -> None:
    config = tiny("mpt-plus")
    trainer = Trainer(config)
    game = trainer.game.spawn(6)
    agents = trainer.agents
    found = {}
    for split in ("evaluation", "validation"):
        evaluate(game, agents.policy, agents.coordination, 1, split)  # type: ignore[arg-type]
        found[split] = set(game.keys.tolist())
    assert not found["evaluation"] & found["validation"]


def test_configurations_survive_json() -> None:
    for name in METHODS:
        config = method_config(name, seed=3)
        assert from_json(to_json(config)) == config
    with pytest.raises(ValueError, match=r"bids\.nonsense"):
        from_json({"bids": {"nonsense": 1}})


def test_meaningless_configurations_are_refused_before_any_work() -> None:
    with pytest.raises(ValueError, match="market"):
        Trainer(tiny("round-robin", action=method_config("mpt").action))
    with pytest.raises(ValueError, match="budget_gflop"):
        Trainer(tiny("mpt", budget_gflop=0.0))
    with pytest.raises(ValueError, match="did you mean"):
        method_config("mpt-puls")


def test_counterfactuals_need_turns_and_draws() -> None:
    for bids in (BidLearning(contested_turns=0), BidLearning(kind="both", resamples=0)):
        with pytest.raises(ValueError, match=r"contested_turns and bids\.resamples"):
            Trainer(tiny("mpt", bids=bids))
    Trainer(tiny("mpt-plus", bids=BidLearning(kind="policy_gradient", contested_turns=0)))


def test_the_log_says_what_became_of_branches_and_bids() -> None:
    trainer = Trainer(tiny("mpt", bids=BidLearning(kind="both"), action_steps=0))
    record = trainer.step()
    pairs = record["pairs"]
    assert 0 < pairs["contested"] <= pairs["tried"]
    assert pairs["contested_share"] == pairs["contested"] / pairs["tried"]
    assert pairs["dropped_share"] == pairs["dropped"] / pairs["contested"]
    assert pairs["tied_share"] == pairs["tied"] / pairs["contested"]
    assert pairs["turns"] >= pairs["contested"] - pairs["dropped"]
    assert 0 < record["bid_entropy"] <= np.log(len(trainer.game.bid_levels)) + 1e-6


def test_credit_is_reported_over_all_copies_of_a_role() -> None:
    config = tiny("mpt", env=EnvConfig(agents=4))
    game = build_game(config, 16)
    agents = build_agents(config, game)
    game.reset(training_seeds(0, 0, 16))
    batch = rollout(game, agents.policy, agents.coordination, FlopCounter())
    credit = np.arange(batch.rewards.size, dtype=np.float64).reshape(batch.rewards.shape)
    statistics = credit_by_role(batch, credit)
    roles = np.array(batch.roles)
    for role in set(batch.roles):
        mine = credit[batch.acted & (roles[batch.winners] == role)]
        assert statistics[f"credit_mean/{role}"] == pytest.approx(mine.mean())
        assert statistics[f"credit_std/{role}"] == pytest.approx(mine.std())


def test_gradients_of_ordinary_modules_are_clipped_as_one_network() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 4))
    stacked = torch.nn.Parameter(torch.ones(2, 1, 3))
    stacked.grad = torch.tensor([[[3.0, 0, 0]], [[0, 0.5, 0]]])
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)
    parameters = {f"coordination.{n}": p for n, p in module.named_parameters()}
    largest = clip_per_agent(parameters | {"policy.weight": stacked}, 1.0)
    gradients = torch.cat([p.grad.flatten() for p in module.parameters()])
    assert largest == pytest.approx(2.0 * len(gradients) ** 0.5)
    assert float(gradients.norm()) == pytest.approx(1.0)
    assert stacked.grad[:, 0].norm(dim=1).tolist() == [1.0, 0.5], "each agent on its own"


def test_learning_beats_the_cold_start() -> None:
    """MPT+ nearly solves the relay from a weak start, in a few seconds."""
    summary = Trainer(tiny("mpt-plus", budget_gflop=0.1)).train()
    assert summary.final["return_mean"] > summary.cold_start["return_mean"] + 1.0
