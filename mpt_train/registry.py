"""What can be chosen by name in a configuration, also from a module of one's own."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from wrappers.user_module import import_user_module

T = TypeVar("T")
P = ParamSpec("P")


class Registry(Generic[P, T]):
    """Builders by name.

    Args:
        kind: what is built, for messages: "coordination", "learner".
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._builders: dict[str, Callable[P, T]] = {}

    def register(self, name: str, builder: Callable[P, T]) -> None:
        """Make a builder known under a name.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._builders:
            raise ValueError(f"a {self._kind} named {name!r} is registered already")
        self._builders[name] = builder

    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._builders)

    def build(self, name: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Build what is registered under a name.

        Args:
            name: the name; or ``module:name``, which imports the module first, so that a module of
                your own can register what it brings.
            args, kwargs: what the builder is given.

        Raises:
            ValueError: unknown name, or no such module.
        """
        module, colon, own = name.partition(":")
        if colon:
            import_user_module(module, f"the {self._kind} {own!r}", ValueError)
            name = own
        if name not in self._builders:
            close = difflib.get_close_matches(name, self._builders, n=2)
            hint = f"did you mean {' or '.join(close)}? " if close else ""
            known = ", ".join(sorted(self._builders))
            raise ValueError(f"unknown {self._kind} {name!r}; {hint}known: {known}")
        return self._builders[name](*args, **kwargs)
