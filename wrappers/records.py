"""Tasks whose whole state is one flat record: the rules are written once, for one world or many.

A domain subclasses `RecordBatch`: facts as class attributes, and a handful of hooks that loop over
the rows of one array of records (compiled, where speed matters). Everything else follows from that:
checks of what comes in, snapshots, copies and pickles here; one world as a `TurnTask` by
`RecordTask`, which adds texts and pictures by the names of a package of views; many worlds for a
trainer by `wrappers.vector.NativeVectorGame`.
"""

from __future__ import annotations

import abc
import importlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wrappers.errors import SnapshotError
from wrappers.native import BatchTask, check_roles, check_rows, mask_rows
from wrappers.rng import as_key, episode_key
from wrappers.task import Phase, Snapshot, TurnResult, TurnTask

_ZERO: Final = np.zeros(1, np.int64)
_MOST_MASKS: Final = 4096  # that are kept


class RecordBatch(BatchTask, abc.ABC):
    """N worlds, a row of an array of records each; all roles observe the same vector.

    A subclass sets the attributes of `BatchTask` and those below, makes `records` in its
    ``__init__`` after calling this one, and implements the hooks at the end.

    Args:
        num_envs: N.
        arguments: keywords with which the subclass makes a batch of the same kind.

    Attributes:
        records: ``(N, ...)`` of any dtype; a row and `arguments` are all that decides a future.
        snapshot_version: raised whenever the meaning of a record changes.
        feature_names: name of each entry of an observation.
        observation_low, observation_high: bounds of every entry.
        mask_column: of records that are int32 or can be seen so: where the legal actions of the
            first role are, a bit each; those of the others follow. -1: `mask_rows` says them.
    """

    records: NDArray[Any]
    snapshot_version: int = 1
    feature_names: tuple[str, ...]
    observation_low: float = -1.0
    observation_high: float = 1.0
    mask_column: int = -1
    shared_observation = True

    def __init__(self, num_envs: int, **arguments: Any) -> None:
        given: Any = num_envs
        if isinstance(given, bool) or not isinstance(given, Integral) or given < 1:
            raise ValueError(f"num_envs must be at least 1, and a whole number, got {num_envs!r}")
        self.num_envs = int(num_envs)
        self.arguments = arguments

    def __init_subclass__(cls, **options: Any) -> None:
        """Derive the sizes that the names give."""
        super().__init_subclass__(**options)
        if "action_names" in cls.__dict__:
            cls.action_counts = tuple(len(names) for names in cls.action_names)
        if "feature_names" in cls.__dict__:
            cls.observation_sizes = (len(cls.feature_names),) * len(cls.roles)

    # -- the contract of `BatchTask` -----------------------------------------------------------

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        seeds = np.ascontiguousarray(seeds, dtype=np.int64)
        episodes = np.ascontiguousarray(episodes, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.num_envs):
            raise IndexError(f"rows must be 0 to {self.num_envs - 1}")
        if not rows.shape == seeds.shape == episodes.shape:
            raise ValueError("rows, seeds and episodes must have the same shape")
        self.begin_rows(rows, seeds, episodes)

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        check_rows(self.num_envs, observations=out[0])
        size = self.observation_sizes[0]
        if out[0].ndim != 2 or out[0].shape[1] < size:
            raise ValueError(f"observations need {size} columns, not the shape {out[0].shape}")
        self.observe_rows(out[0])

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        for role, masks in enumerate(out):
            if masks.shape != (self.num_envs, self.action_counts[role]):
                raise ValueError(
                    f"the masks of role {role} must have {self.num_envs} rows, one per world, and "
                    f"{self.action_counts[role]} columns, not the shape {masks.shape}"
                )
            self.mask_rows(role, masks)

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        check_rows(
            self.num_envs,
            roles=roles,
            actions=actions,
            rewards=rewards,
            terminated=terminated,
            illegal=illegal,
        )
        check_roles(roles, len(self.roles))
        self.act_rows(roles, actions, rewards, terminated, illegal)

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        if not self.has_expert:
            super().expert(bids, actions)
        check_rows(self.num_envs, bids=bids, actions=actions)
        if min(bids.shape[1], actions.shape[1]) < len(self.roles):
            raise ValueError(f"bids and actions need {len(self.roles)} columns, one per role")
        self.expert_rows(bids, actions)

    @property
    def has_expert(self) -> bool:
        return type(self).expert_rows is not RecordBatch.expert_rows

    def snapshot(self, row: int) -> Snapshot:
        payload = self.records[row].tobytes()
        return Snapshot(self.task_id, self.snapshot_version, payload, "exact").verify()

    def restore(self, row: int, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(
                f"expected a Snapshot of {self.task_id!r}, got {type(snapshot).__name__}; pass "
                "what snapshot() returned"
            )
        self.put_snapshot(row, snapshot)

    def put_snapshot(self, row: int, snapshot: Snapshot) -> None:
        """Put a snapshot into a row. Override where a payload is more than a record."""
        kept = self.records[row]
        snapshot.check(self.task_id, self.snapshot_version, kept.nbytes)
        record = np.frombuffer(snapshot.payload, self.records.dtype).reshape(kept.shape)
        self.check_origin(record)
        if not snapshot.verified:
            record = record.copy()  # aligned, and the check may write
            if not self.is_state(record):
                raise SnapshotError(
                    f"this snapshot holds no valid state of {self.task_id!r}: it was changed after "
                    "it was taken; take it again"
                )
            snapshot.verify()
        self.records[row] = record
        self.refresh(row)

    def reseed(self, row: int, key: int) -> None:
        self.set_key(self.records[row], as_key(key))

    def spawn(self, num_envs: int) -> Any:
        return type(self)(num_envs=num_envs, **self.arguments)

    def row_metrics(self, row: int) -> Sequence[float]:
        """Of one world, in the order of `metric_names`."""
        return self.metrics()[row].tolist()

    def first_mask(self, role: int) -> NDArray[np.int8]:
        """The legal actions of a role in world 0, by `mask_column`; not to be written into."""
        key = role, self._first_bits[role]
        mask = self._first_masks.get(key)
        if mask is None:
            mask = np.array([key[1] >> k & 1 for k in range(self.action_counts[role])], np.int8)
            if len(self._first_masks) >= _MOST_MASKS:
                self._first_masks.clear()
            self._first_masks[key] = mask
        return mask

    @cached_property
    def _first_bits(self) -> memoryview:
        # Reading one number so costs a third of what NumPy's indexing does.
        bits = self.records.view(np.int32)[0, self.mask_column :][: len(self.roles)]
        return memoryview(bits)  # type: ignore[arg-type]

    @cached_property
    def _first_masks(self) -> dict[tuple[int, int], NDArray[np.int8]]:
        return {}

    # -- copies ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        snapshots = [self.snapshot(row) for row in range(self.num_envs)]
        return {"num_envs": self.num_envs, "arguments": self.arguments, "snapshots": snapshots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(num_envs=state["num_envs"], **state["arguments"])  # type: ignore[misc]
        for row, snapshot in enumerate(state["snapshots"]):
            self.restore(row, snapshot)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = self.spawn(self.num_envs)
        for row in range(self.num_envs):
            twin.restore(row, self.snapshot(row))
        return twin

    # -- what a domain implements ------------------------------------------------------------

    @abc.abstractmethod
    def begin_rows(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        """Start the episode ``(seeds[i], episodes[i])`` in world ``rows[i]``.

        Its key is `wrappers.rng.episode_key`, which all its random draws are made from.
        """

    @abc.abstractmethod
    def observe_rows(self, out: NDArray[np.float32]) -> None:
        """Write the observation of every world; columns beyond its size are left alone."""

    def mask_rows(self, role: int, out: NDArray[np.bool_]) -> None:
        """Write the legal actions of one role in every world; here by `mask_column`."""
        if self.mask_column < 0:
            raise NotImplementedError(
                f"{type(self).__name__} has neither mask_column nor mask_rows"
            )
        mask_rows(self.records.view(np.int32), self.mask_column, role, out)

    @abc.abstractmethod
    def act_rows(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        """One turn of every world; see `BatchTask.act`."""

    @abc.abstractmethod
    def set_key(self, record: NDArray[Any], key: np.uint64) -> None:
        """Draw a record's future random numbers from another key."""

    def expert_rows(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        """Write the scripted expert's bids and actions; only where there is one."""

    def prompt(self, record: NDArray[Any], role: int, phase: Phase) -> str:
        """What a language model is told of a state; "": its legal actions only.

        A `RecordTask` with a package of views has its prompts there.
        """
        return ""

    def check_origin(self, record: NDArray[Any]) -> None:
        """Raise `SnapshotError` where a record was taken over other data than this batch's."""

    def is_state(self, record: NDArray[Any]) -> bool:
        """Whether a record that came from outside is a state that the rules may play on."""
        return True

    def refresh(self, row: int) -> None:
        """Make again what was derived from a record, after another one was put into the row."""


class PlainBatch(RecordBatch):
    """Worlds whose rules are plain functions of one world, called for one after the other.

    A subclass gives the attributes below and those of `RecordBatch` that it needs (`task_id`,
    `roles`, `action_names`, `feature_names`), and implements the abstract methods. A world is a
    record whose fields are read and written by name: ``world["logs"] += 1``.

    Attributes:
        world_type: the fields of a world; one of them is ``key``, uint64, the episode's random key.
    """

    world_type: np.dtype[Any]
    metric_names = ("success",)

    def __init__(self, num_envs: int, **arguments: Any) -> None:
        super().__init__(num_envs, **arguments)
        self.records = np.zeros(self.num_envs, self.world_type)

    def begin(self, world: Any) -> None:
        """Set up an episode: all fields are 0, but for the key."""

    @abc.abstractmethod
    def observation(self, world: Any) -> Sequence[float]:
        """A number for each of `feature_names`."""

    @abc.abstractmethod
    def legal(self, world: Any, role: int) -> Sequence[bool]:
        """For each action of a role whether it may be taken; never all False."""

    @abc.abstractmethod
    def play(self, world: Any, role: int, action: int) -> tuple[float, bool]:
        """A turn: a role takes a legal action, or role -1: nobody acts. Reward, and if it ends."""

    @abc.abstractmethod
    def measure(self, world: Any) -> Sequence[float]:
        """A number for each of `metric_names`."""

    def advise(self, world: Any) -> Sequence[tuple[float, int]]:
        """The scripted expert's bid and action of each role; only where there is one."""
        raise NotImplementedError

    # -- the hooks of `RecordBatch` ------------------------------------------------------------

    @property
    def has_expert(self) -> bool:
        return type(self).advise is not PlainBatch.advise

    def begin_rows(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        self.records[rows] = np.zeros((), self.world_type)
        for row, seed, episode in zip(rows, seeds.tolist(), episodes.tolist(), strict=True):
            self.records[row]["key"] = episode_key(seed, episode)
            self.begin(self.records[row])

    def observe_rows(self, out: NDArray[np.float32]) -> None:
        for world, row in zip(self.records, out, strict=True):
            row[: len(self.feature_names)] = self.observation(world)

    def mask_rows(self, role: int, out: NDArray[np.bool_]) -> None:
        for world, row in zip(self.records, out, strict=True):
            row[:] = self.legal(world, role)

    def act_rows(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        for row, (role, action) in enumerate(zip(roles.tolist(), actions.tolist(), strict=True)):
            rewards[row], terminated[row], illegal[row] = 0.0, False, False
            if role == -2:
                continue
            world = self.records[row]
            if role >= 0:
                count = self.action_counts[role]
                illegal[row] = not (0 <= action < count and self.legal(world, role)[action])
            who = -1 if illegal[row] else role
            rewards[row], terminated[row] = self.play(world, who, action)

    def expert_rows(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        for row, world in enumerate(self.records):
            for role, advice in enumerate(self.advise(world)):
                bids[row, role], actions[row, role] = advice

    def set_key(self, record: Any, key: np.uint64) -> None:
        record["key"] = key

    def metrics(self) -> NDArray[np.float64]:
        return np.array([self.measure(world) for world in self.records], np.float64)


class RecordTask(TurnTask):
    """One world of a `RecordBatch` as a turn task.

    Its texts and pictures are functions of a package's modules: ``text.prompt``, ``text.narrate``,
    ``ansi.ansi`` and ``render.rgb_array``, imported when they are first needed; without a package a
    task has the plain texts of `TurnTask` and no pictures.

    Args:
        batch: of one row. It is the task's own.

    Attributes:
        batch: the same.
        views: name of the package, e.g. ``"mpt_envs.crafting.views"``.
    """

    views: ClassVar[str] = ""
    feature_names: tuple[str, ...]

    def __init__(self, batch: RecordBatch) -> None:
        if batch.num_envs != 1:
            raise ValueError(f"a task plays one world, not a batch of {batch.num_envs}")
        self.batch = batch
        self.task_id = batch.task_id
        if "snapshot_version" not in vars(type(self)):  # an engine's snapshots are others
            self.snapshot_version = batch.snapshot_version
        self.roles = batch.roles
        self.possible_agents = tuple(f"{role}_0" for role in batch.roles)
        self.default_max_turns = batch.default_max_turns
        self.observation_low = batch.observation_low
        self.observation_high = batch.observation_high
        self.shared_observation = batch.shared_observation
        self.coverage = batch.coverage
        self.feature_names = batch.feature_names
        if not self.views:
            self.render_modes = ()
        self._role = {name: role for role, name in enumerate(self.possible_agents)}
        self._acting, self._action = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._reward = np.zeros(1)
        self._terminated, self._illegal = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
        # What was worked out for the present state, and whether it was.
        self._observation = np.zeros(batch.observation_sizes[0], np.float32)
        self._masks = [np.zeros((1, count), np.bool_) for count in batch.action_counts]
        self._advice: tuple[list[float], list[int]] | None = None
        # Not `reset`: a subclass may start an engine in it.
        batch.reset(_ZERO, _ZERO, _ZERO)
        self.changed()

    @property
    def record(self) -> NDArray[Any]:
        """The state; see the domain's ``layout``."""
        return self.batch.records[0]

    @property
    def scene(self) -> tuple[Any, ...]:
        """What the functions of `views` take first."""
        return (self.record,)

    def changed(self) -> None:
        """Forget what was worked out for the state before. Whoever writes the record calls it."""
        self._observed = False
        self._masked = 0  # a bit for each role
        self._advice = None

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return self.batch.observation_sizes[self._role[agent]]

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self.batch.action_names[self._role[agent]]

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode. There are no options."""
        words = np.array([as_key(seed), as_key(episode)]).view(np.int64)
        self.batch.reset(_ZERO, words[:1], words[1:])
        self.changed()

    def observe(self, agent: str) -> NDArray[np.float32]:
        if not self._observed:
            self.batch.observe_rows(self._observation[None])
            self._observed = True
        return self._observation.copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        role = self._role[agent]
        if self.batch.mask_column >= 0:
            return self.batch.first_mask(role).copy()
        if not self._masked >> role & 1:
            self.batch.mask_rows(role, self._masks[role])
            self._masked |= 1 << role
        return self._masks[role][0].astype(np.int8)

    def act(self, agent: str, action: int) -> TurnResult:
        role = self._role[agent]
        action = int(action)
        return self.turn(role, action if -1 < action < self.batch.action_counts[role] else -1)

    def skip(self) -> TurnResult:
        return self.turn(-1, -1)

    def turn(self, role: int, action: int) -> TurnResult:
        """One turn of the world; role -1 skips it."""
        self._acting[0], self._action[0] = role, action
        self.batch.act_rows(
            self._acting, self._action, self._reward, self._terminated, self._illegal
        )
        self.changed()
        info: dict[str, Any] = {"illegal": True} if self._illegal[0] else {}
        return TurnResult(self._reward.item(), self._terminated.item(), info)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return self.batch.snapshot(0)

    def restore(self, snapshot: Snapshot) -> None:
        self.batch.restore(0, snapshot)
        self.changed()

    def reseed(self, key: int) -> None:
        self.batch.reseed(0, key)

    # -- optional parts ----------------------------------------------------------------------

    def _view(self, module: str) -> Any:
        return importlib.import_module(f"{self.views}.{module}")

    def prompt(self, agent: str, phase: Phase) -> str:
        if not self.views:
            told = self.batch.prompt(self.record, self._role[agent], phase)
            return told or super().prompt(agent, phase)
        text: str = self._view("text").prompt(*self.scene, self._role[agent], phase)
        return text

    def narrate(self) -> list[str]:
        """What happened in the last turn, in a few words each; for logs and playthroughs."""
        lines: list[str] = self._view("text").narrate(*self.scene) if self.views else []
        return lines

    @property
    def has_expert(self) -> bool:
        return self.batch.has_expert

    def expert_bid(self, agent: str) -> float:
        return self._expert()[0][self._role[agent]]

    def expert_action(self, agent: str) -> int:
        return self._expert()[1][self._role[agent]]

    def _expert(self) -> tuple[list[float], list[int]]:
        if not self.has_expert:
            super().expert_action("")
        if self._advice is None:
            bids = np.empty((1, len(self.roles)))
            actions = np.empty((1, len(self.roles)), np.int64)
            self.batch.expert_rows(bids, actions)
            self._advice = bids[0].tolist(), actions[0].tolist()
        return self._advice

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode not in self.render_modes:
            raise ValueError(f"render mode must be one of {self.render_modes}, got {mode!r}")
        module, function = ("ansi", "ansi") if mode == "ansi" else ("render", "rgb_array")
        return getattr(self._view(module), function)(*self.scene, overlay)

    def metrics(self) -> dict[str, float]:
        return dict(zip(self.batch.metric_names, self.batch.row_metrics(0), strict=True))
