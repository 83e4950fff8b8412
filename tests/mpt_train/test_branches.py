"""Counterfactual branches: they differ from the episode in the actor, and in nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpt_train.agents import build_agents
from mpt_train.branches import BranchPlayer, check_fidelity, choose_turns, score
from mpt_train.config import BidLearning
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.loop import Trainer
from mpt_train.rollout import rollout
from mpt_train.seeds import training_seeds
from tests.mpt_train.relay import tiny
from tests.toys import RelayTask
from wrappers.errors import SnapshotFidelityError


@pytest.fixture
def played():
    """An untrained swarm's episodes with snapshots of every turn."""
    config = tiny("mpt")
    game = build_game(config, 12)
    agents = build_agents(config, game)
    game.reset(training_seeds(0, 0, 12))
    everything = np.ones((game.max_turns, 12), bool)
    batch = rollout(game, agents.policy, agents.coordination, FlopCounter(), save_turns=everything)
    return game, agents, batch


def test_replaying_the_same_bids_gives_the_same_episode(played) -> None:
    """With shared noise, a branch that changes nothing is the episode itself."""
    game, agents, batch = played
    picks = [s for s in batch.saved if s[0] in (0, 3, 8)]
    turns = np.array([s[0] for s in picks])
    worlds = np.array([s[1] for s in picks])
    twin = game.spawn(len(picks))
    rows = np.arange(len(picks))
    twin.restore(rows, [s[2] for s in picks])
    again = rollout(
        twin,
        agents.policy,
        agents.coordination,
        FlopCounter(),
        first_bids=batch.bids[turns, worlds],
    )
    for row, (turn, world) in enumerate(zip(turns, worlds, strict=True)):
        length = batch.active[turn:, world].sum()
        assert again.active[:, row].sum() == length
        for name in ("bids", "winners", "actions", "rewards", "runners_up"):
            first = getattr(batch, name)[turn : turn + length, world]
            second = getattr(again, name)[:length, row]
            np.testing.assert_array_equal(first, second, err_msg=name)


def test_pairs_compare_the_runner_ups_branch(played) -> None:
    game, agents, batch = played
    counter = FlopCounter()
    pairs = BranchPlayer(game).collect(
        batch, agents.policy, agents.coordination, BidLearning(), counter
    )
    counts = pairs.counts
    assert counts["tried"] == len(batch.saved) == batch.num_turns
    assert counts["contested"] == int((batch.runners_up >= 0).sum())
    assert len(pairs.agents) == counts["contested"] - counts["dropped"] - counts["tied"]
    assert 0 < counts["original_better"] < len(pairs.agents)
    assert (pairs.chosen != pairs.rejected).all()
    assert (pairs.weights == 1).all()
    assert counter.parts["branch_bid"] > 0 and counter.parts["branch_act"] > 0
    loss, statistics = agents.policy.preference_loss(pairs, counter)
    loss.backward()
    assert 0 <= statistics["pair_accuracy"] <= 1
    trained = {n for n, p in agents.named_parameters().items() if p.grad is not None}
    assert any("bid_head" in name for name in trained)


def test_weighting_by_the_difference_has_mean_one(played) -> None:
    game, agents, batch = played
    config = BidLearning(pair_weighting="difference", score_discount=0.97)
    pairs = BranchPlayer(game).collect(
        batch, agents.policy, agents.coordination, config, FlopCounter()
    )
    assert pairs.weights.mean() == pytest.approx(1.0, rel=1e-5)
    assert pairs.weights.std() > 0


def test_independent_noise_changes_the_branches_luck(played) -> None:
    game, agents, batch = played
    results = [
        BranchPlayer(game).collect(
            batch,
            agents.policy,
            agents.coordination,
            BidLearning(branch_noise=noise, score_discount=0.97),  # type: ignore[arg-type]
            FlopCounter(),
        )
        for noise in ("shared", "independent", "independent")
    ]
    assert results[0].counts != results[1].counts
    assert results[1].counts == results[2].counts, "also independent noise is reproducible"


def test_branches_leave_the_batch_alone(played) -> None:
    game, agents, batch = played
    before = {f.name: np.copy(getattr(batch, f.name)) for f in dataclasses.fields(batch)[1:13]}
    BranchPlayer(game).collect(
        batch, agents.policy, agents.coordination, BidLearning(), FlopCounter()
    )
    for name, values in before.items():
        np.testing.assert_array_equal(values, getattr(batch, name))


def test_turns_are_drawn_without_repetition(played) -> None:
    game, _, batch = played
    chosen = choose_turns(game, 8, batch.keys)
    assert chosen.shape == (game.max_turns, 12)
    assert (chosen.sum(axis=0) == 8).all()
    assert len({tuple(column) for column in chosen.T}) > 6, "worlds draw different turns"
    assert choose_turns(game, 1000, batch.keys).all()


def test_score_is_the_discounted_future(played) -> None:
    _, _, batch = played
    turns, worlds = np.array([2, 5]), np.array([0, 3])
    plain = score(batch, turns, worlds, 1.0)
    np.testing.assert_allclose(plain, [batch.rewards[2:, 0].sum(), batch.rewards[5:, 3].sum()])
    expected = sum(0.9 ** (t - 5) * batch.rewards[t, 3] for t in range(5, len(batch.rewards)))
    assert score(batch, turns, worlds, 0.9)[1] == pytest.approx(expected)


def test_inexact_snapshots_are_refused(played) -> None:
    game, _, _ = played
    game.snapshot_fidelity = "approximate"
    with pytest.raises(SnapshotFidelityError, match="policy_gradient"):
        check_fidelity(game)
    check_fidelity(game, allow_inexact=True)


def test_a_run_may_accept_inexact_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RelayTask, "snapshot_fidelity", "approximate")
    config = tiny("mpt")
    with pytest.raises(SnapshotFidelityError, match="allow-approximate-snapshots"):
        Trainer(config)
    bids = dataclasses.replace(config.bids, allow_approximate_snapshots=True)
    Trainer(dataclasses.replace(config, bids=bids))
