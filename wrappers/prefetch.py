"""Ask for memory that a kernel will read soon, so that it waits less for it. Changes no result."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LINE: Final = 64  # bytes of a cache line


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line that holds a byte of an array; reads nothing, never faults.

    Args:
        array: of any type.
        index: of the byte, counted from the array's first one; it may lie outside.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(builder.bitcast(data, byte), [arguments[1]])
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        # To be read, into the second-level cache (the first is too small for what comes), data.
        builder.call(function, [address, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
