"""Every task's games can be pickled and copied, in the middle of an episode, and go on the same."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.research.data.corpus import CorpusError
from mpt_envs.research.world.multihop import source
from tests.mpt_envs.research.small import small_task

TASKS = ["crafting/torch-v0", "navigation/floorplan-v0", "research/multihop-v0"]
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda game: pickle.loads(pickle.dumps(game)),
    "deepcopy": copy.deepcopy,
}


def play_aec(env: Any, steps: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    trace: list[Any] = []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.last()
        over = terminated or truncated
        legal = np.flatnonzero(observation["action_mask"])
        env.step(None if over else int(rng.choice(legal)))
        trace.append((env.agent_selection, observation["observation"].tobytes(), float(reward)))
        if not env.agents:
            break
    return trace


def play_vector(game: Any, turns: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    trace: list[Any] = []
    for _ in range(turns):
        trace.append([row.tobytes() for row in game.observe()])
        bids = rng.integers(0, len(game.bid_levels), (game.num_envs, game.num_agents))
        winners = game.auction(bids).winners
        masks = game.action_masks()
        actions = np.zeros(game.num_envs, np.int64)
        for row, winner in enumerate(winners.tolist()):
            if winner >= 0:
                actions[row] = rng.choice(np.flatnonzero(masks[winner][row]))
        trace.append(game.act(actions).rewards.tolist())
    return [*trace, game.metrics().tolist()]


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("task", TASKS)
def test_an_aec_game_and_its_copy_go_on_the_same(task: str, how: str) -> None:
    env = mpt_envs.make(task)
    env.reset(seed=3)
    play_aec(env, 18, 0)
    twin = COPIES[how](env)
    assert twin.snapshot() == env.snapshot()
    assert play_aec(twin, 30, 1) == play_aec(env, 30, 1)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("task", TASKS)
def test_a_vector_game_and_its_copy_go_on_the_same(task: str, how: str) -> None:
    game = mpt_envs.make(task, api="vector", num_envs=3)
    game.reset(np.arange(3))
    play_vector(game, 4, 0)
    twin = COPIES[how](game)
    assert play_vector(twin, 5, 1) == play_vector(game, 5, 1)


def test_a_pickled_corpus_is_what_it_was_made_from(tmp_path: Any) -> None:
    task = small_task(tmp_path)
    kept = pickle.dumps(task)
    assert len(kept) < 20_000
    assert pickle.loads(kept).snapshot() == task.snapshot()
    assert copy.deepcopy(source(None, None)) is source(None, None)
    (path,) = [p for p in tmp_path.iterdir() if "question" in p.name]
    path.write_text(path.read_text().replace("?", " ?"))
    with pytest.raises(CorpusError, match=r"changed since .* make the game again"):
        pickle.loads(kept)
