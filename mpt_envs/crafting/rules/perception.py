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
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.layout import cell_of, cell_of_spot, cell_x, cell_y, cell_z

#: Cell offsets of the four directions (north, east, south, west).
DIRECTION: Final = np.array(
    [-at.STEP_SOUTH, at.STEP_EAST, at.STEP_SOUTH, -at.STEP_EAST], dtype=np.int64
)
CANDIDATES: Final = 4  # how many of the nearest targets are looked at
SAFE_DROP: Final = 3
REACH_SQUARED: Final = facts.REACH * facts.REACH
_SIGHT_SQUARED: Final = float(facts.SIGHT * facts.SIGHT)
_FAR: Final = 1.0e9
_EYE_EIGHTHS: Final = round(8 * (facts.EYE_HEIGHT - 0.5))  # eyes over a block's centre, in eighths
_OUT_OF_SIGHT: Final = (8 * facts.SIGHT) ** 2 * 256
_FUEL_ITEMS: Final = np.array(facts.FUELS, dtype=np.int64)


def _near_offsets() -> np.ndarray:
    """Offsets (dx, dy, dz) from the feet where stone is looked for, nearest to the eyes first."""
    found = [
        (dx, dy, dz)
        for dx in range(-2, 3)
        for dz in range(-2, 3)
        for dy in range(-1, 4)
        if (dx, dz) != (0, 0) or dy >= 2
    ]
    found.sort(key=lambda o: (o[0] ** 2 + (o[1] + 0.5 - facts.EYE_HEIGHT) ** 2 + o[2] ** 2, o))
    return np.array(found, dtype=np.int64)


_NEAR: Final = _near_offsets()
_NEAR_CELL: Final = _NEAR[:, 0] * at.STEP_EAST + _NEAR[:, 1] + _NEAR[:, 2] * at.STEP_SOUTH


@kernel
def _axis(start, way, first, step):
    """Of a line along one axis: when it leaves its first cell, and then each; how cells change."""
    if way > 0.0:
        return (first + 1.0 - start) * (1.0 / way), 1.0 / way, step
    if way < 0.0:
        return (start - first) * (-1.0 / way), -1.0 / way, -step
    return _FAR, 0.0, step


@kernel
def clear_line(b, ex, ey, ez, tx, ty, tz, target):
    """Whether a straight line from e meets the cell `target`, or gets to t, before anything opaque.

    Amanatides and Woo, "A fast voxel traversal algorithm for ray tracing" (1987).
    """
    x, y, z = np.int64(ex), np.int64(ey), np.int64(ez)
    cell = cell_of(x, y, z)
    dx, dy, dz = tx - ex, ty - ey, tz - ez
    next_x, delta_x, step_x = _axis(ex, dx, x, at.STEP_EAST)
    next_y, delta_y, step_y = _axis(ey, dy, y, 1)
    next_z, delta_z, step_z = _axis(ez, dz, z, at.STEP_SOUTH)
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
        if b[cell] >= facts.GRASS:
            return False


@kernel
def sight(b, feet, target):
    """How a block is seen from a standing cell.

    Returns:
        0: not at all; 1: its centre; 2, 3, 4: the centre of its face along x, y, z.
    """
    ex, ey, ez = cell_x(feet) + 0.5, cell_y(feet) + facts.EYE_HEIGHT, cell_z(feet) + 0.5
    x, y, z = cell_x(target), cell_y(target), cell_z(target)
    if clear_line(b, ex, ey, ez, x + 0.5, y + 0.5, z + 0.5, target):
        return 1
    side = at.STEP_EAST if ex > x + 0.5 else -at.STEP_EAST
    if b[target + side] <= facts.LEAVES:
        tx = x + 1.01 if side > 0 else x - 0.01
        if clear_line(b, ex, ey, ez, tx, y + 0.5, z + 0.5, target + side):
            return 2
    side = 1 if ey > y + 0.5 else -1
    if b[target + side] <= facts.LEAVES:
        ty = y + 1.01 if side > 0 else y - 0.01
        if clear_line(b, ex, ey, ez, x + 0.5, ty, z + 0.5, target + side):
            return 3
    side = at.STEP_SOUTH if ez > z + 0.5 else -at.STEP_SOUTH
    if b[target + side] <= facts.LEAVES:
        tz = z + 1.01 if side > 0 else z - 0.01
        if clear_line(b, ex, ey, ez, x + 0.5, y + 0.5, tz, target + side):
            return 4
    return 0


@kernel
def eye_distance_squared(feet, target):
    """Squared distance from the eyes of a body at `feet` to the centre of a block."""
    dx = cell_x(target) - cell_x(feet)
    dy = cell_y(target) - cell_y(feet) + (0.5 - facts.EYE_HEIGHT)
    dz = cell_z(target) - cell_z(feet)
    return dx * dx + dy * dy + dz * dz


@kernel
def walk_step(b, feet, direction):
    """The cell where one step in a direction leads, or 0 if there is no way.

    A step goes level, up one block with room to jump, or down at most `SAFE_DROP` blocks. The head
    stays out of water; in deep water the body swims at the top.
    """
    ahead = feet + DIRECTION[direction]
    if b[ahead] <= facts.WATER:
        if b[ahead + 1] != facts.AIR:
            # The next cell is deep water: its surface may be one block higher.
            if (
                b[ahead + 1] == facts.WATER
                and b[ahead + 2] == facts.AIR
                and b[feet + 2] == facts.AIR
            ):
                return ahead + 1
            return 0
        if b[ahead] == facts.WATER:
            return ahead
        for _ in range(SAFE_DROP + 1):
            if b[ahead - 1] >= facts.LEAVES or b[ahead] == facts.WATER:
                return ahead
            ahead -= 1
        return 0
    if (
        b[ahead] < facts.BARRIER
        and b[ahead + 1] <= facts.WATER
        and b[ahead + 2] == facts.AIR
        and b[feet + 2] == facts.AIR
    ):
        return ahead + 1
    return 0


@kernel
def is_marked(s, cell):
    """Whether a target is given up for now."""
    if s[at.MARK_UNTIL] <= s[at.TICK]:
        return False
    marked = False
    for k in range(at.N_MARKS):
        marked |= s[at.MARKS + 2 * k] == cell and s[at.MARKS + 2 * k + 1] > s[at.TICK]
    return marked


@kernel
def pickaxe_level(s):
    """Level of the best pickaxe in the inventory; 0: none."""
    if s[at.INVENTORY + facts.I_IRON_PICKAXE] > 0:
        return 3
    if s[at.INVENTORY + facts.I_STONE_PICKAXE] > 0:
        return 2
    if s[at.INVENTORY + facts.I_WOODEN_PICKAXE] > 0:
        return 1
    return 0


@kernel
def filler_count(s):
    """Blocks in the inventory that a body can pile up under itself."""
    return (
        s[at.INVENTORY + facts.I_DIRT]
        + s[at.INVENTORY + facts.I_SAND]
        + s[at.INVENTORY + facts.I_GRAVEL]
        + s[at.INVENTORY + facts.I_COBBLESTONE]
        + s[at.INVENTORY + facts.I_STONE]
    )


@kernel
def fuel_needed(s, extra):
    """Ticks of burning that the furnace lacks to smelt its input and `extra` more items."""
    wanted = (s[at.FURNACE_INPUT_COUNT] + extra) * facts.SMELT_TICKS - s[at.FURNACE_PROGRESS]
    loaded = s[at.FURNACE_BURN]
    if s[at.FURNACE_FUEL_COUNT] > 0:
        loaded += s[at.FURNACE_FUEL_COUNT] * facts.BURN[s[at.FURNACE_FUEL]]
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
    best, best_ticks = facts.NO_ITEM, 0
    for k in range(_FUEL_ITEMS.shape[0]):
        item = _FUEL_ITEMS[k]
        if s[at.FURNACE_FUEL_COUNT] > 0 and s[at.FURNACE_FUEL] != item:
            continue
        count = np.int64(s[at.INVENTORY + item])
        if item == kept_item:
            count -= kept
        ticks = count * facts.BURN[item]
        if ticks >= needed and count > 0:
            return item
        if ticks > best_ticks:
            best, best_ticks = item, ticks
    return best


@kernel
def smelt_amount(s, item):
    """How many of an item one smelting action would load."""
    count = np.int64(s[at.INVENTORY + item])
    if item == facts.I_COBBLESTONE:
        return min(count, facts.SMELT_BATCH)
    if item == facts.I_LOG:
        return min(count, 1)
    return count


@kernel
def _can_smelt(s, item):
    """Whether a smelting action would load something, fuel at least."""
    if s[at.FURNACE_NEAR] == at.NEAR_NONE:
        return False
    if s[at.FURNACE_INPUT_COUNT] > 0 and s[at.FURNACE_INPUT] != item:
        return False
    if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] != facts.SMELTS_TO[item]:
        return False
    amount = smelt_amount(s, item)
    if amount == 0 and s[at.FURNACE_INPUT_COUNT] == 0:
        return False
    needed = fuel_needed(s, amount)
    if needed <= 0:
        return amount > 0
    return choose_fuel(s, needed, item, amount) != facts.NO_ITEM


@kernel
def _can_craft(s, item):
    """Whether the ingredients of a recipe are there."""
    if item == facts.I_TORCH:
        fire = s[at.INVENTORY + facts.I_COAL] + s[at.INVENTORY + facts.I_CHARCOAL]
        return fire > 0 and s[at.INVENTORY + facts.I_STICK] > 0
    for k in range(facts.I_STONE + 1):
        if s[at.INVENTORY + k] < facts.NEED[item, k]:
            return False
    return s[at.INVENTORY + facts.I_IRON_INGOT] >= facts.NEED[item, facts.I_IRON_INGOT]


@kernel
def set_masks(s):
    """Write the legal actions of the three roles as bits."""
    level = pickaxe_level(s)
    logger = 1
    if s[at.TARGET_CELL + at.TARGET_LOG] != 0:
        logger |= 1 << facts.CHOP_LOG
    miner = 1
    for direction in range(4):
        if s[at.WALK_STEPS + direction] > 0:
            logger |= 1 << (facts.EXPLORE + direction)
        low, high = s[at.NEAR_FEET + direction], s[at.NEAR_HEAD + direction]
        dry = (
            low < facts.TABLE and high < facts.TABLE and low != facts.WATER and high != facts.WATER
        )
        if dry and (low >= facts.LEAVES or high >= facts.LEAVES):
            miner |= 1 << (facts.TUNNEL + direction)
    if s[at.DEPTH] >= 2:
        above = s[at.ABOVE]
        if above <= facts.WATER:
            if filler_count(s) > 0:
                logger |= 1 << facts.CLIMB
        elif above < facts.BEDROCK:
            drops = above in (facts.GRASS, facts.DIRT, facts.SAND) or (
                level > 0 and above in (facts.STONE, facts.COBBLESTONE)
            )
            if drops or filler_count(s) > 0:
                logger |= 1 << facts.CLIMB
    s[at.MASKS + facts.LOGGER] = logger

    if level > 0:
        if s[at.TARGET_CELL + at.TARGET_STONE] != 0:
            miner |= 1 << facts.MINE_STONE
        if s[at.TARGET_CELL + at.TARGET_COAL] != 0:
            miner |= 1 << facts.MINE_COAL
        if level > 1 and s[at.TARGET_CELL + at.TARGET_IRON] != 0:
            miner |= 1 << facts.MINE_IRON
    if s[at.BELOW] >= facts.LEAVES and s[at.BELOW] < facts.TABLE:
        miner |= 1 << facts.DIG_DOWN
    s[at.MASKS + facts.MINER] = miner

    smith = 1
    for action in range(facts.CRAFTED.shape[0]):
        item = facts.CRAFTED[action]
        near = item != facts.NO_ITEM and (
            not facts.AT_TABLE[item] or s[at.TABLE_NEAR] != at.NEAR_NONE
        )
        if near and _can_craft(s, item):
            smith |= 1 << action
    room = (
        s[at.NEAR_FEET] < facts.TABLE
        or s[at.NEAR_FEET + 1] < facts.TABLE
        or s[at.NEAR_FEET + 2] < facts.TABLE
        or s[at.NEAR_FEET + 3] < facts.TABLE
    )
    if room and s[at.INVENTORY + facts.I_TABLE] > 0:
        smith |= 1 << facts.PLACE_TABLE
    if room and s[at.INVENTORY + facts.I_FURNACE] > 0:
        smith |= 1 << facts.PLACE_FURNACE
    if s[at.TABLE_NEAR] != at.NEAR_NONE:
        smith |= 1 << facts.PICK_UP_TABLE
    if s[at.FURNACE_NEAR] != at.NEAR_NONE:
        if level > 0:
            smith |= 1 << facts.PICK_UP_FURNACE
        if _can_smelt(s, facts.I_IRON_ORE):
            smith |= 1 << facts.SMELT_IRON
        if _can_smelt(s, facts.I_COBBLESTONE):
            smith |= 1 << facts.SMELT_STONE
        if _can_smelt(s, facts.I_LOG):
            smith |= 1 << facts.SMELT_CHARCOAL
        if s[at.FURNACE_OUTPUT_COUNT] > 0:
            smith |= 1 << facts.TAKE_SMELTED
        if s[at.FURNACE_INPUT_COUNT] > 0 and (
            s[at.FURNACE_BURN] > 0 or s[at.FURNACE_FUEL_COUNT] > 0
        ):
            smith |= 1 << facts.TEND_FURNACE
    s[at.MASKS + facts.SMITH] = smith


@kernel
def _nearest(s, count_at, list_at, beyond):
    """The nearest entity of a list beyond another one.

    Entities are ordered by their keys: the squared distance from the eyes in eighths of a block,
    times 256, plus the index in the list. No branch of the loop depends on the data, since nothing
    would predict it.

    Returns:
        The key, or one that lies out of sight if there are no more.
    """
    x, y, z = np.int32(s[at.X]), np.int32(8 * s[at.Y] + _EYE_EIGHTHS), np.int32(s[at.Z])
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
            s[at.GIVEN_UP] |= 1 << kind
            continue
        if sight(b, feet, cell) != 0:
            _aim(s, feet, kind, cell)
            return
        looks += 1
    s[at.TARGET_CELL + kind] = 0
    s[at.TARGET_DISTANCE + kind] = 0


@kernel
def _aim(s, feet, kind, cell):
    """Write a target and how far it is."""
    s[at.TARGET_CELL + kind] = cell
    s[at.TARGET_DISTANCE + kind] = np.int64(10.0 * np.sqrt(eye_distance_squared(feet, cell)))


@kernel
def _look_for_stone(s, b, feet):
    """Stone is everywhere: look close by first, then at the outcrops."""
    x = s[at.X]
    looks = 0
    for k in range(_NEAR_CELL.shape[0]):
        cell = feet + _NEAR_CELL[k]
        if cell >= at.RECORD_BYTES:
            # Beyond the eastern edge of the world lies the next one, or nobody's memory.
            continue
        block = b[cell]
        if block != facts.STONE and block != facts.COBBLESTONE:
            continue
        side = x + _NEAR[k, 0]
        y = s[at.Y] + _NEAR[k, 1]
        if side < 1 or side > at.WIDTH - 2 or y < 1 or y > at.HEIGHT - 2:
            continue
        if is_marked(s, cell):
            s[at.GIVEN_UP] |= 1 << at.TARGET_STONE
            continue
        if sight(b, feet, cell) != 0:
            _aim(s, feet, at.TARGET_STONE, cell)
            return
        looks += 1
        if looks == CANDIDATES:
            break
    _look(s, b, feet, at.TARGET_STONE, at.N_OUTCROPS, at.OUTCROPS)


@kernel
def _station(s, b, feet, cell):
    """How near a table or furnace that the body has placed is."""
    if cell == 0:
        return at.NEAR_NONE
    square = eye_distance_squared(feet, cell)
    if square > _SIGHT_SQUARED or is_marked(s, cell) or sight(b, feet, cell) == 0:
        return at.NEAR_NONE
    return at.NEAR_REACH if square <= REACH_SQUARED else at.NEAR_WALK


@kernel
def perceive(s, b):
    """Write every perceived field and the masks of a record."""
    x, y, z = np.int64(s[at.X]), np.int64(s[at.Y]), np.int64(s[at.Z])
    feet = cell_of(x, y, z)
    s[at.GIVEN_UP] = 0
    _look(s, b, feet, at.TARGET_LOG, at.N_TREES, at.TREES)
    _look_for_stone(s, b, feet)
    _look(s, b, feet, at.TARGET_COAL, at.N_COAL, at.COAL)
    _look(s, b, feet, at.TARGET_IRON, at.N_IRON, at.IRON)
    for direction in range(4):
        beside = feet + DIRECTION[direction]
        s[at.NEAR_FEET + direction] = b[beside]
        s[at.NEAR_HEAD + direction] = b[beside + 1]
        cell = feet
        steps, water = 0, 0
        while steps < facts.EXPLORE_STEPS:
            after = walk_step(b, cell, direction)
            if after == 0:
                break
            cell = after
            steps += 1
            if b[cell] == facts.WATER:
                water = 1
        s[at.WALK_STEPS + direction] = steps
        s[at.WALK_RISE + direction] = cell - feet - steps * DIRECTION[direction]
        s[at.WALK_WATER + direction] = water
    s[at.BELOW] = b[feet - 1]
    s[at.ABOVE] = b[feet + 2] if y < at.HEIGHT - 2 else facts.BARRIER
    s[at.DEPTH] = np.int64(b[at.GROUND_OFFSET + x * at.WIDTH + z]) + 1 - y
    s[at.COVERED] = 0
    for up in range(2, at.HEIGHT - 1 - y):
        if b[feet + up] >= facts.GRASS:
            s[at.COVERED] = 1
            break
    s[at.TABLE_NEAR] = _station(s, b, feet, np.int64(s[at.TABLE_CELL]))
    s[at.FURNACE_NEAR] = _station(s, b, feet, np.int64(s[at.FURNACE_CELL]))
    set_masks(s)
