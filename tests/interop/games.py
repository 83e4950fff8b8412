"""The games that other libraries are tried on: each task of ours through each of its views."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

import mpt_envs
from tests.toys import RelayTask
from wrappers.gymnasium_task import GymnasiumTask

VIEWS: dict[str, dict[str, Any]] = {
    "game": {},
    "six agents with dropout": {"dropout": 0.2},  # and twice as many agents, see `game`
    "one agent": {"one_agent": True},
    "crowded levels": {"bid_levels": "crowded"},
    "padded": {"homogeneous": True},
    "text": {"observation": "text", "action": "text"},
    "text to read": {"observation": "text"},
    "text to answer": {"action": "text"},
    "image": {"observation": "image"},
}
"""Keywords of `mpt_envs.make` for each AEC view."""


def taxi() -> GymnasiumTask:
    name = next(name for name in ("Taxi-v4", "Taxi-v3") if name in gymnasium.registry)
    return GymnasiumTask(name, {"driver": [0, 1, 2, 3], "porter": [4, 5]}, default_max_turns=40)


OWN_TASKS: dict[str, Callable[[], Any]] = {"relay": RelayTask, "taxi": taxi}
"""Tasks that are not registered, by name."""

TASKS: tuple[str, ...] = (
    *OWN_TASKS,
    *(name for name, spec in mpt_envs.registry.items() if not spec.needs),
)
"""Every task to try: those above and every registered one."""


def game(task: str, view: str = "game", **kwargs: Any) -> Any:
    """A task in one of the `VIEWS`."""
    keywords = {**VIEWS[view], **kwargs}
    if view == "six agents with dropout":
        roles = len(
            OWN_TASKS[task]().roles if task in OWN_TASKS else mpt_envs.make_task(task).roles
        )
        keywords["agents"] = 2 * roles
    if task in OWN_TASKS:
        return mpt_envs.as_env(OWN_TASKS[task], **keywords)
    return mpt_envs.make(task, **keywords)


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skip where a library is missing, and say which."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{', '.join(missing)} not installed; pip install '.[interop]'"
    )
