"""Coordination strategies: whom they let act, and how one brings another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mpt_train import coordination
from mpt_train.agents import build_agents
from mpt_train.config import OptimizerConfig
from mpt_train.coordination.base import (
    Coordination,
    Shape,
    central,
    central_size,
    one_hot_bids,
)
from mpt_train.coordination.fixed import FixedPriority, RandomBids, RoundRobin
from mpt_train.coordination.graph_of_agents import GraphOfAgents
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.loop import Trainer
from mpt_train.policies.base import TurnContext
from mpt_train.policies.swarm import SwarmPolicy
from mpt_train.rollout import rollout
from mpt_train.seeds import training_seeds
from tests.mpt_train.relay import tiny

ROLES = ("logger", "miner", "smith")


def context(
    n: int = 6, present: np.ndarray | None = None, masks: list[np.ndarray] | None = None
) -> TurnContext:
    """A moment of n worlds with three agents of four actions each."""
    from mpt_train.config import NetworkConfig

    policy = SwarmPolicy(5, (4, 4, 4), 11, NetworkConfig((8,), None), seed=0)
    return TurnContext(
        policy=policy,
        observations=torch.randn(n, 5, generator=torch.Generator().manual_seed(0)),
        masks=masks or [np.ones((n, 4), bool)] * 3,
        present=np.ones((n, 3), bool) if present is None else present,
        keys=np.arange(n, dtype=np.uint64),
        turns=np.arange(n, dtype=np.int64),
        num_levels=11,
        roles=ROLES,
        counter=FlopCounter(),
        part="rollout",
    )


def test_round_robin_rotates_and_passes_over_the_absent() -> None:
    bids = RoundRobin().bids(context())
    assert bids.argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 2]
    assert (np.sort(bids, axis=1) == [0, 0, 10]).all()
    present = np.ones((6, 3), bool)
    present[1, 1] = False  # turn 1 is agent 1's; agent 2 takes over
    present[2] = False  # nobody is there
    bids = RoundRobin().bids(context(present=present))
    assert bids[1].argmax() == 2
    assert (bids[2] == 0).all()


def test_random_bids_are_uniform_and_silent_when_absent() -> None:
    present = np.ones((20_000, 3), bool)
    present[:, 1] = False
    bids = RandomBids().bids(context(20_000, present))
    assert (bids[:, 1] == 0).all()
    frequency = np.bincount(bids[:, 0], minlength=11) / 20_000
    np.testing.assert_allclose(frequency, 1 / 11, atol=0.008)


def test_fixed_priority_lets_the_first_act_that_has_something_to_do() -> None:
    masks = [np.ones((4, 4), bool) for _ in range(3)]
    masks[2][1:, 1:] = False  # from world 1 on the smith can only wait
    masks[1][2:, 1:] = False
    masks[0][3:, 1:] = False
    bids = FixedPriority((), ROLES).bids(context(4, masks=masks))
    assert bids.argmax(axis=1).tolist() == [2, 1, 0, 2]
    bids = FixedPriority(("logger", "smith", "miner"), ROLES).bids(context(4, masks=masks))
    assert bids.argmax(axis=1).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="each of the roles"):
        FixedPriority(("logger", "smith"), ROLES)


@torch.no_grad()
def test_graph_of_agents_without_judges_prefers_the_confident() -> None:
    """One legal action means certainty; with four equal ones confidence is a quarter."""
    masks = [np.ones((4000, 4), bool) for _ in range(3)]
    masks[1][:, 1:] = False
    shape = Shape(5, 3, 4, 11, True, ROLES)
    strategy = GraphOfAgents(shape, None, seed=0)
    moment = context(4000, masks=masks)
    chosen = strategy.bids(moment).argmax(axis=1)
    shares = np.bincount(chosen, minlength=3) / 4000
    # Confidences 1/4, 1, 1/4 to the fourth power.
    np.testing.assert_allclose(shares, [1 / 258, 256 / 258, 1 / 258], atol=0.006)
    assert moment.choice_logits is None and moment.messages is None, "it learns nothing"
    policy = moment.policy
    expected = 4000 * 3 * (policy.act_flop + 2 * 3 * 4 * 4)
    assert moment.counter.parts["rollout_act"] == expected


@torch.no_grad()
def test_the_top_agents_messages_hold_the_others_proposals() -> None:
    shape = Shape(5, 3, 4, 11, True, ROLES)
    strategy = GraphOfAgents(shape, (8,), seed=0)
    moment = context(50)
    winners = strategy.bids(moment).argmax(axis=1)
    assert moment.messages is not None
    told = moment.messages.view(50, 3, 4).numpy()
    assert (told[np.arange(50), winners] == 0).all(), "nobody tells itself"
    weights = told.sum(axis=2)
    others = np.sort(weights, axis=1)[:, 1:]
    assert ((others > 0) & (others < 1)).all()
    assert ((told > 0).sum(axis=2) <= 1).all(), "one proposal each"


def test_central_strategies_see_everything() -> None:
    observations = torch.arange(12.0).view(3, 2, 2)
    assert central(observations).shape == (2, central_size(False, 2, 3))
    assert central(observations)[0].tolist() == [0, 1, 4, 5, 8, 9]
    assert central(observations[0]) is not None and central_size(True, 2, 3) == 2


@pytest.mark.parametrize("name", ["learned", "router", "graph-of-agents", "random", "round-robin"])
def test_absent_agents_are_never_chosen(name: str) -> None:
    config = tiny("mpt", coordination=name, action=tiny("round-robin").action)
    config = type(config)(**{**config.__dict__, "env": type(config.env)(dropout=0.4)})
    game = build_game(config, 12)
    agents = build_agents(config, game)
    game.reset(training_seeds(0, 0, 12))
    batch = rollout(game, agents.policy, agents.coordination, FlopCounter())
    turns, worlds = np.nonzero(batch.acted)
    assert batch.present[turns, worlds, batch.winners[turns, worlds]].all()


def test_a_learned_strategy_of_ones_own_trains_with_an_ordinary_module() -> None:
    class Bandit(Coordination):
        name = "bandit"

        def __init__(self, agents: int) -> None:
            self.module = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Linear(4, agents))

        def _logits(self, count: int) -> torch.Tensor:
            return self.module(torch.ones(count, 1))

        def bids(self, moment: TurnContext) -> np.ndarray:
            pick = np.full(len(moment.turns), int(self._logits(1).argmax()))
            return one_hot_bids(pick, moment.policy.num_agents, moment.num_levels)

        def choice_logits(self, policy, batch, where, counter):  # type: ignore[no-untyped-def]
            return self._logits(int(where.sum()))

        def choice_log_prob(self, logits, batch, where):  # type: ignore[no-untyped-def]
            log_probs = torch.log_softmax(logits, dim=-1)
            chosen = log_probs.gather(1, torch.from_numpy(batch.winners[where])[:, None])[:, 0]
            return chosen, -(log_probs.exp() * log_probs).sum(-1).mean()

    coordination.register("bandit", lambda config, shape: Bandit(shape.num_agents))
    plain = OptimizerConfig(minibatches=1)
    trainer = Trainer(tiny("router", coordination="bandit", optimizer=plain))
    before = [p.detach().clone() for p in trainer.agents.coordination.module.parameters()]
    trainer.step()
    after = list(trainer.agents.coordination.module.parameters())
    assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    clipped = OptimizerConfig(minibatches=2)
    with pytest.raises(ValueError, match=r"leave it in context\.choice_logits"):
        Trainer(tiny("router", coordination="bandit", optimizer=clipped)).step()


def test_a_strategy_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_strategy.py").write_text(
        "import numpy as np\n"
        "from mpt_train.coordination import Coordination, register\n"
        "class FirstOnly(Coordination):\n"
        "    name = 'first-only'\n"
        "    def bids(self, context):\n"
        "        bids = np.zeros(context.present.shape, np.int64)\n"
        "        bids[:, 0] = context.present[:, 0]\n"
        "        return bids\n"
        "register('first-only', lambda config, shape: FirstOnly())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = tiny("mpt", coordination="own_strategy:first-only", action=tiny("round-robin").action)
    game = build_game(config, 4)
    agents = build_agents(config, game)
    game.reset(training_seeds(0, 0, 4))
    batch = rollout(game, agents.policy, agents.coordination, FlopCounter())
    assert set(batch.winners[batch.active].tolist()) == {0}
    with pytest.raises(ValueError, match="did you mean round-robin"):
        coordination.build("round-robbin", config, agents.shape)
    with pytest.raises(ValueError, match="PYTHONPATH"):
        coordination.build("no_such_module:x", config, agents.shape)
