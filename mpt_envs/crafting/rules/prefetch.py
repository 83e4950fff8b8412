"""Fetch what a world's next turn will read while the worlds before it are being stepped.

A thousand records are tens of megabytes: nothing of a world is in the processor's near caches when
its turn comes, and its rules touch some eighty cache lines one after the other. Asking for these
lines a few worlds ahead more than halves the time of a turn. It changes no result.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.world.facts import EXPLORE_STEPS
from mpt_envs.crafting.world.layout import (
    COAL,
    IRON,
    OUTCROPS,
    STEP_EAST,
    STEP_SOUTH,
    TREES,
    WIDTH,
    X,
    Y,
    Z,
    cell_of,
)
from wrappers.prefetch import LINE, prefetch

_SCALAR_BYTES: Final = 4 * TREES
_LIST_BYTES: Final = 3 * LINE  # of each list: most are no longer
_AROUND: Final = 5  # columns on each side of the body


@kernel
def prefetch_state(b):
    """Fetch the scalars and the beginnings of the lists of a record (uint8)."""
    for at in range(0, _SCALAR_BYTES, LINE):
        prefetch(b, at)
    for at in range(0, _LIST_BYTES, LINE):
        prefetch(b, 4 * TREES + at)
        prefetch(b, 4 * COAL + at)
        prefetch(b, 4 * IRON + at)
        prefetch(b, 4 * OUTCROPS + at)


@kernel
def prefetch_surroundings(s, b):
    """Fetch the blocks around the body of a record (int32, uint8)."""
    x = np.int64(s[X])
    feet = cell_of(x, np.int64(s[Y]), np.int64(s[Z]))
    for dx in range(-EXPLORE_STEPS - 1, EXPLORE_STEPS + 2):
        if x + dx < 0 or x + dx >= WIDTH:
            continue
        row = feet + dx * STEP_EAST
        prefetch(b, row)
        if -_AROUND <= dx <= _AROUND:
            for at in range(-_AROUND * STEP_SOUTH, _AROUND * STEP_SOUTH + 1, 2 * STEP_SOUTH):
                prefetch(b, row + at)
    for away in range(_AROUND + 1, EXPLORE_STEPS + 2):
        prefetch(b, feet + away * STEP_SOUTH)
        prefetch(b, feet - away * STEP_SOUTH)
