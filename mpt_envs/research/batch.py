"""Many episodes stepped by the compiled rules: loops over the rows of one array of records."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.kernel import kernel
from mpt_envs.research.rules.expert import expert
from mpt_envs.research.rules.metrics import METRICS, metrics_of
from mpt_envs.research.rules.snapshots import decode, encode
from mpt_envs.research.rules.turn import act, begin, set_key, wanted
from mpt_envs.research.views.observation import FEATURE_NAMES, write_observation
from mpt_envs.research.world.layout import (
    ACTIONS,
    DONE,
    DONE_RUNNING,
    LAYOUT_VERSION,
    MASKS,
    QUERY,
    QUESTION,
    ROLES,
    STACK,
    new_records,
)
from mpt_envs.research.world.multihop import MAX_TURNS, Source
from wrappers.native import mask_rows
from wrappers.records import RecordBatch
from wrappers.rng import episode_key
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
def expert_rows(records, t, bids, actions):
    """Write the expert's bids and actions of every world."""
    for row in range(records.shape[0]):
        expert(records[row], t, bids[row], actions[row])


class ResearchBatch(RecordBatch):
    """N episodes over one corpus.

    Args:
        source: corpus and questions.
        num_envs: N.

    Attributes:
        source: the same.
        questions: of the source.
        stacks: int32 ``(N, STACK)``: what the pages of the stack stand for, see `rules`.
    """

    roles = ROLES
    action_names = ACTIONS
    feature_names = FEATURE_NAMES
    observation_low = 0.0
    metric_names = METRICS
    default_max_turns = MAX_TURNS
    snapshot_version = LAYOUT_VERSION

    def __init__(self, source: Source, num_envs: int) -> None:
        super().__init__(num_envs, source=source)
        self.source = source
        self.questions = source.questions
        self.task_id = task_id(source)
        self.records = new_records(self.num_envs)
        self.stacks = np.full((self.num_envs, STACK), -1, np.int32)
        self._wanted = np.empty(self.num_envs, np.int64)
        everything = np.arange(self.num_envs, dtype=np.int64)
        self.reset(everything, np.zeros_like(everything), np.zeros_like(everything))

    @property
    def has_expert(self) -> bool:
        return self.questions.has_chains

    def begin_rows(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        for row, seed, episode in zip(
            rows.tolist(), seeds.tolist(), episodes.tolist(), strict=True
        ):
            key = episode_key(seed, episode)
            question = self.source.question_of(seed, key)
            self.questions.ready(question)
            begin(self.records[row], self.stacks[row], self.questions.tables, question, key)

    def observe_rows(self, out: NDArray[np.float32]) -> None:
        observe_rows(self.records, self.questions.tables, out)

    def mask_rows(self, role: int, out: NDArray[np.bool_]) -> None:
        mask_rows(self.records, MASKS, role, out)

    def act_rows(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        records, stacks, tables = self.records, self.stacks, self.questions.tables
        wanted_rows(records, tables, roles, actions, self._wanted)
        if (self._wanted > -1000).any():
            self._look_up()
            tables = self.questions.tables
        act_rows(records, stacks, tables, roles, actions, rewards, terminated, illegal)

    def _look_up(self) -> None:
        """Search what the actions of this turn search for the first time."""
        self.questions.shelf.name_rows(self._wanted)
        for row in np.flatnonzero((self._wanted > -1000) & (self._wanted < 0)).tolist():
            question = int(self.records[row, QUESTION])
            self.questions.query_row(question, int(QUERY - self._wanted[row]))

    def expert_rows(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        expert_rows(self.records, self.questions.tables, bids, actions)

    def snapshot(self, row: int) -> Snapshot:
        return encode(self.task_id, self.questions, self.records[row])

    def put_snapshot(self, row: int, snapshot: Snapshot) -> None:
        state = decode(snapshot, self.task_id, self.questions, free_form=False)
        self.records[row] = state.record
        self.stacks[row] = state.rows

    def set_key(self, record: NDArray[np.int32], key: np.uint64) -> None:
        set_key(record, key)

    def metrics(self) -> NDArray[np.float64]:
        return np.array([metrics_of(record, self.questions) for record in self.records])
