"""Pictures show where the body is, and change with what changes; nothing is drawn by chance."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mpt_envs
from mpt_envs.navigation import make_floorplan_task
from mpt_envs.navigation.task import NavigationTask
from mpt_envs.navigation.views.ansi import ansi
from mpt_envs.navigation.views.render import HEIGHT, WIDTH, rgb_array
from mpt_envs.navigation.world.sources import Episode, Scene, Sequenced
from mpt_envs.navigation.world.space import FreeSpace
from mpt_envs.navigation.world.worlds import Worlds


@pytest.mark.parametrize("seed", range(6))
def test_pictures_have_one_shape_and_are_functions_of_the_state(seed: int) -> None:
    task = make_floorplan_task()
    task.reset(seed)
    first = task.render("rgb_array")
    assert first.shape == (HEIGHT, WIDTH, 3) and first.dtype == np.uint8
    assert (first == task.render("rgb_array")).all()
    twin = make_floorplan_task()
    twin.restore(task.snapshot())
    assert (twin.render("rgb_array") == first).all()
    task.act("mover_0", 2)
    moved = task.render("rgb_array")
    assert (moved != first).any()
    task.act("turner_0", 2)
    assert (task.render("rgb_array") != moved).any()
    # The first picture is still the same: nothing that moves was drawn into the map.
    task.restore(twin.snapshot())
    assert (task.render("rgb_array") == first).all()


def test_bids_are_drawn() -> None:
    task = make_floorplan_task()
    overlay = {"turn": 3, "max_turns": 64, "bids": {"turner_0": 0.5, "mover_0": 0.9}}
    plain = rgb_array(task.record, task.world, {"turn": 3, "max_turns": 64})
    assert (rgb_array(task.record, task.world, overlay) != plain).any()
    low = {**overlay, "bids": {"turner_0": 0.1, "mover_0": 0.9}}
    assert (
        rgb_array(task.record, task.world, overlay) != rgb_array(task.record, task.world, low)
    ).any()
    won = {**overlay, "winner": "mover_0"}
    assert (
        rgb_array(task.record, task.world, overlay) != rgb_array(task.record, task.world, won)
    ).any()
    many = {**overlay, "bids": {f"mover_{k}": k / 40 for k in range(40)}}
    assert rgb_array(task.record, task.world, many).shape == (HEIGHT, WIDTH, 3)


def test_text_picture() -> None:
    task = make_floorplan_task()
    task.reset(1)
    picture = ansi(task.record, task.world, color=False)
    assert "\x1b" not in picture
    assert re.sub(r"\x1b\[[0-9;]*m", "", ansi(task.record, task.world)) == picture
    grid = picture.split("^<v> body")[0]
    assert grid.count("G") >= 1 and len(re.findall(r"[\^<>v]", grid)) >= 1
    assert task.world.episode.instruction in picture
    assert max(len(line) for line in grid.splitlines()) < 120
    task.act("mover_0", 2)
    task.act("mover_0", 2)
    assert "*" in ansi(task.record, task.world, color=False).split("^<v> body")[0]


def test_a_long_instruction_is_cut() -> None:
    scene = make_floorplan_task().world.scene
    episode = make_floorplan_task().world.episode
    long = Episode(
        "long",
        scene.id,
        episode.start,
        0.0,
        episode.goal,
        3.0,
        "Turn left and go on. " * 200,
        episode.reference,
    )
    task = NavigationTask(Worlds(Sequenced("floorplan", [(scene, long)])))
    assert task.render("rgb_array").shape == (HEIGHT, WIDTH, 3)


def test_places_without_a_plan_are_drawn() -> None:
    heights = np.full((2, 300, 400), np.nan, np.float32)
    heights[0, 1:-1, 1:200] = 0.0
    heights[1, 1:-1, 150:-1] = 3.0
    space = FreeSpace(heights, (-5.0, 7.0))
    start, goal = np.array([0.0, 0.0, 10.0]), np.array([5.0, 0.0, 20.0])
    episode = Episode("e", "x", start, 1.0, goal, 3.0, "Walk and stop.", np.stack([start, goal]))
    task = NavigationTask(Worlds(Sequenced("floorplan", [(Scene("x", space), episode)])))
    assert task.render("rgb_array").std() > 10
    assert "G" in task.render("ansi") and "#" in task.render("ansi")
    assert "nothing that has a name" in task.prompt("mover_0", "act")


def test_an_unknown_mode_is_told() -> None:
    with pytest.raises(ValueError, match="render mode"):
        make_floorplan_task().render("human")


def test_image_observations() -> None:
    env = mpt_envs.make("navigation/floorplan-v0", observation="image")
    env.reset(seed=0)
    observation = env.observe(env.agent_selection)
    image = observation["observation"] if isinstance(observation, dict) else observation
    assert np.asarray(image).ndim == 3
