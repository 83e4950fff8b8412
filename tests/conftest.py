"""Set-up that all tests share: threads, and a cache of compiled kernels that cannot be stale."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Several test processes share few cores: one thread each is the quickest for all of them. This has
# to happen before the first import of numpy, numba or torch, also in the processes tests start.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")


def _kernel_digest() -> str:
    """A digest of the compiled functions that all other kernels build on.

    Numba notices a change of a compiled function's own file, but not of one that it calls from
    another file. (A domain's own kernels take care of that themselves.)
    """
    hasher = hashlib.blake2b(digest_size=8)
    for path in sorted((ROOT / "wrappers").glob("*.py")):
        text = path.read_bytes()
        if b"import numba" in text:
            hasher.update(path.name.encode())
            hasher.update(text)
    return hasher.hexdigest()


if "NUMBA_CACHE_DIR" not in os.environ:
    # Each test process has its own folder: numba's index files have no lock.
    _worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _kernel_digest() / _worker)
