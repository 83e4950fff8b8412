"""What tasks of other engines share: turns that the engine plays, numbers of the record, pickles.

Roles, actions, observation, reward, text and pictures are those of `CraftingTask`, which reads them
from a record; here the record says what the engine has told. What an action does is its affair.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from mpt_envs.crafting.rules.turn import add_event, set_key
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOAL_ITEM, MILESTONE_VALUE
from wrappers.task import TurnResult

DEAD: Final = facts.MAX_HEALTH * facts.REGENERATION_TICKS
_ACTION_LIMIT: Final = 31
_LOW_WORD: Final = 0xFFFFFFFF


class EngineTask(CraftingTask, abc.ABC):
    """One goal of the crafting domain in another engine.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        tick_budget: game ticks of an episode; None takes the goal's of `tick_budgets`.

    Attributes:
        tick_budgets: game ticks by goal; what an action takes is different in every engine.
    """

    tick_budgets: ClassVar[Mapping[str, int]]

    def __init__(self, goal: str, tick_budget: int | None) -> None:
        budget = self.tick_budgets.get(goal) if tick_budget is None else tick_budget
        super().__init__(goal, tick_budget=budget)

    # -- what an engine implements -----------------------------------------------------------

    @abc.abstractmethod
    def _turn(self, role: int, action: int) -> int:
        """One turn in the engine, -1 and -1 for a skipped one; returns its reward."""

    @property
    @abc.abstractmethod
    def _begun(self) -> bool:
        """Whether there is a state, so that a snapshot can be taken."""

    def _keywords(self) -> dict[str, Any]:
        """The keywords that make a task of the same kind, apart from the goal."""
        return {"tick_budget": self._budget}

    # -- dynamics ----------------------------------------------------------------------------

    def act(self, agent: str, action: int) -> TurnResult:
        role, action = self._role[agent], int(action)
        if 0 <= action < _ACTION_LIMIT and self._s[at.MASKS + role] >> action & 1:
            return self._result(role, action, {})
        return self._result(-1, -1, {"illegal": True})

    def skip(self) -> TurnResult:
        return self._result(-1, -1, {})

    def _result(self, role: int, action: int, info: dict[str, Any]) -> TurnResult:
        """What a turn did; nothing once the episode has ended."""
        if self._s[at.DONE]:
            return TurnResult(0.0, True, {})
        reward = float(self._turn(role, action))
        return TurnResult(reward, bool(self._s[at.DONE]), info)

    def _fill(self, key: np.uint64, version: int) -> None:
        """The scalars of a new episode that the engine does not know of."""
        s = self._s
        self.record[:] = 0
        s[at.VERSION] = version
        s[at.GOAL] = self._goal
        s[at.BUDGET] = self._budget
        s[at.SEED_LOW] = np.uint32(int(key) & _LOW_WORD).astype(np.int32)
        s[at.SEED_HIGH] = np.uint32(int(key) >> 32).astype(np.int32)
        set_key(s, key)
        nothing = (at.HEADING, at.LAST_ROLE, at.LAST_ACTION)
        s[[*nothing, at.FURNACE_INPUT, at.FURNACE_FUEL, at.FURNACE_OUTPUT]] = -1

    def _finish(
        self, role: int, action: int, outcome: int, tick: int, seen: int, died: bool = False
    ) -> int:
        """Write what every turn ends with; returns its reward.

        Args:
            role, action, outcome: of the turn.
            tick, seen: of the record before it.
            died: whether the engine says that the body did.
        """
        s = self._s
        s[at.LAST_ROLE], s[at.LAST_ACTION], s[at.LAST_OUTCOME] = role, action, outcome
        s[at.LAST_TICKS] = s[at.TICK] - tick
        fresh, reward = int(s[at.SEEN]) & ~seen, 0
        for item in range(facts.N_ITEMS):
            worth = int(MILESTONE_VALUE[self._goal, item]) if fresh >> item & 1 else 0
            if worth > 0:
                reward += worth
                add_event(s, at.EVENT_MILESTONE, item, worth)
        s[at.SCORE] += reward
        if int(s[at.SEEN]) >> int(GOAL_ITEM[self._goal]) & 1:
            s[at.DONE] = at.DONE_GOAL
        elif died or s[at.WOUND] >= DEAD:
            s[at.DONE] = at.DONE_DEATH
        elif s[at.TICK] >= s[at.BUDGET]:
            s[at.DONE] = at.DONE_TIME
        s[at.TURN] += 1
        self.changed()
        return reward

    # -- copies ------------------------------------------------------------------------------

    def clone(self) -> EngineTask:
        """An independent task in the same state, as far as a snapshot brings it back."""
        twin = type(self)(self.goal, **self._keywords())
        if self._begun:
            twin.restore(self.snapshot())
        return twin

    def __getstate__(self) -> dict[str, Any]:
        snapshot = self.snapshot() if self._begun else None
        return {"goal": self.goal, "keywords": self._keywords(), "snapshot": snapshot}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["goal"], **state["keywords"])  # type: ignore[misc]
        if state["snapshot"] is not None:
            self.restore(state["snapshot"])
