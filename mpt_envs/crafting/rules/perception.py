"""What the body perceives: rays, walkable steps, nearest visible targets, legal actions.

`perceive` writes the perceived fields of a record (see `layout`) from its blocks, entities and
position. They are a pure function of the rest of the record; rules call it whenever the body moved
or a block changed, and everything else (masks, observations, experts, text) only reads the fields.

The body sees a block when it lies within `SIGHT` of the eyes and a straight line from the eyes
meets its centre, or the centre of one of its faces, before anything opaque. Leaves and water are
seen through.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.world.facts import (
    AIR,
    BARRIER,
    BEDROCK,
    BURN,
    CHOP_LOG,
    CLIMB,
    COBBLESTONE,
    CRAFT_FURNACE,
    CRAFT_IRON_PICKAXE,
    CRAFT_PLANKS,
    CRAFT_STICKS,
    CRAFT_STONE_BRICKS,
    CRAFT_STONE_PICKAXE,
    CRAFT_TABLE,
    CRAFT_TORCH,
    CRAFT_WOODEN_PICKAXE,
    DIG_DOWN,
    DIRT,
    EXPLORE,
    EXPLORE_STEPS,
    EYE_HEIGHT,
    FUELS,
    GRASS,
    I_CHARCOAL,
    I_COAL,
    I_COBBLESTONE,
    I_DIRT,
    I_FURNACE,
    I_GRAVEL,
    I_IRON_INGOT,
    I_IRON_ORE,
    I_IRON_PICKAXE,
    I_LOG,
    I_SAND,
    I_STICK,
    I_STONE,
    I_STONE_BRICKS,
    I_STONE_PICKAXE,
    I_TABLE,
    I_WOODEN_PICKAXE,
    LEAVES,
    LOGGER,
    MINE_COAL,
    MINE_IRON,
    MINE_STONE,
    MINER,
    NEED,
    NO_ITEM,
    PICK_UP_FURNACE,
    PICK_UP_TABLE,
    PLACE_FURNACE,
    PLACE_TABLE,
    REACH,
    SAND,
    SIGHT,
    SMELT_BATCH,
    SMELT_CHARCOAL,
    SMELT_IRON,
    SMELT_STONE,
    SMELT_TICKS,
    SMELTS_TO,
    SMITH,
    STONE,
    TABLE,
    TAKE_SMELTED,
    TEND_FURNACE,
    TUNNEL,
    WATER,
)
from mpt_envs.crafting.world.layout import (
    ABOVE,
    BELOW,
    COAL,
    COVERED,
    DEPTH,
    FURNACE_BURN,
    FURNACE_CELL,
    FURNACE_FUEL,
    FURNACE_FUEL_COUNT,
    FURNACE_INPUT,
    FURNACE_INPUT_COUNT,
    FURNACE_NEAR,
    FURNACE_OUTPUT,
    FURNACE_OUTPUT_COUNT,
    FURNACE_PROGRESS,
    GIVEN_UP,
    GROUND_OFFSET,
    HEIGHT,
    INVENTORY,
    IRON,
    MARK_UNTIL,
    MARKS,
    MASKS,
    N_COAL,
    N_IRON,
    N_MARKS,
    N_OUTCROPS,
    N_TREES,
    NEAR_FEET,
    NEAR_HEAD,
    NEAR_NONE,
    NEAR_REACH,
    NEAR_WALK,
    OUTCROPS,
    RECORD_BYTES,
    STEP_EAST,
    STEP_SOUTH,
    TABLE_CELL,
    TABLE_NEAR,
    TARGET_CELL,
    TARGET_COAL,
    TARGET_DISTANCE,
    TARGET_IRON,
    TARGET_LOG,
    TARGET_STONE,
    TICK,
    TREES,
    WALK_RISE,
    WALK_STEPS,
    WALK_WATER,
    WIDTH,
    X,
    Y,
    Z,
    cell_of,
    cell_of_spot,
    cell_x,
    cell_y,
    cell_z,
)

#: Cell offsets of the four directions (north, east, south, west).
DIRECTION: Final = np.array([-STEP_SOUTH, STEP_EAST, STEP_SOUTH, -STEP_EAST], dtype=np.int64)
CANDIDATES: Final = 4  # how many of the nearest targets are looked at
SAFE_DROP: Final = 3
REACH_SQUARED: Final = REACH * REACH
_SIGHT_SQUARED: Final = float(SIGHT * SIGHT)
_FAR: Final = 1.0e9
_EYE_EIGHTHS: Final = round(8 * (EYE_HEIGHT - 0.5))  # eyes over a block's centre, in eighths
_OUT_OF_SIGHT: Final = (8 * SIGHT) ** 2 * 256
_FUEL_ITEMS: Final = np.array(FUELS, dtype=np.int64)


def _near_offsets() -> np.ndarray:
    """Offsets (dx, dy, dz) from the feet where stone is looked for, nearest to the eyes first."""
    found = [
        (dx, dy, dz)
        for dx in range(-2, 3)
        for dz in range(-2, 3)
        for dy in range(-1, 4)
        if (dx, dz) != (0, 0) or dy >= 2
    ]
    found.sort(key=lambda o: (o[0] ** 2 + (o[1] + 0.5 - EYE_HEIGHT) ** 2 + o[2] ** 2, o))
    return np.array(found, dtype=np.int64)


_NEAR: Final = _near_offsets()
_NEAR_CELL: Final = _NEAR[:, 0] * STEP_EAST + _NEAR[:, 1] + _NEAR[:, 2] * STEP_SOUTH


@kernel
def clear_line(b, ex, ey, ez, tx, ty, tz, target):
    """Whether a straight line from e meets the cell `target`, or gets to t, before anything opaque.

    Amanatides and Woo, "A fast voxel traversal algorithm for ray tracing" (1987).
    """
    x, y, z = np.int64(ex), np.int64(ey), np.int64(ez)
    cell = cell_of(x, y, z)
    dx, dy, dz = tx - ex, ty - ey, tz - ez
    step_x, step_y, step_z = STEP_EAST, 1, STEP_SOUTH
    next_x, next_y, next_z = _FAR, _FAR, _FAR
    delta_x, delta_y, delta_z = 0.0, 0.0, 0.0
    if dx > 0.0:
        delta_x = 1.0 / dx
        next_x = (x + 1.0 - ex) * delta_x
    elif dx < 0.0:
        delta_x = -1.0 / dx
        next_x = (ex - x) * delta_x
        step_x = -STEP_EAST
    if dy > 0.0:
        delta_y = 1.0 / dy
        next_y = (y + 1.0 - ey) * delta_y
    elif dy < 0.0:
        delta_y = -1.0 / dy
        next_y = (ey - y) * delta_y
        step_y = -1
    if dz > 0.0:
        delta_z = 1.0 / dz
        next_z = (z + 1.0 - ez) * delta_z
    elif dz < 0.0:
        delta_z = -1.0 / dz
        next_z = (ez - z) * delta_z
        step_z = -STEP_SOUTH
    while True:
        if next_x < next_y:
            if next_x < next_z:
                if next_x > 1.0:
                    return True
                cell += step_x
                next_x += delta_x
            else:
                if next_z > 1.0:
                    return True
                cell += step_z
                next_z += delta_z
        elif next_y < next_z:
            if next_y > 1.0:
                return True
            cell += step_y
            next_y += delta_y
        else:
            if next_z > 1.0:
                return True
            cell += step_z
            next_z += delta_z
        if cell == target:
            return True
        if b[cell] >= GRASS:
            return False


@kernel
def sight(b, feet, target):
    """How a block is seen from a standing cell.

    Returns:
        0: not at all; 1: its centre; 2, 3, 4: the centre of its face along x, y, z.
    """
    ex, ey, ez = cell_x(feet) + 0.5, cell_y(feet) + EYE_HEIGHT, cell_z(feet) + 0.5
    x, y, z = cell_x(target), cell_y(target), cell_z(target)
    if clear_line(b, ex, ey, ez, x + 0.5, y + 0.5, z + 0.5, target):
        return 1
    side = STEP_EAST if ex > x + 0.5 else -STEP_EAST
    if b[target + side] <= LEAVES:
        tx = x + 1.01 if side > 0 else x - 0.01
        if clear_line(b, ex, ey, ez, tx, y + 0.5, z + 0.5, target + side):
            return 2
    side = 1 if ey > y + 0.5 else -1
    if b[target + side] <= LEAVES:
        ty = y + 1.01 if side > 0 else y - 0.01
        if clear_line(b, ex, ey, ez, x + 0.5, ty, z + 0.5, target + side):
            return 3
    side = STEP_SOUTH if ez > z + 0.5 else -STEP_SOUTH
    if b[target + side] <= LEAVES:
        tz = z + 1.01 if side > 0 else z - 0.01
        if clear_line(b, ex, ey, ez, x + 0.5, y + 0.5, tz, target + side):
            return 4
    return 0


@kernel
def eye_distance_squared(feet, target):
    """Squared distance from the eyes of a body at `feet` to the centre of a block."""
    dx = cell_x(target) - cell_x(feet)
    dy = cell_y(target) - cell_y(feet) + (0.5 - EYE_HEIGHT)
    dz = cell_z(target) - cell_z(feet)
    return dx * dx + dy * dy + dz * dz


@kernel
def walk_step(b, feet, direction):
    """The cell where one step in a direction leads, or 0 if there is no way.

    A step goes level, up one block with room to jump, or down at most `SAFE_DROP` blocks. The head
    stays out of water; in deep water the body swims at the top.
    """
    ahead = feet + DIRECTION[direction]
    if b[ahead] <= WATER:
        if b[ahead + 1] != AIR:
            # The next cell is deep water: its surface may be one block higher.
            if b[ahead + 1] == WATER and b[ahead + 2] == AIR and b[feet + 2] == AIR:
                return ahead + 1
            return 0
        if b[ahead] == WATER:
            return ahead
        for _ in range(SAFE_DROP + 1):
            if b[ahead - 1] >= LEAVES or b[ahead] == WATER:
                return ahead
            ahead -= 1
        return 0
    if b[ahead] < BARRIER and b[ahead + 1] <= WATER and b[ahead + 2] == AIR and b[feet + 2] == AIR:
        return ahead + 1
    return 0


@kernel
def is_marked(s, cell):
    """Whether a target is given up for now."""
    if s[MARK_UNTIL] <= s[TICK]:
        return False
    marked = False
    for k in range(N_MARKS):
        marked |= s[MARKS + 2 * k] == cell and s[MARKS + 2 * k + 1] > s[TICK]
    return marked


@kernel
def pickaxe_level(s):
    """Level of the best pickaxe in the inventory; 0: none."""
    if s[INVENTORY + I_IRON_PICKAXE] > 0:
        return 3
    if s[INVENTORY + I_STONE_PICKAXE] > 0:
        return 2
    if s[INVENTORY + I_WOODEN_PICKAXE] > 0:
        return 1
    return 0


@kernel
def filler_count(s):
    """Blocks in the inventory that a body can pile up under itself."""
    return (
        s[INVENTORY + I_DIRT]
        + s[INVENTORY + I_SAND]
        + s[INVENTORY + I_GRAVEL]
        + s[INVENTORY + I_COBBLESTONE]
        + s[INVENTORY + I_STONE]
    )


@kernel
def fuel_needed(s, extra):
    """Ticks of burning that the furnace lacks to smelt its input and `extra` more items."""
    wanted = (s[FURNACE_INPUT_COUNT] + extra) * SMELT_TICKS - s[FURNACE_PROGRESS]
    loaded = s[FURNACE_BURN]
    if s[FURNACE_FUEL_COUNT] > 0:
        loaded += s[FURNACE_FUEL_COUNT] * BURN[s[FURNACE_FUEL]]
    return wanted - loaded


@kernel
def choose_fuel(s, needed, kept_item, kept):
    """The fuel to feed: the first kind that is enough, else the one that lasts longest.

    Args:
        needed: ticks of burning wanted.
        kept_item, kept: so many of this item are about to be smelted and must not be burnt.

    Returns:
        An item, or `NO_ITEM` if there is no fuel (or none that fits the fuel slot).
    """
    best, best_ticks = NO_ITEM, 0
    for k in range(_FUEL_ITEMS.shape[0]):
        item = _FUEL_ITEMS[k]
        if s[FURNACE_FUEL_COUNT] > 0 and s[FURNACE_FUEL] != item:
            continue
        count = np.int64(s[INVENTORY + item])
        if item == kept_item:
            count -= kept
        ticks = count * BURN[item]
        if ticks >= needed and count > 0:
            return item
        if ticks > best_ticks:
            best, best_ticks = item, ticks
    return best


@kernel
def smelt_amount(s, item):
    """How many of an item one smelting action would load."""
    count = np.int64(s[INVENTORY + item])
    if item == I_COBBLESTONE:
        return min(count, SMELT_BATCH)
    if item == I_LOG:
        return min(count, 1)
    return count


@kernel
def _can_smelt(s, item):
    """Whether a smelting action would load something, fuel at least."""
    if s[FURNACE_NEAR] == NEAR_NONE:
        return False
    if s[FURNACE_INPUT_COUNT] > 0 and s[FURNACE_INPUT] != item:
        return False
    if s[FURNACE_OUTPUT_COUNT] > 0 and s[FURNACE_OUTPUT] != SMELTS_TO[item]:
        return False
    amount = smelt_amount(s, item)
    if amount == 0 and s[FURNACE_INPUT_COUNT] == 0:
        return False
    needed = fuel_needed(s, amount)
    if needed <= 0:
        return amount > 0
    return choose_fuel(s, needed, item, amount) != NO_ITEM


@kernel
def _can_craft(s, item):
    """Whether the ingredients of a recipe are there."""
    for k in range(I_STONE + 1):
        if s[INVENTORY + k] < NEED[item, k]:
            return False
    return s[INVENTORY + I_IRON_INGOT] >= NEED[item, I_IRON_INGOT]


@kernel
def set_masks(s):
    """Write the legal actions of the three roles as bits."""
    level = pickaxe_level(s)
    logger = 1
    if s[TARGET_CELL + TARGET_LOG] != 0:
        logger |= 1 << CHOP_LOG
    miner = 1
    for direction in range(4):
        if s[WALK_STEPS + direction] > 0:
            logger |= 1 << (EXPLORE + direction)
        low, high = s[NEAR_FEET + direction], s[NEAR_HEAD + direction]
        dry = low < TABLE and high < TABLE and low != WATER and high != WATER
        if dry and (low >= LEAVES or high >= LEAVES):
            miner |= 1 << (TUNNEL + direction)
    if s[DEPTH] >= 2:
        above = s[ABOVE]
        if above <= WATER:
            if filler_count(s) > 0:
                logger |= 1 << CLIMB
        elif above < BEDROCK:
            drops = above in (GRASS, DIRT, SAND) or (level > 0 and above in (STONE, COBBLESTONE))
            if drops or filler_count(s) > 0:
                logger |= 1 << CLIMB
    s[MASKS + LOGGER] = logger

    if level > 0:
        if s[TARGET_CELL + TARGET_STONE] != 0:
            miner |= 1 << MINE_STONE
        if s[TARGET_CELL + TARGET_COAL] != 0:
            miner |= 1 << MINE_COAL
        if level > 1 and s[TARGET_CELL + TARGET_IRON] != 0:
            miner |= 1 << MINE_IRON
    if s[BELOW] >= LEAVES and s[BELOW] < TABLE:
        miner |= 1 << DIG_DOWN
    s[MASKS + MINER] = miner

    smith = 1
    sticks = s[INVENTORY + I_STICK]
    if s[INVENTORY + I_LOG] > 0:
        smith |= 1 << CRAFT_PLANKS
    if _can_craft(s, I_STICK):
        smith |= 1 << CRAFT_STICKS
    if _can_craft(s, I_TABLE):
        smith |= 1 << CRAFT_TABLE
    room = (
        s[NEAR_FEET] < TABLE
        or s[NEAR_FEET + 1] < TABLE
        or s[NEAR_FEET + 2] < TABLE
        or s[NEAR_FEET + 3] < TABLE
    )
    if room and s[INVENTORY + I_TABLE] > 0:
        smith |= 1 << PLACE_TABLE
    if room and s[INVENTORY + I_FURNACE] > 0:
        smith |= 1 << PLACE_FURNACE
    if s[TABLE_NEAR] != NEAR_NONE:
        smith |= 1 << PICK_UP_TABLE
        if _can_craft(s, I_WOODEN_PICKAXE):
            smith |= 1 << CRAFT_WOODEN_PICKAXE
        if _can_craft(s, I_STONE_PICKAXE):
            smith |= 1 << CRAFT_STONE_PICKAXE
        if _can_craft(s, I_IRON_PICKAXE):
            smith |= 1 << CRAFT_IRON_PICKAXE
        if _can_craft(s, I_FURNACE):
            smith |= 1 << CRAFT_FURNACE
    if s[FURNACE_NEAR] != NEAR_NONE:
        if level > 0:
            smith |= 1 << PICK_UP_FURNACE
        if _can_smelt(s, I_IRON_ORE):
            smith |= 1 << SMELT_IRON
        if _can_smelt(s, I_COBBLESTONE):
            smith |= 1 << SMELT_STONE
        if _can_smelt(s, I_LOG):
            smith |= 1 << SMELT_CHARCOAL
        if s[FURNACE_OUTPUT_COUNT] > 0:
            smith |= 1 << TAKE_SMELTED
        if s[FURNACE_INPUT_COUNT] > 0 and (s[FURNACE_BURN] > 0 or s[FURNACE_FUEL_COUNT] > 0):
            smith |= 1 << TEND_FURNACE
    if sticks > 0 and s[INVENTORY + I_COAL] + s[INVENTORY + I_CHARCOAL] > 0:
        smith |= 1 << CRAFT_TORCH
    if _can_craft(s, I_STONE_BRICKS):
        smith |= 1 << CRAFT_STONE_BRICKS
    s[MASKS + SMITH] = smith


@kernel
def _nearest(s, count_at, list_at, beyond):
    """The nearest entity of a list beyond another one.

    Entities are ordered by their keys: the squared distance from the eyes in eighths of a block,
    times 256, plus the index in the list. No branch of the loop depends on the data, since nothing
    would predict it.

    Returns:
        The key, or one that lies out of sight if there are no more.
    """
    x, y, z = np.int32(s[X]), np.int32(8 * s[Y] + _EYE_EIGHTHS), np.int32(s[Z])
    best = np.int32(_OUT_OF_SIGHT)
    beyond = np.int32(beyond)
    for k in range(s[count_at]):
        spot = s[list_at + k]
        dx = np.int32(np.int32(spot >> 16) - x)
        dz = np.int32(np.int32((spot >> 8) & 255) - z)
        dy = np.int32(np.int32(8 * (spot & 255)) - y)
        square = np.int32(np.int32(64 * np.int32(dx * dx + dz * dz)) + dy * dy)
        key = np.int32(np.int32(square << 8) | np.int32(k))
        key = key if key > beyond else np.int32(_OUT_OF_SIGHT)
        best = min(best, key)
    return best


@kernel
def _look(s, b, feet, kind, count_at, list_at):
    """Find the nearest visible target of a list; those given up are left out and flagged."""
    key = np.int32(-1)
    looks = 0
    while looks < CANDIDATES:
        key = _nearest(s, count_at, list_at, key)
        if key >= _OUT_OF_SIGHT:
            break
        cell = cell_of_spot(np.int64(s[list_at + (key & 255)]))
        if cell == feet - 1:
            continue
        if is_marked(s, cell):
            s[GIVEN_UP] |= 1 << kind
            continue
        if sight(b, feet, cell) != 0:
            _aim(s, feet, kind, cell)
            return
        looks += 1
    s[TARGET_CELL + kind] = 0
    s[TARGET_DISTANCE + kind] = 0


@kernel
def _aim(s, feet, kind, cell):
    """Write a target and how far it is."""
    s[TARGET_CELL + kind] = cell
    s[TARGET_DISTANCE + kind] = np.int64(10.0 * np.sqrt(eye_distance_squared(feet, cell)))


@kernel
def _look_for_stone(s, b, feet):
    """Stone is everywhere: look close by first, then at the outcrops."""
    x = s[X]
    looks = 0
    for k in range(_NEAR_CELL.shape[0]):
        cell = feet + _NEAR_CELL[k]
        if cell >= RECORD_BYTES:
            # Beyond the eastern edge of the world lies the next one, or nobody's memory.
            continue
        block = b[cell]
        if block != STONE and block != COBBLESTONE:
            continue
        side = x + _NEAR[k, 0]
        y = s[Y] + _NEAR[k, 1]
        if side < 1 or side > WIDTH - 2 or y < 1 or y > HEIGHT - 2:
            continue
        if is_marked(s, cell):
            s[GIVEN_UP] |= 1 << TARGET_STONE
            continue
        if sight(b, feet, cell) != 0:
            _aim(s, feet, TARGET_STONE, cell)
            return
        looks += 1
        if looks == CANDIDATES:
            break
    _look(s, b, feet, TARGET_STONE, N_OUTCROPS, OUTCROPS)


@kernel
def _station(s, b, feet, cell):
    """How near a table or furnace that the body has placed is."""
    if cell == 0:
        return NEAR_NONE
    square = eye_distance_squared(feet, cell)
    if square > _SIGHT_SQUARED or is_marked(s, cell) or sight(b, feet, cell) == 0:
        return NEAR_NONE
    return NEAR_REACH if square <= REACH_SQUARED else NEAR_WALK


@kernel
def perceive(s, b):
    """Write every perceived field and the masks of a record."""
    x, y, z = np.int64(s[X]), np.int64(s[Y]), np.int64(s[Z])
    feet = cell_of(x, y, z)
    s[GIVEN_UP] = 0
    _look(s, b, feet, TARGET_LOG, N_TREES, TREES)
    _look_for_stone(s, b, feet)
    _look(s, b, feet, TARGET_COAL, N_COAL, COAL)
    _look(s, b, feet, TARGET_IRON, N_IRON, IRON)
    for direction in range(4):
        beside = feet + DIRECTION[direction]
        s[NEAR_FEET + direction] = b[beside]
        s[NEAR_HEAD + direction] = b[beside + 1]
        cell = feet
        steps, water = 0, 0
        while steps < EXPLORE_STEPS:
            after = walk_step(b, cell, direction)
            if after == 0:
                break
            cell = after
            steps += 1
            if b[cell] == WATER:
                water = 1
        s[WALK_STEPS + direction] = steps
        s[WALK_RISE + direction] = cell - feet - steps * DIRECTION[direction]
        s[WALK_WATER + direction] = water
    s[BELOW] = b[feet - 1]
    s[ABOVE] = b[feet + 2] if y < HEIGHT - 2 else BARRIER
    s[DEPTH] = np.int64(b[GROUND_OFFSET + x * WIDTH + z]) + 1 - y
    s[COVERED] = 0
    for up in range(2, HEIGHT - 1 - y):
        if b[feet + up] >= GRASS:
            s[COVERED] = 1
            break
    s[TABLE_NEAR] = _station(s, b, feet, np.int64(s[TABLE_CELL]))
    s[FURNACE_NEAR] = _station(s, b, feet, np.int64(s[FURNACE_CELL]))
    set_masks(s)
