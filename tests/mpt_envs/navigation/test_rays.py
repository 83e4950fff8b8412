"""Distances that are kept while a body stands still are those that would be measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpt_envs import make
from mpt_envs.navigation.rules.rays import unmeasured
from mpt_envs.navigation.world.facts import N_RAYS, STOP, STOPPER
from tests.mpt_envs.navigation.r2r_data import write_house


def observed(batch: Any) -> NDArray[np.float32]:
    out = np.empty((batch.num_envs, batch.observation_sizes[0]), np.float32)
    batch.observe([out])
    return out


def measured_anew(batch: Any) -> NDArray[np.float32]:
    kept = batch.places, batch.distances
    batch.places, batch.distances = unmeasured(batch.num_envs)
    out = observed(batch)
    batch.places, batch.distances = kept
    return out


@pytest.mark.parametrize("task", ["navigation/floorplan-v0", "navigation/r2r-v0"])
def test_what_is_kept_is_what_would_be_measured(task: str, tmp_path: Path) -> None:
    files = {"data": write_house(tmp_path)} if "r2r" in task else {}
    game: Any = make(task, api="vector", num_envs=16, **files)
    batch, rng = game.batch, np.random.default_rng(0)
    game.reset(np.arange(16))
    snapshots, reused = [], 0
    for turn in range(120):
        before = batch.places.copy()
        seen = observed(batch)
        reused += int((batch.places == before).all(axis=1).sum())
        np.testing.assert_array_equal(seen, measured_anew(batch))
        assert ((seen[:, :N_RAYS] >= 0) & (seen[:, :N_RAYS] <= 1)).all()
        roles = rng.integers(-1, 3, 16)
        actions = np.array([rng.integers(batch.action_counts[max(0, role)]) for role in roles])
        actions[(roles == STOPPER) & (actions == STOP) & (rng.random(16) < 0.9)] = 1
        done, illegal = np.zeros(16, np.bool_), np.zeros(16, np.bool_)
        batch.act(roles, actions, np.zeros(16), done, illegal)
        snapshots.append(batch.snapshot(int(rng.integers(16))))
        if turn % 7 == 0:
            # Another moment, of this world or of another one, in some row.
            batch.restore(int(rng.integers(16)), snapshots[int(rng.integers(len(snapshots)))])
        rows = np.flatnonzero(done)
        batch.reset(rows, np.full(len(rows), 1000 + turn), rows)
    assert reused > 16 * 120 / 4, "turning and looking move nobody"


def test_one_world_and_many_see_the_same() -> None:
    game: Any = make("navigation/floorplan-v0", api="vector", num_envs=1)
    env = make("navigation/floorplan-v0")
    game.reset(np.array([5]))
    env.reset(seed=5)
    task: Any = env.unwrapped.task
    for agent, action in (("turner_0", 1), ("mover_0", 2), ("turner_0", 4), ("stopper_0", 1)):
        task.act(agent, action)
        role = task.possible_agents.index(agent)
        rewards, flags = np.zeros(1), np.zeros((2, 1), np.bool_)
        game.batch.act(np.array([role]), np.array([action]), rewards, flags[0], flags[1])
        np.testing.assert_array_equal(task.observe(agent), observed(game.batch)[0])
