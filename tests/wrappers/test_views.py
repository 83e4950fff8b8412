"""What every view keeps: the game's turns, seeds, snapshots and clones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test

from tests.wrappers.games import play, relay
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import SnapshotError
from wrappers.image import ImageView
from wrappers.padding import PaddedView
from wrappers.text import TextView
from wrappers.view import GameView

VIEWS: dict[str, Callable[[BidThenActEnv], Any]] = {
    "plain": GameView,
    "padded": PaddedView,
    "padded with roles": lambda env: PaddedView(env, role_one_hot=True),
    "text": TextView,
    "text to read": lambda env: TextView(env, text_action=False),
    "text to answer": lambda env: TextView(env, text_observation=False),
    "image": ImageView,
    "small image": lambda env: ImageView(env, size=(5, 7)),
    "image and text": lambda env: TextView(ImageView(env), text_observation=False),
    "padded twice": lambda env: PaddedView(PaddedView(env, role_one_hot=True)),
}
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@each_view
@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")
def test_pettingzoos_api_test(view: Callable[[BidThenActEnv], Any]) -> None:
    api_test(view(relay(copies=2, dropout=0.2)), num_cycles=200)


@each_view
def test_a_seed_fixes_whole_episodes(view: Callable[[BidThenActEnv], Any]) -> None:
    env, other = view(relay(2, dropout=0.1)), view(relay(2, dropout=0.1))
    for seed in (3, None, None, 4):
        env.reset(seed=seed)
        other.reset(seed=seed)
        trace = play(env, 7)
        assert len(trace) > 60
        assert play(other, 7) == trace


@each_view
def test_different_seeds_are_different_episodes(view: Callable[[BidThenActEnv], Any]) -> None:
    env = view(relay())
    traces = []
    for seed in (1, 2, None):
        env.reset(seed=seed)
        traces.append(play(env, 7))
    assert traces[0] != traces[1] != traces[2] != traces[0]


@each_view
def test_the_game_is_the_same_underneath(view: Callable[[BidThenActEnv], Any]) -> None:
    env, game = view(relay(2)), relay(2)
    env.reset(seed=5)
    game.reset(seed=5)
    generator = np.random.default_rng(0)
    while env.agents:
        assert (env.turn, env.phase, env.agent_selection) == (
            game.turn,
            game.phase,
            game.agent_selection,
        )
        assert env.last_auction == game.last_auction
        assert env.snapshot() == game.snapshot()
        observation, reward, terminated, truncated, _ = game.last()
        assert env.last()[1:4] == (reward, terminated, truncated)
        assert env.metrics() == game.metrics()
        if terminated or truncated:
            action: Any = None
        else:
            action = int(generator.choice(np.flatnonzero(observation["action_mask"])))
        game.step(action)
        if action is not None and isinstance(env, TextView) and env.text_action:
            action = env.answer(env.agent_selection, action)
        env.step(action)
    assert env.task is env.game.task
    assert env.bid_levels == game.bid_levels
    assert env.max_turns == game.max_turns


@each_view
def test_snapshots_restore_any_future(view: Callable[[BidThenActEnv], Any]) -> None:
    env, other = view(relay(2, dropout=0.1)), view(relay(2, dropout=0.1))
    for seed in range(8):
        env.reset(seed=seed)
        play(env, seed, steps=seed * 5)
        snapshot = env.snapshot()
        assert snapshot == env.game.snapshot()
        future = play(env, 99)
        for restored in (env, other, env.clone()):
            restored.restore(snapshot)
            assert restored.snapshot() == snapshot
            assert play(restored, 99) == future


@each_view
def test_clones_and_copies_are_independent(view: Callable[[BidThenActEnv], Any]) -> None:
    env = view(relay())
    unstarted = env.clone()
    env.reset(seed=0)
    play(env, 1, steps=11)
    before = env.snapshot()
    twins = [env.clone(), copy.deepcopy(env)]
    futures = [play(twin, 5) for twin in twins]
    assert env.snapshot() == before
    assert type(twins[0]) is type(env)
    assert futures[0] == futures[1] == play(env, 5)
    unstarted.reset(seed=0)
    play(unstarted, 1, steps=11)
    assert unstarted.snapshot() == before


@each_view
def test_observations_and_infos_are_fresh(view: Callable[[BidThenActEnv], Any]) -> None:
    env = view(relay())
    env.reset(seed=0)
    agent = env.agent_selection
    first, again = env.observe(agent), env.observe(agent)
    for key, value in first.items():
        if isinstance(value, np.ndarray):
            value[...] = 1 - value if key == "action_mask" else 77
            assert not np.array_equal(env.observe(agent)[key], value)
            assert np.array_equal(env.observe(agent)[key], again[key])
    if "action_mask" in env.infos[agent]:
        env.infos[agent]["action_mask"][:] = 0
        assert np.array_equal(
            env.observe(agent).get("action_mask", [1]), again.get("action_mask", [1])
        )


@each_view
def test_reseeding_changes_the_luck(view: Callable[[BidThenActEnv], Any]) -> None:
    env = view(relay())
    env.reset(seed=0)
    start = env.snapshot()
    ends = set()
    for key in range(10):
        env.restore(start)
        env.reseed(key)
        play(env, 3)
        ends.add(env.metrics()["return"])
    assert len(ends) > 1


@each_view
def test_a_snapshot_of_another_game_is_refused(view: Callable[[BidThenActEnv], Any]) -> None:
    env, other = view(relay()), view(relay(max_turns=3))
    other.reset(seed=0)
    with pytest.raises(SnapshotError, match="max_turns"):
        env.restore(other.snapshot())


@pytest.mark.parametrize("view", [GameView, PaddedView, TextView, ImageView])
def test_views_are_for_the_market_game_only(view: Any) -> None:
    from pettingzoo import AECEnv

    with pytest.raises(TypeError, match="BidThenActEnv"):
        view(AECEnv())
