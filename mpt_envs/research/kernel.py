"""The compiler's decorators of this package (`wrappers.compiled`).

The cache of compiled code is valid for one state of the files that kernels are made of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wrappers.compiled import Compiler

_COMPILED: Final = ("kernel.py", "layout.py", "rules.py", "observation.py", "expert.py", "batch.py")

_compiler: Final = Compiler(
    (path for path in Path(__file__).parent.glob("*.py") if path.name in _COMPILED),
    name="research",
)
kernel = _compiler.kernel
inlined = _compiler.inlined
