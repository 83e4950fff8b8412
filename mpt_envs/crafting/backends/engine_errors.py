"""What can be wrong with an engine that runs in a process of its own."""

from __future__ import annotations

from wrappers.errors import MarketError


class EngineError(MarketError, RuntimeError):
    """The engine did not do what it was asked; the message says why and what to do."""


class EngineMissingError(EngineError, ImportError):
    """The engine, or a part of it, is not installed, or is of a version that does not serve."""


class EngineDiedError(EngineError):
    """The engine's process ended by itself; the message ends with its last words."""
