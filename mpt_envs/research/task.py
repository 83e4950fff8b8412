"""`ResearchTask`: one episode as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.batch import ResearchBatch
from mpt_envs.research.rules.metrics import METRICS, answer_text, metrics_of
from mpt_envs.research.rules.snapshots import decode, encode
from mpt_envs.research.rules.turn import finish_turn
from mpt_envs.research.views.browser import Desk, execute, fail
from mpt_envs.research.views.observation import FEATURE_NAMES
from mpt_envs.research.world.layout import DONE, DONE_RUNNING, LAST_ERROR, N_ACTIONS, QUESTION
from mpt_envs.research.world.multihop import Source
from mpt_envs.research.world.questions import QuestionSet
from wrappers.records import RecordTask
from wrappers.task import ParseError, Phase, Snapshot, TurnResult

#: The action that makes the tool call that was written; free-form games only.
TOOL_CALL = "tool_call"


class ResearchTask(RecordTask):
    """Answering a question from a corpus; roles searcher, opener and finder share one browser.

    Observation: ``float32 (OBSERVATION_SIZE,)`` in [0, 1], the same for every agent; see
    `observation.FEATURE_NAMES`. Reward: each page of the evidence once, when it is first opened,
    and the right answer. The episode ends (``terminated``) with an answer.

    Args:
        source: corpus and questions, from `multihop.source`.
        free_form: see `make_task`.

    Attributes:
        source, free_form: as given.
        judge: called with question, answer and accepted answers, for the metric ``judged`` of an
            answered episode (e.g. a language model); None: there is no such metric.
    """

    views = "mpt_envs.research.views"
    feature_names = FEATURE_NAMES
    batch: ResearchBatch

    def __init__(self, source: Source, *, free_form: bool = False) -> None:
        if not isinstance(free_form, bool):
            raise ValueError(f"free_form must be True or False, got {free_form!r}")
        self.free_form = free_form
        self.judge: Callable[[str, str, tuple[str, ...]], bool] | None = None
        self.texts: list[str] = []
        self._pending: list[Any] = [None, None, None]
        super().__init__(ResearchBatch(source, 1))
        self.task_id += ":free" if free_form else ""

    @property
    def source(self) -> Source:
        """Corpus and questions."""
        return self.batch.source

    @property
    def questions(self) -> QuestionSet:
        """Of the source."""
        return self.batch.questions

    @property
    def desk(self) -> Desk:
        """The episode as the browser takes it."""
        return Desk(self.record, self.batch.stacks[0], self.texts, self.questions)

    @property
    def scene(self) -> tuple[Any, ...]:
        return (self.desk,)

    # -- free-form games: an action more, which makes the call that was written ----------------

    def action_names(self, agent: str) -> tuple[str, ...]:
        names = super().action_names(agent)
        return (*names, TOOL_CALL) if self.free_form else names

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        mask = super().action_mask(agent)
        if not self.free_form:
            return mask
        return np.append(mask, np.int8(self.record[DONE] == DONE_RUNNING))

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Draw a question. There are no options."""
        self.texts = []
        self._pending = [None, None, None]
        super().reset(seed, episode, options)

    def act(self, agent: str, action: int) -> TurnResult:
        role, action = self._role[agent], int(action)
        pending = self._pending[role]
        running = int(self.record[DONE]) == DONE_RUNNING
        if self.free_form and action == N_ACTIONS[role] and running:
            self._pending = [None, None, None]
            return self._make_call(role, pending)
        return super().act(agent, action)

    def turn(self, role: int, action: int) -> TurnResult:
        self._pending = [None, None, None]
        if self.record[DONE] == DONE_RUNNING:
            self.record[LAST_ERROR] = 0
        return super().turn(role, action)

    def _make_call(self, role: int, call: Any) -> TurnResult:
        """Make the tool call that was written for this turn."""
        desk = self.desk
        if call is None:
            self.record[LAST_ERROR] = 0
            fail(desk, role, f"No tool call was written for {TOOL_CALL}.")
            finish_turn(self.record, desk.rows, self.questions.tables, 0)
            reward = 0
        else:
            reward = execute(desk, role, call)
        self.changed()
        return TurnResult(float(reward), int(self.record[DONE]) != DONE_RUNNING, {})

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        texts = self.texts if self.free_form else None
        return encode(self.task_id, self.questions, self.record, texts, self._pending)

    def restore(self, snapshot: Snapshot) -> None:
        state = decode(snapshot, self.task_id, self.questions, self.free_form)
        self.record[:] = state.record
        self.batch.stacks[0] = state.rows
        self.texts = state.texts
        self._pending = state.pending
        self.changed()

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        from mpt_envs.research.views import text

        return text.prompt(self.desk, self._role[agent], phase, self.free_form)

    def profile(self, agent: str) -> str:
        from mpt_envs.research.views import text

        return text.profile(self._role[agent], self.free_form)

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.research.views.calls import read

        role = self._role[agent]
        found = read(self.desk, role, text, self.action_names(agent), self.action_mask(agent))
        if isinstance(found, (int, ParseError)):
            return found
        self._pending[role] = found
        return N_ACTIONS[role]

    def metrics(self) -> dict[str, float]:
        values = metrics_of(self.record, self.questions, self.texts)
        metrics = dict(zip(METRICS, values, strict=True))
        if self.judge is not None:
            answer = answer_text(self.record, self.questions, self.texts)
            question = self.questions.questions[int(self.record[QUESTION])]
            metrics["judged"] = float(
                answer is not None and self.judge(question.question, answer, question.answers)
            )
        return metrics
