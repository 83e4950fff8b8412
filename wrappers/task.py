"""The contract of a domain: `TurnTask`, and the small values that cross it.

A turn task is a problem that several roles solve together with one decision at a time. It knows
nothing about bids, auctions or learning: in each turn it is either told that one agent acts
(`TurnTask.act`) or that nobody does (`TurnTask.skip`). `wrappers.bid_then_act.BidThenActEnv` makes
a PettingZoo game of it, `wrappers.vector` steps many of them together.
"""

from __future__ import annotations

import abc
import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.errors import MissingCapabilityError, SnapshotError

Phase = Literal["bid", "act"]
Fidelity = Literal["exact", "approximate", "replay"]


class TurnResult(NamedTuple):
    """What one turn did.

    Attributes:
        reward: the team's reward of the turn.
        terminated: whether the task has ended (solved, failed or out of its own resources).
        info: facts for logs; never needed to play. An illegal action sets ``info["illegal"]``.
    """

    reward: float
    terminated: bool
    info: dict[str, Any]


class Coverage(NamedTuple):
    """How much of a data set a task plays.

    Attributes:
        used: its episodes that can come up.
        total: all that it was asked for, with those that cannot be played.
    """

    used: int
    total: int


class ParseError(NamedTuple):
    """Why a text could not be read as an action. A value, not an exception.

    Attributes:
        kind: machine-readable reason, e.g. ``"empty"``, ``"unknown_action"``, ``"illegal"``,
            ``"no_bid"``, ``"bid_out_of_range"``, ``"too_long"``.
        message: what to answer the agent, in one sentence.
        text: the start of the text, at most 200 characters.
    """

    kind: str
    message: str
    text: str


class Snapshot:
    """An immutable, hashable, picklable copy of everything that influences a task's future.

    Attributes:
        task_id: id of the task it was taken from.
        version: layout version of the payload; a task refuses other versions.
        fidelity: whether restoring it gives ``"exact"`` futures, ``"approximate"`` ones, or a
            ``"replay"`` of the episode's actions (exact if the backend is deterministic).
        payload: the state as bytes.
        verified: whether the payload is known to be a valid state of the task (see `verify`).
    """

    __slots__ = ("_digest", "_verified", "fidelity", "payload", "task_id", "version")

    def __init__(
        self, task_id: str, version: int, payload: bytes, fidelity: Fidelity = "exact"
    ) -> None:
        object.__setattr__(self, "task_id", task_id)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "payload", payload)
        object.__setattr__(self, "fidelity", fidelity)
        object.__setattr__(self, "_digest", None)
        object.__setattr__(self, "_verified", False)

    task_id: str
    version: int
    payload: bytes
    fidelity: Fidelity
    _digest: str | None
    _verified: bool

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a snapshot is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a snapshot is immutable; cannot delete {name!r}")

    @property
    def digest(self) -> str:
        """BLAKE2b-128 of task id, version and payload, as 32 hexadecimal digits (cached)."""
        if self._digest is None:
            hasher = hashlib.blake2b(self.payload, digest_size=16)
            hasher.update(f"|{self.task_id}|{self.version}".encode())
            object.__setattr__(self, "_digest", hasher.hexdigest())
        assert self._digest is not None
        return self._digest

    @property
    def verified(self) -> bool:
        """Whether `verify` was called; never true of a snapshot that was unpickled or copied."""
        return self._verified

    def verify(self) -> Snapshot:
        """Remember that the payload is a valid state; returns the snapshot itself.

        For tasks whose check of a payload is not free: they call this on what they took themselves
        and on what they have checked, and need not check it (again).
        """
        object.__setattr__(self, "_verified", True)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        return (
            self.task_id == other.task_id
            and self.version == other.version
            and self.payload == other.payload
        )

    def __hash__(self) -> int:
        return hash((self.task_id, self.version, self.payload))

    def __repr__(self) -> str:
        return (
            f"Snapshot({self.task_id!r}, version={self.version}, {len(self.payload)} bytes, "
            f"{self.fidelity}, digest={self.digest})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.task_id, self.version, self.payload, self.fidelity)

    def check(self, task_id: str, version: int, size: int | None = None) -> None:
        """Raise `SnapshotError` unless it fits a task of this id, version and payload size."""
        if self.task_id != task_id:
            raise SnapshotError(
                f"this snapshot was taken from {self.task_id!r} and cannot be restored into "
                f"{task_id!r}; restore it into an environment made by the same make(), with "
                "the same id and keywords"
            )
        if self.version != version:
            raise SnapshotError(
                f"this snapshot of {task_id!r} has layout version {self.version}, but this "
                f"release reads version {version}; take it again with the same release"
            )
        if not isinstance(self.payload, bytes):
            raise SnapshotError(
                f"the payload of this snapshot of {task_id!r} must be bytes, not "
                f"{type(self.payload).__name__}; take it again"
            )
        if size is not None and len(self.payload) != size:
            raise SnapshotError(
                f"this snapshot of {task_id!r} holds {len(self.payload)} bytes instead of {size}: "
                "it is truncated or was changed; take it again"
            )


class TurnTask(abc.ABC):
    """A task that several roles solve together, one decision at a time.

    Attributes (set by the subclass's ``__init__``, constant afterwards):
        task_id: e.g. ``"crafting/iron-pickaxe-v0"``.
        snapshot_version: layout version written into snapshots.
        snapshot_fidelity: what a restored snapshot promises.
        possible_agents: agent names ``role_i``, e.g. ``("logger_0", "miner_0", "smith_0")``.
        roles: role of each possible agent, in the same order.
        default_max_turns: turn budget that the game uses unless told otherwise.
        render_modes: the modes that `render` accepts.
        observation_low, observation_high: bounds of every entry of every observation.
        shared_observation: whether all agents always observe the same vector.
        coverage: of a task over a data set, how much of it is played; results tell it. None: there
            is no data set, or nothing is known to be left out.
    """

    task_id: str
    snapshot_version: int = 1
    snapshot_fidelity: Fidelity = "exact"
    possible_agents: tuple[str, ...]
    roles: tuple[str, ...]
    default_max_turns: int = 100
    render_modes: tuple[str, ...] = ("ansi", "rgb_array")
    observation_low: float = -float("inf")
    observation_high: float = float("inf")
    shared_observation: bool = False
    coverage: Coverage | None = None

    # -- spaces ------------------------------------------------------------------------------

    @abc.abstractmethod
    def observation_size(self, agent: str) -> int:
        """Length of the agent's observation vector."""

    @abc.abstractmethod
    def action_names(self, agent: str) -> tuple[str, ...]:
        """Name of each of the agent's actions; its length is the size of the action space."""

    # -- dynamics ----------------------------------------------------------------------------

    @abc.abstractmethod
    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Start the ``episode``-th episode of ``seed``; both together fix everything.

        Args:
            seed: any int. Domains draw all randomness from ``rng.episode_key(seed, episode)``.
            episode: counts the resets since the seed was given.
            options: domain-specific, documented there. Keys that the task does not know are
                ignored, since PettingZoo's own ``api_test`` passes an arbitrary one.
        """

    @abc.abstractmethod
    def observe(self, agent: str) -> NDArray[np.float32]:
        """The agent's observation: a fresh ``float32 (observation_size,)`` array.

        Legal for every possible agent at any time after a reset, also after the end.
        """

    @abc.abstractmethod
    def action_mask(self, agent: str) -> NDArray[np.int8]:
        """Which actions are legal now: a fresh ``int8 (len(action_names),)``, never all zero."""

    @abc.abstractmethod
    def act(self, agent: str, action: int) -> TurnResult:
        """The agent takes one decision.

        An action that the mask forbids does exactly what `skip` does and sets
        ``info["illegal"] = True``. (The game checks the mask first: under ``on_illegal="noop"`` it
        calls `skip` itself, under ``"raise"`` it raises.)
        """

    @abc.abstractmethod
    def skip(self) -> TurnResult:
        """Nobody acts in this turn; time passes as the task defines it."""

    # -- state -------------------------------------------------------------------------------

    @abc.abstractmethod
    def snapshot(self) -> Snapshot:
        """Everything that influences the future, the random key included."""

    @abc.abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same task, from this or any other process.

        Raises:
            SnapshotError: it is corrupt or belongs to another task or version. The state of the
                task is then unchanged.
        """

    def reseed(self, key: int) -> None:
        """Draw all future random numbers from another key; the state stays as it is.

        Raises:
            MissingCapabilityError: the task cannot do that.
        """
        raise MissingCapabilityError(f"{self.task_id} cannot change its random key in an episode")

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        """What a language model that plays the agent is shown.

        The default names the legal actions only, so that any task can be played as text.
        """
        legal = self.legal_action_names(agent)
        return f"You are {agent}. Legal actions: {', '.join(legal)}."

    def profile(self, agent: str) -> str:
        """The system message of a language model that plays the agent: its role, in prose."""
        role = self.roles[self.possible_agents.index(agent)]
        return f"You are {agent}, the {role} of a team that solves {self.task_id}."

    def parse(self, agent: str, text: str) -> int | ParseError:
        """Read an action from text: an action's name, tolerant of case and separators."""
        wanted = "_".join(text.strip().lower().replace("-", " ").replace("_", " ").split())
        if not wanted:
            return ParseError("empty", "Answer with the name of one legal action.", text[:200])
        names = self.action_names(agent)
        for index, name in enumerate(names):
            if name.lower() == wanted:
                return index
        message = f"Unknown action. Legal actions: {', '.join(self.legal_action_names(agent))}."
        return ParseError("unknown_action", message, text[:200])

    def legal_action_names(self, agent: str) -> list[str]:
        """Names of the actions that the agent's mask allows now."""
        names = self.action_names(agent)
        return [names[i] for i in np.flatnonzero(self.action_mask(agent))]

    def expert_bid(self, agent: str) -> float:
        """How much a scripted expert would bid for the agent now, in [0, 1]."""
        raise MissingCapabilityError(
            f"{self.task_id} has no scripted expert; train with --cold-start.episodes 0, or "
            "implement expert_bid and expert_action in your task"
        )

    def expert_action(self, agent: str) -> int:
        """What a scripted expert of the agent's role would do if it were to act now."""
        raise MissingCapabilityError(
            f"{self.task_id} has no scripted expert; train with --cold-start.episodes 0, or "
            "implement expert_bid and expert_action in your task"
        )

    @property
    def has_expert(self) -> bool:
        """Whether `expert_bid` and `expert_action` are implemented."""
        return type(self).expert_action is not TurnTask.expert_action

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        """A picture of the state: ``str`` for "ansi", ``uint8 (H, W, 3)`` for "rgb_array".

        Args:
            mode: one of `render_modes`.
            overlay: facts of the game to draw beside the state: ``turn``, ``max_turns``,
                ``bids`` (agent -> bid of the last auction), ``winner``, ``action`` (name).
        """
        raise MissingCapabilityError(f"{self.task_id} cannot draw itself as {mode!r}")

    def metrics(self) -> dict[str, float]:
        """What the field reports of an episode, at least ``success``; valid at any time."""
        return {}

    def clone(self) -> TurnTask:
        """An independent task in the same state. Override where `copy.deepcopy` does not do."""
        return copy.deepcopy(self)

    def close(self) -> None:
        """Release what the task holds outside of this process; may be called twice."""


def agent_roles(agents: Sequence[str]) -> tuple[str, ...]:
    """Roles from names of the form ``role_i``."""
    return tuple(name.rsplit("_", 1)[0] for name in agents)
