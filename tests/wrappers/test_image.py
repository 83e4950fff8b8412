"""The image view: the task's picture, in the wanted size, drawn once a phase."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.toys import RelayTask
from tests.wrappers.games import play, relay
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import MissingCapabilityError
from wrappers.image import ImageView, resize


def test_agents_see_the_tasks_picture() -> None:
    env = ImageView(relay())
    assert env.observation_space("filler_0")["observation"].shape == (24, 48, 3)  # type: ignore[index]
    env.reset(seed=0)
    seen = set()
    step = 0
    while env.agents:
        for agent in env.possible_agents:
            picture = env.observe(agent)["observation"]
            assert picture.dtype == np.uint8
            np.testing.assert_array_equal(picture, env.game.render_as("rgb_array"))
            seen.add(picture.tobytes())
        play(env, step := step + 1, steps=1)
    assert len(seen) > 2


def test_it_may_be_made_in_the_middle_of_an_episode() -> None:
    game = relay()
    game.reset(seed=0)
    play(game, 0, steps=9)
    before = game.snapshot()
    env = ImageView(game)
    assert env.snapshot() == before
    assert env.observe("filler_0")["observation"].shape == (24, 48, 3)


def test_it_is_drawn_once_a_phase() -> None:
    drawn: list[str] = []

    class Counting(RelayTask):
        def render(self, mode: str, overlay: Any = None) -> Any:
            drawn.append(mode)
            return super().render(mode, overlay)

    env = ImageView(BidThenActEnv(Counting()), size=(24, 48))
    env.reset(seed=0)
    for _ in range(3):
        for agent in env.possible_agents:
            env.observe(agent)
    env.step(5)
    env.last()
    assert len(drawn) == 1
    env.step(0)
    env.last()
    assert (env.phase, len(drawn)) == ("act", 2)
    env.reset(seed=1)
    env.last()
    assert len(drawn) == 3


def test_resizing_averages_and_repeats() -> None:
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    half = resize(picture, 2, 3)
    expected = picture.reshape(2, 2, 3, 2, 3).astype(float).mean(axis=(1, 3)).round()
    np.testing.assert_array_equal(half, expected)
    np.testing.assert_array_equal(
        resize(picture, 8, 12), picture.repeat(2, axis=0).repeat(2, axis=1)
    )
    assert resize(picture, 4, 6) is picture
    odd = resize(np.full((7, 5, 3), 200, np.uint8), 3, 4)
    assert odd.shape == (3, 4, 3)
    assert (odd == 200).all()


def test_what_cannot_be_drawn_cannot_be_observed() -> None:
    task = RelayTask()
    task.render_modes = ("ansi",)
    with pytest.raises(MissingCapabilityError, match="rgb_array"):
        ImageView(BidThenActEnv(task))
    for size in ((0, 3), (3,), (1, 2, 3)):
        with pytest.raises(ValueError, match="height, width"):
            ImageView(relay(), size=size)  # type: ignore[arg-type]
