"""Arrays of different sizes in one loop: addresses in a table, seen as arrays inside a kernel.

A thousand worlds have a thousand maps, each of its own shape, some of them shared. Compiled loops
cannot index a list of arrays quickly, so each world has a row of addresses and sizes, and the loop
makes arrays of them. Whoever fills in a row keeps the arrays alive as long as the row is used.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """An address (int64) as a pointer for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate
