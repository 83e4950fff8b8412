"""`mpt tasks` and `mpt methods`: what can be trained, and how."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import tyro

from mpt_train.cli.console import table


def tasks(arguments: Sequence[str], prog: str = "mpt tasks") -> int:
    """List the registered tasks."""
    tyro.cli(
        _nothing,
        prog=prog,
        description="List the registered tasks, those of installed plugins included.",
        args=arguments,
    )
    from mpt_envs import registry

    print(table({spec.id: spec.description for spec in registry.values()}, indent=""))
    return 0


def methods(arguments: Sequence[str], prog: str = "mpt methods") -> int:
    """List the methods."""
    tyro.cli(
        _nothing,
        prog=prog,
        description="List the methods: named configurations of the one training loop.",
        args=arguments,
    )
    print(describe_methods(indent=""))
    return 0


def describe_methods(indent: str = "  ") -> str:
    """Names and descriptions of all methods."""
    from mpt_train.methods import METHODS

    return table({name: m.description for name, m in METHODS.items()}, indent=indent)


def description(text: str) -> str:
    """The text of a help page from an indented literal."""
    return textwrap.dedent(text).strip()


def _nothing() -> None:
    """A command without options."""
