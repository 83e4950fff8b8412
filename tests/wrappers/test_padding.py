"""Padding: equal spaces, the agent's own part unchanged, and the rest never legal."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tests.wrappers.games import play, relay
from wrappers.errors import ActionFormatError, IllegalActionError, PhaseError
from wrappers.image import ImageView
from wrappers.padding import PaddedView, SharedPolicyEnv
from wrappers.text import TextView


def test_all_spaces_are_equal_and_as_large_as_the_largest() -> None:
    env = PaddedView(relay(2))
    spaces = {repr(env.observation_space(a)) for a in env.possible_agents}
    assert len(spaces) == 1
    assert {env.action_space(a).n for a in env.possible_agents} == {11 + 3}  # type: ignore[attr-defined]
    assert env.observation_space("carrier_0")["observation"].shape == (4,)  # type: ignore[index]
    one_hot = PaddedView(relay(2), role_one_hot=True)
    assert one_hot.observation_space("carrier_0")["observation"].shape == (6,)  # type: ignore[index]


def test_the_own_part_is_unchanged_and_the_rest_is_zero() -> None:
    env = PaddedView(relay(), role_one_hot=True)
    env.reset(seed=0)
    play(env, 0, steps=12)
    for index, agent in enumerate(env.possible_agents):
        inner, outer = env.game.observe(agent), env.observe(agent)
        size, count = inner["observation"].size, inner["action_mask"].size
        np.testing.assert_array_equal(outer["observation"][:size], inner["observation"])
        assert not outer["observation"][size:4].any()
        assert outer["observation"][4:].tolist() == [index == 0, index == 1]
        np.testing.assert_array_equal(outer["action_mask"][:count], inner["action_mask"])
        assert not outer["action_mask"][count:].any()
        np.testing.assert_array_equal(env.infos[agent]["action_mask"], outer["action_mask"])


def test_an_action_beyond_the_own_ones_is_a_counted_noop() -> None:
    env = PaddedView(relay())
    env.reset(seed=0)
    env.step(0)
    assert env.agent_selection == "carrier_0"
    env.step(13)  # the carrier has 11 bids and 2 actions
    assert env.game.counts == {"illegal": 1, "skipped": 1}
    env.step(0)
    env.step(5)
    assert (env.phase, env.agent_selection) == ("act", "carrier_0")
    before = env.turn
    env.step(13)
    assert env.game.counts["illegal"] == 2
    assert env.turn == before + 1


def test_or_an_error_that_changes_nothing() -> None:
    env = PaddedView(relay(on_illegal="raise"))
    env.reset(seed=0)
    env.step(0)
    before = env.snapshot()
    with pytest.raises(IllegalActionError, match="carrier_0 must bid"):
        env.step(13)
    for wrong in (14, -1, "x", 2.0, True):
        with pytest.raises(ActionFormatError):
            env.step(wrong)
    assert env.snapshot() == before


def test_only_vectors_and_discrete_actions_can_be_padded() -> None:
    for view in (TextView, ImageView):
        with pytest.raises(TypeError, match="vector observations"):
            PaddedView(view(relay()))


def test_one_policy_moves_for_all_agents() -> None:
    env = SharedPolicyEnv(relay(2))
    twin = PaddedView(relay(2), role_one_hot=True)
    observation, info = env.reset(seed=3)
    twin.reset(seed=3)
    generator = np.random.default_rng(0)
    total = 0.0
    over = False
    while not over:
        assert info["agent"] == env.agent_selection == twin.agent_selection
        expected = twin.observe(twin.agent_selection)
        for key in expected:
            np.testing.assert_array_equal(observation[key], expected[key])
        np.testing.assert_array_equal(env.action_masks(), expected["action_mask"])
        action = int(generator.choice(np.flatnonzero(env.action_masks())))
        twin.step(action)
        observation, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        total += reward
        over = terminated or truncated
    assert total == env.metrics()["return"] == twin.metrics()["return"] > 0
    with pytest.raises(PhaseError, match="reset"):
        env.step(0)


def test_the_shared_policy_environment_keeps_the_rest() -> None:
    env = SharedPolicyEnv(PaddedView(relay()))
    assert env.observation_space["observation"].shape == (4,)  # type: ignore[index]
    with pytest.raises(PhaseError, match="reset"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(ActionFormatError):
        env.step(None)  # type: ignore[arg-type]
    for action in (0, 3, 11, 2):
        env.step(action)
    snapshot = env.snapshot()
    twin = env.clone()
    env.step(0)
    env.restore(snapshot)
    assert env.snapshot() == twin.snapshot() == snapshot
    assert env.render() is None
    env.close()


def test_the_shared_policy_environment_passes_gymnasiums_checker() -> None:
    with pytest.warns(UserWarning, match="infinity"):  # the relay states no bounds
        check_env(SharedPolicyEnv(relay()), skip_render_check=True)
