"""The testing kit passes a sound task and names the rule that a broken one breaks."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mpt_envs
from mpt_envs.testing import RULES, VectorContractTests, assert_same_trajectories
from tests.mpt_envs import broken
from tests.mpt_envs.broken import SoundEnv, SoundTask
from tests.toys import RelayTask
from tests.wrappers.task_batch import TaskBatch
from wrappers.bid_then_act import BidThenActEnv
from wrappers.vector import VectorGame
from wrappers.vector_lockstep import LockstepVectorGame
from wrappers.vector_native import NativeVectorGame


class TestSoundTask(SoundTask):
    pass


class TestSoundEnv(SoundEnv):
    pass


class TestSoundEnvWithOptions(SoundEnv):
    """Six agents, absences, crowded bids, and illegal actions that raise."""

    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(
            RelayTask, agents=6, dropout=0.3, bid_levels="crowded", on_illegal="raise", max_turns=9
        )


class TestSoundOneAgent(SoundEnv):
    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, one_agent=True)


class TestPadded(SoundEnv):
    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, homogeneous=True)


class TestText(SoundEnv):
    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, observation="text", action="text")


class TestReadAndPoint(SoundEnv):
    """Texts to read, discrete actions; and absences."""

    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, observation="text", dropout=0.3)


class TestImage(SoundEnv):
    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, observation="image")


class TestLookAndSay(SoundEnv):
    """Pictures to look at, answers in words."""

    snapshot_pairs = 12

    def make_env(self) -> Any:
        return mpt_envs.as_env(RelayTask, observation="image", action="text")


class TestWithUnittest(SoundEnv, unittest.TestCase):
    """The kit needs no pytest."""

    snapshot_pairs = 4
    pettingzoo_cycles = 20


# What is broken, the test that has to notice, the rule that it has to name.
BROKEN = [
    ("ForgetfulSnapshot", "test_snapshot_restores_exactly", "exact snapshot"),
    ("ForgetfulSnapshot", "test_task_snapshot", "exact snapshot"),
    ("HiddenGenerator", "test_snapshot_restores_exactly", "exact snapshot"),
    ("HiddenGenerator", "test_playing_on_equals_restoring", "exact snapshot"),
    ("GlobalGenerator", "test_determinism_over_whole_episodes", "determinism"),
    ("PythonGenerator", "test_determinism_over_whole_episodes", "determinism"),
    ("SharedCounter", "test_environments_do_not_influence_each_other", "determinism"),
    ("HashOrder", "test_snapshot_restores_in_a_fresh_process", "exact snapshot"),
    ("InMemorySnapshot", "test_snapshot_restores_in_a_fresh_process", "exact snapshot"),
    ("TrustingRestore", "test_foreign_snapshots_are_refused", "foreign snapshot"),
    ("HalfRestore", "test_foreign_snapshots_are_refused", "foreign snapshot"),
    ("StickyReset", "test_reset_forgets_everything", "determinism"),
    ("AliasedObservation", "test_task_observations_and_masks", "fresh arrays"),
    ("CuriousObservation", "test_reading_changes_nothing", "observe anytime"),
    ("WideObservation", "test_task_observations_and_masks", "spaces"),
    ("NotANumber", "test_task_observations_and_masks", "spaces"),
    ("OutOfBounds", "test_task_observations_and_masks", "spaces"),
    ("EmptyMask", "test_task_observations_and_masks", "masks"),
    ("EmptyMask", "test_masks", "masks"),
    ("BooleanMask", "test_task_observations_and_masks", "masks"),
    ("StrongIllegal", "test_task_illegal_action_is_a_skip", "illegal action"),
    ("SilentIllegal", "test_task_illegal_action_is_a_skip", "illegal action"),
    ("BadNames", "test_agents", "agents"),
    ("TwinActions", "test_task_attributes", "spaces"),
    ("TwinActions", "test_text_round_trip", "text"),
    ("Illiterate", "test_unreadable_text_gives_a_parse_error", "text"),
    ("Gullible", "test_unreadable_text_gives_a_parse_error", "text"),
    ("Mute", "test_text_round_trip", "text"),
    ("Painter", "test_render", "render"),
    ("Blank", "test_render", "render"),
    ("FloatPicture", "test_render", "render"),
    ("NoSuccess", "test_metrics", "metrics"),
    ("NanMetric", "test_metrics", "metrics"),
    ("LateMetric", "test_metrics", "metrics"),
    ("BlindExpert", "test_expert", "expert"),
    ("GreedyExpert", "test_expert", "expert"),
    ("InfiniteReward", "test_team_reward", "team reward"),
    ("SharingClone", "test_clone", "clone"),
    ("StaleClone", "test_clone", "clone"),
    ("ViolentReseed", "test_reseed", "reseed"),
    ("OpenBids", "test_sealed_bids", "sealed bids"),
    ("OpenBids", "test_observation_is_the_same_in_both_phases", "one observation a turn"),
    ("BidsInInfos", "test_sealed_bids", "sealed bids"),
    ("FirstComeFirstServed", "test_ties_are_broken_at_random", "auction"),
    ("LowestWins", "test_auction", "auction"),
    ("PaidWinner", "test_team_reward", "team reward"),
    ("StaggeredEnd", "test_all_agents_end_together", "ends"),
    ("SharedMask", "test_observations_are_fresh_arrays", "fresh arrays"),
    ("SharedMask", "test_writing_into_observations_changes_nothing", "fresh arrays"),
    ("Uncounted", "test_illegal_actions", "illegal action"),
    ("LostTurn", "test_skipped_turns_use_up_the_budget", "skipped turn"),
    ("ForgetfulGame", "test_playing_on_equals_restoring", "exact snapshot"),
    ("SameEpisode", "test_episodes_of_a_seed", "episodes"),
    ("LooseActions", "test_malformed_actions_raise", "illegal action"),
]


@pytest.mark.parametrize(("name", "test", "rule"), BROKEN, ids=lambda value: str(value))
def test_the_kit_names_the_broken_rule(name: str, test: str, rule: str) -> None:
    assert rule in RULES
    kit = getattr(broken, f"Kit{name}")()
    with pytest.raises(AssertionError, match=f"^broken rule '{rule}'"):
        getattr(kit, test)()


def test_every_broken_class_is_tried() -> None:
    kits = {name.removeprefix("Kit") for name in vars(broken) if name.startswith("Kit")}
    assert kits == {name for name, _, _ in BROKEN}


def test_failures_of_a_fresh_process_show_its_traceback() -> None:
    with pytest.raises(AssertionError, match="KeyError"):
        broken.KitInMemorySnapshot().test_snapshot_restores_in_a_fresh_process()


def test_a_class_inside_of_a_function_is_explained() -> None:
    class Local(SoundEnv):
        pass

    with pytest.raises(AssertionError, match="top level"):
        Local().test_snapshot_restores_in_a_fresh_process()


def test_factories_must_be_implemented() -> None:
    from mpt_envs.testing import EnvContractTests, TaskContractTests

    with pytest.raises(NotImplementedError, match="make_env"):
        EnvContractTests().test_agents()
    with pytest.raises(NotImplementedError, match="make_task"):
        TaskContractTests().test_agents()
    with pytest.raises(NotImplementedError, match="make_native"):
        VectorContractTests().test_same_trajectories()


# -- vector games -----------------------------------------------------------------------------


class SoundVector(VectorContractTests):
    options: dict[str, Any] = {}  # noqa: RUF012

    def make_native(self, num_envs: int) -> VectorGame:
        copies = self.options.get("agents", 2) // 2
        options = {k: v for k, v in self.options.items() if k != "agents"}
        return NativeVectorGame(TaskBatch(RelayTask, num_envs), copies=copies, **options)

    def make_lockstep(self, num_envs: int) -> VectorGame:
        return LockstepVectorGame(lambda: mpt_envs.as_env(RelayTask, **self.options), num_envs)


class TestSoundVector(SoundVector):
    pass


class TestSoundVectorWithOptions(SoundVector):
    options = {"agents": 6, "dropout": 0.3, "bid_levels": "crowded", "max_turns": 12}  # noqa: RUF012


class WrongReward(TaskBatch):
    """Pays world 1 twice."""

    def act(self, roles: Any, actions: Any, rewards: NDArray[Any], *rest: Any) -> None:
        super().act(roles, actions, rewards, *rest)
        rewards[1:2] *= 2


class WrongObservation(TaskBatch):
    """Shows world 0 to everyone."""

    def observe(self, out: Any) -> None:
        super().observe(out)
        for array in out:
            array[:, :2] = array[0, :2]


class OneBuffer(NativeVectorGame):
    """Returns the same array from each call."""

    def observe(self) -> Any:
        arrays = super().observe()
        if not hasattr(self, "_kept"):
            self._kept = arrays
        for kept, array in zip(self._kept, arrays, strict=True):
            np.copyto(kept, array)
        return self._kept


def test_vector_kit_notices_wrong_rewards_and_observations() -> None:
    class Reward(SoundVector):
        def make_native(self, num_envs: int) -> VectorGame:
            return NativeVectorGame(WrongReward(RelayTask, num_envs))

    class Observation(SoundVector):
        def make_native(self, num_envs: int) -> VectorGame:
            return NativeVectorGame(WrongObservation(RelayTask, num_envs))

    class Buffer(SoundVector):
        def make_native(self, num_envs: int) -> VectorGame:
            return OneBuffer(TaskBatch(RelayTask, num_envs))

    with pytest.raises(AssertionError, match=r"broken rule 'vector'.*rewards"):
        Reward().test_same_trajectories()
    with pytest.raises(AssertionError, match=r"broken rule 'vector'.*observation"):
        Observation().test_same_trajectories()
    with pytest.raises(AssertionError, match="broken rule 'fresh arrays'"):
        Buffer().test_returned_arrays_are_fresh()


def test_vector_kit_notices_another_configuration() -> None:
    def game(**kwargs: Any) -> VectorGame:
        return LockstepVectorGame(lambda: BidThenActEnv(RelayTask(), **kwargs), 3)

    assert_same_trajectories(game(), game(), 40)
    with pytest.raises(AssertionError, match="broken rule 'vector'"):
        assert_same_trajectories(game(), game(max_turns=29), 40)
    with pytest.raises(AssertionError, match="broken rule 'vector'"):
        assert_same_trajectories(game(dropout=0.1), game(dropout=0.2), 40)
