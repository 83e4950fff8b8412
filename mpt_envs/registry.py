"""The registry: which tasks there are by name, and where to find them.

A task is registered under an id ``domain/task-vN`` with the entry point of a function that makes
it, as a string, so that nothing is imported before it is used. Other projects add tasks by calling
`register` from an entry point of the group ``mpt_envs.plugins``; these are read when a lookup
misses and when the registry is listed.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from wrappers.errors import MarketError
from wrappers.user_module import import_user_module

PLUGIN_GROUP = "mpt_envs.plugins"
"""Entry-point group of other projects; an entry point is a module, or a function to call."""

EMBEDDED = "embedded"
"""Name of the backend that a task has without asking for one."""

_ID = re.compile(
    r"(?P<domain>[a-z0-9]+(?:[-_][a-z0-9]+)*)/(?P<name>[a-z0-9]+(?:[-_][a-z0-9]+)*)"
    r"-v(?P<version>0|[1-9][0-9]*)"
)
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class UnknownTaskError(MarketError, KeyError):
    """No task is registered under this id; the message lists close matches."""

    def __str__(self) -> str:
        # KeyError would show the message's repr.
        return str(self.args[0]) if self.args else ""


class MissingBackendError(MarketError, ImportError):
    """A task has no such backend, or the backend's libraries are not installed."""


@dataclass(frozen=True)
class Backend:
    """Another engine that plays a task.

    Attributes:
        task: makes the `TurnTask`; a ``"module:attribute"`` string or a callable. None: one world
            of the batch, which is a `RecordBatch`.
        batch: makes a `BatchTask` (first argument: number of worlds), or None if it has none.
        how_to_get: what to install or start, one sentence, for whoever lacks it.
    """

    task: str | Callable[..., Any] | None
    batch: str | Callable[..., Any] | None = None
    how_to_get: str = ""


@dataclass(frozen=True)
class EnvSpec:
    """What is registered under an id.

    Attributes:
        id: ``domain/task-vN``.
        task: makes the `TurnTask`; a ``"module:attribute"`` string or a callable. None: one world
            of the batch.
        batch: makes a `BatchTask` of ``num_envs`` worlds, or None: then worlds run in lockstep.
        kwargs: keyword arguments that the id fixes.
        max_turns: turn budget; None leaves it to the task.
        backends: other engines by name.
        description: one sentence.
        needs: what only the user has and the task cannot be made without, a few words (the files of
            a data set); empty: nothing.
    """

    id: str
    task: str | Callable[..., Any] | None
    batch: str | Callable[..., Any] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_turns: int | None = None
    backends: Mapping[str, Backend] = field(default_factory=dict)
    description: str = ""
    needs: str = ""

    @property
    def domain(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/")[0]

    @property
    def name(self) -> str:
        """The part between slash and version."""
        return self.id.split("/")[1].rpartition("-v")[0]

    @property
    def version(self) -> int:
        """The number after ``-v``."""
        return int(self.id.rpartition("-v")[2])

    def backend(self, name: str | None = None) -> Backend:
        """The task's backend of this name; None means the embedded one.

        Raises:
            MissingBackendError: the task has no such backend.
        """
        if name is None or name == EMBEDDED:
            return Backend(self.task, self.batch)
        if name not in self.backends:
            others = ", ".join(repr(n) for n in (EMBEDDED, *self.backends))
            raise MissingBackendError(
                f"{self.id} has no backend {name!r}; it has: {others} (backend=None is "
                f"{EMBEDDED!r})"
            )
        return self.backends[name]


_specs: dict[str, EnvSpec] = {}
_read_plugins: set[tuple[str, str]] = set()
_failed_plugins: dict[str, str] = {}


class _Registry(Mapping[str, EnvSpec]):
    """Read-only mapping from id to `EnvSpec`; see `register` for adding to it."""

    def __getitem__(self, id: str) -> EnvSpec:
        return spec(id)

    def __contains__(self, id: object) -> bool:
        if id in _specs:
            return True
        _load_plugins()
        return id in _specs

    def __iter__(self) -> Iterator[str]:
        _load_plugins()
        return iter(sorted(_specs))

    def __len__(self) -> int:
        _load_plugins()
        return len(_specs)

    def __repr__(self) -> str:
        return "\n".join(f"{s.id}: {s.description}" for s in self.values())


registry: Mapping[str, EnvSpec] = _Registry()
"""Everything that is registered: ``print(mpt_envs.registry)`` lists it."""


def register(
    id: str,
    task: str | Callable[..., Any] | None = None,
    batch: str | Callable[..., Any] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    max_turns: int | None = None,
    backends: Mapping[str, Backend] | None = None,
    description: str = "",
    needs: str = "",
    override: bool = False,
) -> EnvSpec:
    """Make a task known to `make` under an id.

    Args:
        id: ``domain/task-vN``: lower-case letters, digits, ``-`` and ``_``. Raise N whenever the
            task changes so that old results no longer compare.
        task: ``"module:attribute"`` of a callable that returns a `wrappers.task.TurnTask`, imported
            on first use; or the callable itself. None: one world of the batch, which is then a
            `wrappers.records.RecordBatch`.
        batch: the same for a `wrappers.native.BatchTask`, called with ``num_envs=N`` besides; None
            if the task has no compiled batch.
        kwargs: keyword arguments that this id fixes.
        max_turns: turn budget; None leaves it to the task.
        backends: other engines for the same task, by name.
        description: one sentence.
        needs: what only the user has and the task cannot be made without, a few words.
        override: replace an earlier registration of the id.

    Raises:
        ValueError: the id or an entry point is malformed, or the id is taken by another task.
    """
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ValueError(
            f"an id looks like 'domain/task-v0' (lower-case letters, digits, '-' and '_', then a "
            f"version), got {id!r}"
        )
    backends = dict(backends or {})
    if EMBEDDED in backends:
        raise ValueError(f"{id}: the name {EMBEDDED!r} is the task's own; give it as `task=`")
    engines = (Backend(task, batch), *backends.values())
    for engine in engines:
        if engine.task is None and engine.batch is None:
            raise ValueError(
                f"{id}: give task= as 'module:attribute' or a callable, or batch= of a RecordBatch"
            )
    for point in (p for engine in engines for p in (engine.task, engine.batch) if p is not None):
        if isinstance(point, str):
            if not _ENTRY_POINT.fullmatch(point):
                raise ValueError(
                    f"{id}: an entry point looks like 'module:attribute', got {point!r}"
                )
        elif not callable(point):
            raise ValueError(
                f"{id}: expected a 'module:attribute' string or a callable, got {point!r}"
            )
    if max_turns is not None and (isinstance(max_turns, bool) or max_turns < 1):
        raise ValueError(f"{id}: max_turns must be at least 1, got {max_turns!r}")
    new = EnvSpec(
        id,
        task,
        batch,
        MappingProxyType(dict(kwargs or {})),
        max_turns,
        MappingProxyType(backends),
        description,
        needs,
    )
    old = _specs.get(id)
    if old is not None and old != new and not override:
        raise ValueError(
            f"{id} is already registered ({old.task or old.batch!r}); raise the version of the id, "
            "or pass override=True to replace it"
        )
    _specs[id] = new
    return new


def spec(id: str) -> EnvSpec:
    """What is registered under an id.

    Args:
        id: ``domain/task-vN``; or ``module:domain/task-vN``, which imports the module first, so
            that a module of your own can register its tasks (as in Gymnasium).

    Raises:
        UnknownTaskError: nothing is; the message lists close matches and other versions.
    """
    if not isinstance(id, str):
        raise UnknownTaskError(_explain_unknown(id))
    if ":" in id:
        module, _, rest = id.partition(":")
        import_user_module(module, f"the task {rest!r}", UnknownTaskError)
        return spec(rest)
    if id not in _specs:
        _load_plugins()
    if id not in _specs:
        raise UnknownTaskError(_explain_unknown(id))
    return _specs[id]


def resolve(point: str | Callable[..., Any], purpose: str, how_to_get: str = "") -> Any:
    """The callable behind an entry point.

    Args:
        point: ``"module:attribute"``, or the callable itself.
        purpose: what it is for, for the message.
        how_to_get: what to install if its import fails.

    Raises:
        MissingBackendError: it cannot be imported; the message ends with ``how_to_get``.
    """
    if not isinstance(point, str):
        return point
    module_name, _, attributes = point.partition(":")
    hint = f" {how_to_get}" if how_to_get else ""
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise MissingBackendError(f"{purpose} needs {point!r}: {error}.{hint}") from error
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            raise MissingBackendError(f"{purpose} needs {point!r}: no such attribute.{hint}")
        found = getattr(found, attribute)
    return found


def _load_plugins() -> None:
    """Load the entry points of `PLUGIN_GROUP` that were not read before.

    One that fails is reported once as a warning and named in every later `UnknownTaskError`, and
    does not keep the others from being read.
    """
    for point in importlib.metadata.entry_points(group=PLUGIN_GROUP):
        key = (point.name, point.value)
        if key in _read_plugins:
            continue
        _read_plugins.add(key)
        try:
            found = point.load()
            if callable(found):
                found()
        except Exception as error:
            _failed_plugins[f"{point.name} = {point.value}"] = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"the plugin {point.name!r} ({point.value}) of the group {PLUGIN_GROUP!r} could "
                f"not be loaded, its tasks are missing: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=3,
            )


def _explain_unknown(id: object) -> str:
    """The message for an unknown id: versions, close matches, broken plugins, how to list."""
    parts = [f"no task is registered as {id!r}."]
    text = str(id).lower()
    stem = re.sub(r"-v\d*$", "", text)
    versions = sorted(s.id for s in _specs.values() if s.id.rpartition("-v")[0] == stem)
    if versions:
        parts.append(f"It exists as: {', '.join(versions)}.")
    else:
        # Compare whole ids, and task names alone for ids without or with a wrong domain.
        close = difflib.get_close_matches(text, _specs, n=3, cutoff=0.6)
        names = {s.name: s.id for s in _specs.values()}
        close += [
            names[name]
            for name in difflib.get_close_matches(stem.split("/")[-1], names, n=3, cutoff=0.6)
        ]
        if close:
            parts.append(f"Did you mean: {', '.join(dict.fromkeys(close))}?")
    for plugin, why in _failed_plugins.items():
        parts.append(f"The plugin {plugin} could not be loaded ({why}).")
    parts.append(
        f"`mpt tasks` on the command line, or print(mpt_envs.registry), lists all {len(_specs)} "
        "tasks."
    )
    return " ".join(parts)
