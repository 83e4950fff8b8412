"""`make`: an environment from an id; `as_env`: one from a task that is not registered.

Both take the same keywords. What a keyword means for the game is documented in `wrappers`; here is
how they combine, and what is said when they do not.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, overload

from mpt_envs.registry import Backend, EnvSpec, MissingBackendError, resolve, spec
from wrappers.auction import check_levels
from wrappers.bid_then_act import BidThenActEnv
from wrappers.dropout import check_probability
from wrappers.native import BatchTask
from wrappers.one_agent import OneAgentBatch, OneAgentTask
from wrappers.population import PopulationTask, copies_for
from wrappers.records import RecordBatch, RecordTask
from wrappers.task import TurnTask
from wrappers.vector import VectorGame
from wrappers.vector_lockstep import LockstepVectorGame
from wrappers.vector_native import NativeVectorGame

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

Api = Literal["aec", "parallel", "vector"]
Vectorization = Literal["native", "lockstep"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "api": ("aec", "parallel", "vector"),
    "observation": ("vector", "text", "image"),
    "action": ("discrete", "text"),
    "on_illegal": ("noop", "raise"),
}


@dataclass(frozen=True)
class _Game:
    """The game's keywords, checked: each value alone, and all of them together."""

    api: str = "aec"
    agents: int | None = None
    num_envs: int = 1
    observation: str = "vector"
    action: str = "discrete"
    homogeneous: bool = False
    bid_levels: str | Sequence[float] | None = None
    max_turns: int | None = None
    dropout: float = 0.0
    on_illegal: Literal["noop", "raise"] = "noop"
    render_mode: str | None = None
    one_agent: bool = False
    vectorization: str | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(_not_a_choice(name, value, choices))
        if self.vectorization not in (None, "native", "lockstep"):
            raise ValueError(
                _not_a_choice("vectorization", self.vectorization, ("native", "lockstep"))
            )
        for name in ("homogeneous", "one_agent"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name in ("agents", "num_envs", "max_turns"):
            value = getattr(self, name)
            if value is None and name != "num_envs":
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
                raise ValueError(f"{name} must be an int of at least 1, got {value!r}")
        check_levels(self.bid_levels)
        check_probability(self.dropout)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse combinations that mean nothing."""
        if self.one_agent and self.agents is not None:
            raise ValueError(
                "one_agent=True plays all roles with a single agent; agents= does not apply"
            )
        if self.api != "vector":
            if self.num_envs != 1:
                raise ValueError(
                    f'num_envs={self.num_envs} needs api="vector"; api={self.api!r} is one game'
                )
            if self.vectorization is not None:
                raise ValueError(f'vectorization={self.vectorization!r} needs api="vector"')
        else:
            for name, value, why in (
                ("observation", self.observation != "vector", "it returns arrays of all worlds"),
                ("action", self.action != "discrete", "it takes arrays of all worlds"),
                ("homogeneous", self.homogeneous, "it has an array per agent, nothing to pad"),
                ("on_illegal", self.on_illegal != "noop", "it counts them and goes on"),
                (
                    "render_mode",
                    self.render_mode is not None,
                    "restore a snapshot into an AEC game",
                ),
            ):
                if value:
                    raise ValueError(
                        f'api="vector" does not take {name}={getattr(self, name)!r}: {why}; '
                        f'use api="aec"'
                    )
        if self.homogeneous and (self.observation != "vector" or self.action != "discrete"):
            raise ValueError(
                "homogeneous=True pads vector observations and discrete actions; it does not go "
                f"with observation={self.observation!r}, action={self.action!r}"
            )


GAME_KEYWORDS: tuple[str, ...] = (*_Game.__dataclass_fields__, "backend")
"""The keywords of `make` that are not the task's own."""


@overload
def make(id: str, *, api: Literal["vector"], **kwargs: Any) -> VectorGame: ...
@overload
def make(id: str, *, api: Literal["parallel"], **kwargs: Any) -> ParallelEnv[str, Any, Any]: ...
@overload
def make(id: str, *, api: Literal["aec"] = "aec", **kwargs: Any) -> BidThenActEnv: ...
@overload
def make(id: str, *, api: str, **kwargs: Any) -> Any: ...
def make(
    id: str,
    *,
    api: str = "aec",
    agents: int | None = None,
    num_envs: int = 1,
    observation: str = "vector",
    action: str = "discrete",
    backend: str | None = None,
    homogeneous: bool = False,
    bid_levels: str | Sequence[float] | None = None,
    max_turns: int | None = None,
    dropout: float = 0.0,
    on_illegal: Literal["noop", "raise"] = "noop",
    render_mode: str | None = None,
    one_agent: bool = False,
    vectorization: Vectorization | None = None,
    **task_kwargs: Any,
) -> Any:
    """An environment of a registered task.

    Args:
        id: e.g. ``"crafting/iron-pickaxe-v0"``; ``print(mpt_envs.registry)`` lists all.
        api: "aec": a PettingZoo AEC game (`wrappers.bid_then_act.BidThenActEnv`); "parallel": a
            PettingZoo parallel view of it; "vector": many worlds at once
            (`wrappers.vector.VectorGame`), what a trainer wants.
        agents: number of agents, a multiple of the number of roles; None: one per role.
        num_envs: number of worlds of the vector game.
        observation: "vector": float32 features; "text": what a language model reads; "image": the
            "rgb_array" picture.
        action: "discrete": bid levels, then the role's actions; "text": strings.
        backend: None for the embedded simulator, or the name of another engine of the task.
        homogeneous: pad all agents' spaces to the same size, for libraries that ask for that
            (tianshou does; RLlib needs an RLModule of yours that takes the Dict as well).
        bid_levels: "tenths" (None), "crowded", or numbers from 0 up to at most 1.
        max_turns: turn budget; None takes the id's, else the task's.
        dropout: probability that an agent is absent in a turn.
        on_illegal: a masked action wastes the turn and is counted ("noop"), or raises ("raise").
        render_mode: None, "ansi" or "rgb_array".
        one_agent: one agent has the actions of all roles: the monolithic baseline's view.
        vectorization: "native" (the domain's compiled batch) or "lockstep" (one game after the
            other); None takes "native" where there is one.
        **task_kwargs: the task's own keywords, documented by its domain.

    Returns:
        `BidThenActEnv` (or a view of it that has its attributes), a `pettingzoo.ParallelEnv`, or a
        `VectorGame`.

    Raises:
        UnknownTaskError: no such id.
        TypeError: no such keyword, of the game or the task.
        ValueError: a value or a combination that means nothing.
        MissingBackendError: the task has no such backend, or it is not installed.
    """
    env_spec = spec(id)
    chosen, purpose, factory = _chosen(env_spec, backend)
    _check_keywords(task_kwargs, factory, env_spec.kwargs, id)
    fixed = {**env_spec.kwargs, **task_kwargs}
    game = _Game(
        api=api,
        agents=agents,
        num_envs=num_envs,
        observation=observation,
        action=action,
        homogeneous=homogeneous,
        bid_levels=bid_levels,
        max_turns=env_spec.max_turns if max_turns is None else max_turns,
        dropout=dropout,
        on_illegal=on_illegal,
        render_mode=render_mode,
        one_agent=one_agent,
        vectorization=vectorization,
    )

    def make_batch() -> BatchTask:
        batch_factory = resolve(chosen.batch, purpose, chosen.how_to_get)  # type: ignore[arg-type]
        batch: BatchTask = batch_factory(num_envs=num_envs, **fixed)
        return batch

    return _build(
        lambda: _task(factory, fixed, purpose), None if chosen.batch is None else make_batch, game
    )


def make_task(id: str, *, backend: str | None = None, **task_kwargs: Any) -> TurnTask:
    """The bare task of an id, without the market game around it.

    Args:
        id: as in `make`.
        backend: as in `make`.
        **task_kwargs: the task's own keywords.

    Raises:
        UnknownTaskError, TypeError, MissingBackendError: as `make`.
    """
    env_spec = spec(id)
    _, purpose, factory = _chosen(env_spec, backend)
    _check_keywords(task_kwargs, factory, env_spec.kwargs, id, with_game=False)
    return _task(factory, {**env_spec.kwargs, **task_kwargs}, purpose)


def as_env(
    task: TurnTask | Callable[[], TurnTask],
    batch: Callable[[int], BatchTask] | None = None,
    **game_kwargs: Any,
) -> Any:
    """The game around a task of your own, registered or not.

    Args:
        task: a task, which the game owns from now on (a vector game clones it), or a callable
            without arguments that returns a new one, e.g. its class.
        batch: returns a `BatchTask` of so many worlds, if the task has one.
        **game_kwargs: those of `make`, apart from `backend`.

    Raises:
        TypeError: no task, or no such keyword.
        ValueError: a value or a combination that means nothing.
    """
    unknown = [name for name in game_kwargs if name not in _Game.__dataclass_fields__]
    if unknown:
        raise TypeError(
            f"as_env() got an unexpected keyword argument {unknown[0]!r}."
            f"{_close(unknown[0], _Game.__dataclass_fields__)} Valid: "
            f"{', '.join(_Game.__dataclass_fields__)}"
        )
    game = _Game(**game_kwargs)
    if isinstance(task, TurnTask):
        given: list[TurnTask] = [task]

        def factory() -> TurnTask:
            # The first world plays the task itself; further ones play copies of it, made before
            # it is ever stepped.
            return given.pop() if given else task.clone()

        make_one: Callable[[], TurnTask] = factory
    elif callable(task):
        make_one = lambda: _task(task, {}, "as_env()")  # noqa: E731
    else:
        raise TypeError(f"expected a TurnTask or a callable that returns one, got {task!r}")
    return _build(make_one, None if batch is None else lambda: batch(game.num_envs), game)


def _build(
    make_task: Callable[[], TurnTask], make_batch: Callable[[], BatchTask] | None, game: _Game
) -> Any:
    """Put the game and its views around tasks."""
    if game.api == "vector":
        try:
            return _vector(make_task, make_batch, game)
        except MemoryError as error:
            raise MemoryError(
                f"num_envs={game.num_envs} worlds do not fit into memory ({error}); use fewer"
            ) from error
    env: Any = _aec(make_task(), game)
    if game.observation == "image":
        from wrappers.image import ImageView

        env = ImageView(env)
    if game.observation == "text" or game.action == "text":
        from wrappers.text import TextView

        env = TextView(
            env, text_observation=game.observation == "text", text_action=game.action == "text"
        )
    if game.homogeneous:
        from wrappers.padding import PaddedView

        env = PaddedView(env)
    if game.api == "parallel":
        from wrappers.parallel import ParallelView

        env = ParallelView(env)
    return env


def _aec(task: TurnTask, game: _Game) -> BidThenActEnv:
    """The AEC game around one task, with the population or the one-agent view applied."""
    if game.one_agent:
        task = OneAgentTask(task)
    elif game.agents is not None:
        copies = copies_for(task, game.agents)
        if copies > 1:
            task = PopulationTask(task, copies)
    return BidThenActEnv(
        task,
        bid_levels=game.bid_levels,
        max_turns=game.max_turns,
        dropout=game.dropout,
        on_illegal=game.on_illegal,
        render_mode=game.render_mode,
    )


def _vector(
    make_task: Callable[[], TurnTask], make_batch: Callable[[], BatchTask] | None, game: _Game
) -> VectorGame:
    """The vector game: the task's compiled batch, or its AEC games in lockstep."""
    if game.vectorization == "native" and make_batch is None:
        raise ValueError(
            'vectorization="native" needs a compiled batch, and the task has none; leave it out '
            'or use "lockstep"'
        )
    if make_batch is None or game.vectorization == "lockstep":
        return LockstepVectorGame(lambda: _aec(make_task(), game), game.num_envs)
    batch = make_batch()
    copies = 1
    if game.one_agent:
        batch = OneAgentBatch(batch)
    elif game.agents is not None:
        copies = _copies(batch, game.agents)
    return NativeVectorGame(
        batch,
        copies=copies,
        bid_levels=game.bid_levels,
        max_turns=game.max_turns,
        dropout=game.dropout,
    )


def _copies(batch: BatchTask, agents: int) -> int:
    roles = len(batch.roles)
    if agents % roles:
        raise ValueError(
            f"{batch.task_id} has {roles} roles, so the number of agents must be a multiple of "
            f"{roles}; got {agents}"
        )
    return agents // roles


def _chosen(env_spec: EnvSpec, backend: str | None) -> tuple[Backend, str, Callable[..., Any]]:
    """A task's backend of a name, what to call it in a message, and what makes one world of it."""
    chosen = env_spec.backend(backend)
    purpose = env_spec.id if backend is None else f"the backend {backend!r} of {env_spec.id}"
    if chosen.task is not None:
        return chosen, purpose, resolve(chosen.task, purpose, chosen.how_to_get)
    many: Callable[..., Any] = resolve(chosen.batch, purpose, chosen.how_to_get)  # type: ignore[arg-type]

    def one(**kwargs: Any) -> RecordTask:
        batch = many(num_envs=1, **kwargs)
        if not isinstance(batch, RecordBatch):
            raise TypeError(
                f"{purpose}: one world of a {type(batch).__name__} is no task, only of a "
                "RecordBatch; register it with task="
            )
        return RecordTask(batch)

    parameters = inspect.signature(many).parameters.values()
    own = [parameter for parameter in parameters if parameter.name != "num_envs"]
    one.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return chosen, purpose, one


def _task(factory: Callable[..., Any], kwargs: dict[str, Any], purpose: str) -> TurnTask:
    """Call a factory and check what it returned."""
    try:
        task = factory(**kwargs)
    except ImportError as error:
        # A backend that finds only now that its engine is not installed.
        raise MissingBackendError(f"{purpose}: {error}") from error
    if not isinstance(task, TurnTask):
        raise TypeError(f"{purpose}: {factory!r} must return a TurnTask, but returned {task!r}")
    return task


def task_keywords(factory: Callable[..., Any]) -> tuple[str, ...] | None:
    """Names of the keywords of a task's factory; None where it takes any (``**kwargs``)."""
    parameters = inspect.signature(factory).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def _check_keywords(
    given: dict[str, Any],
    factory: Callable[..., Any],
    fixed: Iterable[str],
    id: str,
    with_game: bool = True,
) -> None:
    """Raise TypeError for a keyword that nobody has, or that the id fixes."""
    names = task_keywords(factory)
    fixed = tuple(fixed)
    if names is None:
        return
    own = tuple(name for name in names if name not in fixed)
    for name in given:
        if name in own:
            continue
        if name in fixed:
            raise TypeError(f"the id {id} fixes {name!r}; choose another id, or make_task your own")
        valid = (*GAME_KEYWORDS, *own) if with_game else ("backend", *own)
        game_part = f" The game's: {', '.join(GAME_KEYWORDS)}." if with_game else ""
        raise TypeError(
            f"{'make' if with_game else 'make_task'}({id!r}) got an unexpected keyword argument "
            f"{name!r}.{_close(name, valid)}{game_part} The task's: {', '.join(own) or 'none'}."
        )


def _close(name: str, valid: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(valid), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""


def _not_a_choice(name: str, value: object, choices: Sequence[str]) -> str:
    close = _close(str(value), choices)
    return f"{name} must be {' or '.join(repr(c) for c in choices)}, got {value!r}.{close}"


__all__ = ["GAME_KEYWORDS", "MissingBackendError", "as_env", "make", "make_task", "task_keywords"]
