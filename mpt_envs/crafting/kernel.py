"""The compiler's decorators of this package (`wrappers.compiled`).

Our kernels call each other across files and read constants from `facts`, so the cache of compiled
code is valid for one state of all files of the package that kernels are made of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wrappers.compiled import Compiler

# Python-only files of the package: a change there leaves the compiled code as it is.
_NOT_COMPILED: Final = frozenset(
    {"__init__.py", "ansi.py", "render.py", "scene.py", "sprites.py", "task.py", "text.py"}
)

_compiler: Final = Compiler(
    (path for path in Path(__file__).parent.glob("*.py") if path.name not in _NOT_COMPILED),
    name="crafting",
)
kernel = _compiler.kernel
inlined = _compiler.inlined
