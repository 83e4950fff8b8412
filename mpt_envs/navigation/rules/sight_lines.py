"""Many lines of sight from one place, a stride of each after the other.

A single line waits for memory at every stride, and the processor guesses wrong at every other one.
So the lines go on side by side, several in one instruction, and without a branch.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import carray

from mpt_envs.navigation.kernel import inlined, kernel
from mpt_envs.navigation.world.space import F_CELL, F_X, F_Z, PARALLEL, cast_flat
from wrappers.ragged import scratch

#: Rows of an array of lines, a column for each line.
LINE_X: Final = 0  # its direction, a unit vector
LINE_Z: Final = 1
LINE_REACH: Final = 2  # metres at most
LINE_FREE: Final = 3  # metres to where the ground ends, at most LINE_REACH
LINE_MARK: Final = 4  # for the caller
_N_ROWS: Final = 5
MAX_LINES: Final = 64  # lines
_N_STATE: Final = 10


@inlined
def sight_lines():
    """Room for lines of sight: float64 ``(_N_ROWS, MAX_LINES)``."""
    return carray(scratch(), (_N_ROWS, MAX_LINES), np.float64)


@kernel
def cast_lines(clearance, frame, x, z, count, lines):
    """`cast_flat` in several directions, to the same results.

    Args:
        clearance: of `clearance_of`.
        frame: of a `FreeSpace`.
        x, z: the place.
        count: of directions, at most `MAX_LINES`.
        lines: of `sight_lines`; `LINE_FREE` is written.
    """
    state = carray(scratch(), (_N_STATE, MAX_LINES), np.float64)
    ats, cells_x, cells_z, mosts = state[0], state[1], state[2], state[3]
    dxs, dzs, pers_x, pers_z = state[4], state[5], state[6], state[7]
    ups_x, ups_z = state[8], state[9]
    cell = frame[F_CELL]
    per_metre = 1.0 / cell
    gx, gz = (x - frame[F_X]) * per_metre, (z - frame[F_Z]) * per_metre
    columns = np.float64(clearance.shape[1])
    flat = clearance.reshape(clearance.size)
    # Numbers of columns are kept as floats, which hold them exactly.
    padded = (count + 7) // 8 * 8
    for k in range(padded):
        dx, dz = lines[LINE_X, k], lines[LINE_Z, k]
        dxs[k], dzs[k] = dx, dz
        pers_x[k], pers_z[k] = np.divide(1.0, dx), np.divide(1.0, dz)
        ups_x[k], ups_z[k] = 1.0 if dx > 0.0 else 0.0, 1.0 if dz > 0.0 else 0.0
        ats[k], cells_x[k], cells_z[k] = 0.0, np.trunc(gx), np.trunc(gz)
        # Those that run along an axis are rare, and go alone below.
        alone = abs(dx) <= PARALLEL or abs(dz) <= PARALLEL or k >= count
        mosts[k] = -1.0 if alone else lines[LINE_REACH, k] * per_metre
    going = True
    while going:
        left = 0
        for k in range(padded):
            at, jx, jz = ats[k], cells_x[k], cells_z[k]
            clear = np.float64(flat[np.uint32(np.int32(jz * columns + jx))])
            to_x = (jx + ups_x[k] - gx) * pers_x[k]
            to_z = (jz + ups_z[k] - gz) * pers_z[k]
            across, leaps = to_x < to_z, clear > 1.0
            far = at + (clear - 1.0)
            near = max(at, to_x if across else to_z)
            far_x, far_z = np.trunc(gx + dxs[k] * far), np.trunc(gz + dzs[k] * far)
            near_x = jx + (2.0 * ups_x[k] - 1.0 if across else 0.0)
            near_z = jz + (0.0 if across else 2.0 * ups_z[k] - 1.0)
            goes = (clear > 0.0) & (at < mosts[k])
            ats[k] = (far if leaps else near) if goes else at
            cells_x[k] = (far_x if leaps else near_x) if goes else jx
            cells_z[k] = (far_z if leaps else near_z) if goes else jz
            left += np.int64(goes)
        going = left > 0
    for k in range(count):
        dx, dz, reach = lines[LINE_X, k], lines[LINE_Z, k], lines[LINE_REACH, k]
        if mosts[k] < 0.0:
            lines[LINE_FREE, k] = cast_flat(clearance, frame, x, z, dx, dz, reach)
        else:
            lines[LINE_FREE, k] = ats[k] * cell if ats[k] < mosts[k] else reach
