"""Writing files so that a reader finds the old content or the new one, never a part.

A file is written under a temporary name, flushed to the disk and renamed over the old one, which
POSIX does in one step. After a crash or `kill -9` at any moment the old file or the new one is
there, whole; at worst a temporary file is left over, which `remove_temporary` deletes.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mpt_train.runs.plain import to_plain

TEMPORARY = ".part"
"""Suffix of files that are not complete yet."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of another one, durably, when the block ends.

    A link stays one, and what it leads to is replaced. What is no file, e.g. a pipe, is written as
    it is.

    Raises:
        OSError: the disk is full, the folder is not writable, ...; as after any other error in the
            block the old file is as it was, and what was written of the new one is deleted.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = path.resolve()
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step, durably (see `replacing`)."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value (see `mpt_train.runs.plain`) as indented JSON, atomically."""
    text = json.dumps(to_plain(value), indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode())


def sync_folder(folder: Path) -> None:
    """Make renames and deletions in a folder durable, where the system offers it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_temporary(folder: Path) -> None:
    """Delete what a killed process left half written in a folder."""
    for path in folder.glob("*" + TEMPORARY):
        with contextlib.suppress(OSError):
            path.unlink()


def reason(error: OSError) -> str:
    """The system's words for an error, e.g. ``No space left on device``."""
    return error.strerror or str(error) or type(error).__name__
