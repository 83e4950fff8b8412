"""`CraftingTask`: one world as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.batch import CraftingBatch, act_row
from mpt_envs.crafting.views.observation import FEATURE_NAMES
from mpt_envs.crafting.world.layout import TURN
from wrappers.records import RecordTask
from wrappers.task import ParseError, TurnResult


class CraftingTask(RecordTask):
    """One goal of the crafting domain; roles logger, miner and smith share one body.

    Observation: ``float32 (OBSERVATION_SIZE,)`` in [-1, 1], the same for every agent; see
    `observation.FEATURE_NAMES`. Reward: each milestone once (`goals`). The episode ends
    (``terminated``) with the goal, with the tick budget, or with the body's death.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        tick_budget: game ticks of an episode; None takes the goal's.

    Attributes:
        goal: name of the goal.
    """

    batch: CraftingBatch
    views = "mpt_envs.crafting.views"
    feature_names = FEATURE_NAMES

    def __init__(self, goal: str = "iron-pickaxe", *, tick_budget: int | None = None) -> None:
        batch = CraftingBatch(goal, 1, tick_budget=tick_budget)
        super().__init__(batch)
        self.goal = goal
        self._goal = batch.goal
        self._budget = batch.budget

    def turn(self, role: int, action: int) -> TurnResult:
        # Of one world, cheaper than the rows of a batch.
        reward, terminated, illegal = act_row(*self.batch.first, role, action)
        self.changed()
        return TurnResult(reward, terminated, {"illegal": True} if illegal else {})

    @property
    def _s(self) -> NDArray[np.int32]:
        """The record as int32."""
        return self.batch.first[0]

    def profile(self, agent: str) -> str:
        from mpt_envs.crafting.views import text

        return text.profile(self._role[agent], self._goal)

    def narrate(self) -> list[str]:
        from mpt_envs.crafting.views import text

        return text.turn_events(self.record, int(self._s[TURN]) - 1)

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.crafting.views import text as reader

        return reader.parse(self._role[agent], text, self.action_mask(agent))
