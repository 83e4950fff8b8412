"""The parallel view: one agent chooses, the others have exactly one thing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from tests.wrappers.games import frozen, play, relay
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, IllegalActionError, PhaseError
from wrappers.image import ImageView
from wrappers.padding import PaddedView
from wrappers.parallel import ParallelView
from wrappers.text import TextView

VIEWS: dict[str, Callable[[BidThenActEnv], Any]] = {
    "game": lambda env: env,
    "padded": PaddedView,
    "text to read": lambda env: TextView(env, text_action=False),
    "text": TextView,
    "image": ImageView,
}
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def actions_for(env: ParallelView, infos: dict[str, Any], generator: np.random.Generator) -> Any:
    actions: dict[str, Any] = {}
    for agent in env.agents:
        if "legal_answers" in infos[agent]:
            answers = infos[agent]["legal_answers"]
            actions[agent] = ""
            if agent == env.agent_selection:
                actions[agent] = answers[generator.integers(len(answers))]
        else:
            mask = infos[agent]["action_mask"]
            actions[agent] = int(generator.choice(np.flatnonzero(mask)))
    return actions


def run(env: ParallelView, seed: int, infos: Any = None, steps: int = 10_000) -> list[Any]:
    """Random legal play with its trace; ``infos`` None: from where the game stands."""
    generator = np.random.default_rng(seed)
    if infos is None:
        infos = env._infos()
    trace: list[Any] = []
    while env.agents and steps:
        steps -= 1
        observations, rewards, terminated, truncated, infos = env.step(
            actions_for(env, infos, generator)
        )
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
        trace.append(tuple(map(frozen, (observations, rewards, terminated, truncated, infos))))
    return trace


@each_view
@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")
def test_pettingzoos_parallel_api_test(view: Callable[[BidThenActEnv], Any]) -> None:
    parallel_api_test(ParallelView(view(relay(2, dropout=0.2))), num_cycles=300)


@each_view
def test_a_seed_fixes_whole_episodes(view: Callable[[BidThenActEnv], Any]) -> None:
    env, other = ParallelView(view(relay(2))), ParallelView(view(relay(2)))
    traces = []
    for seed in (3, None, 4):
        observations, infos = env.reset(seed=seed)
        again, _ = other.reset(seed=seed)
        assert frozen(observations) == frozen(again)
        traces.append(run(env, 7, infos))
        assert len(traces[-1]) > 30
        assert run(other, 7) == traces[-1]
    assert traces[0] != traces[1] != traces[2]


def test_only_the_selected_agent_chooses() -> None:
    env = ParallelView(relay(2))
    observations, infos = env.reset(seed=0)
    generator = np.random.default_rng(0)
    while env.agents:
        selected = env.agent_selection
        for agent in env.agents:
            mask = observations[agent]["action_mask"]
            np.testing.assert_array_equal(mask, infos[agent]["action_mask"])
            if agent == selected:
                np.testing.assert_array_equal(mask[:-1], env.game.observe(agent)["action_mask"])
                assert mask[-1] == 0
            else:
                assert mask[-1] == mask.sum() == 1
        observations, *_, infos = env.step(actions_for(env, infos, generator))


def test_it_is_the_aec_game() -> None:
    env, game = ParallelView(relay()), relay()
    _, infos = env.reset(seed=9)
    game.reset(seed=9)
    generator = np.random.default_rng(1)
    total = 0.0
    while env.agents:
        assert (env.turn, env.phase, env.agent_selection, env.last_auction) == (
            game.turn,
            game.phase,
            game.agent_selection,
            game.last_auction,
        )
        actions = actions_for(env, infos, generator)
        game.step(actions[game.agent_selection])
        _, rewards, terminated, truncated, infos = env.step(actions)
        assert rewards == game.rewards
        assert terminated == game.terminations
        assert truncated == game.truncations
        total += rewards["filler_0"]
    assert total == env.metrics()["return"] == game.metrics()["return"]
    assert infos["filler_0"]["metrics"] == game.metrics()
    assert (env.max_turns, env.bid_levels) == (game.max_turns, game.bid_levels)
    assert env.task.task_id == "toys/relay-v0"
    with pytest.raises(PhaseError, match="reset"):
        env.step({})


def test_snapshots_go_between_the_parallel_and_the_aec_game() -> None:
    env, aec = ParallelView(relay(2)), relay(2)
    for steps in (0, 3, 8, 10_000):
        _, infos = env.reset(seed=steps)
        run(env, 1, infos, steps)
        snapshot = env.snapshot()
        aec.restore(snapshot)
        assert aec.snapshot() == snapshot
        twin = env.clone()
        future = run(env, 2)
        assert run(twin, 2) == future
        twin.restore(snapshot)
        assert twin.agents == ([] if steps == 10_000 else list(env.possible_agents))
        assert run(twin, 2) == future
    # An ended game whose agents have not left yet, as the AEC API has it.
    aec.reset(seed=1)
    while not any(aec.terminations.values()) and not any(aec.truncations.values()):
        play(aec, 0, steps=1)
    env.restore(aec.snapshot())
    assert env.agents == []


def test_waiting_agents_must_wait() -> None:
    env = ParallelView(relay())
    env.reset(seed=0)
    wait = {"filler_0": 14, "carrier_0": 13}
    env.step({"filler_0": 3, "carrier_0": 2})
    assert env.game.counts["illegal"] == 1
    # The selected agent may not wait.
    env.step(wait)
    assert env.game.counts["illegal"] == 2
    assert env.phase == "act"
    env.step(wait)
    assert env.game.counts["illegal"] == 3
    assert env.turn == 1
    strict = ParallelView(relay(on_illegal="raise"))
    strict.reset(seed=0)
    before = strict.snapshot()
    with pytest.raises(IllegalActionError, match="carrier_0 must wait"):
        strict.step({"filler_0": 3, "carrier_0": 2})
    with pytest.raises(IllegalActionError, match="filler_0 must bid"):
        strict.step(wait)
    assert strict.snapshot() == before
    strict.step({"filler_0": 3})  # nothing said is waiting


def test_what_waiting_agents_did_wrong_is_in_the_final_metrics() -> None:
    env = ParallelView(relay(max_turns=1))
    env.reset(seed=0)
    env.step({"filler_0": 0, "carrier_0": 0})
    *_, infos = env.step({"filler_0": 0, "carrier_0": 0})
    assert infos["filler_0"]["metrics"]["illegal"] == 2.0 == env.metrics()["illegal"]


@pytest.mark.parametrize(
    "actions",
    [
        {"carrier_0": 13},
        {"filler_0": 15, "carrier_0": 13},
        {"filler_0": -1},
        {"filler_0": 1.0},
        {"filler_0": True},
        {"filler_0": None},
        {"filler_0": 0, "carrier_0": 14},
        {"filler_0": 0, "nobody_0": 0},
    ],
)
def test_actions_of_a_wrong_form_are_refused(actions: dict[str, Any]) -> None:
    env = ParallelView(relay())
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(ActionFormatError):
        env.step(actions)
    assert env.snapshot() == before


def test_it_draws_and_closes() -> None:
    env = ParallelView(relay(render_mode="rgb_array"))
    env.reset(seed=0)
    assert env.render().shape == (24, 48, 3)
    assert env.state().shape == (7,)
    env.close()
    with pytest.raises(TypeError, match="BidThenActEnv"):
        ParallelView(object())  # type: ignore[arg-type]
