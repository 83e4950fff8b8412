"""One-agent view: the union of the roles, as a task, as a batch and as a gymnasium environment."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mpt_envs
from tests.toys import RelayTask
from tests.wrappers.task_batch import TaskBatch
from wrappers.errors import ActionFormatError, IllegalActionError, PhaseError, SnapshotError
from wrappers.one_agent import SOLO, OneAgentBatch, OneAgentEnv, OneAgentTask, union_names
from wrappers.population import PopulationTask
from wrappers.task import ParseError


class SharedRelay(RelayTask):
    """The relay where both roles see everything."""

    shared_observation = True

    def observation_size(self, agent: str) -> int:
        return 3


def test_names_are_plain_where_unique() -> None:
    names = ("filler.rest", "fill", "shake", "carrier.rest", "carry")
    assert OneAgentTask(RelayTask()).action_names(SOLO) == names
    assert union_names(["a", "b"], [["x", "y"], ["z"]]) == ("x", "y", "z")


def test_observation_and_mask_are_the_roles_one_after_the_other() -> None:
    task = OneAgentTask(RelayTask())
    task.reset(3)
    task.act(SOLO, 1)
    assert task.observation_size(SOLO) == 5
    parts = [task.base.observe(a) for a in ("filler_0", "carrier_0")]
    np.testing.assert_array_equal(task.observe(SOLO), np.concatenate(parts))
    masks = [task.base.action_mask(a) for a in ("filler_0", "carrier_0")]
    np.testing.assert_array_equal(task.action_mask(SOLO), np.concatenate(masks))
    assert task.observe(SOLO).dtype == np.float32
    assert task.action_mask(SOLO).dtype == np.int8


def test_a_shared_observation_is_kept_once() -> None:
    for task in (OneAgentTask(SharedRelay()), OneAgentTask(PopulationTask(SharedRelay(), 2))):
        task.reset(3)
        assert task.observation_size(SOLO) == 3
        np.testing.assert_array_equal(task.observe(SOLO), task.base.observe("filler_0"))
    assert OneAgentTask(SharedRelay(), shared_observation=False).observation_size(SOLO) == 6


def test_different_observations_cannot_be_declared_shared() -> None:
    with pytest.raises(ValueError, match=r"different lengths \(3, 2\)"):
        OneAgentTask(RelayTask(), shared_observation=True)


def test_copies_of_a_role_add_nothing() -> None:
    task = OneAgentTask(PopulationTask(RelayTask(), 3))
    assert task.action_names(SOLO) == OneAgentTask(RelayTask()).action_names(SOLO)
    assert task.observation_size(SOLO) == 5


def test_every_action_is_the_roles_own() -> None:
    solo, base = OneAgentTask(RelayTask()), RelayTask()
    for task in (solo, base):
        task.reset(11)
    generator = np.random.default_rng(1)
    for _ in range(60):
        action = int(generator.integers(5))
        assert solo.act(SOLO, action) == base.act(*solo.choice(action))
        assert solo.snapshot() == base.snapshot()
    twin = solo.clone()
    twin.act(SOLO, 1)
    assert solo.snapshot() == base.snapshot() != twin.snapshot()


def test_the_expert_finishes_the_task() -> None:
    task = OneAgentTask(RelayTask())
    task.reset(0)
    assert task.has_expert
    for _ in range(30):
        action = task.expert_action(SOLO)
        assert task.action_mask(SOLO)[action]
        if task.act(SOLO, action).terminated:
            break
    assert task.metrics()["success"] == 1.0
    assert task.expert_bid(SOLO) == pytest.approx(0.9)


@pytest.mark.parametrize("id", ["crafting/torch-v0", "research/multihop-v0"])
def test_the_numbers_that_are_told_are_those_that_are_read(id: str) -> None:
    task = OneAgentTask(mpt_envs.make_task(id))
    task.reset(0)
    told = task.prompt(SOLO, "act").rpartition("count: ")[2].rstrip(".").split(", ")
    assert len(told) == int(task.action_mask(SOLO).sum()) > 2
    for line in told:
        number, _, name = line.partition(" ")
        assert task.parse(SOLO, number) == int(number)
        assert task.parse(SOLO, name) == int(number)


@pytest.mark.parametrize("text", ["{1}", "-1", "1/2", "[1]", "1 2", "1e0", "99", "0x1", "1" * 50])
def test_what_only_looks_like_a_number_is_no_answer(text: str) -> None:
    task = OneAgentTask(RelayTask())
    task.reset(0)
    assert isinstance(task.parse(SOLO, text), ParseError)
    assert task.parse(SOLO, " 1. ") == 1


def test_text_names_all_roles_actions_and_reads_them_back() -> None:
    task = OneAgentTask(RelayTask())
    task.reset(0)
    prompt = task.prompt(SOLO, "act")
    for name in task.legal_action_names(SOLO):
        assert name in prompt
        assert task.parse(SOLO, name.upper()) == task.action_names(SOLO).index(name)
    # Both roles know "rest"; the first that may do it is meant.
    assert task.parse(SOLO, "rest") == 0
    error = task.parse(SOLO, "fly")
    assert isinstance(error, ParseError)
    assert error.kind == "unknown_action"
    assert "filler_0" in task.profile(SOLO)


@pytest.mark.parametrize("factory", [RelayTask, SharedRelay])
def test_the_batch_gives_what_the_task_gives(factory: type[RelayTask]) -> None:
    batch = TaskBatch(factory, 4)
    batch.shared_observation = factory is SharedRelay
    if batch.shared_observation:
        batch.observe = (
            lambda out: [  # type: ignore[method-assign]
                out[0][row, :3].__setitem__(slice(None), task.observe("filler_0"))
                for row, task in enumerate(batch.tasks)
            ]
        )
    solo = OneAgentBatch(batch)
    tasks = [OneAgentTask(factory()) for _ in range(4)]
    size = tasks[0].observation_size(SOLO)
    assert solo.observation_sizes == (size,)
    assert solo.action_counts == (5,)
    rows = np.arange(4)
    solo.reset(rows, rows + 10, np.zeros(4, np.int64))
    for row, task in enumerate(tasks):
        task.reset(row + 10)
    observations = np.full((4, size + 2), -7.0, np.float32)
    masks = np.zeros((4, 5), np.bool_)
    rewards, terminated, illegal = np.zeros(4), np.zeros(4, np.bool_), np.zeros(4, np.bool_)
    bids, expert = np.zeros((4, 1)), np.zeros((4, 1), np.int64)
    generator = np.random.default_rng(2)
    for _ in range(50):
        solo.observe([observations])
        solo.action_masks([masks])
        solo.expert(bids, expert)
        for row, task in enumerate(tasks):
            np.testing.assert_array_equal(observations[row, :size], task.observe(SOLO))
            np.testing.assert_array_equal(masks[row], task.action_mask(SOLO))
            assert bids[row, 0] == task.expert_bid(SOLO)
            assert expert[row, 0] == task.expert_action(SOLO)
        assert (observations[:, size:] == -7.0).all()
        roles = generator.choice([0, 0, 0, -1, -2], 4)
        # Where nobody acts the action means nothing and may be anything.
        actions = np.where(roles == 0, generator.integers(0, 5, 4), -99)
        solo.act(roles, actions, rewards, terminated, illegal)
        for row, task in enumerate(tasks):
            if roles[row] == -2:
                assert (rewards[row], terminated[row], illegal[row]) == (0.0, False, False)
                continue
            result = task.skip() if roles[row] else task.act(SOLO, int(actions[row]))
            assert rewards[row] == result.reward
            assert terminated[row] == result.terminated
            assert illegal[row] == result.info.get("illegal", False)
            assert solo.snapshot(row) == task.snapshot()
    np.testing.assert_array_equal(solo.metrics()[2], list(tasks[2].metrics().values()))
    assert solo.spawn(7).num_envs == 7
    solo.restore(0, tasks[3].snapshot())
    assert solo.snapshot(0) == tasks[3].snapshot()


def test_native_and_plain_one_agent_games_of_crafting_agree() -> None:
    """A monolithic policy that was trained on the one is evaluated on the other."""
    vector = mpt_envs.make("crafting/torch-v0", api="vector", num_envs=2, one_agent=True)
    game = mpt_envs.make("crafting/torch-v0", one_agent=True)
    assert vector.action_names == (game.task.action_names(SOLO),)
    vector.reset([3, 4])
    generator = np.random.default_rng(0)
    for row in range(2):
        game.reset(seed=3 + row)
        for _ in range(20):
            vector.restore(np.array([row]), [game.snapshot()])
            seen = game.observe(SOLO)["observation"]
            np.testing.assert_array_equal(vector.observe()[0][row], seen)
            game.step(10)
            legal = game.observe(SOLO)["action_mask"][11:]
            np.testing.assert_array_equal(vector.action_masks()[0][row], legal)
            game.step(11 + int(generator.choice(np.flatnonzero(legal))))


def test_the_environment_passes_gymnasiums_checker() -> None:
    env = OneAgentEnv(RelayTask())
    with pytest.warns(UserWarning, match="infinity"):  # the relay states no bounds
        check_env(env, skip_render_check=True)


def _episode(env: OneAgentEnv, seed: int | None) -> list[tuple[bytes, bytes, float, bool, bool]]:
    observation, info = env.reset(seed=seed)
    generator = np.random.default_rng(4)
    trace = []
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        np.testing.assert_array_equal(observation["action_mask"], info["action_mask"])
        np.testing.assert_array_equal(observation["action_mask"], env.action_masks())
        action = int(generator.choice(np.flatnonzero(env.action_masks())))
        observation, reward, terminated, truncated, info = env.step(action)
        trace.append(
            (
                observation["observation"].tobytes(),
                observation["action_mask"].tobytes(),
                reward,
                terminated,
                truncated,
            )
        )
        over = terminated or truncated
    assert info["metrics"] == env.metrics()
    return trace


def test_a_seed_fixes_the_whole_episode_and_the_ones_after_it() -> None:
    env, other = OneAgentEnv(RelayTask()), OneAgentEnv(RelayTask())
    first, second = _episode(env, 3), _episode(env, None)
    assert (first, second) == (_episode(other, 3), _episode(other, None))
    assert first != second
    assert _episode(other, 4) != first


def test_the_last_feature_is_the_turn_budget_left_and_the_budget_truncates() -> None:
    env = OneAgentEnv(RelayTask(), max_turns=4)
    observation, _ = env.reset(seed=0)
    left = [observation["observation"][-1]]
    for _ in range(4):
        observation, _, terminated, truncated, _ = env.step(0)
        left.append(observation["observation"][-1])
    np.testing.assert_allclose(left, [1.0, 0.75, 0.5, 0.25, 0.0])
    assert (terminated, truncated) == (False, True)
    with pytest.raises(PhaseError, match="reset"):
        env.step(0)


def test_snapshot_restore_and_clone_give_the_same_future() -> None:
    env = OneAgentEnv(RelayTask())
    env.reset(seed=9)
    for action in (1, 4, 1):
        env.step(action)
    snapshot = env.snapshot()
    twin = env.clone()
    assert isinstance(twin, gymnasium.Env)

    def future(one: OneAgentEnv) -> list[float]:
        return [one.step(action)[1] for action in (1, 4, 1, 1, 4)]

    expected = future(env)
    assert future(twin) == expected
    env.restore(snapshot)
    assert env.turn == 3
    assert future(env) == expected
    with pytest.raises(SnapshotError):
        OneAgentEnv(RelayTask(), max_turns=7).restore(snapshot)


def test_wrong_and_masked_actions() -> None:
    env = OneAgentEnv(RelayTask(), on_illegal="raise")
    with pytest.raises(PhaseError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    for wrong in (5, -1, 1.5, "fill", None, True):
        with pytest.raises(ActionFormatError, match="0 to 4"):
            env.step(wrong)  # type: ignore[arg-type]
    with pytest.raises(IllegalActionError, match="carry"):
        env.step(4)
    assert env.turn == 0
    lenient = OneAgentEnv(RelayTask())
    lenient.reset(seed=0)
    *_, info = lenient.step(4)
    assert info["illegal"] is True
    assert lenient.metrics()["illegal"] == 1.0


def test_it_draws_itself() -> None:
    env = OneAgentEnv(RelayTask(), render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (24, 48, 3)
    env.close()
