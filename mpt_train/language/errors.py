"""Errors that users of language models meet. Each message says what to do about it."""

from __future__ import annotations

from wrappers.errors import MarketError


class ModelNotFoundError(MarketError, OSError):
    """A model is not there, or cannot be loaded; the message names the command to get it."""


class UnreadAnswerError(MarketError, ValueError):
    """An agent's answer could not be read, under ``language.unread = "raise"``."""


class EndpointError(MarketError, OSError):
    """A server of language models does not answer as it should."""


class DemonstrationError(MarketError, ValueError):
    """A file of demonstrations cannot be used."""


class MissingLibraryError(MarketError, ImportError):
    """A library of the extra [llm] is not installed."""
