"""A small hand-written turn task for tests: a relay that needs two roles in turn.

The `filler` fills a bucket (up to 3 units), the `carrier` carries it to the tank; a bucket must be
put down full enough for its load to count. Random draws decide how much one filling gives, so the
task has luck; all of it is counter based.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wrappers.rng import STREAM_DOMAIN, as_key, episode_key, hash4
from wrappers.task import Snapshot, TurnResult, TurnTask

_FORMAT = "<Qqqqq"


class RelayTask(TurnTask):
    """Fill a bucket, carry it, repeat, until the tank holds `goal` units."""

    def __init__(self, goal: int = 9, default_max_turns: int = 30) -> None:
        self.task_id = "toys/relay-v0"
        self.possible_agents = ("filler_0", "carrier_0")
        self.roles = ("filler", "carrier")
        self.default_max_turns = default_max_turns
        self.render_modes = ("ansi", "rgb_array")
        self.goal = goal
        self._key = as_key(0)
        self._time = self._bucket = self._tank = self._spilled = 0

    def observation_size(self, agent: str) -> int:
        return 3 if agent.startswith("filler") else 2

    def action_names(self, agent: str) -> tuple[str, ...]:
        return ("rest", "fill", "shake") if agent.startswith("filler") else ("rest", "carry")

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        self._key = episode_key(seed, episode)
        self._time = self._bucket = self._tank = self._spilled = 0

    def observe(self, agent: str) -> NDArray[np.float32]:
        values = [self._bucket / 3, self._tank / self.goal, min(self._spilled, 9) / 9]
        return np.array(values[: self.observation_size(agent)], np.float32)

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        if agent.startswith("filler"):
            return np.array([1, self._bucket < 3, self._bucket > 0], np.int8)
        return np.array([1, self._bucket > 0], np.int8)

    def act(self, agent: str, action: int) -> TurnResult:
        if not self.action_mask(agent)[action]:
            result = self.skip()
            result.info["illegal"] = True
            return result
        luck = int(hash4(self._key, self._time, STREAM_DOMAIN, 0) % np.uint64(2))
        self._time += 1
        reward = 0.0
        name = self.action_names(agent)[action]
        if name == "fill":
            self._bucket = min(3, self._bucket + 1 + luck)
        elif name == "shake":
            self._bucket -= 1
            self._spilled += 1
        elif name == "carry":
            reward = float(min(self._bucket, self.goal - self._tank))
            self._tank += int(reward)
            self._bucket = 0
        return TurnResult(reward, self._tank >= self.goal, {})

    def skip(self) -> TurnResult:
        self._time += 1
        return TurnResult(0.0, False, {})

    def snapshot(self) -> Snapshot:
        state = (int(self._key), self._time, self._bucket, self._tank, self._spilled)
        return Snapshot(self.task_id, 1, struct.pack(_FORMAT, *state))

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.check(self.task_id, 1, struct.calcsize(_FORMAT))
        state = struct.unpack(_FORMAT, snapshot.payload)
        self._key = as_key(state[0])
        self._time, self._bucket, self._tank, self._spilled = state[1:]

    def reseed(self, key: int) -> None:
        self._key = as_key(key)

    def expert_bid(self, agent: str) -> float:
        return 0.9 if agent.startswith("filler") == (self._bucket < 3) else 0.1

    def expert_action(self, agent: str) -> int:
        if agent.startswith("filler"):
            return 1 if self._bucket < 3 else 0
        return 1 if self._bucket > 0 else 0

    def metrics(self) -> dict[str, float]:
        return {"success": float(self._tank >= self.goal), "tank": float(self._tank)}

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode == "ansi":
            return f"bucket {self._bucket}/3, tank {self._tank}/{self.goal}"
        picture = np.full((24, 48, 3), 255, np.uint8)
        picture[24 - 8 * self._bucket :, :16] = (40, 90, 200)
        picture[24 - min(24, 24 * self._tank // self.goal) :, 24:] = (40, 90, 200)
        return picture
