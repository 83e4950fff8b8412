"""Paths that a user gives: whatever is wrong with one is an error that names the keyword."""

from __future__ import annotations

import os
from pathlib import Path


def user_path(name: str, value: object, error: type[Exception]) -> Path:
    """A path from a keyword or an environment variable, with ``~`` expanded.

    Args:
        name: of the keyword or variable, for messages.
        value: what was given.
        error: raised where this is no path.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise error(f"{name} must be a path, got {type(value).__name__} {str(value)[:80]}")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise error(f"{name}={text!r} is no path")
    try:
        return Path(text).expanduser()
    except RuntimeError as found:
        raise error(f"{name}={text!r} cannot be followed: {found}") from found


def is_file(path: Path, error: type[Exception]) -> bool:
    """`Path.is_file`, with an error that says what to do where one may not look."""
    return _looked_at(path, error, folder=False)


def is_folder(path: Path, error: type[Exception]) -> bool:
    """`Path.is_dir`, with an error that says what to do where one may not look."""
    return _looked_at(path, error, folder=True)


def _looked_at(path: Path, error: type[Exception], *, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError) as found:
        raise error(
            f"{path} cannot be read ({found}); check the permissions of its folders"
        ) from found


def stamp(path: Path) -> tuple[int, int] | None:
    """What tells whether a file has changed; None where there is none to look at."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size
