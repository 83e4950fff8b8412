"""`TaskWrapper`: the base of tasks that show another task with other agents.

The state is the base task's alone, so a snapshot of the base task fits every wrapper of it and the
other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wrappers.task import Snapshot, TurnResult, TurnTask


class TaskWrapper(TurnTask):
    """A `TurnTask` that passes on to another one all that has nothing to do with who plays.

    A subclass says who the agents are (`possible_agents`, `roles`), what they observe and may do,
    how their actions reach the base task, and how it is cloned.

    Args:
        task: the base task; this object owns it from now on.

    Attributes:
        base: the base task.
    """

    def __init__(self, task: TurnTask) -> None:
        self.base = task
        self.task_id = task.task_id
        self.snapshot_version = task.snapshot_version
        self.snapshot_fidelity = task.snapshot_fidelity
        self.default_max_turns = task.default_max_turns
        self.render_modes = task.render_modes
        self.observation_low = task.observation_low
        self.observation_high = task.observation_high
        self.shared_observation = task.shared_observation
        self.coverage = task.coverage

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        self.base.reset(seed, episode, options)

    def skip(self) -> TurnResult:
        return self.base.skip()

    def snapshot(self) -> Snapshot:
        return self.base.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.base.restore(snapshot)

    def reseed(self, key: int) -> None:
        self.base.reseed(key)

    @property
    def has_expert(self) -> bool:
        return self.base.has_expert

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        return self.base.render(mode, overlay)

    def metrics(self) -> dict[str, float]:
        return self.base.metrics()

    def close(self) -> None:
        self.base.close()
