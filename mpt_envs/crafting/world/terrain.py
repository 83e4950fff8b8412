"""Seeded terrain: one world's blocks and entities as a pure function of a 64-bit key.

A world is 46 x 46 playable columns, 24 layers: hills of smooth value noise, two to three blocks of
soil over stone, lakes with sandy shores, bare rock on the tops, worm-shaped caves (some open to the
sky), coal in stone at any depth, iron in the lower part, pockets of gravel, oak trees. Ore is about
twice as dense as in Minecraft (1.9 % coal, 1.8 % iron of the stone it lies in) and comes in smaller
veins, since an episode is minutes long and a world is a few chunks wide.

The generator draws from a SplitMix64 sequence that starts at the key; nothing else is random.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.layout import cell_of, spot_of
from wrappers.rng import mix64

WATER_LEVEL: Final = 12  # topmost layer of lakes
LOWEST_GROUND: Final = 9
HIGHEST_GROUND: Final = 17
IRON_TOP: Final = 9  # iron lies at or below this layer
COAL_VEINS: Final = 120
IRON_VEINS: Final = 96
GRAVEL_POCKETS: Final = 5
CAVES: Final = 10
TREE_TRIES: Final = 56
MIN_TREES: Final = 10  # a world with fewer is drawn again
MIN_IRON: Final = 40

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_KINDS: Final = 5  # of column: grass over 2 soil, grass over 1, bare rock, sand, barrier


def _column_templates() -> np.ndarray:
    """Ready columns, uint64 (kinds, ground heights, 3): copying one is three stores."""
    columns = np.zeros((_KINDS, at.HEIGHT, at.HEIGHT), dtype=np.uint8)
    for ground in range(at.HEIGHT):
        for kind in range(_KINDS):
            column = columns[kind, ground]
            column[: ground + 1] = facts.STONE
            if kind in (0, 1):
                column[max(1, ground - 2 + kind) : ground] = facts.DIRT
                column[ground] = facts.GRASS
            elif kind == 3:
                column[max(1, ground - 2) : ground + 1] = facts.SAND
            if ground < WATER_LEVEL:
                column[ground + 1 : WATER_LEVEL + 1] = facts.WATER
            column[0] = facts.BEDROCK
            column[at.HEIGHT - 1] = facts.BARRIER
    columns[_KINDS - 1] = facts.BARRIER
    return columns.view(np.uint64)


_TEMPLATES: Final = _column_templates()
_BARRIER_KIND: Final = _KINDS - 1

# Smooth interpolation weights between lattice points 16 and 8 columns apart.
_COARSE: Final = 16
_FINE: Final = 8


def _smooth(spacing: int) -> np.ndarray:
    t = np.arange(spacing, dtype=np.float32) / np.float32(spacing)
    return (t * t * (3 - 2 * t)).astype(np.float32)


_SMOOTH_COARSE: Final = _smooth(_COARSE)
_SMOOTH_FINE: Final = _smooth(_FINE)

# Sixteen headings of a cave, in 64ths of a block.
_HEADING_X: Final = np.round(64 * np.cos(2 * np.pi * np.arange(16) / 16)).astype(np.int64)
_HEADING_Z: Final = np.round(64 * np.sin(2 * np.pi * np.arange(16) / 16)).astype(np.int64)

# Steps of a vein's random walk by three random bits (two of the six directions come twice).
_VEIN_STEP: Final = np.array(
    [
        at.STEP_EAST,
        -at.STEP_EAST,
        at.STEP_SOUTH,
        -at.STEP_SOUTH,
        1,
        -1,
        at.STEP_EAST,
        -at.STEP_SOUTH,
    ],
    dtype=np.int64,
)
_NEIGHBOURS: Final = np.array(
    [1, -1, at.STEP_SOUTH, -at.STEP_SOUTH, at.STEP_EAST, -at.STEP_EAST], dtype=np.int64
)


@kernel
def _draw(key, counter):
    """The counter-th word of the world's sequence."""
    return mix64(key + np.uint64(counter) * _GOLDEN)


@kernel
def _heights(key, r64, b):
    """Fill columns by two octaves of value noise; bytes of `ground` are set as well."""
    coarse = np.empty((5, 5), np.float32)
    fine = np.empty((8, 8), np.float32)
    scale = np.float32(2.0 / 65536.0)
    counter = 0
    for i in range(25):
        if i % 4 == 0:
            word = _draw(key, 1 + counter)
            counter += 1
        coarse[i // 5, i % 5] = np.float32(word & np.uint64(0xFFFF)) * scale - np.float32(1.0)
        word >>= np.uint64(16)
    for i in range(64):
        if i % 4 == 0:
            word = _draw(key, 1 + counter)
            counter += 1
        fine[i // 8, i % 8] = np.float32(word & np.uint64(0xFFFF)) * scale - np.float32(1.0)
        word >>= np.uint64(16)
    # The middle of the map is land, so that the spawn is.
    fine[3, 3] = max(fine[3, 3], np.float32(0.0))
    coarse_row = np.empty(5, np.float32)
    fine_row = np.empty(8, np.float32)
    base = at.BLOCKS_OFFSET // 8
    words = at.HEIGHT // 8
    for x in range(at.WIDTH):
        edge_x = x == 0 or x == at.WIDTH - 1
        i = x // _COARSE
        w = _SMOOTH_COARSE[x % _COARSE]
        for k in range(5):
            coarse_row[k] = coarse[i, k] + w * (coarse[i + 1, k] - coarse[i, k])
        i = x // _FINE
        w = _SMOOTH_FINE[x % _FINE]
        for k in range(8):
            fine_row[k] = fine[i, k] + w * (fine[i + 1, k] - fine[i, k])
        for z in range(at.WIDTH):
            k = z // _COARSE
            n1 = coarse_row[k] + _SMOOTH_COARSE[z % _COARSE] * (coarse_row[k + 1] - coarse_row[k])
            k = z // _FINE
            n2 = fine_row[k] + _SMOOTH_FINE[z % _FINE] * (fine_row[k + 1] - fine_row[k])
            ground = int(np.float32(14.0) + np.float32(3.0) * n1 + np.float32(1.8) * n2)
            ground = min(max(ground, LOWEST_GROUND), HIGHEST_GROUND)
            if edge_x or z == 0 or z == at.WIDTH - 1:
                kind = _BARRIER_KIND
            elif ground <= WATER_LEVEL:
                kind = 3
            elif n2 > np.float32(0.62):
                kind = 2
            elif (x * 7 + z * 13) & 2:
                kind = 0
            else:
                kind = 1
            column = x * at.WIDTH + z
            b[at.GROUND_OFFSET + column] = ground
            place = base + column * words
            r64[place] = _TEMPLATES[kind, ground, 0]
            r64[place + 1] = _TEMPLATES[kind, ground, 1]
            r64[place + 2] = _TEMPLATES[kind, ground, 2]


@kernel
def _wet(b, cell):
    """Whether water lies beside or over a cell (carving it would need water that flows)."""
    return (
        b[cell + 1] == facts.WATER
        or b[cell] == facts.WATER
        or b[cell + at.STEP_EAST] == facts.WATER
        or b[cell - at.STEP_EAST] == facts.WATER
        or b[cell + at.STEP_SOUTH] == facts.WATER
        or b[cell - at.STEP_SOUTH] == facts.WATER
    )


@kernel
def _caves(key, b):
    """Carve worms: the first two start at the surface and lead down."""
    for cave in range(CAVES):
        word = _draw(key, 100 + cave)
        # 64ths of a block.
        px = 64 * (5 + np.int64(word & np.uint64(0xFF)) * (at.WIDTH - 10) // 256)
        pz = 64 * (5 + np.int64((word >> np.uint64(8)) & np.uint64(0xFF)) * (at.WIDTH - 10) // 256)
        heading = np.int64((word >> np.uint64(16)) & np.uint64(15))
        length = 26 + np.int64((word >> np.uint64(20)) & np.uint64(15))
        if cave < 2:
            py = 64 * np.int64(b[at.GROUND_OFFSET + (px >> 6) * at.WIDTH + (pz >> 6)])
            slope = -36
        else:
            py = 64 * (3 + np.int64((word >> np.uint64(24)) & np.uint64(0xFF)) * 7 // 256)
            slope = 0
        bits = np.uint64(0)
        for step in range(length):
            if step % 12 == 0:
                bits = _draw(key, 120 + cave * 8 + step // 12)
            turn = np.int64(bits & np.uint64(7))
            drift = np.int64((bits >> np.uint64(3)) & np.uint64(3))
            bits >>= np.uint64(5)
            if turn == 0:
                heading = (heading + 1) & 15
            elif turn == 1:
                heading = (heading + 15) & 15
            elif turn == 2:
                heading = (heading + 2) & 15
            elif turn == 3:
                heading = (heading + 14) & 15
            px += _HEADING_X[heading]
            pz += _HEADING_Z[heading]
            if py < 64 * 7:
                slope = 0
            py += slope + 24 * (drift - 1) - 12
            x = px >> 6
            z = pz >> 6
            if x < 3 or z < 3 or x > at.WIDTH - 4 or z > at.WIDTH - 4:
                break
            py = min(max(py, 64 * 3), 64 * 15)
            y = py >> 6
            # A cross of five columns, three high in the middle and two around.
            for k in range(5):
                if k == 0:
                    cell = cell_of(x, y, z)
                    low, high = -1, 1
                else:
                    cell = cell_of(x, y, z) + _NEIGHBOURS[k + 1]
                    low, high = -1, 0
                for dy in range(high, low - 1, -1):
                    place = cell + dy
                    # Lakes lie higher than the lowest ground.
                    if (
                        b[place] < facts.BEDROCK
                        and b[place] > facts.WATER
                        and (y + dy < LOWEST_GROUND or not _wet(b, place))
                    ):
                        b[place] = facts.AIR


@kernel
def _expose(s, b, cell, count_at, list_at, capacity):
    """Add an ore block to the list of exposed ones if air or water touches it."""
    for k in range(6):
        if b[cell + _NEIGHBOURS[k]] <= facts.WATER:
            count = s[count_at]
            if count < capacity:
                s[list_at + count] = spot_of(cell)
                s[count_at] = count + 1
            return


@kernel
def _vein(s, b, word, bits, top, length, block, count_at, list_at, capacity):
    """Turn up to `length` stone blocks along a random walk into ore; return how many.

    Blocks are listed as exposed at once: caves are carved before and ores touch no air after.
    """
    x = 2 + np.int64(word & np.uint64(0xFF)) * (at.WIDTH - 4) // 256
    z = 2 + np.int64((word >> np.uint64(8)) & np.uint64(0xFF)) * (at.WIDTH - 4) // 256
    y = 1 + np.int64((word >> np.uint64(16)) & np.uint64(0xFF)) * top // 256
    cell = cell_of(x, y, z)
    placed = 0
    for _ in range(2 * length):
        here = b[cell]
        if here == facts.STONE:
            b[cell] = block
            placed += 1
            if capacity > 0:
                _expose(s, b, cell, count_at, list_at, capacity)
            if placed == length:
                break
        elif here >= facts.BEDROCK:
            break
        cell += _VEIN_STEP[np.int64(bits & np.uint64(7))]
        bits >>= np.uint64(3)
    return placed


@kernel
def _tree(s, b, x, z, bits):
    """Grow a tree on the grass of a column, if there is room for it; return whether."""
    ground = np.int64(b[at.GROUND_OFFSET + x * at.WIDTH + z])
    base = cell_of(x, ground + 1, z)
    if b[base - 1] != facts.GRASS:
        return False
    trunk = min(4 + np.int64(bits % np.uint64(3)), at.HEIGHT - 3 - ground)
    if trunk < 4:
        return False
    for dy in range(trunk + 1):
        if b[base + dy] != facts.AIR:
            return False
    # No two trunks touch, so that one can stand beside each.
    for dx in range(-1, 2):
        for dz in range(-1, 2):
            beside = base + dx * at.STEP_EAST + dz * at.STEP_SOUTH
            if b[beside] == facts.LOG or b[beside + 1] == facts.LOG:
                return False
    for dy in range(trunk):
        b[base + dy] = facts.LOG
    top = base + trunk
    for layer in range(2):
        wide = top - 2 + layer
        for dx in range(-2, 3):
            if x + dx < 1 or x + dx > at.WIDTH - 2:
                continue
            for dz in range(-2, 3):
                if z + dz < 1 or z + dz > at.WIDTH - 2 or abs(dx * dz) == 4:
                    continue
                cell = wide + dx * at.STEP_EAST + dz * at.STEP_SOUTH
                if b[cell] == facts.AIR:
                    b[cell] = facts.LEAVES
    for k in range(1, 6):
        cell = top if k == 1 else top + _NEIGHBOURS[k]
        if b[cell] == facts.AIR:
            b[cell] = facts.LEAVES
    count = s[at.N_TREES]
    s[at.TREES + count] = spot_of(base)
    s[at.N_TREES] = count + 1
    return True


@kernel
def _outcrops(s, b):
    """List bare stone that shows at the surface, thinly, so that it can be seen from afar."""
    for x in range(2, at.WIDTH - 2, 2):
        for z in range(2 + (x & 2) // 2, at.WIDTH - 2, 2):
            ground = np.int64(b[at.GROUND_OFFSET + x * at.WIDTH + z])
            cell = cell_of(x, ground, z)
            if (
                b[cell] == facts.STONE
                and b[cell + 1] == facts.AIR
                and s[at.N_OUTCROPS] < at.MAX_OUTCROPS
            ):
                s[at.OUTCROPS + s[at.N_OUTCROPS]] = spot_of(cell)
                s[at.N_OUTCROPS] += 1


@kernel
def _spawn(s, b, key):
    """Put the body on dry land near the middle with a tree in sight range; return whether."""
    for attempt in range(48):
        word = _draw(key, 700 + attempt)
        spread = 4 + attempt // 4
        x = at.WIDTH // 2 + np.int64(word & np.uint64(0xFFFF)) * (2 * spread + 1) // 65536 - spread
        word >>= np.uint64(16)
        z = at.WIDTH // 2 + np.int64(word & np.uint64(0xFFFF)) * (2 * spread + 1) // 65536 - spread
        ground = np.int64(b[at.GROUND_OFFSET + x * at.WIDTH + z])
        cell = cell_of(x, ground + 1, z)
        if (
            b[cell - 1] <= facts.LEAVES
            or b[cell] != facts.AIR
            or b[cell + 1] != facts.AIR
            or b[cell + 2] != facts.AIR
        ):
            continue
        for tree in range(s[at.N_TREES]):
            spot = s[at.TREES + tree]
            dx = (spot >> 16) - x
            dz = ((spot >> 8) & 255) - z
            if dx * dx + dz * dz <= 81:
                s[at.X] = x
                s[at.Y] = ground + 1
                s[at.Z] = z
                return True
    return False


@kernel
def _generate_once(s, b, r64, key):
    """One try at a world; return whether it is playable."""
    s[at.N_TREES] = 0
    s[at.N_COAL] = 0
    s[at.N_IRON] = 0
    s[at.N_OUTCROPS] = 0
    _heights(key, r64, b)
    _caves(key, b)
    for pocket in range(GRAVEL_POCKETS):
        word = _draw(key, 200 + 2 * pocket)
        _vein(s, b, word, _draw(key, 201 + 2 * pocket), 13, 10, facts.GRAVEL, 0, 0, 0)
    iron = 0
    for vein in range(IRON_VEINS):
        word = _draw(key, 1000 + 2 * vein)
        length = 3 + np.int64((word >> np.uint64(24)) & np.uint64(1))
        bits = _draw(key, 1001 + 2 * vein)
        iron += _vein(
            s, b, word, bits, IRON_TOP, length, facts.IRON_ORE, at.N_IRON, at.IRON, at.MAX_IRON
        )
    for vein in range(COAL_VEINS):
        word = _draw(key, 1400 + 2 * vein)
        length = 3 + np.int64((word >> np.uint64(24)) & np.uint64(3))
        bits = _draw(key, 1401 + 2 * vein)
        _vein(s, b, word, bits, 14, length, facts.COAL_ORE, at.N_COAL, at.COAL, at.MAX_COAL)
    for attempt in range(TREE_TRIES):
        if s[at.N_TREES] == at.MAX_TREES:
            break
        word = _draw(key, 500 + attempt)
        x = 2 + np.int64(word & np.uint64(0xFFFF)) * (at.WIDTH - 4) // 65536
        z = 2 + np.int64((word >> np.uint64(16)) & np.uint64(0xFFFF)) * (at.WIDTH - 4) // 65536
        _tree(s, b, x, z, word >> np.uint64(32))
    _outcrops(s, b)
    if s[at.N_TREES] < MIN_TREES or iron < MIN_IRON:
        return False
    return _spawn(s, b, key)


@kernel
def generate(s, b, r64, key):
    """Fill ground, blocks, entities and position of a record.

    A world without enough trees, iron or a place to start is drawn again from the next key.

    Args:
        s, b, r64: one record as int32, uint8 and uint64.
        key: uint64; the world is a pure function of it.

    Returns:
        How many worlds were drawn.
    """
    tries = 1
    while not _generate_once(s, b, r64, key):
        key = mix64(key + _GOLDEN)
        tries += 1
    return tries
