"""What can be read of a game, and traces of what was."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.testing.rules import check
from wrappers.errors import MissingCapabilityError


def feed(hasher: Any, value: Any) -> None:
    """Hash a nested value by content."""
    if isinstance(value, np.ndarray):
        hasher.update(f"{value.dtype.str}{value.shape}".encode())
        hasher.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            hasher.update(repr(key).encode())
            feed(hasher, value[key])
    elif isinstance(value, (tuple, list)):
        hasher.update(f"[{len(value)}".encode())
        for item in value:
            feed(hasher, item)
    elif isinstance(value, np.generic):
        hasher.update(repr(value.item()).encode())
    else:
        hasher.update(repr(value).encode())


def content_digest(value: Any) -> str:
    """BLAKE2b-64 of a nested value of dicts, sequences, arrays and plain values."""
    hasher = hashlib.blake2b(digest_size=8)
    feed(hasher, value)
    return hasher.hexdigest()


def arrays(value: Any, path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """All arrays in a nested value, with where they are."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from arrays(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from arrays(item, f"{path}[{index}]")


def readable(env: Any) -> dict[str, Any]:
    """Everything that anyone may read of a game now, by name."""
    game = env.unwrapped
    view: dict[str, Any] = {
        "agents": list(env.agents),
        "agent_selection": env.agent_selection,
        "phase": game.phase,
        "turn": game.turn,
        "last_auction": game.last_auction,
        "counts": dict(game.counts),
        "rewards": dict(env.rewards),
        "terminations": dict(env.terminations),
        "truncations": dict(env.truncations),
        "metrics()": game.metrics(),
    }
    for agent in env.possible_agents:
        view[f"observe({agent!r})"] = env.observe(agent)
        view[f"infos[{agent!r}]"] = env.infos.get(agent)
        with contextlib.suppress(MissingCapabilityError):
            view[f"prompt({agent!r})"] = game.task.prompt(agent, game.phase)
    if env.agents:
        view["last()"] = env.last()
    if "ansi" in game.task.render_modes:
        with contextlib.suppress(MissingCapabilityError):
            view["render('ansi')"] = game.render_as("ansi")
    return view


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Names whose values differ in content."""
    names = sorted({*first, *second})
    return [
        name
        for name in names
        if content_digest(first.get(name)) != content_digest(second.get(name))
    ]


class Step(NamedTuple):
    """One step of a trace: where it was taken, and the digest of what it led to."""

    turn: int
    phase: str
    agent: str
    digest: str


def is_over(env: Any) -> bool:
    """Whether the episode has ended (all agents flagged, or gone)."""
    return not env.agents or any(env.terminations.values()) or any(env.truncations.values())


def has_mask(env: Any) -> bool:
    """Whether observations hold an action mask (they do unless actions are texts)."""
    observation = env.observe(env.possible_agents[0])
    return isinstance(observation, Mapping) and "action_mask" in observation


def legal_actions(env: Any, agent: str) -> list[Any]:
    """What the agent may do now, bids in increasing order: an empty list is a failure.

    By its mask, or by ``info["legal_answers"]`` where actions are texts.
    """
    observation = env.observe(agent)
    if not isinstance(observation, Mapping) or "action_mask" not in observation:
        answers = list(env.infos[agent]["legal_answers"])
        check(answers, "masks", f"{agent}, who is to move, has no legal answer")
        return answers
    legal: list[Any] = np.flatnonzero(observation["action_mask"]).tolist()
    check(legal, "masks", f"the mask of {agent}, who is to move, is all zero")
    return legal
