"""The classes to inherit from: all rules of an environment, and of a bare task."""

from __future__ import annotations

import random
import unittest
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpt_envs.make import make_task
from mpt_envs.testing.future import DeterminismRules, SnapshotRules
from mpt_envs.testing.game import GameRules
from mpt_envs.testing.observations import ObservationRules
from mpt_envs.testing.reports import ReportRules
from mpt_envs.testing.rules import check, under
from mpt_envs.testing.trace import content_digest
from wrappers.bid_then_act import BidThenActEnv
from wrappers.task import Snapshot, TurnTask


class EnvContractTests(ObservationRules, GameRules, DeterminismRules, SnapshotRules, ReportRules):
    """Every rule for an environment of the bid-then-act game. Implement `make_env`."""


class TaskContractTests(EnvContractTests):
    """Every rule for a bare `TurnTask`, and for the game around it.

    Attributes (override in the subclass):
        id: of a registered task; or implement `make_task`.
    """

    id: str = ""

    def make_task(self) -> TurnTask:
        """A new task, not yet reset. It must be alike each time."""
        if not self.id:
            raise NotImplementedError(
                "give your subclass of TaskContractTests an id, or implement make_task() in it"
            )
        return make_task(self.id)

    def make_env(self) -> Any:
        """The plain game around the task; override it to play another."""
        return BidThenActEnv(self.make_task())

    def _task_states(self, seed: int, end: bool = True) -> Iterator[TurnTask]:
        """A task before each turn of a random episode; and, if wanted, after the last one."""
        task = self.make_task()
        task.reset(seed)
        rng = random.Random(seed)
        for _ in range(task.default_max_turns):
            yield task
            agent = rng.choice(task.possible_agents)
            legal = np.flatnonzero(task.action_mask(agent)).tolist()
            check(legal, "masks", f"the action mask of {agent} is all zero")
            result = task.skip() if rng.random() < 0.1 else task.act(agent, rng.choice(legal))
            if result.terminated:
                break
        if end:
            yield task

    def test_task_attributes(self) -> None:
        task = self.make_task()
        for name in ("task_id", "possible_agents", "roles"):
            check(
                getattr(task, name, None), "agents", f"the attribute {name!r} is missing or empty"
            )
        check(isinstance(task.possible_agents, tuple), "agents", "possible_agents is no tuple")
        check(
            task.snapshot_fidelity in ("exact", "approximate", "replay"),
            "exact snapshot",
            f"snapshot_fidelity is {task.snapshot_fidelity!r}",
        )
        for agent in task.possible_agents:
            names = task.action_names(agent)
            check(
                isinstance(names, tuple) and names and len(set(names)) == len(names),
                "spaces",
                f"action_names of {agent} must be a tuple of different names, got {names!r}",
            )

    def test_task_observations_and_masks(self) -> None:
        for seed in self.seeds:
            for task in self._task_states(seed):
                for agent in task.possible_agents:
                    self._check_task_arrays(task, agent)

    def _check_task_arrays(self, task: TurnTask, agent: str) -> None:
        observation, mask = task.observe(agent), task.action_mask(agent)
        check(
            isinstance(observation, np.ndarray)
            and observation.dtype == np.float32
            and observation.shape == (task.observation_size(agent),),
            "spaces",
            f"{agent} must observe a float32 ({task.observation_size(agent)},) array, got "
            f"{getattr(observation, 'dtype', type(observation))} {np.shape(observation)}",
        )
        check(
            bool(np.isfinite(observation).all())
            and float(observation.min(initial=task.observation_low)) >= task.observation_low
            and float(observation.max(initial=task.observation_high)) <= task.observation_high,
            "spaces",
            f"{agent} observes values that are not finite or leave [{task.observation_low}, "
            f"{task.observation_high}]: {observation}",
        )
        check(
            isinstance(mask, np.ndarray)
            and mask.dtype == np.int8
            and mask.shape == (len(task.action_names(agent)),)
            and bool(np.isin(mask, (0, 1)).all()),
            "masks",
            f"{agent} must have an int8 mask of zeros and ones per action, got {mask!r}",
        )
        check(mask.any(), "masks", f"the action mask of {agent} is all zero")
        for what, array, again in (
            ("observe", observation, task.observe(agent)),
            ("action_mask", mask, task.action_mask(agent)),
        ):
            check(
                not np.shares_memory(array, again),
                "fresh arrays",
                f"two calls of {what}({agent!r}) return the same memory",
            )
            check(
                np.array_equal(array, again),
                "observe anytime",
                f"two calls of {what}({agent!r}) in one state differ",
            )

    def test_task_illegal_action_is_a_skip(self) -> None:
        for seed in self.seeds:
            for task in self._task_states(seed, end=False):
                before = task.snapshot()
                for agent in task.possible_agents:
                    for action in np.flatnonzero(task.action_mask(agent) == 0)[:2].tolist():
                        skipped = task.skip()
                        after_skip = task.snapshot()
                        task.restore(before)
                        with under("illegal action", f"{agent}, action {action}"):
                            result = task.act(agent, action)
                        check(
                            result.info.get("illegal") is True,
                            "illegal action",
                            f"{agent}, action {action}: info['illegal'] is not True",
                        )
                        check(
                            task.snapshot() == after_skip and result[:2] == skipped[:2],
                            "illegal action",
                            f"{agent}, action {action} does something else than skip()",
                        )
                        task.restore(before)

    def test_task_snapshot(self) -> None:
        other = self.make_task()
        if other.snapshot_fidelity == "approximate":
            raise unittest.SkipTest("this task promises approximate snapshots only")
        for seed in self.seeds:
            for task in self._task_states(seed):
                snapshot = task.snapshot()
                check(
                    isinstance(snapshot, Snapshot)
                    and snapshot.task_id == task.task_id
                    and snapshot.version == task.snapshot_version
                    and snapshot.fidelity == task.snapshot_fidelity,
                    "exact snapshot",
                    f"{snapshot!r} does not carry the id, version and fidelity of its task",
                )
                other.restore(snapshot)
                check(
                    other.snapshot() == snapshot
                    and content_digest(_task_view(other)) == content_digest(_task_view(task)),
                    "exact snapshot",
                    "a task that a snapshot was restored into shows something else",
                )


def _task_view(task: TurnTask) -> dict[str, Any]:
    return {
        agent: (task.observe(agent), task.action_mask(agent), task.prompt(agent, "act"))
        for agent in task.possible_agents
    } | {"metrics": task.metrics()}
