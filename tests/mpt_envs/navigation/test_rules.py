"""What decisions do and earn; what is observed; and what is not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from mpt_envs.navigation import make_floorplan_batch, make_floorplan_task
from mpt_envs.navigation.task import NavigationTask
from mpt_envs.navigation.views.observation import FEATURE_NAMES, OBSERVATION_SIZE
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import ACTIONS, ROLES, SIGHT, TURN_ANGLES
from mpt_envs.navigation.world.houses import Floorplans
from mpt_envs.navigation.world.layout import floats, ints
from mpt_envs.navigation.world.sources import Episode, Scene, Sequenced
from mpt_envs.navigation.world.space import FreeSpace
from mpt_envs.navigation.world.worlds import Worlds
from wrappers.errors import TaskError


def hall(start: tuple[float, float], goal: tuple[float, float], words: str) -> NavigationTask:
    """An empty hall of 20 by 20 metres without names."""
    heights = np.full((1, 202, 202), np.nan, np.float32)
    heights[0, 1:-1, 1:-1] = 0.0
    space = FreeSpace(heights, (-10.1, -10.1))
    begin, end = np.array([start[0], 0.0, start[1]]), np.array([goal[0], 0.0, goal[1]])
    episode = Episode("e", "hall", begin, 0.0, end, 3.0, words, np.stack([begin, end]))
    return NavigationTask(Worlds(Sequenced("floorplan", [(Scene("hall", space), episode)])))


def run(task: NavigationTask, *names: str) -> list[float]:
    rewards = []
    for name in names:
        role = next(r for r in ROLES if name in ACTIONS[r])
        rewards.append(task.act(f"{role}_0", ACTIONS[role].index(name)).reward)
    return rewards


def pose(task: NavigationTask) -> tuple[float, float, int]:
    f, s = floats(task.record), ints(task.record)
    return float(f[at.F_X]), float(f[at.F_Z]), int(s[at.HEADING]) * 15


def test_decisions_are_repeated_primitive_steps() -> None:
    task = hall((0.0, 0.0), (0.0, -9.0), "Walk straight and stop.")
    run(task, "move_forward_75")
    assert pose(task) == pytest.approx((0.0, -0.75, 0))
    run(task, "turn_left_45", "move_forward_50")
    side = 0.5 * math.sqrt(0.5)
    assert pose(task) == pytest.approx((-side, -0.75 - side, 45))
    run(task, "turn_right_30", "turn_right_15", "turn_right_45")
    assert pose(task)[2] == 315
    assert int(ints(task.record)[at.STEPS]) == 3 + 3 + 2 + 2 + 1 + 3
    assert len(at.path(task.record)) == 1 + 5


def test_rewards_by_hand() -> None:
    task = hall((0.0, 0.0), (0.0, -9.0), "Walk straight and stop.")
    first = run(task, "move_forward_75", "move_forward_75")
    assert first == pytest.approx([10 * 0.75 / 9.0] * 2, abs=0.02)
    assert run(task, "turn_left_45", "look_around") == [0.0, 0.0]
    assert task.skip().reward == 0.0
    run(task, "turn_right_45", *["move_forward_75"] * 7)
    walked = 9 * 0.75
    assert task.metrics()["path_length"] == pytest.approx(walked, abs=1e-5)
    assert task.metrics()["distance_to_goal"] == pytest.approx(9.0 - walked, abs=0.02)
    # The shortest way is longer than what was walked: full efficiency.
    assert run(task, "stop") == pytest.approx([20.0])
    found = task.metrics()
    assert found["success"] == 1.0 and found["spl"] == 1.0 and found["oracle_success"] == 1.0
    # Afterwards nothing counts.
    assert run(task, "move_forward_75", "stop") == [0.0, 0.0]
    assert task.metrics() == found


def test_a_detour_costs_and_a_wrong_stop_earns_nothing() -> None:
    task = hall((0.0, 0.0), (0.0, -6.0), "Walk straight and stop.")
    away = [*["turn_left_45"] * 4, *["move_forward_75"] * 4]
    back = [*["turn_left_45"] * 4, *["move_forward_75"] * 10]
    rewards = run(task, *away, *back)
    assert sum(rewards) == pytest.approx(10 * (6.0 - 1.5) / 6.0, abs=0.05)
    assert run(task, "stop") == pytest.approx([20 * 6.0 / 10.5], abs=0.05)
    task = hall((0.0, 0.0), (0.0, -6.0), "Walk straight and stop.")
    assert run(task, "stop") == [0.0]
    assert task.metrics()["success"] == 0.0


def test_progress_is_a_difference_of_potentials() -> None:
    """Whatever is done, the rewards add up to what was won of the way."""
    task = make_floorplan_task()
    rng = np.random.default_rng(0)
    for episode in range(8):
        task.reset(1, episode)
        total = 0.0
        for _ in range(40):
            role = int(rng.integers(2))
            total += task.act(task.possible_agents[role], int(rng.integers(3))).reward
        f = floats(task.record)
        won = 10 * (f[at.F_SHORTEST] - f[at.F_DISTANCE]) / f[at.F_SHORTEST]
        assert total == pytest.approx(float(won))
        assert float(f[at.F_SCORE]) == pytest.approx(total)


def test_idling_earns_nothing_and_going_in_circles_nothing() -> None:
    task = hall((0.0, 0.0), (0.0, -6.0), "Walk straight and stop.")
    square = ["move_forward_50", "turn_left_45", "turn_left_45"] * 4
    assert sum(run(task, *square)) == pytest.approx(0.0, abs=1e-3)
    assert sum(run(task, *["look_around"] * 5)) == 0.0


def test_an_episode_ends_after_500_steps() -> None:
    task = hall((0.0, 0.0), (0.0, -9.0), "Walk straight and stop.")
    count = 0
    while not task.act("turner_0", 2).terminated:
        count += 1
    assert count == 166
    assert task.metrics()["success"] == 0.0 and task.metrics()["primitive_steps"] >= 500
    walker = hall((0.0, 0.0), (0.0, -9.0), "Walk.")
    for _ in range(170):
        walker.act("mover_0", 2)
    assert ints(walker.record)[at.DONE] == at.DONE_STEPS
    assert len(at.path(walker.record)) <= at.MAX_PATH


def test_walls_are_felt() -> None:
    task = hall((0.0, -9.9), (0.0, 5.0), "Walk straight and stop.")
    run(task, "move_forward_75")
    assert task.metrics()["collisions"] == 1.0
    named = dict(zip(FEATURE_NAMES, task.observe("mover_0"), strict=True))
    assert named["collided"] == 1.0 and named["last_mover"] == 1.0
    run(task, "turn_left_15")
    assert dict(zip(FEATURE_NAMES, task.observe("mover_0"), strict=True))["collided"] == 0.0


def test_looking_around_changes_nothing_but_what_was_seen() -> None:
    task = make_floorplan_task()
    task.reset(5)
    before = pose(task), task.metrics()["path_length"]
    seen = at.bits_of(task.record, at.SEEN_LOW)
    assert run(task, "look_around") == [0.0]
    assert (pose(task), task.metrics()["path_length"]) == before
    after = at.bits_of(task.record, at.SEEN_LOW)
    assert after & seen == seen and after != seen


def test_what_is_behind_a_wall_is_not_seen() -> None:
    task = make_floorplan_task()
    for episode in range(20):
        task.reset(6, episode)
        run(task, "look_around")
        scene = task.world.scene
        assert scene.things is not None and scene.opaque is not None
        f = floats(task.record)
        x, z = float(f[at.F_X]), float(f[at.F_Z])
        for index, thing in enumerate(scene.things):
            away = math.hypot(thing[1] - x, thing[3] - z)
            way = np.linspace(0, 1, int(away / 0.002) + 2)
            px, pz = x + way * (thing[1] - x), z + way * (thing[3] - z)
            blocked = scene.opaque[(pz / 0.1).astype(int), (px / 0.1).astype(int)].sum()
            visible = at.bits_of(task.record, at.VISIBLE_LOW) >> index & 1
            assert visible == (blocked == 0 and away <= SIGHT)


def test_nothing_of_the_goal_can_be_observed() -> None:
    """Two episodes that differ in nothing but the goal look the same, in numbers and in words."""
    scene, episode = Floorplans().episode(11)
    elsewhere = scene.space.nearest((3.05, 0.0, 3.05), 3.0)
    assert elsewhere is not None
    other = dataclasses.replace(episode, goal=elsewhere, radius=1.0)
    rng = np.random.default_rng(2)
    tasks = [NavigationTask(Worlds(Sequenced("floorplan", [(scene, e)]))) for e in (episode, other)]
    different = False
    for _ in range(60):
        role = int(rng.integers(3))
        action = int(rng.integers(len(ACTIONS[ROLES[role]])))
        if ACTIONS[ROLES[role]][action] == "stop":
            continue
        results = [t.act(t.possible_agents[role], action) for t in tasks]
        different |= results[0].reward != results[1].reward
        assert (tasks[0].observe("mover_0") == tasks[1].observe("mover_0")).all()
        for agent in tasks[0].possible_agents:
            assert tasks[0].prompt(agent, "act") == tasks[1].prompt(agent, "act")
    assert different


def test_the_instruction_is_observed() -> None:
    scene, episode = Floorplans().episode(11)
    other = dataclasses.replace(episode, instruction="Turn around. Wait by the plant.")
    tasks = [NavigationTask(Worlds(Sequenced("floorplan", [(scene, e)]))) for e in (episode, other)]
    assert (tasks[0].observe("mover_0") != tasks[1].observe("mover_0")).any()


def test_features_have_names_and_all_of_them_vary() -> None:
    assert len(set(FEATURE_NAMES)) == OBSERVATION_SIZE
    batch = make_floorplan_batch(64)
    rows = np.arange(64)
    batch.reset(rows, rows + 100, np.zeros(64, np.int64))
    rng = np.random.default_rng(1)
    seen = []
    out = [np.zeros((64, OBSERVATION_SIZE), np.float32)]
    outputs = np.zeros(64), np.zeros(64, np.bool_), np.zeros(64, np.bool_)
    bids, actions = np.zeros((64, 3)), np.zeros((64, 3), np.int64)
    for _ in range(40):
        batch.expert(bids, actions)
        roles = bids.argmax(axis=1)
        # Half of them get lost.
        roles[32:] = rng.choice(4, 32, p=(0.1, 0.25, 0.6, 0.05)) - 1
        actions[:, 2] = 1
        batch.act(roles, actions[rows, np.maximum(roles, 0)], *outputs)
        batch.observe(out)
        seen.append(out[0].copy())
    spread = np.ptp(np.concatenate(seen), axis=0)
    constant = {FEATURE_NAMES[i] for i in np.flatnonzero(spread == 0)}
    # Generated houses have no stairs, garage or balcony, and one turns around at the start only.
    assert constant <= {
        "climbed",
        "in_garage",
        "in_balcony",
        "this_stairs",
        "next_stairs",
        "next_turn_around",
    }


def test_episodes_that_cannot_be_played_are_told() -> None:
    with pytest.raises(TaskError, match="nobody can stand at its start"):
        hall((30.0, 0.0), (0.0, -9.0), "Stop.")
    with pytest.raises(ValueError, match="nobody can stand at the goal"):
        hall((0.0, 0.0), (0.0, -90.0), "Stop.")


def test_angles_are_those_of_navila() -> None:
    assert TURN_ANGLES == (15, 30, 45)
    task = hall((0.0, 0.0), (0.0, -9.0), "")
    assert task.observe("turner_0").shape == (OBSERVATION_SIZE,)
