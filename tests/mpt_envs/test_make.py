"""make, make_task and as_env: what each keyword gives, and what is said of wrong ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

import mpt_envs
from mpt_envs.make import GAME_KEYWORDS, task_keywords
from tests.toys import RelayTask
from tests.wrappers.task_batch import TaskBatch
from wrappers.auction import CROWDED, TENTHS
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import IllegalActionError
from wrappers.image import ImageView
from wrappers.one_agent import OneAgentTask
from wrappers.padding import PaddedView
from wrappers.parallel import ParallelView
from wrappers.population import PopulationTask
from wrappers.text import TextView
from wrappers.vector_lockstep import LockstepVectorGame
from wrappers.vector_native import NativeVectorGame

RELAY = "toys/relay-v0"
NATIVE = "toys/native-relay-v0"


def make_relay(goal: int = 9, default_max_turns: int = 30) -> RelayTask:
    return RelayTask(goal, default_max_turns)


def make_relay_batch(num_envs: int, **kwargs: Any) -> TaskBatch:
    return TaskBatch(lambda: RelayTask(**kwargs), num_envs)


@pytest.fixture(autouse=True)
def relays() -> Iterator[None]:
    table = sys.modules["mpt_envs.registry"]._specs
    before = dict(table)
    mpt_envs.register(RELAY, make_relay)
    mpt_envs.register(
        NATIVE, make_relay, make_relay_batch, kwargs={"goal": 7}, max_turns=20, description="x"
    )
    yield
    table.clear()
    table.update(before)


# -- what is made -----------------------------------------------------------------------------


def test_the_default_is_the_plain_game() -> None:
    env = mpt_envs.make(RELAY)
    assert type(env) is BidThenActEnv
    assert isinstance(env, AECEnv)
    assert env.possible_agents == ["filler_0", "carrier_0"]
    assert env.bid_levels == TENTHS
    assert (env.max_turns, env.dropout, env.on_illegal, env.render_mode) == (30, 0.0, "noop", None)


def test_keywords_reach_the_game_and_the_task() -> None:
    env = mpt_envs.make(
        RELAY,
        bid_levels="crowded",
        max_turns=12,
        dropout=0.25,
        on_illegal="raise",
        render_mode="ansi",
        goal=4,
    )
    assert env.bid_levels == CROWDED
    assert (env.max_turns, env.dropout) == (12, 0.25)
    assert env.task.goal == 4  # type: ignore[attr-defined]
    env.reset(seed=0)
    assert "tank 0/4" in env.render()
    with pytest.raises(IllegalActionError):
        env.step(len(CROWDED))


def test_the_id_fixes_keywords_and_the_turn_budget() -> None:
    env = mpt_envs.make(NATIVE)
    assert env.task.goal == 7  # type: ignore[attr-defined]
    assert env.max_turns == 20
    assert mpt_envs.make(NATIVE, max_turns=5).max_turns == 5
    assert mpt_envs.make(NATIVE, api="vector").max_turns == 20
    with pytest.raises(TypeError, match="fixes 'goal'"):
        mpt_envs.make(NATIVE, goal=3)
    with pytest.raises(TypeError, match="fixes 'goal'"):
        mpt_envs.make_task(NATIVE, goal=3)


def test_agents() -> None:
    assert type(mpt_envs.make(RELAY, agents=2).task) is RelayTask
    env = mpt_envs.make(RELAY, agents=6)
    assert isinstance(env.task, PopulationTask)
    assert env.possible_agents == [
        f"{role}_{i}" for role in ("filler", "carrier") for i in range(3)
    ]
    for api in ("aec", "vector"):
        for relay in (RELAY, NATIVE):
            with pytest.raises(ValueError, match="multiple of 2"):
                mpt_envs.make(relay, api=api, agents=5)
    game = mpt_envs.make(NATIVE, api="vector", agents=6, num_envs=2)
    assert isinstance(game, NativeVectorGame)
    assert list(game.possible_agents) == env.possible_agents


def test_one_agent() -> None:
    env = mpt_envs.make(RELAY, one_agent=True)
    assert isinstance(env.task, OneAgentTask)
    assert env.possible_agents == ["solo_0"]
    native = mpt_envs.make(NATIVE, api="vector", one_agent=True, num_envs=2)
    lockstep = mpt_envs.make(RELAY, api="vector", one_agent=True, num_envs=2)
    assert native.possible_agents == lockstep.possible_agents == ("solo_0",)
    assert native.action_names == lockstep.action_names
    assert isinstance(native, NativeVectorGame)


def test_vector_games_are_native_where_they_can() -> None:
    assert isinstance(mpt_envs.make(NATIVE, api="vector", num_envs=3), NativeVectorGame)
    assert isinstance(mpt_envs.make(RELAY, api="vector", num_envs=3), LockstepVectorGame)
    forced = mpt_envs.make(NATIVE, api="vector", num_envs=3, vectorization="lockstep")
    assert isinstance(forced, LockstepVectorGame)
    assert forced.num_envs == 3
    assert isinstance(mpt_envs.make(NATIVE, api="vector", vectorization="native"), NativeVectorGame)
    with pytest.raises(ValueError, match="no"):
        mpt_envs.make(RELAY, api="vector", vectorization="native")


def test_views() -> None:
    text = mpt_envs.make(RELAY, observation="text", action="text")
    assert isinstance(text, TextView)
    text.reset(seed=0)
    assert "filler_0" in text.observe("filler_0")["text"]
    text.step("0.7")
    text.step("0")
    text.step("fill")
    assert text.turn == 1
    assert text.counts["illegal"] == 0

    half = mpt_envs.make(RELAY, observation="text")
    assert isinstance(half.action_space("filler_0"), spaces.Discrete)
    half = mpt_envs.make(RELAY, action="text")
    half.reset(seed=0)
    assert half.observe("filler_0")["observation"].shape == (4,)

    image = mpt_envs.make(RELAY, observation="image")
    assert isinstance(image, ImageView)
    image.reset(seed=0)
    assert image.observe("filler_0")["observation"].dtype == np.uint8
    described = mpt_envs.make(RELAY, observation="image", action="text")
    described.reset(seed=0)
    assert described.observe("filler_0")["observation"].ndim == 3

    padded = mpt_envs.make(RELAY, homogeneous=True)
    assert isinstance(padded, PaddedView)
    assert padded.observation_space("filler_0") == padded.observation_space("carrier_0")

    parallel = mpt_envs.make(RELAY, api="parallel", homogeneous=True)
    assert isinstance(parallel, ParallelView)
    assert isinstance(parallel, ParallelEnv)
    observations, _ = parallel.reset(seed=0)
    assert set(observations) == {"filler_0", "carrier_0"}


def test_make_task_gives_the_bare_task() -> None:
    task = mpt_envs.make_task(RELAY, goal=5)
    assert isinstance(task, RelayTask)
    assert task.goal == 5
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_turns'"):
        mpt_envs.make_task(RELAY, max_turns=3)


def test_environments_share_nothing() -> None:
    first, second = mpt_envs.make(RELAY), mpt_envs.make(RELAY)
    assert first.task is not second.task


# -- tasks of one's own -----------------------------------------------------------------------


def test_as_env_of_a_class_an_instance_and_a_function() -> None:
    assert mpt_envs.as_env(RelayTask).possible_agents == ["filler_0", "carrier_0"]
    task = RelayTask(goal=3)
    env = mpt_envs.as_env(task, agents=4, dropout=0.5)
    assert env.task.base is task
    assert mpt_envs.as_env(lambda: RelayTask(goal=2)).task.goal == 2
    assert isinstance(mpt_envs.as_env(RelayTask, observation="text"), TextView)


def test_as_env_makes_vector_games() -> None:
    task = RelayTask(goal=3)
    game = mpt_envs.as_env(task, api="vector", num_envs=3)
    worlds = [env.task for env in game.envs]
    assert worlds[0] is task
    assert len(set(map(id, worlds))) == 3
    assert all(world.goal == 3 for world in worlds)
    assert game.spawn(2).num_envs == 2
    batch = mpt_envs.as_env(RelayTask, make_relay_batch, api="vector", num_envs=3)
    assert isinstance(batch, NativeVectorGame)
    assert batch.num_envs == 3


def test_as_env_refuses_what_is_no_task() -> None:
    with pytest.raises(TypeError, match="expected a TurnTask"):
        mpt_envs.as_env("relay")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must return a TurnTask"):
        mpt_envs.as_env(lambda: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match=r"'dropuot'.*Did you mean 'dropout'"):
        mpt_envs.as_env(RelayTask, dropuot=0.1)


def test_a_factory_that_returns_no_task_is_named() -> None:
    mpt_envs.register("toys/wrong-v0", lambda: 3)
    with pytest.raises(TypeError, match=r"toys/wrong-v0.*must return a TurnTask"):
        mpt_envs.make("toys/wrong-v0")


# -- wrong keywords and values ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("keyword", "close"),
    [("droput", "dropout"), ("gaol", "goal"), ("max_turn", "max_turns"), ("obs", None)],
)
def test_wrong_keywords_name_the_valid_ones(keyword: str, close: str | None) -> None:
    with pytest.raises(TypeError) as caught:
        mpt_envs.make(RELAY, **{keyword: 1})  # type: ignore[call-overload]
    message = str(caught.value)
    assert repr(keyword) in message
    assert ("Did you mean" in message) == (close is not None)
    if close is not None:
        assert repr(close) in message
    for name in GAME_KEYWORDS:
        assert name in message
    assert "default_max_turns" in message


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"api": "gym"}, "api must be 'aec' or 'parallel' or 'vector'"),
        ({"api": "vectr"}, "Did you mean 'vector'"),
        ({"observation": "pixels"}, "observation must be"),
        ({"action": 3}, "action must be"),
        ({"on_illegal": "ignore"}, "on_illegal must be"),
        ({"vectorization": "fast", "api": "vector"}, "vectorization must be"),
        ({"agents": 0}, "agents must be an int"),
        ({"agents": 2.0}, "agents must be an int"),
        ({"agents": True}, "agents must be an int"),
        ({"num_envs": 0, "api": "vector"}, "num_envs must be an int"),
        ({"num_envs": None, "api": "vector"}, "num_envs must be an int"),
        ({"max_turns": 0}, "max_turns must be an int"),
        ({"max_turns": "9"}, "max_turns must be an int"),
        ({"homogeneous": 1}, "homogeneous must be True or False"),
        ({"one_agent": "yes"}, "one_agent must be True or False"),
        ({"dropout": 1.0}, "dropout must be a probability"),
        ({"dropout": -0.1}, "dropout must be a probability"),
        ({"dropout": "x"}, "dropout must be a probability"),
        ({"dropout": None}, "dropout must be a probability"),
        ({"bid_levels": 5}, "bid levels are a name"),
        ({"bid_levels": [0, "x"]}, "bid levels are a name"),
        ({"bid_levels": [0, [1]]}, "bid levels are a name"),
        ({"bid_levels": "fifths"}, "tenths, crowded"),
        ({"bid_levels": (0.1, 0.5)}, "start at 0"),
        ({"bid_levels": (0.0, 0.5, 0.5)}, "increase strictly"),
        ({"bid_levels": (0.0, 2.0)}, r"stay in \[0, 1\]"),
        ({"render_mode": "human"}, "render_mode must be"),
        # Combinations.
        ({"one_agent": True, "agents": 2}, "agents= does not apply"),
        ({"num_envs": 4}, 'num_envs=4 needs api="vector"'),
        ({"num_envs": 4, "api": "parallel"}, 'needs api="vector"'),
        ({"vectorization": "lockstep"}, 'needs api="vector"'),
        ({"api": "vector", "observation": "text"}, "does not take observation='text'"),
        ({"api": "vector", "action": "text"}, "does not take action='text'"),
        ({"api": "vector", "homogeneous": True}, "does not take homogeneous"),
        ({"api": "vector", "on_illegal": "raise"}, "does not take on_illegal"),
        ({"api": "vector", "render_mode": "ansi"}, "does not take render_mode"),
        ({"homogeneous": True, "observation": "text"}, "homogeneous=True pads"),
        ({"homogeneous": True, "action": "text"}, "homogeneous=True pads"),
    ],
    ids=str,
)
def test_wrong_values_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mpt_envs.make(RELAY, **kwargs)
    with pytest.raises(ValueError, match=message):
        mpt_envs.as_env(RelayTask, **kwargs)


def test_numpy_integers_are_integers() -> None:
    game = mpt_envs.make(RELAY, api="vector", num_envs=np.int64(2), max_turns=np.int32(7))
    assert (game.num_envs, game.max_turns) == (2, 7)


def test_task_keywords() -> None:
    assert task_keywords(make_relay) == ("goal", "default_max_turns")
    assert task_keywords(RelayTask) == ("goal", "default_max_turns")
    assert task_keywords(lambda **kwargs: None) is None
