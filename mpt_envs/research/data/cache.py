"""Files that can be made again: arrays and texts on disk, shared by all processes of a user.

The folder is ``MPT_CACHE_DIR`` (where ``~`` is the home folder), else the user's cache folder. A
file is written beside its place and moved there in one step, so that a reader sees all of it or
none; it carries a digest of its content, and one that does not match is as good as missing. Where
nothing can be written, everything works, only slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MAGIC: Final = b"mpt-research-1\n"
_DIGEST: Final = 16
_TEXTS: Final = "__texts__"

_warned = False


def folder() -> Path:
    """Where the files lie; not necessarily there yet."""
    named = os.environ.get("MPT_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "mpt-swarm"


def code_digest() -> str:
    """A digest of the sources of this package that decide what is cached."""
    hasher = hashlib.blake2b(digest_size=8)
    domain = Path(__file__).parents[1]
    for room, names in {
        "data": ("corpus", "index", "library", "pages", "tokenizer"),
        "rules": ("scoring",),
        "world": ("encyclopedia", "facts", "multihop", "naming", "questions"),
    }.items():
        for name in names:
            hasher.update((domain / room / f"{name}.py").read_bytes())
    return hasher.hexdigest()


def load(key: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """Arrays and texts stored under a key; None if there is nothing, or nothing whole."""
    try:
        data = (folder() / f"{key}.bin").read_bytes()
    except (OSError, RuntimeError):
        return None
    head = len(_MAGIC) + _DIGEST
    if not data.startswith(_MAGIC) or len(data) < head:
        return None
    body = memoryview(data)[head:]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != data[len(_MAGIC) : head]:
        return None
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        texts = json.loads(arrays.pop(_TEXTS).tobytes())
    except (ValueError, KeyError, OSError, zipfile.BadZipFile):
        return None
    return arrays, texts


def store(key: str, arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, Any]) -> None:
    """Keep arrays (of numbers) and texts (anything JSON can hold) under a key."""
    buffer = io.BytesIO()
    encoded = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    np.savez(buffer, **{**arrays, _TEXTS: encoded})  # type: ignore[arg-type]
    body = buffer.getvalue()
    temporary = None
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=f".{key}-", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC)
            file.write(hashlib.blake2b(body, digest_size=_DIGEST).digest())
            file.write(body)
        os.replace(temporary, place / f"{key}.bin")
    except (OSError, RuntimeError) as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        _warn(error)


def _warn(error: Exception) -> None:
    """Say once in a process that nothing is kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"the search index is not kept ({error}): every process builds it again; name a "
            "writable folder in MPT_CACHE_DIR",
            RuntimeWarning,
            stacklevel=3,
        )
