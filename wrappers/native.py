"""`BatchTask`: many worlds of one domain stepped by compiled rules. The batched `TurnTask`.

A domain that has its rules as compiled functions over flat records supplies a `BatchTask`, and
`wrappers.vector.NativeVectorGame` plays the market game on it. Agents are addressed by the index
of their *role* (population copies share a role), worlds by their row.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wrappers.compiled import kernel
from wrappers.errors import MissingCapabilityError
from wrappers.task import Coverage, Fidelity, Snapshot


def check_rows(count: int, **arrays: NDArray[Any]) -> None:
    """Refuse arrays without a row per world: compiled loops check no bounds.

    Raises:
        ValueError: names the array.
    """
    for name, array in arrays.items():
        if array.shape[0] != count:
            raise ValueError(f"{name} must have {count} rows, one per world, not {array.shape[0]}")


def check_roles(roles: NDArray[np.int64], count: int) -> None:
    """Refuse what is neither one of ``count`` roles nor -1 or -2, see `BatchTask.act`.

    Raises:
        ValueError: says what was given.
    """
    if roles.min() < -2 or roles.max() >= count:
        raise ValueError(f"roles must be -2 to {count - 1}, got {roles.tolist()}")


@kernel
def mask_rows(records, first, role, out):
    """Write the legal actions of a role from the bits of records.

    Args:
        records: int32 ``(N, ...)``.
        first: column of the first role; each has one after the other, bit a for action a.
        role: which.
        out: bool ``(N, actions)``.
    """
    for row in range(records.shape[0]):
        bits = records[row, first + role]
        for action in range(out.shape[1]):
            out[row, action] = (bits >> action & 1) == 1


class BatchTask(abc.ABC):
    """N worlds of one task. Every array argument and result has a row per world.

    Attributes:
        task_id, snapshot_fidelity, default_max_turns, coverage: as in `TurnTask`.
        num_envs: N.
        roles: the roles, one agent each; index in this tuple is the ``role`` of the methods.
        observation_sizes: length of the observation of each role.
        action_counts: number of actions of each role.
        action_names: their names, per role.
        shared_observation: whether all roles observe the same vector; then `observations` returns
            the same array for each of them.
        metric_names: columns of `metrics`.
    """

    task_id: str
    snapshot_fidelity: Fidelity = "exact"
    default_max_turns: int = 100
    num_envs: int
    roles: tuple[str, ...]
    observation_sizes: tuple[int, ...]
    action_counts: tuple[int, ...]
    action_names: tuple[tuple[str, ...], ...]
    shared_observation: bool = False
    metric_names: tuple[str, ...] = ()
    coverage: Coverage | None = None

    @abc.abstractmethod
    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        """Start world ``rows[i]`` with ``seeds[i]`` and ``episodes[i]`` (see TurnTask.reset)."""

    @abc.abstractmethod
    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        """Write the observations of all worlds.

        Args:
            out: one array per role, ``float32 (N, width)`` with width at least the role's
                observation size; columns beyond it are left alone. With `shared_observation`
                it has one entry that serves all roles.
        """

    @abc.abstractmethod
    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        """Write the legal actions of all worlds: one ``bool (N, action_counts[role])`` per role."""

    @abc.abstractmethod
    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        """Step every world in place.

        Args:
            roles: ``(N,)`` index of the acting role; -1: the turn is skipped; -2: leave the world
                alone (its outputs are set to 0 / False).
            actions: ``(N,)`` action of that role.
            rewards, terminated, illegal: ``(N,)`` outputs, overwritten. An action that the mask
                forbids does exactly what a skipped turn does and is flagged illegal.
        """

    @abc.abstractmethod
    def snapshot(self, row: int) -> Snapshot:
        """The same snapshot that a `TurnTask` of this id in this state would give."""

    @abc.abstractmethod
    def restore(self, row: int, snapshot: Snapshot) -> None:
        """Put a snapshot (from a `BatchTask` or a `TurnTask` of this id) into a row."""

    @abc.abstractmethod
    def reseed(self, row: int, key: int) -> None:
        """Draw a world's future random numbers from another key."""

    @abc.abstractmethod
    def metrics(self) -> NDArray[np.float64]:
        """``(N, len(metric_names))``: the metrics of `TurnTask.metrics` in that order."""

    @abc.abstractmethod
    def spawn(self, num_envs: int) -> BatchTask:
        """A new batch of the same configuration with another number of worlds."""

    @property
    def has_expert(self) -> bool:
        """Whether `expert` is implemented."""
        return type(self).expert is not BatchTask.expert

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        """Write the scripted expert's bid and action of each role: ``(N, len(roles))`` each."""
        raise MissingCapabilityError(f"{self.task_id} has no scripted expert")
