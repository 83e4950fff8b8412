"""`CraftingTask`: one world as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.batch import check_budget
from mpt_envs.crafting.rules.expert import expert
from mpt_envs.crafting.rules.metrics import metric_names, metrics_of
from mpt_envs.crafting.rules.snapshots import check_payload, check_snapshot, task_id
from mpt_envs.crafting.rules.turn import act, begin, set_key, skip
from mpt_envs.crafting.views.observation import FEATURE_NAMES, OBSERVATION_SIZE, write_observation
from mpt_envs.crafting.world.facts import ACTIONS, ROLES
from mpt_envs.crafting.world.goals import GOALS, goal_index
from mpt_envs.crafting.world.layout import (
    DONE,
    LAYOUT_VERSION,
    MASKS,
    N_INTS,
    TURN,
    new_records,
    scalars,
)
from wrappers.rng import as_key, episode_key
from wrappers.task import ParseError, Phase, Snapshot, TurnResult, TurnTask

_MAX_CACHED_MASKS = 4096


class CraftingTask(TurnTask):
    """One goal of the crafting domain; roles logger, miner and smith share one body.

    Observation: ``float32 (OBSERVATION_SIZE,)`` in [-1, 1], the same for every agent; see
    `observation.FEATURE_NAMES`. Reward: each milestone once (`goals`). The episode ends
    (``terminated``) with the goal, with the tick budget, or with the body's death.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        tick_budget: game ticks of an episode; None takes the goal's.

    Attributes:
        goal: name of the goal.
        feature_names: name of each entry of the observation.
    """

    snapshot_version = LAYOUT_VERSION
    possible_agents = tuple(f"{role}_0" for role in ROLES)
    roles = ROLES
    observation_low = -1.0
    observation_high = 1.0
    shared_observation = True
    feature_names = FEATURE_NAMES

    def __init__(self, goal: str = "iron-pickaxe", *, tick_budget: int | None = None) -> None:
        self.goal = goal
        self._goal = goal_index(goal)
        self._budget = check_budget(goal, tick_budget)
        self.task_id = task_id(goal)
        self.default_max_turns = GOALS[self._goal].max_turns
        self._role = {name: role for role, name in enumerate(self.possible_agents)}
        self._metric_names = metric_names(self._goal)
        self._attach(new_records(1)[0])
        begin(self._s, self.record, self._s64, self._goal, self._budget, episode_key(0, 0))

    def _attach(self, record: NDArray[np.uint8]) -> None:
        """Make the views of a record, and the buffers that depend on it."""
        self.record = record
        self._s = record.view(np.int32)
        self._s64 = record.view(np.uint64)
        # Reading one number through a memoryview costs a third of what NumPy's indexing does.
        self._bytes = memoryview(record)  # type: ignore[arg-type]
        self._ints = self._bytes[: 4 * N_INTS].cast("i")
        self._observation = np.empty(OBSERVATION_SIZE, np.float32)
        self._observed = False
        self._masks: dict[tuple[int, int], NDArray[np.int8]] = {}

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return OBSERVATION_SIZE

    def action_names(self, agent: str) -> tuple[str, ...]:
        return ACTIONS[ROLES[self._role[agent]]]

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Draw a world. There are no options."""
        key = episode_key(seed, episode)
        begin(self._s, self.record, self._s64, self._goal, self._budget, key)
        self._observed = False

    def observe(self, agent: str) -> NDArray[np.float32]:
        if not self._observed:
            write_observation(self._s, self._observation)
            self._observed = True
        return self._observation.copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        role = self._role[agent]
        bits = self._ints[MASKS + role]
        mask = self._masks.get((role, bits))
        if mask is None:
            if len(self._masks) >= _MAX_CACHED_MASKS:
                self._masks.clear()
            count = len(ACTIONS[ROLES[role]])
            mask = np.array([bits >> action & 1 for action in range(count)], np.int8)
            self._masks[role, bits] = mask
        return mask.copy()

    def act(self, agent: str, action: int) -> TurnResult:
        role = self._role[agent]
        ints = self._ints
        action = int(action)
        info: dict[str, Any] = {}
        if not ints[DONE] and not (0 <= action < 31 and ints[MASKS + role] >> action & 1):
            info["illegal"] = True
            action = -1
        reward = act(self._s, self.record, role, action)
        self._observed = False
        return TurnResult(float(reward), ints[DONE] != 0, info)

    def skip(self) -> TurnResult:
        reward = skip(self._s, self.record)
        self._observed = False
        return TurnResult(float(reward), self._ints[DONE] != 0, {})

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return Snapshot(self.task_id, LAYOUT_VERSION, self.record.tobytes(), "exact").verify()

    def restore(self, snapshot: Snapshot) -> None:
        snapshot = check_snapshot(snapshot, self._goal)
        self._bytes[:] = snapshot.payload
        self._observed = False

    def reseed(self, key: int) -> None:
        set_key(self._s, as_key(key))

    def clone(self) -> CraftingTask:
        twin = type(self)(self.goal, tick_budget=self._budget)
        twin.record[:] = self.record
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {"goal": self.goal, "budget": self._budget, "record": self.record.tobytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["goal"], tick_budget=state["budget"])  # type: ignore[misc]
        check_payload(state["record"], self._goal)
        self._bytes[:] = state["record"]

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        from mpt_envs.crafting.views import text

        return text.prompt(self.record, self._role[agent], phase)

    def profile(self, agent: str) -> str:
        from mpt_envs.crafting.views import text

        return text.profile(self._role[agent], self._goal)

    def narrate(self) -> list[str]:
        """What happened in the last turn, in a few words each; for logs and playthroughs."""
        from mpt_envs.crafting.views import text

        return text.turn_events(self.record, self._ints[TURN] - 1)

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.crafting.views import text as reader

        return reader.parse(self._role[agent], text, self.action_mask(agent))

    def expert_bid(self, agent: str) -> float:
        return float(self._expert()[0][self._role[agent]])

    def expert_action(self, agent: str) -> int:
        return int(self._expert()[1][self._role[agent]])

    def _expert(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        bids = np.empty(len(ROLES))
        actions = np.empty(len(ROLES), np.int64)
        expert(self._s, bids, actions)
        return bids, actions

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode == "ansi":
            from mpt_envs.crafting.views.ansi import ansi

            return ansi(self.record, overlay)
        if mode == "rgb_array":
            from mpt_envs.crafting.views.render import rgb_array

            return rgb_array(self.record, overlay)
        raise ValueError(f"render mode must be one of {self.render_modes}, got {mode!r}")

    def metrics(self) -> dict[str, float]:
        values = metrics_of(scalars(self.record[None]), self._goal)[0]
        return dict(zip(self._metric_names, values.tolist(), strict=True))
