"""The compiler's decorators of this domain, with one cache for the state of all its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wrappers.compiled import Compiler

_compiler: Final = Compiler.of_domain(Path(__file__).parent)
kernel = _compiler.kernel
inlined = _compiler.inlined
