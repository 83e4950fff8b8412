"""Errors that users of the environments meet. Each message says what to do about it."""

from __future__ import annotations


class MarketError(Exception):
    """Base class of every error that this suite raises on purpose."""


class IllegalActionError(MarketError, ValueError):
    """An action that the mask forbids was submitted under ``on_illegal="raise"``."""


class ActionFormatError(MarketError, TypeError):
    """An action of the wrong type or outside of its space (never a merely masked one)."""


class PhaseError(MarketError, RuntimeError):
    """A method was called in a phase of the game (or before a reset) where it means nothing."""


class SnapshotError(MarketError, ValueError):
    """A snapshot is corrupt, or belongs to another task, version or configuration."""


class SnapshotFidelityError(MarketError, RuntimeError):
    """Something that needs exact snapshots met a task whose snapshots are not exact."""


class TaskError(MarketError, ValueError):
    """A task returned what its contract forbids, e.g. a reward that is not a finite number."""


def how_to_install(extra: str) -> str:
    """How to get what an optional part of the project needs, for the end of a message.

    Args:
        extra: its name in ``pyproject.toml``, e.g. "llm".
    """
    # constraints.txt, with the tested versions, is not in the package.
    return (
        f"pip install -c constraints.txt -e '.[{extra}]' in a checkout (the tested versions), or "
        f"pip install 'mpt-swarm[{extra}]'"
    )


class MissingCapabilityError(MarketError, NotImplementedError):
    """A task lacks an optional part of the contract (an expert, text, a picture, a reseed)."""
