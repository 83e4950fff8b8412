"""Many worlds stepped by the compiled rules: loops over the rows of one array of records."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.rules.expert import expert
from mpt_envs.crafting.rules.metrics import metric_names, metrics_of
from mpt_envs.crafting.rules.prefetch import (
    prefetch_state,
    prefetch_surroundings,
)
from mpt_envs.crafting.rules.snapshots import check_snapshot, task_id
from mpt_envs.crafting.rules.turn import act, begin, set_key, skip
from mpt_envs.crafting.views.observation import OBSERVATION_SIZE, write_observation
from mpt_envs.crafting.world.facts import ACTIONS, N_ACTIONS, ROLES
from mpt_envs.crafting.world.goals import GOALS, goal_index
from mpt_envs.crafting.world.layout import (
    DONE,
    DONE_RUNNING,
    LAYOUT_VERSION,
    MASKS,
    new_records,
    scalars,
)
from wrappers.native import BatchTask, check_roles, check_rows
from wrappers.rng import STREAM_EPISODE, as_key, hash4
from wrappers.task import Snapshot

_STREAM_EPISODE: Final = np.uint64(STREAM_EPISODE)


@kernel
def begin_rows(records32, records8, records64, rows, seeds, episodes, goal, budget):
    """Start the episodes of some worlds; see `rules.begin` and `wrappers.rng.episode_key`."""
    for i in range(rows.shape[0]):
        row = rows[i]
        key = hash4(np.uint64(seeds[i]), np.uint64(episodes[i]), _STREAM_EPISODE, np.uint64(0))
        begin(records32[row], records8[row], records64[row], goal, budget, key)


@kernel
def act_rows(records32, records8, roles, actions, rewards, terminated, illegal):
    """One turn of every world; see `BatchTask.act`."""
    count = roles.shape[0]
    for row in range(count):
        if row + 4 < count:
            prefetch_state(records8[row + 4])
        if row + 2 < count:
            prefetch_surroundings(records32[row + 2], records8[row + 2])
        role = roles[row]
        s, b = records32[row], records8[row]
        illegal[row] = False
        rewards[row] = 0.0
        if role == -2:
            terminated[row] = False
            continue
        if role == -1:
            rewards[row] = skip(s, b)
        else:
            action = actions[row]
            if s[DONE] == DONE_RUNNING:
                illegal[row] = not (0 <= action < 31 and (s[MASKS + role] >> action & 1) == 1)
            rewards[row] = act(s, b, role, action)
        terminated[row] = s[DONE] != DONE_RUNNING


@kernel
def observe_rows(records32, out):
    """Write the observation of every world into the rows of ``out``."""
    for row in range(records32.shape[0]):
        write_observation(records32[row], out[row])


@kernel
def mask_rows(records32, role, out):
    """Write the legal actions of one role of every world into the rows of ``out``."""
    for row in range(records32.shape[0]):
        bits = records32[row, MASKS + role]
        for action in range(out.shape[1]):
            out[row, action] = (bits >> action & 1) == 1


@kernel
def expert_rows(records32, bids, actions):
    """Write the expert's bids and actions of every world."""
    for row in range(records32.shape[0]):
        expert(records32[row], bids[row], actions[row])


class CraftingBatch(BatchTask):
    """N worlds of one crafting goal.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        num_envs: N.
        tick_budget: game ticks of an episode; None takes the goal's.
        records: share these records (uint8 ``(N, RECORD_BYTES)``) instead of making new ones.
    """

    roles = ROLES
    action_counts = N_ACTIONS
    action_names = tuple(ACTIONS[role] for role in ROLES)
    observation_sizes = (OBSERVATION_SIZE,) * len(ROLES)
    shared_observation = True

    def __init__(
        self,
        goal: str,
        num_envs: int,
        *,
        tick_budget: int | None = None,
        records: NDArray[np.uint8] | None = None,
    ) -> None:
        self._goal = goal_index(goal)
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self._budget = check_budget(goal, tick_budget)
        self.task_id = task_id(goal)
        self.num_envs = num_envs
        self.default_max_turns = GOALS[self._goal].max_turns
        self.metric_names = metric_names(self._goal)
        self.records = new_records(num_envs) if records is None else records
        self._records32 = self.records.view(np.int32)
        self._records64 = self.records.view(np.uint64)

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        seeds = np.ascontiguousarray(seeds, dtype=np.int64)
        episodes = np.ascontiguousarray(episodes, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.num_envs):
            raise IndexError(f"rows must be 0 to {self.num_envs - 1}")
        if not rows.shape == seeds.shape == episodes.shape:
            raise ValueError("rows, seeds and episodes must have the same shape")
        begin_rows(
            self._records32,
            self.records,
            self._records64,
            rows,
            seeds,
            episodes,
            self._goal,
            self._budget,
        )

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        check_rows(self.num_envs, observations=out[0])
        if out[0].shape[1] < OBSERVATION_SIZE:
            raise ValueError(f"observations need {OBSERVATION_SIZE} columns, not {out[0].shape[1]}")
        observe_rows(self._records32, out[0])

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        for role, masks in enumerate(out):
            check_rows(self.num_envs, masks=masks)
            mask_rows(self._records32, role, masks)

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        check_rows(
            self.num_envs,
            roles=roles,
            actions=actions,
            rewards=rewards,
            terminated=terminated,
            illegal=illegal,
        )
        check_roles(roles, len(ROLES))
        act_rows(self._records32, self.records, roles, actions, rewards, terminated, illegal)

    def snapshot(self, row: int) -> Snapshot:
        payload = self.records[row].tobytes()
        return Snapshot(self.task_id, LAYOUT_VERSION, payload, "exact").verify()

    def restore(self, row: int, snapshot: Snapshot) -> None:
        snapshot = check_snapshot(snapshot, self._goal)
        self.records[row] = np.frombuffer(snapshot.payload, dtype=np.uint8)

    def reseed(self, row: int, key: int) -> None:
        set_key(self._records32[row], as_key(key))

    def metrics(self) -> NDArray[np.float64]:
        return metrics_of(scalars(self.records), self._goal)

    def spawn(self, num_envs: int) -> CraftingBatch:
        return CraftingBatch(GOALS[self._goal].name, num_envs, tick_budget=self._budget)

    @property
    def has_expert(self) -> bool:
        return True

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        check_rows(self.num_envs, bids=bids, actions=actions)
        if min(bids.shape[1], actions.shape[1]) < len(ROLES):
            raise ValueError(f"bids and actions need {len(ROLES)} columns, one per role")
        expert_rows(self._records32, bids, actions)


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
