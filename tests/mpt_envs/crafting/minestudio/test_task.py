"""Whole tasks on the double: the expert's episodes, masks, errors, death, snapshots."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.crafting.backends.engine_errors import EngineDiedError
from mpt_envs.crafting.backends.minestudio.engine import SETTLING_COMMANDS
from mpt_envs.crafting.backends.minestudio.snapshots import unpack
from mpt_envs.crafting.backends.minestudio.task import TICK_BUDGETS
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.views.observation import OBSERVATION_SIZE
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOALS, max_return
from tests.mpt_envs.crafting.minestudio.double import DoubleSim
from tests.mpt_envs.crafting.minestudio.play import (
    double_task,
    expert_turn,
    play_expert,
    sim_of,
)
from wrappers.errors import MissingCapabilityError, PhaseError, SnapshotError
from wrappers.task import Snapshot


@pytest.mark.parametrize(("mode", "seed"), [("gui", 0), ("command", 5)])
def test_the_expert_makes_an_iron_pickaxe(mode: str, seed: int) -> None:
    """By walking, digging, placing, clicking or commands, and a furnace that takes its time."""
    task = double_task("iron-pickaxe", mode)
    task.reset(seed)
    names, total = play_expert(task, 120)
    metrics = task.metrics()
    assert metrics["success"] == 1.0 and total == max_return("iron-pickaxe")
    assert metrics["ticks"] < TICK_BUDGETS["iron-pickaxe"]
    assert {"chop_log", "place_table", "dig_down", "smelt_iron", "tend_furnace"} <= set(names)
    clicked = any("clear" in c for c in sim_of(task).commands[len(SETTLING_COMMANDS) :])
    assert clicked == (mode == "command"), "the mode says who crafts"


@pytest.mark.parametrize("goal", ["crafting-table", "wooden-pickaxe", "stone-pickaxe"])
def test_the_expert_reaches_the_short_goals(goal: str) -> None:
    task = double_task(goal, "gui")
    task.reset(2)
    _, total = play_expert(task, 60)
    assert task.metrics()["success"] == 1.0 and total == max_return(goal)


def test_spaces_text_and_budgets_are_those_of_the_embedded_task() -> None:
    task, embedded = double_task("torch"), CraftingTask("torch")
    task.reset(0)
    embedded.reset(0)
    assert set(TICK_BUDGETS) == {goal.name for goal in GOALS}
    assert all(TICK_BUDGETS[goal.name] >= goal.tick_budget for goal in GOALS)
    for agent in task.possible_agents:
        assert task.action_names(agent) == embedded.action_names(agent)
        assert task.observe(agent).shape == (OBSERVATION_SIZE,)
        assert task.profile(agent) == embedded.profile(agent)
        prompt = task.prompt(agent, "act")
        assert [line.split(":")[0] for line in prompt.splitlines()[1:8]] == [
            line.split(":")[0] for line in embedded.prompt(agent, "act").splitlines()[1:8]
        ]
        assert task.parse(agent, "wait") == 0
    assert task.default_max_turns == embedded.default_max_turns
    assert task.render("rgb_array").dtype == np.uint8
    assert task.pov.shape == (360, 640, 3)


def test_what_is_perceived_is_what_the_embedded_world_perceives() -> None:
    """The double's landscape is an embedded one: at its start both are seen alike."""
    task = double_task("iron-pickaxe")
    task.reset(3)
    sim = sim_of(task)
    embedded = CraftingTask("iron-pickaxe")
    embedded.reset(sim.env.seeds[-1])
    mine, theirs = task._s, embedded._s
    for name, first, count in (
        ("distances", at.TARGET_DISTANCE, 4),
        ("ways", at.WALK_STEPS, 12),
        ("near", at.NEAR_FEET, 10),
        ("depth and cover", at.DEPTH, 2),
        ("masks", at.MASKS, 3),
    ):
        assert mine[first : first + count].tolist() == theirs[first : first + count].tolist(), name


def test_seeds_are_applied_before_each_reset_and_settle_the_world() -> None:
    task = double_task()
    worlds = []
    for seed, episode in ((1, 0), (1, 1), (1, 0)):
        task.reset(seed, episode)
        sim = sim_of(task)
        worlds.append((sim.env.seeds[-1], task.record[at.BLOCKS_OFFSET :].tobytes()))
        assert sim.commands[-len(SETTLING_COMMANDS) :] == list(SETTLING_COMMANDS)
    assert worlds[0] == worlds[2] != worlds[1]
    assert len(sim.env.seeds) == 3
    assert sim.keywords["preferred_spawn_biome"] == "forest"
    other = double_task(biome="plains")
    other.reset(1)
    assert sim_of(other).keywords["preferred_spawn_biome"] == "plains"


def test_illegal_actions_and_skips_let_time_pass() -> None:
    task = double_task()
    task.reset(0)
    before = int(task._s[at.TICK])
    result = task.act("smith_0", facts.CRAFT_TABLE)
    assert result.info == {"illegal": True} and result.reward == 0.0
    assert int(task._s[at.TICK]) - before == facts.SKIP_TICKS + 1  # a tick to look around
    assert task.skip().info == {}
    assert task.narrate() == ["nobody acted"]


def test_the_budget_ends_an_episode() -> None:
    task = double_task(tick_budget=50)
    task.reset(0)
    assert [task.skip().terminated for _ in range(3)] == [False, False, True]
    assert task.metrics()["success"] == 0.0 and task._s[at.DONE] == at.DONE_TIME
    assert task.skip() == (0.0, True, {})


def test_death_ends_an_episode() -> None:
    task = double_task()
    task.reset(0)
    sim_of(task).y += 40.0
    ends = [task.skip().terminated for _ in range(4)]
    assert ends[-1] and task._s[at.DONE] == at.DONE_DEATH
    assert any("health" in words for words in task.narrate())
    assert task.observe("miner_0").shape == (OBSERVATION_SIZE,)
    task.reset(0)
    assert not task.skip().terminated


@pytest.mark.parametrize("fault", ["die", "lost"])
def test_a_lost_minecraft_is_told_and_a_reset_starts_another(fault: str) -> None:
    task = double_task()
    with pytest.raises(PhaseError, match="call reset"):
        task.skip()
    task.reset(0)
    sim = sim_of(task)
    sim.faults.add(fault)
    with pytest.raises(EngineDiedError, match="reset the environment"):
        task.skip()
    assert sim.closed
    with pytest.raises(PhaseError, match="call reset"):
        task.skip()
    task.reset(0)
    assert sim_of(task) is not sim and not task.skip().terminated


def test_close_may_be_called_twice() -> None:
    task = double_task()
    task.close()
    task.reset(0)
    sim = sim_of(task)
    task.close()
    task.close()
    assert sim.closed


# --- snapshots ----------------------------------------------------------------------------------


def advanced(turns: int = 14, mode: str = "command") -> Any:
    task = double_task("stone-pickaxe", mode)
    task.reset(2)
    play_expert(task, turns)
    return task


def test_a_snapshot_is_brought_back_by_commands_in_the_same_world() -> None:
    task = advanced(10)
    snapshot = task.snapshot()
    assert snapshot.fidelity == "approximate" and snapshot == task.snapshot()
    seen, sim = task.observe("miner_0"), sim_of(task)
    place, blocks = task._engine.report.place, dict(sim.blocks)
    play_expert(task, 4)
    assert sim.blocks != blocks
    resets = len(sim.env.seeds)
    task.restore(snapshot)
    assert len(sim.env.seeds) == resets, "the same world needs no reset"
    assert sim.blocks == blocks
    assert task._engine.report.place == pytest.approx(place, abs=1e-3)
    assert np.array_equal(task.observe("miner_0"), seen)
    assert sim.mode == "survival"
    play_expert(task, 30)
    assert task.metrics()["success"] == 1.0


def test_a_snapshot_is_brought_back_in_another_process() -> None:
    """As far as a pickle goes: into a task that has seen nothing, with a Minecraft of its own."""
    task = advanced(15)
    snapshot = pickle.loads(pickle.dumps(task.snapshot()))
    other = double_task("stone-pickaxe", "gui")
    other.restore(snapshot)
    assert sim_of(other) is not sim_of(task)
    assert sim_of(other).blocks == sim_of(task).blocks
    assert np.array_equal(other.observe("smith_0"), task.observe("smith_0"))
    mine = unpack(snapshot.payload)
    theirs = unpack(other.snapshot().payload)
    assert mine is not None and theirs is not None
    assert (mine.slots, mine.wear, mine.changes) == (theirs.slots, theirs.wear, theirs.changes)
    assert play_expert(other, 40)[1] + mine.record.view(np.int32)[at.SCORE] == max_return(
        "stone-pickaxe"
    )


def test_a_burning_furnace_is_brought_back() -> None:
    task = double_task("iron-pickaxe")
    task.reset(5)
    for _ in range(60):
        if expert_turn(task)[0] == "smelt_iron":
            break
    task.act("logger_0", facts.WAIT)
    snapshot = task.snapshot()
    other = double_task("iron-pickaxe")
    other.restore(snapshot)
    names = ("FURNACE_INPUT", "FURNACE_INPUT_COUNT", "FURNACE_BURN", "FURNACE_PROGRESS")
    for name in names:
        slot = getattr(at, name)
        assert other._s[slot] == task._s[slot], name
    assert play_expert(other, 30)[0][-1] == "craft_iron_pickaxe"


def test_clones_and_pickles_have_a_minecraft_of_their_own() -> None:
    task = advanced(6)
    for twin in (task.clone(), pickle.loads(pickle.dumps(task))):
        assert sim_of(twin) is not sim_of(task)
        assert np.array_equal(twin.observe("logger_0"), task.observe("logger_0"))
        assert (twin.crafting_mode, twin.biome) == (task.crafting_mode, task.biome)
    assert not double_task().clone()._engine.started


def test_a_world_that_does_not_become_what_was_seen_is_refused() -> None:
    task = advanced(14)
    snapshot = task.snapshot()
    other = double_task("stone-pickaxe")
    other.reset(0)
    sim_of(other).faults.add("setblock")
    with pytest.raises(SnapshotError, match=r"did not become.*\d+ of \d+ blocks close by"):
        other.restore(snapshot)
    with pytest.raises(PhaseError):
        other.skip()
    other.reset(0)
    assert not other.skip().terminated


def test_foreign_and_changed_snapshots_leave_the_state_alone() -> None:
    task = advanced(3)
    good = task.snapshot()
    payload = good.payload
    broken = (
        payload[:-1],
        payload + b"x",
        payload[:40] + bytes([payload[40] ^ 1]) + payload[41:],
        b"",
    )
    candidates = [Snapshot(good.task_id, good.version, p, "approximate") for p in broken]
    embedded = CraftingTask("stone-pickaxe")
    embedded.reset(0)
    for bad in (*candidates, embedded.snapshot(), None, double_task("torch")):
        with pytest.raises(SnapshotError):
            task.restore(bad)
        assert task.snapshot() == good
    torch = double_task("torch")
    torch.reset(0)
    with pytest.raises(SnapshotError, match="restore it into an environment made by"):
        task.restore(torch.snapshot())


def test_minecrafts_dice_cannot_be_changed() -> None:
    task = advanced(1)
    with pytest.raises(MissingCapabilityError, match="cannot change its random numbers"):
        task.reseed(3)


# --- the game around it -------------------------------------------------------------------------


def test_a_vector_game_promises_no_more_than_its_task() -> None:
    """By this the trainer refuses counterfactual branches."""
    game = mpt_envs.as_env(double_task(), api="vector", num_envs=1)
    assert game.snapshot_fidelity == "approximate"


def test_copies_of_roles_play_one_body() -> None:
    env = mpt_envs.as_env(double_task(tick_budget=9000), agents=6, max_turns=6, dropout=0.2)
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in env.agent_iter():
        _, _, terminated, truncated, info = env.last()
        legal = np.flatnonzero(info["action_mask"]) if "action_mask" in info else [0]
        env.step(None if terminated or truncated else int(rng.choice(legal)))
    assert env.unwrapped.turn == 6 and "ticks" in env.unwrapped.metrics()


def test_simulators_get_the_keywords_of_minecraftsim() -> None:
    made: list[dict[str, Any]] = []

    def make(**keywords: Any) -> DoubleSim:
        made.append(keywords)
        return DoubleSim(**keywords)

    from mpt_envs.crafting.backends.minestudio.task import MineStudioTask

    MineStudioTask("torch", simulator=make).reset(0)
    assert made[0]["action_type"] == "env" and made[0]["callbacks"] == []
