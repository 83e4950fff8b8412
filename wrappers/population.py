"""Population: a task with n copies of each of its roles, e.g. 3, 6, 9 or 12 agents.

Copies of a role see the same observation and have the same actions, but they are different agents:
each bids for itself and may have its own policy. Whether more agents of a kind help or only crowd
the market is a question for experiments, not for the domain.

The state is the base task's alone, so a snapshot of the base task fits any population of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wrappers.task import ParseError, Phase, TurnResult, TurnTask
from wrappers.task_wrapper import TaskWrapper


class PopulationTask(TaskWrapper):
    """A `TurnTask` with copies of each role: ``logger_0, logger_1, miner_0, miner_1, ...``.

    Args:
        task: the base task, with one agent per role; this object owns it from now on.
        copies: agents per role: one int for all roles, or a mapping from role to int.

    Attributes:
        base: the base task.
        copies: agents of each role, in the order of the base task's roles.

    Raises:
        ValueError: a count below 1, an unknown or missing role, or a base task that already has
            two agents of one role.
    """

    def __init__(self, task: TurnTask, copies: int | Mapping[str, int]) -> None:
        if len(set(task.roles)) != len(task.roles):
            raise ValueError(
                f"{task.task_id} already has several agents of one role: {task.possible_agents}; "
                "make a population of a task with one agent per role"
            )
        super().__init__(task)
        self.copies = _counts(task, copies)
        pairs = [
            (f"{role}_{i}", role, original)
            for role, original, count in zip(
                task.roles, task.possible_agents, self.copies, strict=True
            )
            for i in range(count)
        ]
        self.possible_agents = tuple(name for name, _, _ in pairs)
        self.roles = tuple(role for _, role, _ in pairs)
        self._originals = {name: original for name, _, original in pairs}

    def original(self, agent: str) -> str:
        """The agent of the base task that ``agent`` is a copy of."""
        return self._originals[agent]

    # -- spaces and dynamics: the base task's, with the copy's name replaced -------------------

    def observation_size(self, agent: str) -> int:
        return self.base.observation_size(self._originals[agent])

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self.base.action_names(self._originals[agent])

    def observe(self, agent: str) -> NDArray[np.float32]:
        return self.base.observe(self._originals[agent])

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        return self.base.action_mask(self._originals[agent])

    def act(self, agent: str, action: int) -> TurnResult:
        return self.base.act(self._originals[agent], action)

    def clone(self) -> PopulationTask:
        counts = dict(zip(self.base.roles, self.copies, strict=True))
        return PopulationTask(self.base.clone(), counts)

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        return self._rename(self.base.prompt(self._originals[agent], phase), agent)

    def profile(self, agent: str) -> str:
        return self._rename(self.base.profile(self._originals[agent]), agent)

    def parse(self, agent: str, text: str) -> int | ParseError:
        return self.base.parse(self._originals[agent], text)

    def expert_bid(self, agent: str) -> float:
        return self.base.expert_bid(self._originals[agent])

    def expert_action(self, agent: str) -> int:
        return self.base.expert_action(self._originals[agent])

    def _rename(self, text: str, agent: str) -> str:
        """The base task's text with the copy's own name where it addresses the original."""
        original = self._originals[agent]
        return text if agent == original else text.replace(original, agent)


def copies_for(task: TurnTask, agents: int) -> int:
    """Copies per role that give ``agents`` agents in all.

    Raises:
        ValueError: ``agents`` is not a positive multiple of the number of roles.
    """
    roles = len(task.roles)
    if isinstance(agents, bool) or agents < 1 or agents % roles:
        examples = ", ".join(str(roles * n) for n in range(1, 5))
        raise ValueError(
            f"{task.task_id} has {roles} roles, so the number of agents must be a multiple of "
            f"{roles} ({examples}, ...); got {agents!r}"
        )
    return agents // roles


def _counts(task: TurnTask, copies: int | Mapping[str, int]) -> tuple[int, ...]:
    """Agents per role, in the order of the task's roles."""
    if isinstance(copies, Mapping):
        if set(copies) != set(task.roles):
            raise ValueError(
                f"copies must name every role of {task.task_id}: expected "
                f"{sorted(task.roles)}, got {sorted(copies)}"
            )
        counts = tuple(copies[role] for role in task.roles)
    else:
        counts = (copies,) * len(task.roles)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"copies of a role must be an int of at least 1, got {count!r}")
    return counts
