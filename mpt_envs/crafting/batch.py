"""Many worlds stepped by the compiled rules: loops over the rows of one array of records."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.rules.expert import expert
from mpt_envs.crafting.rules.metrics import metric_names, metrics_of
from mpt_envs.crafting.rules.prefetch import prefetch_state, prefetch_surroundings
from mpt_envs.crafting.rules.snapshots import is_valid, task_id
from mpt_envs.crafting.rules.turn import act, begin, set_key, skip
from mpt_envs.crafting.views.observation import FEATURE_NAMES, write_observation
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOALS, goal_index
from mpt_envs.crafting.world.layout import new_records, scalars
from wrappers.records import RecordBatch
from wrappers.rng import STREAM_EPISODE, hash4

_STREAM_EPISODE: Final = np.uint64(STREAM_EPISODE)


@kernel
def begin_rows(records32, records8, records64, rows, seeds, episodes, goal, budget):
    """Start the episodes of some worlds; see `rules.begin` and `wrappers.rng.episode_key`."""
    for i in range(rows.shape[0]):
        row = rows[i]
        key = hash4(np.uint64(seeds[i]), np.uint64(episodes[i]), _STREAM_EPISODE, np.uint64(0))
        begin(records32[row], records8[row], records64[row], goal, budget, key)


@kernel
def act_row(s, b, role, action):
    """One turn of a world: reward, whether it has ended, whether the action was illegal."""
    if role == -2:
        return 0.0, False, False
    illegal = False
    if role == -1:
        reward = skip(s, b)
    else:
        if s[at.DONE] == at.DONE_RUNNING:
            illegal = not (0 <= action < 31 and (s[at.MASKS + role] >> action & 1) == 1)
        reward = act(s, b, role, action)
    return float(reward), s[at.DONE] != at.DONE_RUNNING, illegal


@kernel
def act_rows(records32, records8, roles, actions, rewards, terminated, illegal):
    """One turn of every world; see `BatchTask.act`."""
    count = roles.shape[0]
    for row in range(count):
        if row + 4 < count:
            prefetch_state(records8[row + 4])
        if row + 2 < count:
            prefetch_surroundings(records32[row + 2], records8[row + 2])
        turn = act_row(records32[row], records8[row], roles[row], actions[row])
        rewards[row], terminated[row], illegal[row] = turn


@kernel
def observe_rows(records32, out):
    """Write the observation of every world into the rows of ``out``."""
    for row in range(records32.shape[0]):
        write_observation(records32[row], out[row])


@kernel
def expert_rows(records32, bids, actions):
    """Write the expert's bids and actions of every world."""
    for row in range(records32.shape[0]):
        expert(records32[row], bids[row], actions[row])


class CraftingBatch(RecordBatch):
    """N worlds of one crafting goal.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        num_envs: N.
        tick_budget: game ticks of an episode; None takes the goal's.
    """

    roles = facts.ROLES
    action_names = tuple(facts.ACTIONS[role] for role in facts.ROLES)
    feature_names = FEATURE_NAMES
    snapshot_version = at.LAYOUT_VERSION
    mask_column = at.MASKS

    def __init__(self, goal: str, num_envs: int, *, tick_budget: int | None = None) -> None:
        super().__init__(num_envs, goal=goal, tick_budget=tick_budget)
        self.goal = goal_index(goal)
        self.budget = check_budget(goal, tick_budget)
        self.task_id = task_id(goal)
        self.default_max_turns = GOALS[self.goal].max_turns
        self.metric_names = metric_names(self.goal)
        self.records = new_records(self.num_envs)
        self._records32 = self.records.view(np.int32)
        self._records64 = self.records.view(np.uint64)

    @cached_property
    def first(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """World 0 as the rules take it."""
        return self._records32[0], self.records[0]

    def begin_rows(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        records = self._records32, self.records, self._records64
        begin_rows(*records, rows, seeds, episodes, self.goal, self.budget)

    def observe_rows(self, out: NDArray[np.float32]) -> None:
        observe_rows(self._records32, out)

    def act_rows(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        act_rows(self._records32, self.records, roles, actions, rewards, terminated, illegal)

    def expert_rows(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        expert_rows(self._records32, bids, actions)

    def is_state(self, record: NDArray[np.uint8]) -> bool:
        return is_valid(record, self.goal)

    def set_key(self, record: NDArray[np.uint8], key: np.uint64) -> None:
        set_key(record.view(np.int32), key)

    def metrics(self) -> NDArray[np.float64]:
        return metrics_of(scalars(self.records), self.goal)


def check_budget(goal: str, tick_budget: Any) -> int:
    """The tick budget to use.

    Raises:
        ValueError: it is not a positive number that fits into the record.
    """
    if tick_budget is None:
        return GOALS[goal_index(goal)].tick_budget
    whole = isinstance(tick_budget, Integral) and not isinstance(tick_budget, bool)
    if not whole or not 1 <= tick_budget < 2**30:
        raise ValueError(f"tick_budget must be a number of ticks from 1 on, got {tick_budget!r}")
    return int(tick_budget)
