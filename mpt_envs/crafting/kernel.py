"""The compiler's decorators of this package: numba, with a cache that notices every change.

Numba caches what it compiled by the file of the function alone. Our kernels call each other across
files and read constants from `facts`, so a change there would leave stale machine code behind. Here
the cache is valid for one state of all files of the package that kernels are made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba import njit

import wrappers.rng

# Python-only files of the package: a change there leaves the compiled code as it is.
_NOT_COMPILED: Final = frozenset(
    {"__init__.py", "ansi.py", "render.py", "scene.py", "sprites.py", "task.py", "text.py"}
)


def _source_digest() -> str:
    hasher = hashlib.blake2b(digest_size=16)
    files = [path for path in Path(__file__).parent.glob("*.py") if path.name not in _NOT_COMPILED]
    for path in [*sorted(files), Path(wrappers.rng.__file__)]:
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


_DIGEST: Final = _source_digest()


def _stamped(dispatcher: Any) -> Any:
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    # Where numba keeps this elsewhere (or has no place to cache), its own rule applies.
    if hasattr(index, "_source_stamp"):
        index._source_stamp = (index._source_stamp, _DIGEST)
    return dispatcher


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called; later processes load it from the cache."""
    return _stamped(njit(cache=True)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """Like `kernel`, for functions of one expression that are pasted into their callers."""
    return _stamped(njit(cache=True, inline="always")(function))
