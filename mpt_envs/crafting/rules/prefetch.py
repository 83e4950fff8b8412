"""Fetch what a world's next turn will read while the worlds before it are being stepped.

A thousand records are tens of megabytes: nothing of a world is in the processor's near caches when
its turn comes, and its rules touch some eighty cache lines one after the other. Asking for these
lines a few worlds ahead more than halves the time of a turn. It changes no result.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.layout import cell_of
from wrappers.prefetch import LINE, prefetch

_SCALAR_BYTES: Final = 4 * at.TREES
_LIST_BYTES: Final = 3 * LINE  # of each list: most are no longer
_AROUND: Final = 5  # columns on each side of the body


@kernel
def prefetch_state(b):
    """Fetch the scalars and the beginnings of the lists of a record (uint8)."""
    for byte in range(0, _SCALAR_BYTES, LINE):
        prefetch(b, byte)
    for byte in range(0, _LIST_BYTES, LINE):
        prefetch(b, 4 * at.TREES + byte)
        prefetch(b, 4 * at.COAL + byte)
        prefetch(b, 4 * at.IRON + byte)
        prefetch(b, 4 * at.OUTCROPS + byte)


@kernel
def prefetch_surroundings(s, b):
    """Fetch the blocks around the body of a record (int32, uint8)."""
    x = np.int64(s[at.X])
    feet = cell_of(x, np.int64(s[at.Y]), np.int64(s[at.Z]))
    for dx in range(-facts.EXPLORE_STEPS - 1, facts.EXPLORE_STEPS + 2):
        if x + dx < 0 or x + dx >= at.WIDTH:
            continue
        row = feet + dx * at.STEP_EAST
        prefetch(b, row)
        if -_AROUND <= dx <= _AROUND:
            for byte in range(
                -_AROUND * at.STEP_SOUTH, _AROUND * at.STEP_SOUTH + 1, 2 * at.STEP_SOUTH
            ):
                prefetch(b, row + byte)
    for away in range(_AROUND + 1, facts.EXPLORE_STEPS + 2):
        prefetch(b, feet + away * at.STEP_SOUTH)
        prefetch(b, feet - away * at.STEP_SOUTH)
