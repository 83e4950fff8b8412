"""What a learner is: it plans what a step collects, and updates parameters from it.

A method is a coordination (who acts), a credit (what of the reward an actor gets) and a learner.
The loop collects episodes, credits them, plays branches if the learner wants some, and hands all of
it over; networks, losses and optimizers are the learner's affair.

To bring your own: subclass `Learner`, implement `update`, and `register` it under a name
(`TrainConfig.learner`). What it learns beside the agents (a critic) goes into `Agents.beside`, and
so into checkpoints; the state of its optimizer into `tensors` and `load`.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.agents import Agents
from mpt_train.config import TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.records import Batch, Pairs
from mpt_train.registry import Registry


@dataclass(frozen=True)
class Plan:
    """What a learner wants of the next step.

    Attributes:
        phase: what the step learns, for the log: "action", "bid" or "both".
        log_probs: record the log-probability of each action.
        branch_turns: at how many turns of each episode a counterfactual branch is tried.
    """

    phase: str = "both"
    log_probs: bool = False
    branch_turns: int = 0


@dataclass(frozen=True)
class Experience:
    """What a step has collected.

    Attributes:
        batch: episodes; T turns, N worlds.
        credit: of the actors, ``float64 (T, N)``.
        pairs: from counterfactual branches, if they were wanted.
    """

    batch: Batch
    credit: NDArray[np.float64]
    pairs: Pairs | None = None

    def of_worlds(self, worlds: NDArray[np.int64]) -> Experience:
        """The part of it that comes from some worlds; arrays are shared."""
        if len(worlds) == self.batch.active.shape[1]:
            return self
        return dataclasses.replace(
            self,
            batch=self.batch.only(worlds),
            pairs=None if self.pairs is None else self.pairs.of_worlds(worlds),
        )


class Learner(abc.ABC):
    """Learns from one step's experience after the other (see the top of this file).

    Builders get the configuration and the agents. Everything that a learner keeps between steps is
    in its tensors, or in parameters of `Agents`; so a resumed run goes on to the same numbers.
    """

    branches: bool = False
    """Whether it ever wants branches: the task's snapshots must promise exact futures then."""

    def plan(self, step: int) -> Plan:
        """What the step after ``step`` steps is to collect."""
        return Plan()

    @abc.abstractmethod
    def update(self, experience: Experience, plan: Plan, counter: FlopCounter) -> dict[str, Any]:
        """Change parameters; returns numbers for the log, such as losses.

        Args:
            experience: of this step; the parameters have not changed since it was collected.
            plan: what it was collected for.
            counter: operations of the run so far, to which those of the update are added.

        Raises:
            DivergedError: a number is not finite; say which. The loop adds the step.
        """

    def tensors(self) -> dict[str, Tensor]:
        """What it keeps besides the parameters of `Agents`, under names of its own."""
        return {}

    def load(self, tensors: Mapping[str, Tensor], path: Path) -> None:
        """Take back what `tensors` gave, from all tensors of the checkpoint in ``path``.

        Raises:
            CheckpointError: it does not fit.
        """


_REGISTRY: Registry[[TrainConfig, Agents], Learner] = Registry("learner")
register, names, build = _REGISTRY.register, _REGISTRY.names, _REGISTRY.build


def minibatches(worlds: int, count: int) -> list[NDArray[np.int64]]:
    """Worlds of a batch in at most ``count`` equal shares, one array for each update."""
    count = min(count, worlds)
    return [np.arange(i, worlds, count) for i in range(count)]


def mean_report(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean of each entry over the updates that report it; nested records are kept."""
    if len(reports) == 1:
        return dict(reports[0])
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for report in reports for name in report):
        values = [report[name] for report in reports if name in report]
        nested = isinstance(values[0], Mapping)
        merged[name] = mean_report(values) if nested else float(np.mean(values))
    return merged
