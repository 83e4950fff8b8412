"""How the whole state of a Gymnasium environment is read and written: state adapters.

Gymnasium has no standard for it. An adapter knows it for a family of environments:

* `OwnStateApi`: the environment offers ``get_state()`` and ``set_state(state)``, or
  ``clone_state()`` and ``restore_state(state)``;
* `AttributeState`: the state is a few known attributes (the toy-text environments);
* `ObjectGraphState`: every attribute counts, and they are plain objects of known packages
  (MiniGrid; and, given to `GymnasiumTask(adapters=...)`, any environment written in plain Python).

Adapters read and write the *unwrapped* environment with its random generator; `wrapper_state` does
the same for the wrappers around it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from wrappers.packing import PackError, generator_from_state, pack, unpack
from wrappers.rng import STREAM_DOMAIN, as_key, hash4

_API_PAIRS = (("get_state", "set_state"), ("clone_state", "restore_state"))

# What a MiniGrid-like environment keeps beside its state: constants and its window.
_NO_STATE = frozenset(
    {
        "_np_random",
        "_np_random_seed",
        "action_space",
        "actions",
        "clock",
        "metadata",
        "mission_space",
        "observation_space",
        "render_mode",
        "render_size",
        "reward_range",
        "screen_size",
        "spec",
        "window",
    }
)

# Wrappers that keep nothing from one step to the next (caches aside).
_STATELESS = {
    "gymnasium": frozenset(
        {
            "ClipReward",
            "DiscretizeObservation",
            "DtypeObservation",
            "FilterObservation",
            "FlattenObservation",
            "GrayscaleObservation",
            "OrderEnforcing",
            "PassiveEnvChecker",
            "RescaleObservation",
            "ReshapeObservation",
            "ResizeObservation",
        }
    ),
    "minigrid": frozenset(
        {
            "DictObservationSpaceWrapper",
            "DirectionObsWrapper",
            "FlatObsWrapper",
            "FullyObsWrapper",
            "ImgObsWrapper",
            "NoDeath",
            "OneHotPartialObsWrapper",
            "RGBImgObsWrapper",
            "RGBImgPartialObsWrapper",
            "SymbolicObsWrapper",
            "ViewSizeWrapper",
        }
    ),
}


class StateAdapter(Protocol):
    """Reads and writes the state of the unwrapped environments that it accepts."""

    def accepts(self, env: gymnasium.Env[Any, Any]) -> bool:
        """Whether this adapter knows the state of this (unwrapped) environment."""

    def read(self, env: gymnasium.Env[Any, Any]) -> bytes:
        """The state, the random generator included.

        Raises:
            PackError: some part of it cannot be written.
        """

    def write(self, env: gymnasium.Env[Any, Any], data: bytes) -> None:
        """Put a state back.

        Raises:
            PackError: the data is corrupt; the environment is then unchanged.
        """


class OwnStateApi:
    """Environments with ``get_state``/``set_state`` or ``clone_state``/``restore_state``.

    The random generator of the environment is kept beside its own state.
    """

    def accepts(self, env: gymnasium.Env[Any, Any]) -> bool:
        return self._pair(env) is not None

    def read(self, env: gymnasium.Env[Any, Any]) -> bytes:
        pair = self._pair(env)
        assert pair is not None
        return pack({"state": pair[0](), "rng": _rng_state(env)})

    def write(self, env: gymnasium.Env[Any, Any], data: bytes) -> None:
        pair = self._pair(env)
        assert pair is not None
        content = unpack(data)
        pair[1](content["state"])
        _set_rng_state(env, content["rng"])

    def _pair(
        self, env: gymnasium.Env[Any, Any]
    ) -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
        for getter_name, setter_name in _API_PAIRS:
            getter, setter = getattr(env, getter_name, None), getattr(env, setter_name, None)
            if not (callable(getter) and callable(setter)):
                continue
            if _required_arguments(getter) == 0 and _required_arguments(setter) == 1:
                return getter, setter
        return None


class AttributeState:
    """Environments of exactly one class, whose state is a few attributes.

    Args:
        env_class: ``"module:ClassName"``.
        attributes: their names; one that the environment lacks is left out.
    """

    def __init__(self, env_class: str, *attributes: str) -> None:
        self.env_class = env_class
        self.attributes = attributes

    def accepts(self, env: gymnasium.Env[Any, Any]) -> bool:
        return _class_name(type(env)) == self.env_class

    def read(self, env: gymnasium.Env[Any, Any]) -> bytes:
        values = {name: getattr(env, name) for name in self.attributes if hasattr(env, name)}
        return pack({"attributes": values, "rng": _rng_state(env)})

    def write(self, env: gymnasium.Env[Any, Any], data: bytes) -> None:
        content = unpack(data)
        _set_rng_state(env, content["rng"])
        for name, value in content["attributes"].items():
            if name in self.attributes:
                setattr(env, name, value)


class ObjectGraphState:
    """Environments of a class or below it, whose state is all of their attributes.

    Args:
        env_class: ``"module:ClassName"``.
        packages: module prefixes of the objects that the attributes may hold, e.g. ``"minigrid."``.
        constants: more attributes that are no state.
    """

    def __init__(self, env_class: str, *packages: str, constants: frozenset[str] = frozenset()):
        self.env_class = env_class
        self.packages = packages
        self.constants = _NO_STATE | constants

    def accepts(self, env: gymnasium.Env[Any, Any]) -> bool:
        return any(_class_name(parent) == self.env_class for parent in type(env).__mro__)

    def read(self, env: gymnasium.Env[Any, Any]) -> bytes:
        attributes = {name: vars(env)[name] for name in sorted(self._names(env))}
        return pack(
            {"attributes": attributes, "rng": _rng_state(env)},
            packages=self.packages,
            references=self._references(env),
        )

    def write(self, env: gymnasium.Env[Any, Any], data: bytes) -> None:
        # The generator first: the attributes may refer to it.
        references = self._references(env)
        content = unpack(data, packages=self.packages, references=references)
        _set_rng_state(env, content["rng"])
        for name in self._names(env) - set(content["attributes"]):
            del vars(env)[name]
        vars(env).update(content["attributes"])

    def _names(self, env: gymnasium.Env[Any, Any]) -> set[str]:
        return {
            name
            for name, value in vars(env).items()
            if name not in self.constants and not isinstance(value, (type, spaces.Space))
        }

    def _references(self, env: gymnasium.Env[Any, Any]) -> dict[str, object]:
        references: dict[str, object] = {"env": env}
        if _rng(env) is not None:
            references["rng"] = _rng(env)
        return references


BUILT_IN: tuple[StateAdapter, ...] = (
    OwnStateApi(),
    AttributeState(
        "gymnasium.envs.toy_text.taxi:TaxiEnv", "s", "lastaction", "fickle_step", "taxi_orientation"
    ),
    AttributeState("gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv", "s", "lastaction"),
    AttributeState("gymnasium.envs.toy_text.cliffwalking:CliffWalkingEnv", "s", "lastaction"),
    AttributeState(
        "gymnasium.envs.toy_text.blackjack:BlackjackEnv",
        "dealer",
        "player",
        "dealer_top_card_suit",
        "dealer_top_card_value_str",
    ),
    ObjectGraphState("minigrid.minigrid_env:MiniGridEnv", "minigrid."),
)
"""The adapters that are tried in this order, after those that the caller brings."""


def wrapper_state(env: gymnasium.Env[Any, Any]) -> list[int | None]:
    """State of the wrappers from the outside in: elapsed steps of each `TimeLimit`.

    Raises:
        PackError: a wrapper that may keep other state; the message names it.
    """
    state: list[int | None] = []
    while isinstance(env, gymnasium.Wrapper):
        kind = type(env)
        package = kind.__module__.partition(".")[0]
        if kind is gymnasium.wrappers.TimeLimit:
            state.append(vars(env)["_elapsed_steps"])
        elif kind.__name__ not in _STATELESS.get(package, ()):
            raise PackError(f"the wrapper {kind.__module__}.{kind.__name__} may keep state")
        env = env.env
    return state


def set_wrapper_state(env: gymnasium.Env[Any, Any], state: list[int | None]) -> None:
    """Put back what `wrapper_state` read."""
    remaining = list(state)
    while isinstance(env, gymnasium.Wrapper):
        if type(env) is gymnasium.wrappers.TimeLimit:
            vars(env)["_elapsed_steps"] = remaining.pop(0)
        env = env.env


def set_generator(env: gymnasium.Env[Any, Any], key: int) -> bool:
    """Put the unwrapped environment's generator to the state that a key stands for.

    Returns:
        False if the environment has no generator (yet).
    """
    generator = _rng(env)
    if generator is None:
        return False
    if generator.bit_generator.state["bit_generator"] != "PCG64":
        env.np_random = np.random.Generator(np.random.PCG64(key))
        return True
    words = [int(hash4(as_key(key), i, STREAM_DOMAIN, 1)) for i in range(4)]
    # In place and without numpy's seeding: it is done before every step. The increment of a PCG
    # has to be odd.
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3] | 1},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return True


def _rng(env: gymnasium.Env[Any, Any]) -> np.random.Generator | None:
    return getattr(env, "_np_random", None)


def _rng_state(env: gymnasium.Env[Any, Any]) -> dict[str, Any] | None:
    generator = _rng(env)
    return None if generator is None else dict(generator.bit_generator.state)


def _set_rng_state(env: gymnasium.Env[Any, Any], state: dict[str, Any] | None) -> None:
    generator = _rng(env)
    if state is None:
        return
    if generator is not None and (
        generator.bit_generator.state["bit_generator"] == state["bit_generator"]
    ):
        # In place, so that whoever else holds the generator keeps sharing it.
        generator.bit_generator.state = state
    else:
        env.np_random = generator_from_state(state)


def _class_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _required_arguments(function: Callable[..., Any]) -> int | None:
    """Number of arguments that must be given, or None where Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)
