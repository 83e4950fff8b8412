"""Networks and sampling: independence of agents, distributions, common random numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mpt_train.config import NetworkConfig
from mpt_train.coordination.outcome import outcome_log_prob
from mpt_train.learners.optimizer import clip_per_agent
from mpt_train.policies.distributions import masked_log_softmax, sample_all, sample_rows
from mpt_train.policies.swarm import SwarmPolicy
from wrappers.auction import resolve_rows
from wrappers.rng import STREAM_POLICY_ACTION, STREAM_POLICY_BID


def policy(bid_hidden: tuple[int, ...] | None = None) -> SwarmPolicy:
    return SwarmPolicy(5, (3, 4, 2), 6, NetworkConfig((8, 8), bid_hidden), seed=3)


@pytest.mark.parametrize("bid_hidden", [None, (4,)])
def test_one_by_one_equals_all_together(bid_hidden: tuple[int, ...] | None) -> None:
    agents = policy(bid_hidden)
    x = torch.randn(7, 5)
    together, features = agents.bid_logits(x)
    apart = torch.stack([agents.bid_logits_one(a, x) for a in range(3)])
    torch.testing.assert_close(together, apart)
    stacked, _ = agents.bid_logits(x.expand(3, 7, 5))
    torch.testing.assert_close(together, stacked)
    if features is not None:
        torch.testing.assert_close(
            agents.action_head_one(1, features[1]), agents.action_logits_one(1, x)
        )


@pytest.mark.parametrize("bid_hidden", [None, (4,)])
def test_training_one_agent_leaves_the_others_bit_identical(
    bid_hidden: tuple[int, ...] | None,
) -> None:
    agents = policy(bid_hidden)
    x = torch.randn(16, 5)
    before = [agents.action_logits_one(a, x).detach().clone() for a in range(3)]
    bids = [agents.bid_logits_one(a, x).detach().clone() for a in range(3)]
    optimizer = torch.optim.Adam(agents.parameters(), lr=0.1)
    loss = agents.action_logits_one(1, x).square().sum() + agents.bid_logits_one(1, x).sum()
    loss.backward()
    clip_per_agent(dict(agents.named_parameters()), 1.0)
    optimizer.step()
    for other in (0, 2):
        assert torch.equal(agents.action_logits_one(other, x), before[other])
        assert torch.equal(agents.bid_logits_one(other, x), bids[other])
    assert not torch.equal(agents.action_logits_one(1, x), before[1])


def test_gradients_are_clipped_agent_by_agent() -> None:
    first = torch.nn.Parameter(torch.zeros(2, 3, 1))
    second = torch.nn.Parameter(torch.zeros(2, 1, 1))
    first.grad = torch.tensor([[[3.0], [0], [0]], [[0.3], [0], [0]]])
    second.grad = torch.tensor([[[4.0]], [[0.4]]])
    assert clip_per_agent({"policy.a": first, "policy.b": second}, 1.0) == pytest.approx(5.0)
    torch.testing.assert_close(first.grad[:, 0, 0], torch.tensor([0.6, 0.3]))
    torch.testing.assert_close(second.grad[:, 0, 0], torch.tensor([0.8, 0.4]))


def test_samples_follow_the_masked_softmax() -> None:
    count = 40_000
    logits = np.tile(np.array([0.0, 1.0, 2.0, 5.0], np.float32), (count, 1))
    mask = np.ones((count, 4), bool)
    mask[:, 3] = False
    keys = np.arange(count, dtype=np.uint64)
    turns = np.full(count, 7)
    draws = sample_rows(logits, mask, keys, turns, STREAM_POLICY_ACTION, agent=1)
    expected = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    frequency = np.bincount(draws, minlength=4) / count
    assert frequency[3] == 0
    np.testing.assert_allclose(frequency[:3], expected, atol=0.01)


def test_noise_is_keyed_by_episode_turn_agent_stream_and_attempt() -> None:
    logits = np.zeros((500, 10), np.float32)
    mask = np.ones((500, 10), bool)
    keys = np.arange(500, dtype=np.uint64)
    turns = np.zeros(500, np.int64)

    def draw(**changes: object) -> np.ndarray:
        options: dict = {"stream": STREAM_POLICY_BID, "agent": 0, "attempt": 0} | changes
        moment = options.pop("turns", turns)
        return sample_rows(logits, mask, keys, moment, **options)

    again = draw()
    assert (again == draw()).all()
    others = (
        draw(agent=1),
        draw(attempt=1),
        draw(stream=STREAM_POLICY_ACTION),
        draw(turns=turns + 1),
    )
    for other in others:
        # Independent uniform draws agree in a tenth of the rows.
        assert 0.03 < (again == other).mean() < 0.2


def test_masked_log_softmax_gives_no_mass_to_the_illegal() -> None:
    logits = torch.tensor([[1.0, 50.0, 2.0]])
    log_probs = masked_log_softmax(logits, torch.tensor([[True, False, True]]))
    torch.testing.assert_close(log_probs.exp().sum(), torch.tensor(1.0))
    assert log_probs[0, 1].exp() == 0


@pytest.mark.parametrize("agents", [2, 3, 6])
def test_outcome_probability_matches_simulated_auctions(agents: int) -> None:
    """The closed form against the game's own auctions with drawn bids and absences."""
    generator = torch.Generator().manual_seed(agents)
    log_probs = torch.log_softmax(torch.randn(agents, 1, 4, generator=generator), -1)
    present = torch.ones(agents, 1, dtype=torch.bool)
    if agents > 2:
        present[1] = False
    count = 60_000
    keys = np.arange(count, dtype=np.uint64)
    turns = np.zeros(count, np.int64)
    wide = log_probs.expand(agents, count, 4).numpy()
    bids = sample_all(wide, keys, turns, STREAM_POLICY_BID)
    bids[:, ~present[:, 0].numpy()] = 0
    winners, runners_up = np.empty(count, np.int64), np.empty(count, np.int64)
    resolve_rows(bids, keys, turns, winners, runners_up)
    total = 0.0
    for winner in range(-1, agents):
        predicted = float(outcome_log_prob(log_probs, present, torch.tensor([winner])).exp())
        total += predicted
        assert (winners == winner).mean() == pytest.approx(predicted, abs=0.008)
    assert total == pytest.approx(1.0, abs=1e-5)
