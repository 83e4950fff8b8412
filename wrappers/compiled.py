"""numba's decorator, with a cache on disk that is never stale and that processes may share.

numba keeps what it compiled beside the source file. By itself it notices a change of that file, but
not of a function or constant that the code took from another one; and two processes that compile
the same function for different argument types at once may overwrite each other's code. Here every
entry carries a digest of all the files that the code is made of, and every process writes to files
of its own.

A cache is a convenience. Where there is no place for it (no folder is writable), where it cannot be
written (the disk is full) or read (a file is damaged), the functions are compiled in every process
and a warning says so.

Compiling takes up to two minutes, in which nothing else happens: a line on stderr says when it
begins.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba import njit

_FOLDER = Path(__file__).parent

KERNEL_FILES: tuple[Path, ...] = tuple(
    _FOLDER / name
    for name in (
        "auction.py",
        "dropout.py",
        "prefetch.py",
        "ragged.py",
        "random_sequence.py",
        "rng.py",
    )
)
"""Files of this package that kernels of other packages may be made of."""


class Compiler:
    """Decorators for the compiled functions of a package.

    Args:
        files: the package's files that its kernels take functions or constants from. Those of
            `wrappers` always belong to them.
        name: of the domain whose rules these are; stderr is told when they are compiled. "": it is
            not, as where that takes no time.
    """

    def __init__(self, files: Iterable[Path] = (), name: str = "") -> None:
        self._unsaid = name
        hasher = hashlib.blake2b(digest_size=8)
        for path in (*KERNEL_FILES, *sorted(files)):
            hasher.update(path.name.encode())
            hasher.update(path.read_bytes())
        self._digest = hasher.hexdigest()

    @classmethod
    def of_domain(cls, folder: Path) -> Compiler:
        """For a domain with the rooms of `mpt_envs`: kernels stand in what is named here.

        Args:
            folder: of the domain; its name is the domain's.
        """
        rooms = (*(folder / "world").glob("*.py"), *(folder / "rules").glob("*.py"))
        return cls((*rooms, folder / "views" / "observation.py", folder / "batch.py"), folder.name)

    def kernel(self, function: Callable[..., Any]) -> Any:
        """Compile a function when it is first called; later processes load it from the cache."""
        return self._compiled(function)

    def inlined(self, function: Callable[..., Any]) -> Any:
        """Like `kernel`, for functions of one expression that are pasted into their callers."""
        return self._compiled(function, inline="always")

    def _compiled(self, function: Callable[..., Any], **options: Any) -> Any:
        try:
            dispatcher = njit(cache=True, **options)(function)
        except RuntimeError as error:
            # numba's word for: no folder is writable.
            if "no locator available" not in str(error):
                raise
            _warn("no folder is writable")
            return njit(**options)(function)
        cache: Any = getattr(dispatcher, "_cache", None)
        if hasattr(cache, "load_overload") and hasattr(cache, "save_overload"):
            cache.load_overload = self._told(_tolerant(cache, cache.load_overload, "read"))
            cache.save_overload = _tolerant(cache, cache.save_overload, "written")
        return self._stamped(dispatcher)

    def _told(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """The same, but what is not in the cache is announced: it is compiled next."""

        def told(*arguments: Any) -> Any:
            found = load(*arguments)
            if found is None and self._unsaid:
                name, self._unsaid = self._unsaid, ""
                # Workers of a comparison share a terminal with a display of their progress.
                if multiprocessing.parent_process() is None and sys.stderr is not None:
                    line = f"compiling the rules of {name}: up to two minutes, once on this machine"
                    # A stream that is closed is no reason not to compile.
                    with contextlib.suppress(OSError, ValueError):
                        print(line, file=sys.stderr, flush=True)
            return found

        return told

    def _stamped(self, dispatcher: Any) -> Any:
        index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        # Where numba keeps this elsewhere (or has no place to cache), its own rules apply.
        if hasattr(index, "_source_stamp") and hasattr(index, "_data_name_pattern"):
            index._source_stamp = (index._source_stamp, self._digest)
            stem = index._data_name_pattern.removesuffix("{number:d}.nbc")
            index._data_name_pattern = f"{stem}{self._digest}-{os.getpid()}-{{number:d}}.nbc"
        return dispatcher


def _tolerant(cache: Any, call: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same, but a failure is a warning: then it is as if nothing were there (None)."""

    def tolerant(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            _warn(f"it cannot be {what}: {error}")
            # A damaged entry is forgotten, so that the next process finds a new one.
            with contextlib.suppress(Exception):
                cache.flush()
            return None

    return tolerant


_warned = False


def _warn(why: str) -> None:
    """Say once in a process that compiled code is not kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"the cache of compiled functions is not used ({why}): they are compiled in every "
            "process, which takes a minute; name a writable folder in NUMBA_CACHE_DIR",
            RuntimeWarning,
            stacklevel=3,
        )


_own = Compiler()
kernel = _own.kernel
inlined = _own.inlined
