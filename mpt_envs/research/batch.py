"""Many episodes stepped by the compiled rules: loops over the rows of one array of records."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.kernel import kernel
from mpt_envs.research.rules.expert import expert
from mpt_envs.research.rules.metrics import METRICS, metrics_of
from mpt_envs.research.rules.snapshots import decode, encode
from mpt_envs.research.rules.turn import act, begin, set_key, wanted
from mpt_envs.research.views.observation import OBSERVATION_SIZE, write_observation
from mpt_envs.research.world.layout import (
    ACTIONS,
    DONE,
    DONE_RUNNING,
    MASKS,
    N_ACTIONS,
    QUERY,
    QUESTION,
    ROLES,
    STACK,
    new_records,
)
from mpt_envs.research.world.multihop import MAX_TURNS, Source
from wrappers.native import BatchTask, check_roles, check_rows
from wrappers.rng import as_key, episode_key
from wrappers.task import Snapshot

TASK_ID: Final = "research/multihop-v0"


def task_id(source: Source) -> str:
    """Id of a task over a source: a user's corpus has one of its own."""
    return TASK_ID if not source.name else f"{TASK_ID}:{source.name}"


@kernel
def wanted_rows(records, t, roles, actions, out):
    """Write what each world's action has to have looked up; see `rules.wanted`."""
    for row in range(records.shape[0]):
        out[row] = -1000
        if roles[row] >= 0:
            out[row] = wanted(records[row], t, roles[row], actions[row])


@kernel
def act_rows(records, stacks, t, roles, actions, rewards, terminated, illegal):
    """One turn of every world; see `BatchTask.act`."""
    for row in range(records.shape[0]):
        s = records[row]
        role = roles[row]
        illegal[row] = False
        rewards[row] = 0.0
        if role == -2:
            terminated[row] = False
            continue
        if role >= 0 and s[DONE] == DONE_RUNNING:
            action = actions[row]
            illegal[row] = not (0 <= action < 31 and (s[MASKS + role] >> action & 1) == 1)
        rewards[row] = act(s, stacks[row], t, role, actions[row])
        terminated[row] = s[DONE] != DONE_RUNNING


@kernel
def observe_rows(records, t, out):
    """Write the observation of every world into the rows of ``out``."""
    for row in range(records.shape[0]):
        write_observation(records[row], t, out[row])


@kernel
def mask_rows(records, role, out):
    """Write the legal actions of one role of every world into the rows of ``out``."""
    for row in range(records.shape[0]):
        bits = records[row, MASKS + role]
        for action in range(out.shape[1]):
            out[row, action] = (bits >> action & 1) == 1


@kernel
def expert_rows(records, t, bids, actions):
    """Write the expert's bids and actions of every world."""
    for row in range(records.shape[0]):
        expert(records[row], t, bids[row], actions[row])


class ResearchBatch(BatchTask):
    """N episodes over one corpus.

    Args:
        source: corpus and questions.
        num_envs: N.
    """

    roles = ROLES
    action_counts = N_ACTIONS
    action_names = ACTIONS
    observation_sizes = (OBSERVATION_SIZE,) * len(ROLES)
    shared_observation = True
    metric_names = METRICS
    default_max_turns = MAX_TURNS

    def __init__(self, source: Source, num_envs: int) -> None:
        given: Any = num_envs
        if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(f"num_envs must be an int of at least 1, got {num_envs!r}")
        self.source = source
        self.questions = source.questions
        self.task_id = task_id(source)
        self.num_envs = int(num_envs)
        self.records = new_records(self.num_envs)
        self._stacks = np.full((self.num_envs, STACK), -1, np.int32)
        self._wanted = np.empty(self.num_envs, np.int64)
        everything = np.arange(self.num_envs, dtype=np.int64)
        self.reset(everything, np.zeros_like(everything), np.zeros_like(everything))

    @property
    def has_expert(self) -> bool:
        return self.questions.has_chains

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        rows = np.asarray(rows, np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.num_envs):
            raise IndexError(f"rows must be 0 to {self.num_envs - 1}")
        starts = zip(
            rows.tolist(), np.asarray(seeds).tolist(), np.asarray(episodes).tolist(), strict=True
        )
        for row, seed, episode in starts:
            key = episode_key(seed, episode)
            question = self.source.question_of(seed, key)
            self.questions.ready(question)
            begin(self.records[row], self._stacks[row], self.questions.tables, question, key)

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        array = out[0]
        if array.shape[0] != self.num_envs or array.shape[1] < OBSERVATION_SIZE:
            raise ValueError(
                f"observations need an array of at least ({self.num_envs}, {OBSERVATION_SIZE}), "
                f"got {array.shape}"
            )
        observe_rows(self.records, self.questions.tables, array)

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        for role, mask in enumerate(out):
            if mask.shape != (self.num_envs, N_ACTIONS[role]):
                raise ValueError(
                    f"the masks of role {role} need the shape "
                    f"{(self.num_envs, N_ACTIONS[role])}, got {mask.shape}"
                )
            mask_rows(self.records, role, mask)

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        for name, array in (("roles", roles), ("actions", actions), ("rewards", rewards)):
            if array.shape != (self.num_envs,):
                raise ValueError(f"{name} need the shape ({self.num_envs},), got {array.shape}")
        check_rows(self.num_envs, terminated=terminated, illegal=illegal)
        check_roles(roles, len(ROLES))
        wanted_rows(self.records, self.questions.tables, roles, actions, self._wanted)
        if (self._wanted > -1000).any():
            self._look_up()
        act_rows(
            self.records,
            self._stacks,
            self.questions.tables,
            roles,
            actions,
            rewards,
            terminated,
            illegal,
        )

    def _look_up(self) -> None:
        """Search what the actions of this turn search for the first time."""
        self.questions.shelf.name_rows(self._wanted)
        for row in np.flatnonzero((self._wanted > -1000) & (self._wanted < 0)).tolist():
            question = int(self.records[row, QUESTION])
            self.questions.query_row(question, int(QUERY - self._wanted[row]))

    def snapshot(self, row: int) -> Snapshot:
        return encode(self.task_id, self.questions, self.records[row])

    def restore(self, row: int, snapshot: Snapshot) -> None:
        state = decode(snapshot, self.task_id, self.questions, free_form=False)
        self.records[row] = state.record
        self._stacks[row] = state.rows

    def reseed(self, row: int, key: int) -> None:
        set_key(self.records[row], as_key(key))

    def metrics(self) -> NDArray[np.float64]:
        return np.array([metrics_of(record, self.questions) for record in self.records])

    def spawn(self, num_envs: int) -> ResearchBatch:
        return ResearchBatch(self.source, num_envs)

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        if not self.has_expert:
            super().expert(bids, actions)
        expert_rows(self.records, self.questions.tables, bids, actions)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a batch of episodes shares its corpus and is not pickled; spawn() one")
