"""Every view of the game, `make` and `GymnasiumTask`, given things of the wrong kind.

What is wrong raises an error of ours that says so, and nothing has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from mpt_envs import make
from mpt_envs.make import GAME_KEYWORDS
from mpt_envs.registry import UnknownTaskError, spec
from tests.toys import RelayTask
from tests.wrappers.games import relay
from wrappers.errors import ActionFormatError, MarketError, PhaseError, SnapshotError
from wrappers.gymnasium_task import GymnasiumTask
from wrappers.image import ImageView
from wrappers.one_agent import OneAgentEnv
from wrappers.padding import PaddedView, SharedPolicyEnv
from wrappers.parallel import ParallelView
from wrappers.text import TextView

JUNK: tuple[Any, ...] = (
    None,
    b"x",
    0.5,
    math.nan,
    math.inf,
    True,
    np.bool_(False),
    -1,
    10**30,
    -(10**30),
    np.float32(1),
    np.array([1]),
    np.array(1.0),
    np.array([]),
    [1],
    (1,),
    {},
    object(),
    1 + 2j,
    np.int64(-5),
    np.uint64(2**64 - 1),
)
TEXTS = ("", "x", "\x00", "\uff11", "bid 0.5\n" * 1000, "a" * 100_000)

Step = Callable[[Any, Any], object]


def step(env: Any, action: Any) -> object:
    return env.step(action)


def step_selected(env: Any, action: Any) -> object:
    return env.step({env.agent_selection: action})


def step_as_stranger(env: Any, action: Any) -> object:
    return env.step({env.agent_selection: 0, "nobody_0": action})


VIEWS: dict[str, tuple[Callable[[], Any], Step]] = {
    "game": (relay, step),
    "raise": (lambda: relay(on_illegal="raise"), step),
    "image": (lambda: ImageView(relay()), step),
    "padded": (lambda: PaddedView(relay()), step),
    "text": (lambda: TextView(relay()), step),
    "text to read": (lambda: TextView(relay(), text_action=False), step),
    "parallel": (lambda: ParallelView(relay()), step_selected),
    "parallel, no mapping": (lambda: ParallelView(relay()), step),
    "parallel, a stranger": (lambda: ParallelView(relay()), step_as_stranger),
    "parallel text": (lambda: ParallelView(TextView(relay())), step_selected),
    "one agent": (lambda: OneAgentEnv(RelayTask()), step),
    "shared policy": (lambda: SharedPolicyEnv(relay()), step),
}


def play_one(env: Any, generator: np.random.Generator) -> None:
    """One good step of any view."""
    if isinstance(env, (OneAgentEnv, SharedPolicyEnv)):
        env.step(int(generator.choice(np.flatnonzero(env.action_masks()))))
        return
    agent = env.agent_selection
    observation = env.observe(agent)
    if "action_mask" in observation:
        action: Any = int(generator.choice(np.flatnonzero(observation["action_mask"])))
    else:
        action = str(generator.choice(env.unwrapped.infos[agent]["legal_answers"]))
    env.step({agent: action} if isinstance(env, ParallelView) else action)


@pytest.mark.parametrize("view", VIEWS)
def test_actions_of_the_wrong_kind(view: str) -> None:
    build, step = VIEWS[view]
    env = build()
    generator = np.random.default_rng(0)
    with pytest.raises(MarketError):
        step(env, JUNK[0])
    with pytest.raises(PhaseError):
        env.snapshot()
    env.reset(seed=1)
    texts = () if "text" in view and view != "text to read" else TEXTS
    for _ in range(8):
        before = env.snapshot()
        for junk in (*JUNK, *texts):
            with pytest.raises(ActionFormatError):
                step(env, junk)
            assert env.snapshot() == before
        if "text" not in view:
            play_one(env, generator)
    for junk in (*JUNK, *TEXTS, before.task):
        now = env.snapshot()
        with pytest.raises(SnapshotError):
            env.restore(junk)
        assert env.snapshot() == now


@pytest.mark.parametrize("view", ["text", "parallel text"])
def test_any_text_is_an_answer(view: str) -> None:
    build, step = VIEWS[view]
    env = build()
    for text in TEXTS:
        env.reset(seed=0)
        for _ in range(6):
            step(env, text)
        assert env.metrics()["illegal"] >= 1 or text == "bid 0.5\n" * 1000


# -- make ----------------------------------------------------------------------------------------

RIGHT: dict[str, tuple[Any, ...]] = {
    "homogeneous": (True,),
    "one_agent": (True,),
    "dropout": (0.5, np.bool_(False)),
    # Beyond any memory, or any patience; but numbers.
    "agents": (10**30, np.uint64(2**64 - 1)),
    "num_envs": (10**30, np.uint64(2**64 - 1)),
    "max_turns": (10**30, np.uint64(2**64 - 1)),
}


@pytest.mark.parametrize("api", ["aec", "parallel", "vector"])
@pytest.mark.parametrize("keyword", [*(k for k in GAME_KEYWORDS if k != "api"), "tick_budget"])
def test_keywords_of_the_wrong_kind(keyword: str, api: str) -> None:
    for junk in (*JUNK, *TEXTS):
        if junk is None or any(junk is right for right in RIGHT.get(keyword, ())):
            continue
        if any(type(junk) is type(r) and junk == r for r in RIGHT.get(keyword, ())):
            continue
        with pytest.raises((ValueError, TypeError, MarketError)) as raised:
            make("crafting/torch-v0", **{"api": api, keyword: junk})
        assert str(raised.value)


def test_ids_and_apis_of_the_wrong_kind() -> None:
    for junk in (*JUNK, *TEXTS):
        with pytest.raises(UnknownTaskError):
            make(junk)
        with pytest.raises(UnknownTaskError):
            spec(junk)
        with pytest.raises((ValueError, TypeError)):
            make("crafting/torch-v0", api=junk)


# -- GymnasiumTask -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "roles",
    [None, 5, "ab", [0, 1], {}, {1: [0, 1]}, {"a": [0.5, 1]}, {"a": [True, 0]}, {"a": None}],
)
def test_roles_of_the_wrong_kind(roles: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        GymnasiumTask("CartPole-v1", roles)


@pytest.mark.parametrize("env", [None, 5, 0.5, [], lambda: None, lambda: RelayTask()])
def test_environments_of_the_wrong_kind(env: Any) -> None:
    with pytest.raises(TypeError, match=r"must (be|return) a gymnasium\.Env"):
        GymnasiumTask(env, {"a": [0, 1]})


@pytest.mark.parametrize("name", ["", "Nope-v0", "CartPole-v99"])
def test_unknown_gymnasium_ids(name: str) -> None:
    with pytest.raises(gymnasium.error.Error):
        GymnasiumTask(name, {"a": [0, 1]})
