"""The oracle reaches every goal, in time and on a short way; the cold start has room to learn."""

from __future__ import annotations

import numpy as np

from mpt_envs.navigation import make_floorplan_batch
from mpt_envs.navigation.rules.expert import BID_ACT
from mpt_envs.navigation.world.layout import CLAUSE, ints

EPISODES = 200
FIRST_SEED = 5_000_000


def test_oracle_on_200_floorplans() -> None:
    batch = make_floorplan_batch(EPISODES)
    rows = np.arange(EPISODES)
    batch.reset(rows, FIRST_SEED + rows, np.zeros(EPISODES, np.int64))
    bids, actions = np.zeros((EPISODES, 3)), np.zeros((EPISODES, 3), np.int64)
    rewards, illegal = np.zeros(EPISODES), np.zeros(EPISODES, np.bool_)
    terminated = np.zeros(EPISODES, np.bool_)
    done = np.zeros(EPISODES, np.bool_)
    returns, turns = np.zeros(EPISODES), np.zeros(EPISODES)
    for _ in range(batch.default_max_turns):
        batch.expert(bids, actions)
        assert ((bids == BID_ACT).sum(axis=1) == 1).all()
        roles = np.where(done, -2, bids.argmax(axis=1))
        batch.act(roles, actions[rows, bids.argmax(axis=1)], rewards, terminated, illegal)
        assert not illegal.any()
        returns += rewards
        turns += ~done
        done |= terminated
    found = dict(zip(batch.metric_names, batch.metrics().T, strict=True))
    assert (found["success"] == 1.0).all()
    assert found["spl"].mean() > 0.95 and found["spl"].min() > 0.85
    assert (found["distance_to_goal"] < 1.0).all()
    # The reference path is the expert's own.
    assert found["ndtw"].min() > 0.99
    assert returns.min() > 27.0 and returns.max() <= 30.0
    assert turns.max() < batch.default_max_turns - 8
    # Whoever goes the right way is at the end of the instruction, too.
    ends = [len(batch.world(row).clauses) - 1 for row in range(EPISODES)]
    assert (ints(batch.records)[:, CLAUSE] == ends).mean() > 0.97


def test_random_play_fails() -> None:
    batch = make_floorplan_batch(100)
    rows = np.arange(100)
    batch.reset(rows, FIRST_SEED + rows, np.zeros(100, np.int64))
    rng = np.random.default_rng(0)
    rewards, illegal = np.zeros(100), np.zeros(100, np.bool_)
    terminated = np.zeros(100, np.bool_)
    for _ in range(batch.default_max_turns):
        roles = rng.integers(0, 3, 100)
        actions = np.where(roles == 2, rng.integers(0, 2, 100), rng.integers(0, 3, 100))
        batch.act(roles, actions, rewards, terminated, illegal)
    assert batch.metrics()[:, batch.metric_names.index("success")].mean() < 0.1
