"""Which actions a Gymnasium environment has, and whose they are: names, numbers, a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import gymnasium


def names_of_actions(
    env: gymnasium.Env[Any, Any], count: int, first: int, given: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of the environment's actions in their order."""
    if given is not None:
        if len(given) != count or len(set(given)) != count:
            raise ValueError(
                f"action_names must be {count} different names, one per action; got {list(given)}"
            )
        return tuple(given)
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    if callable(meanings):
        names = tuple(str(name).lower() for name in meanings())
        if len(set(names)) == len(names) == count:
            return names
    members = getattr(getattr(env.unwrapped, "actions", None), "__members__", None)
    if members is not None:
        by_value = {int(member): name for name, member in members.items()}
        if all(first + i in by_value for i in range(count)):
            return tuple(by_value[first + i] for i in range(count))
    return tuple(f"action_{first + i}" for i in range(count))


def index_of(action: int | str, names: tuple[str, ...], first: int) -> int:
    """Position of an action that is given by number or by name.

    Raises:
        ValueError: there is none.
    """
    if isinstance(action, str):
        if action in names:
            return names.index(action)
    elif (
        isinstance(action, Integral)
        and not isinstance(action, bool)
        and first <= action < first + len(names)
    ):
        return int(action) - first
    raise ValueError(
        f"unknown action {action!r}; the environment's actions are "
        f"{', '.join(f'{first + i} {name}' for i, name in enumerate(names))}"
    )


def partition(
    roles: Mapping[str, Sequence[int | str]], names: tuple[str, ...], first: int
) -> dict[str, list[int]]:
    """Positions of the actions of each role.

    Raises:
        ValueError: an action is given to no role or to several, or a role has none.
        TypeError: the roles are no mapping from names.
    """
    if not isinstance(roles, Mapping) or not all(isinstance(role, str) for role in roles):
        raise TypeError(f"roles must map the name of each role to its actions, got {roles!r}")
    result = {role: [index_of(a, names, first) for a in actions] for role, actions in roles.items()}
    owners: dict[int, list[str]] = {i: [] for i in range(len(names))}
    for role, actions in result.items():
        if not role or not actions:
            raise ValueError(f"the role {role!r} needs a name and at least one action")
        for action in actions:
            owners[action].append(role)
    missing = [names[i] for i, owner in owners.items() if not owner]
    shared = {names[i]: owner for i, owner in owners.items() if len(owner) > 1}
    if missing or shared:
        raise ValueError(
            "roles must give each action of the environment to exactly one role"
            + (f"; given to none: {', '.join(missing)}" if missing else "")
            + "".join(f"; {name} given to {' and '.join(owner)}" for name, owner in shared.items())
        )
    return result
