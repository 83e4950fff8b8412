"""Credit: hand-computed cases, and what must hold in general."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_train.config import ActionLearning
from mpt_train.credit import (
    actor_credit,
    advantages,
    discounted_returns,
    market_values,
    subtract_turn_mean,
)


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def test_market_values_by_hand() -> None:
    """v_t = r_t + b_{t+1} v_{t+1}; computed by hand for three turns."""
    rewards, bids = column(1, 0, 4), column(0.2, 0.5, 0.9)
    winners = np.array([[0], [1], [0]])
    values = market_values(rewards, bids, winners, np.ones((3, 1), bool))
    # v_3 = 4; v_2 = 0 + .9 * 4 = 3.6; v_1 = 1 + .5 * 3.6 = 2.8
    np.testing.assert_allclose(values[:, 0], [2.8, 3.6, 4.0])
    credit = actor_credit(
        ActionLearning(credit="market"), rewards, bids, winners, np.ones((3, 1), bool)
    )
    np.testing.assert_allclose(credit[:, 0], [0.8 * 2.8, 0.5 * 3.6, 0.1 * 4.0])


def test_a_skipped_turn_takes_no_share_and_its_reward_joins_the_turn_before() -> None:
    rewards, bids = column(0, 0, 2, 0, 4), column(0.5, 0.5, 0, 0.5, 0.5)
    winners = np.array([[0], [1], [-1], [0], [1]])
    values = market_values(rewards, bids, winners, np.ones((5, 1), bool))
    # v_5 = 4, v_4 = 2, v_2 = 0 + 2 (of the skipped turn) + .5 * 2 = 3, v_1 = 1.5
    np.testing.assert_allclose(values[:, 0], [1.5, 3.0, 0.0, 2.0, 4.0])


def test_the_market_conserves_reward() -> None:
    """Where every bid is paid to the turn before, all shares together are the whole return.

    Sum of (1 - b_t) v_t plus the first actor's payment b_1 v_1, which nobody receives, equals the
    undiscounted return (skipped turns before the first actor excepted: none here).
    """
    generator = np.random.default_rng(0)
    rewards = generator.normal(size=(40, 16))
    bids = generator.random((40, 16))
    winners = generator.integers(-1, 3, (40, 16))
    winners[0] = 0
    active = np.arange(40)[:, None] < generator.integers(1, 41, 16)
    rewards, bids = np.where(active, rewards, 0), np.where(active & (winners >= 0), bids, 0)
    values = market_values(rewards, bids, winners, active)
    shares = np.where(active & (winners >= 0), (1 - bids) * values, 0).sum(axis=0)
    np.testing.assert_allclose(shares + bids[0] * values[0], rewards.sum(axis=0), atol=1e-12)


def test_discounted_returns_by_hand_and_undiscounted() -> None:
    rewards = column(1, 2, 4)
    active = np.ones((3, 1), bool)
    np.testing.assert_allclose(discounted_returns(rewards, active, 0.5)[:, 0], [3.0, 4.0, 4.0])
    np.testing.assert_allclose(discounted_returns(rewards, active, 1.0)[:, 0], [7.0, 6.0, 4.0])


def test_turns_after_the_end_count_for_nothing() -> None:
    rewards = np.array([[1.0, 1.0], [1.0, 0.0]])
    active = np.array([[True, True], [True, False]])
    centred = subtract_turn_mean(discounted_returns(rewards, active, 1.0), active)
    np.testing.assert_allclose(centred, [[0.5, -0.5], [0.0, 0.0]])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("baseline", ["agent", "turn"])
def test_baselines_centre_and_scale(baseline: str, normalize: bool) -> None:
    generator = np.random.default_rng(1)
    credit = generator.normal(3, 2, (30, 20))
    winners = generator.integers(-1, 2, (30, 20))
    active = np.ones((30, 20), bool)
    config = ActionLearning(baseline=baseline, normalize=normalize)  # type: ignore[arg-type]
    result = advantages(config, credit, winners, active, 2)
    assert (result[winners < 0] == 0).all()
    for agent in range(2):
        mine = result[winners == agent]
        if baseline == "agent":
            assert mine.mean() == pytest.approx(0, abs=1e-12)
        if normalize:
            assert mine.std() == pytest.approx(1, rel=1e-4)
        elif baseline == "agent":
            expected = credit[winners == agent]
            np.testing.assert_allclose(mine, expected - expected.mean())
