"""Arrays of different sizes in one loop: addresses in a table, seen as arrays inside a kernel.

A thousand worlds have a thousand maps, each of its own shape, some of them shared. Compiled loops
cannot index a list of arrays quickly, so each world has a row of addresses and sizes, and the loop
makes arrays of them. Whoever fills in a row keeps the arrays alive as long as the row is used.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers in the room of `scratch`.
SCRATCH: Final = 640


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """An address (int64) as a pointer for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def scratch(typing_context: Any) -> Any:
    """Room for `SCRATCH` float64 on the stack of the calling kernel, as a pointer.

    It costs nothing, unlike an array, and the compiler knows that nothing else is in it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        room = cgutils.alloca_once(builder, ir.DoubleType(), size=SCRATCH)
        return builder.bitcast(room, cgutils.voidptr_t)

    return types.voidptr(), generate
