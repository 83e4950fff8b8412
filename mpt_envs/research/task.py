"""`ResearchTask`: one episode as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.batch import task_id
from mpt_envs.research.rules.expert import expert
from mpt_envs.research.rules.metrics import METRICS, answer_text, metrics_of
from mpt_envs.research.rules.snapshots import decode, encode
from mpt_envs.research.rules.turn import act, begin, finish_turn, set_key, wanted
from mpt_envs.research.views.browser import Desk, execute, fail
from mpt_envs.research.views.observation import FEATURE_NAMES, OBSERVATION_SIZE, write_observation
from mpt_envs.research.world.layout import (
    ACTIONS,
    DONE,
    DONE_RUNNING,
    LAST_ERROR,
    LAYOUT_VERSION,
    MASKS,
    N_ACTIONS,
    QUERY,
    QUESTION,
    ROLES,
    STACK,
    new_records,
)
from mpt_envs.research.world.multihop import MAX_TURNS, Source
from wrappers.rng import as_key, episode_key
from wrappers.task import ParseError, Phase, Snapshot, TurnResult, TurnTask

#: The action that makes the tool call that was written; free-form games only.
TOOL_CALL = "tool_call"


class ResearchTask(TurnTask):
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
        feature_names: name of each entry of the observation.
    """

    snapshot_version = LAYOUT_VERSION
    possible_agents = tuple(f"{role}_0" for role in ROLES)
    roles = ROLES
    default_max_turns = MAX_TURNS
    observation_low = 0.0
    observation_high = 1.0
    shared_observation = True
    feature_names = FEATURE_NAMES

    def __init__(self, source: Source, *, free_form: bool = False) -> None:
        if not isinstance(free_form, bool):
            raise ValueError(f"free_form must be True or False, got {free_form!r}")
        self.source = source
        self.questions = source.questions
        self.free_form = free_form
        self.judge: Callable[[str, str, tuple[str, ...]], bool] | None = None
        self.task_id = task_id(source) + (":free" if free_form else "")
        self._role = {name: role for role, name in enumerate(self.possible_agents)}
        own = (TOOL_CALL,) if free_form else ()
        self._names = tuple((*names, *own) for names in ACTIONS)
        self.record = new_records(1)[0]
        self.rows = np.full(STACK, -1, np.int32)
        self.texts: list[str] = []
        self._pending: list[Any] = [None, None, None]
        self._observation: NDArray[np.float32] | None = None
        self.reset(0)

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return OBSERVATION_SIZE

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self._names[self._role[agent]]

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Draw a question. There are no options."""
        key = episode_key(seed, episode)
        question = self.source.question_of(seed, key)
        self.questions.ready(question)
        self.texts = []
        self._pending = [None, None, None]
        begin(self.record, self.rows, self.questions.tables, question, key)
        self._observation = None

    def observe(self, agent: str) -> NDArray[np.float32]:
        if self._observation is None:
            self._observation = np.zeros(OBSERVATION_SIZE, np.float32)
            write_observation(self.record, self.questions.tables, self._observation)
        return self._observation.copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        role = self._role[agent]
        bits = int(self.record[MASKS + role])
        mask = [bits >> action & 1 for action in range(N_ACTIONS[role])]
        if self.free_form:
            mask.append(int(self.record[DONE] == DONE_RUNNING))
        return np.array(mask, np.int8)

    def act(self, agent: str, action: int) -> TurnResult:
        role, action = self._role[agent], int(action)
        pending, self._pending = self._pending[role], [None, None, None]
        running = int(self.record[DONE]) == DONE_RUNNING
        if self.free_form and action == N_ACTIONS[role] and running:
            return self._make_call(role, pending)
        info: dict[str, Any] = {}
        legal = 0 <= action < 31 and int(self.record[MASKS + role]) >> action & 1
        if running and not legal:
            info["illegal"] = True
            action = -1
        if legal:
            self._look_up(role, action)
        return self._turn(role, action, info)

    def skip(self) -> TurnResult:
        self._pending = [None, None, None]
        return self._turn(-1, -1, {})

    def _turn(self, role: int, action: int, info: dict[str, Any]) -> TurnResult:
        if self.record[DONE] == DONE_RUNNING:
            self.record[LAST_ERROR] = 0
        reward = act(self.record, self.rows, self.questions.tables, role, action)
        self._observation = None
        return TurnResult(float(reward), int(self.record[DONE]) != DONE_RUNNING, info)

    def _look_up(self, role: int, action: int) -> None:
        """Search what an action searches for the first time."""
        name = int(wanted(self.record, self.questions.tables, role, action))
        if name >= 0:
            self.questions.shelf.name_rows(np.array([name], np.int64))
        elif name > -1000:
            self.questions.query_row(int(self.record[QUESTION]), QUERY - name)

    def _make_call(self, role: int, call: Any) -> TurnResult:
        """Make the tool call that was written for this turn."""
        desk = self.desk
        if call is None:
            self.record[LAST_ERROR] = 0
            fail(desk, role, f"No tool call was written for {TOOL_CALL}.")
            finish_turn(self.record, self.rows, self.questions.tables, 0)
            reward = 0
        else:
            reward = execute(desk, role, call)
        self._observation = None
        return TurnResult(float(reward), int(self.record[DONE]) != DONE_RUNNING, {})

    @property
    def desk(self) -> Desk:
        """The episode as the browser takes it."""
        return Desk(self.record, self.rows, self.texts, self.questions)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        texts = self.texts if self.free_form else None
        return encode(self.task_id, self.questions, self.record, texts, self._pending)

    def restore(self, snapshot: Snapshot) -> None:
        state = decode(snapshot, self.task_id, self.questions, self.free_form)
        self.record[:] = state.record
        self.rows[:] = state.rows
        self.texts = state.texts
        self._pending = state.pending
        self._observation = None

    def reseed(self, key: int) -> None:
        set_key(self.record, as_key(key))

    def clone(self) -> ResearchTask:
        twin = type(self)(self.source, free_form=self.free_form)
        twin.record[:] = self.record
        twin.rows[:] = self.rows
        twin.texts = list(self.texts)
        twin._pending = list(self._pending)
        twin.judge = self.judge
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> ResearchTask:
        return self.clone()

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        from mpt_envs.research.views import text

        return text.prompt(self.desk, self._role[agent], phase, self.free_form)

    def profile(self, agent: str) -> str:
        from mpt_envs.research.views import text

        return text.profile(self._role[agent], self.free_form)

    def narrate(self) -> list[str]:
        """What happened in the last turn, in a few words each; for logs and playthroughs."""
        from mpt_envs.research.views import text

        return text.narrate(self.desk)

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.research.views.calls import read

        role = self._role[agent]
        found = read(self.desk, role, text, self.action_names(agent), self.action_mask(agent))
        if isinstance(found, (int, ParseError)):
            return found
        self._pending[role] = found
        return N_ACTIONS[role]

    @property
    def has_expert(self) -> bool:
        return self.questions.has_chains

    def expert_bid(self, agent: str) -> float:
        return float(self._expert(agent)[0][self._role[agent]])

    def expert_action(self, agent: str) -> int:
        return int(self._expert(agent)[1][self._role[agent]])

    def _expert(self, agent: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if not self.has_expert:
            super().expert_action(agent)
        bids = np.empty(len(ROLES))
        actions = np.empty(len(ROLES), np.int64)
        expert(self.record, self.questions.tables, bids, actions)
        return bids, actions

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode == "ansi":
            from mpt_envs.research.views.ansi import ansi

            return ansi(self.desk, overlay)
        if mode == "rgb_array":
            from mpt_envs.research.views.render import rgb_array

            return rgb_array(self.desk, overlay)
        raise ValueError(f"render mode must be one of {self.render_modes}, got {mode!r}")

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
