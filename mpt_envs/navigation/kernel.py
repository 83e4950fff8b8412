"""The compiler's decorators of this package (`wrappers.compiled`).

Kernels call each other across these files, so the cache of compiled code is valid for one state of
all of them. A file whose kernels call none of another file needs no entry here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wrappers.compiled import Compiler

#: Files of the package that kernels take functions or constants from.
COMPILED: Final = (
    "batch.py",
    "clauses.py",
    "dividing.py",
    "draws.py",
    "expert.py",
    "facts.py",
    "fan.py",
    "floorplan.py",
    "furniture.py",
    "kernel.py",
    "layout.py",
    "observation.py",
    "perception.py",
    "pointers.py",
    "prefetch.py",
    "rays.py",
    "route.py",
    "rules.py",
    "sources.py",
    "space.py",
    "telling.py",
    "worlds.py",
)

_compiler: Final = Compiler(
    (path for path in (Path(__file__).parent / name for name in COMPILED) if path.is_file()),
    name="navigation",
)
kernel = _compiler.kernel
inlined = _compiler.inlined
