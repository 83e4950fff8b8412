"""What a picture of a world shows, as small arrays of block ids: a map and a section.

Both ways of drawing (`render`, `ansi`) take their content from here. Pictures are for
spectators: they show blocks that the body has not seen, under the ground and beyond its sight.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at

#: Outside of the world; a block id that no world holds.
OUTSIDE: Final = facts.N_BLOCKS
#: A column of a level whose floor lies more than `SAFE_DROP` blocks below the feet.
PIT: Final = facts.N_BLOCKS + 1
SAFE_DROP: Final = facts.SAFE_FALL
#: How many layers behind the section still show through openings.
DEPTH_BEHIND: Final = 8


class Map(NamedTuple):
    """The world from above, north up, around the body. Arrays are ``(2r + 1, 2r + 1)``: z, x.

    Attributes:
        level: None for the surface, else the height of the level that is shown: the body's feet.
        block: uint8; the topmost block of a column; of a level, the wall, or the floor between.
        height: int16; at which height this block lies.
        open: bool; of a level, where one could stand: the block is a floor. False at the surface.
        trunk: bool; columns in which a log stands (leaves may hide it). False in a level.
    """

    level: int | None
    block: NDArray[np.uint8]
    height: NDArray[np.int16]
    open: NDArray[np.bool_]
    trunk: NDArray[np.bool_]


class Section(NamedTuple):
    """A vertical cut from west to east through the body. Arrays: ``(HEIGHT, 2r + 1)``: y down, x.

    Attributes:
        block: uint8; the blocks in the cut, the topmost layer first.
        behind: uint8; what shows behind air: the first block north of it, AIR if there is none.
        distance: int16; how far behind that is, in blocks.
        below_ground: bool; whether a place lies under the natural ground of its column.
    """

    block: NDArray[np.uint8]
    behind: NDArray[np.uint8]
    distance: NDArray[np.int16]
    below_ground: NDArray[np.bool_]


def is_underground(record: NDArray[np.uint8]) -> bool:
    """Whether the body's surroundings are better shown as a level than from above."""
    s = at.scalars(record)
    return int(s[at.DEPTH]) >= 2


def _window(values: NDArray[np.uint8], x: int, z: int, radius: int, fill: int) -> NDArray[np.uint8]:
    """Columns x - radius .. x + radius, likewise z, of an array indexed x, z; `fill` outside."""
    shape = (2 * radius + 1, 2 * radius + 1, *values.shape[2:])
    window = np.full(shape, fill, np.uint8)
    x0, x1 = max(0, x - radius), min(at.WIDTH, x + radius + 1)
    z0, z1 = max(0, z - radius), min(at.WIDTH, z + radius + 1)
    if x0 < x1 and z0 < z1:
        ox, oz = x0 - (x - radius), z0 - (z - radius)
        window[ox : ox + x1 - x0, oz : oz + z1 - z0] = values[x0:x1, z0:z1]
    return window


def map_around(record: NDArray[np.uint8], radius: int) -> Map:
    """The map of one world, ``radius`` blocks in each direction around the body."""
    s = at.scalars(record)
    x, y, z = int(s[at.X]), int(s[at.Y]), int(s[at.Z])
    blocks = _window(at.blocks(record), x, z, radius, OUTSIDE)
    # The highest layer is the world's lid, which nobody wants to look at.
    columns = blocks[:, :, : at.HEIGHT - 1]
    outside = (columns[:, :, 0] >= facts.BARRIER).T
    if is_underground(record):
        feet = columns[:, :, y].T
        is_open = (feet <= facts.WATER) & ~outside
        air = is_open & (feet == facts.AIR)
        below = columns[:, :, : max(1, y)]
        floor = below.shape[2] - 1 - np.argmax(below[:, :, ::-1] != facts.AIR, axis=2)
        height = np.where(air, floor.T, y).astype(np.int16)
        ground = np.take_along_axis(below, floor[:, :, None], axis=2)[:, :, 0].T
        block = np.where(air, ground, feet)
        block[air & (height < y - 1 - SAFE_DROP)] = PIT
        block[outside] = OUTSIDE
        return Map(y, block, height, is_open, np.zeros_like(is_open))
    top = columns.shape[2] - 1 - np.argmax(columns[:, :, ::-1] != facts.AIR, axis=2)
    block = np.take_along_axis(columns, top[:, :, None], axis=2)[:, :, 0].T.copy()
    block[outside] = OUTSIDE
    trunk = (columns == facts.LOG).any(axis=2).T
    return Map(None, block, top.T.astype(np.int16), np.zeros_like(trunk), trunk)


def section_through(record: NDArray[np.uint8], radius: int) -> Section:
    """The section of one world, ``radius`` blocks to the west and to the east of the body."""
    s = at.scalars(record)
    x, z = int(s[at.X]), int(s[at.Z])
    blocks = at.blocks(record)
    x0, x1 = max(0, x - radius), min(at.WIDTH, x + radius + 1)
    width = 2 * radius + 1
    shape = (width, at.HEIGHT)
    block = np.full(shape, OUTSIDE, np.uint8)
    behind = np.full(shape, facts.AIR, np.uint8)
    distance = np.zeros(shape, np.int16)
    below = np.zeros(shape, np.bool_)
    inside = slice(x0 - (x - radius), x0 - (x - radius) + x1 - x0)
    block[inside] = blocks[x0:x1, z]
    block[block[:, 0] != facts.BARRIER, at.HEIGHT - 1] = facts.AIR  # the lid
    block[block == facts.BARRIER] = OUTSIDE
    levels = np.arange(at.HEIGHT)
    below[inside] = levels[None, :] <= at.ground(record)[x0:x1, z][:, None]
    seen = behind[inside]
    far = distance[inside]
    for step in range(1, min(DEPTH_BEHIND, z - 1) + 1):
        layer = blocks[x0:x1, z - step]
        fresh = (seen == facts.AIR) & (layer != facts.AIR) & (layer != facts.BARRIER)
        seen[fresh] = layer[fresh]
        far[fresh] = step
    return Section(block.T[::-1], behind.T[::-1], distance.T[::-1], below.T[::-1])
