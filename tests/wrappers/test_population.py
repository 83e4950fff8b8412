"""Population: names and order of the copies, and that they are the base task in everything else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.toys import RelayTask
from wrappers.bid_then_act import BidThenActEnv
from wrappers.population import PopulationTask, copies_for


def test_names_follow_the_roles_of_the_base_task() -> None:
    task = PopulationTask(RelayTask(), 3)
    assert task.possible_agents == (
        "filler_0",
        "filler_1",
        "filler_2",
        "carrier_0",
        "carrier_1",
        "carrier_2",
    )
    assert task.roles == ("filler",) * 3 + ("carrier",) * 3
    assert task.original("carrier_2") == "carrier_0"


def test_counts_may_differ_by_role() -> None:
    task = PopulationTask(RelayTask(), {"carrier": 2, "filler": 1})
    assert task.possible_agents == ("filler_0", "carrier_0", "carrier_1")


@pytest.mark.parametrize("agents", [2, 4, 6, 8])
def test_copies_for_a_number_of_agents(agents: int) -> None:
    task = RelayTask()
    assert len(PopulationTask(task, copies_for(task, agents)).possible_agents) == agents


@pytest.mark.parametrize("agents", [0, -2, 3, True])
def test_a_number_that_no_population_has_names_those_that_do(agents: int) -> None:
    with pytest.raises(ValueError, match=r"multiple of 2 \(2, 4, 6, 8"):
        copies_for(RelayTask(), agents)


@pytest.mark.parametrize("copies", [0, -1, True, {"filler": 1}, {"filler": 1, "carrier": 0}])
def test_wrong_counts_are_refused(copies: object) -> None:
    with pytest.raises(ValueError, match="copies"):
        PopulationTask(RelayTask(), copies)  # type: ignore[arg-type]


def test_a_population_of_a_population_is_refused() -> None:
    with pytest.raises(ValueError, match="several agents of one role"):
        PopulationTask(PopulationTask(RelayTask(), 2), 2)


def test_copies_do_what_the_original_does() -> None:
    base, task = RelayTask(), PopulationTask(RelayTask(), 2)
    for turn_task in (base, task):
        turn_task.reset(5, 2)
    generator = np.random.default_rng(0)
    for _ in range(40):
        copy = task.possible_agents[generator.integers(4)]
        original = task.original(copy)
        np.testing.assert_array_equal(task.observe(copy), base.observe(original))
        np.testing.assert_array_equal(task.action_mask(copy), base.action_mask(original))
        action = int(generator.integers(len(task.action_names(copy))))
        assert task.act(copy, action) == base.act(original, action)
        assert task.snapshot() == base.snapshot()
    assert task.metrics() == base.metrics()


def test_snapshots_fit_in_both_directions_and_clones_are_independent() -> None:
    base, task = RelayTask(), PopulationTask(RelayTask(), 2)
    base.reset(1)
    base.act("filler_0", 1)
    task.reset(2)
    task.restore(base.snapshot())
    twin = task.clone()
    assert twin.possible_agents == task.possible_agents
    assert twin.snapshot() == task.snapshot() == base.snapshot()
    twin.act("carrier_1", 1)
    assert task.snapshot() == base.snapshot() != twin.snapshot()


def test_texts_address_the_copy() -> None:
    task = PopulationTask(RelayTask(), 2)
    task.reset(0)
    assert "filler_1" in task.prompt("filler_1", "act")
    assert "filler_0" not in task.prompt("filler_1", "act")
    assert "filler_1" in task.profile("filler_1")
    assert task.parse("filler_1", "Fill") == 1


def test_the_expert_is_the_originals() -> None:
    task = PopulationTask(RelayTask(), 2)
    task.reset(0)
    assert task.has_expert
    assert task.expert_bid("filler_1") == task.base.expert_bid("filler_0")
    assert task.expert_action("filler_1") == 1


def test_equal_bids_of_copies_are_broken_uniformly() -> None:
    env = BidThenActEnv(PopulationTask(RelayTask(goal=10_000), 2), max_turns=4_000)
    env.reset(seed=0)
    wins = dict.fromkeys(env.possible_agents, 0)
    while env.turn < 2_000:
        agent = env.agent_selection
        env.step(10 if env.phase == "bid" and agent.startswith("filler") else 0)
        if env.phase == "act":
            wins[env.agent_selection] += 1
            env.step(11)
    assert wins["carrier_0"] == wins["carrier_1"] == 0
    assert wins["filler_0"] + wins["filler_1"] == 2_000
    assert abs(wins["filler_0"] - 1_000) < 4 * np.sqrt(2_000 / 4)
