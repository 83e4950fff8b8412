"""The rules: what one decision does to a world. Compiled functions over one record.

`act` and `skip` are the two ways in which a turn passes; `begin` starts an episode. Everything that
they need to know lies in the record (`layout`), all numbers come from `facts`.

Simplifications against Minecraft, all deliberate: drops fly to the body at once; water does not
flow; leaves drop nothing and do not decay; there are no mobs, no hunger and no night.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.rules.perception import (
    DIRECTION,
    REACH_SQUARED,
    choose_fuel,
    eye_distance_squared,
    fuel_needed,
    perceive,
    pickaxe_level,
    set_masks,
    sight,
    smelt_amount,
    walk_step,
)
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import GOAL_ITEM, MILESTONE_VALUE
from mpt_envs.crafting.world.layout import cell_of, cell_x, cell_y, cell_z, spot_of
from mpt_envs.crafting.world.terrain import generate
from wrappers.rng import uniform4

STREAM_GRAVEL: Final = 1000  # whether gravel drops flint

_SEARCH_CELLS: Final = 320  # cells that a search for a way looks at
_SEARCH_RADIUS: Final = 12
_GREEDY_STEPS: Final = 20
_LOW_WORD: Final = np.uint64(0xFFFFFFFF)
_NEIGHBOURS: Final = np.array(
    [at.STEP_UP, -at.STEP_UP, at.STEP_SOUTH, -at.STEP_SOUTH, at.STEP_EAST, -at.STEP_EAST],
    dtype=np.int64,
)
_DURABILITY: Final = np.array(facts.PICKAXE_DURABILITY, dtype=np.int64)
_PICKAXES: Final = np.array(facts.PICKAXES, dtype=np.int64)
# Fillers in the order in which they are used up: what no recipe needs comes first.
_FILLERS: Final = np.array(
    [facts.I_DIRT, facts.I_SAND, facts.I_GRAVEL, facts.I_COBBLESTONE, facts.I_STONE], dtype=np.int64
)
_FILLER_BLOCKS: Final = np.array(
    [facts.DIRT, facts.SAND, facts.GRAVEL, facts.COBBLESTONE, facts.STONE], dtype=np.int64
)
_MAX_COLLAPSE: Final = 12  # sand and gravel that can slide into one dug cell


# --- bookkeeping --------------------------------------------------------------------------------


@kernel
def get_key(s):
    """The key of the random draws to come, uint64."""
    low = np.uint64(s[at.KEY_LOW]) & _LOW_WORD
    return (np.uint64(s[at.KEY_HIGH]) << np.uint64(32)) | low


@kernel
def set_key(s, key):
    """Draw the future random numbers from another key (uint64)."""
    s[at.KEY_LOW] = np.int32(key & _LOW_WORD)
    s[at.KEY_HIGH] = np.int32(key >> np.uint64(32))


@kernel
def add_event(s, event, argument, amount):
    """Write an event into the ring of the last ones."""
    slot = at.EVENTS + at.EVENT_FIELDS * (s[at.EVENT_COUNT] % at.N_EVENTS)
    s[slot] = s[at.TURN]
    s[slot + 1] = event
    s[slot + 2] = argument
    s[slot + 3] = amount
    s[at.EVENT_COUNT] += 1


@kernel
def gain(s, item, amount):
    """Put items into the inventory."""
    s[at.INVENTORY + item] += amount
    s[at.SEEN] |= 1 << item


@kernel
def spend(s, milliticks):
    """Let time pass that is no whole number of ticks."""
    total = s[at.MILLITICK] + milliticks
    s[at.TICK] += total // 1000
    s[at.MILLITICK] = total % 1000


@kernel
def sync_furnace(s):
    """Let the furnace burn and smelt up to the present tick."""
    left = s[at.TICK] - s[at.FURNACE_TICK]
    s[at.FURNACE_TICK] = s[at.TICK]
    if s[at.FURNACE_CELL] == 0:
        return
    while left > 0:
        cooking = s[at.FURNACE_INPUT_COUNT] > 0
        if s[at.FURNACE_BURN] == 0:
            if not cooking or s[at.FURNACE_FUEL_COUNT] == 0:
                # Without fire the progress of an item is lost at twice the speed.
                s[at.FURNACE_PROGRESS] = max(0, s[at.FURNACE_PROGRESS] - 2 * left)
                return
            s[at.FURNACE_FUEL_COUNT] -= 1
            s[at.FURNACE_BURN] = facts.BURN[s[at.FURNACE_FUEL]]
        span = min(left, s[at.FURNACE_BURN])
        if cooking:
            span = min(span, facts.SMELT_TICKS - s[at.FURNACE_PROGRESS])
            s[at.FURNACE_PROGRESS] += span
        s[at.FURNACE_BURN] -= span
        left -= span
        if cooking and s[at.FURNACE_PROGRESS] == facts.SMELT_TICKS:
            s[at.FURNACE_PROGRESS] = 0
            s[at.FURNACE_INPUT_COUNT] -= 1
            s[at.FURNACE_OUTPUT] = facts.SMELTS_TO[s[at.FURNACE_INPUT]]
            s[at.FURNACE_OUTPUT_COUNT] += 1


# --- blocks -------------------------------------------------------------------------------------


@kernel
def _remove(s, count_at, list_at, cell):
    """Take a cell off an entity list; the order of the others stays."""
    count = s[count_at]
    spot = spot_of(cell)
    for k in range(count):
        if s[list_at + k] == spot:
            for j in range(k, count - 1):
                s[list_at + j] = s[list_at + j + 1]
            s[list_at + count - 1] = 0
            s[count_at] = count - 1
            return


@kernel
def _add_once(s, count_at, list_at, capacity, cell):
    count = s[count_at]
    spot = spot_of(cell)
    for k in range(count):
        if s[list_at + k] == spot:
            return
    if count < capacity:
        s[list_at + count] = spot
        s[count_at] = count + 1


@kernel
def _opened(s, b, cell):
    """A cell became open: ores beside it are exposed from now on."""
    for k in range(6):
        beside = cell + _NEIGHBOURS[k]
        if b[beside] == facts.COAL_ORE:
            _add_once(s, at.N_COAL, at.COAL, at.MAX_COAL, beside)
        elif b[beside] == facts.IRON_ORE:
            _add_once(s, at.N_IRON, at.IRON, at.MAX_IRON, beside)


@kernel
def _collapse(s, b, cell):
    """Sand and gravel over a cell that became open fall down, but not into the body."""
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    source = cell + 1
    while b[source] == facts.SAND or b[source] == facts.GRAVEL:
        target = source
        while b[target - 1] <= facts.WATER and target - 1 != feet and target - 1 != feet + 1:
            target -= 1
        if target == source:
            return
        b[target] = b[source]
        b[source] = facts.AIR
        _opened(s, b, source)
        source += 1


@kernel
def dig_cost(s, b, cell, level):
    """Ticks to dig a block from where the body stands, with the pickaxe of a level."""
    ticks = facts.DIG_TICKS[b[cell], level]
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    if b[feet + 1] == facts.WATER:
        ticks *= facts.WATER_DIG_FACTOR
    if b[feet] == facts.WATER and b[feet - 1] <= facts.WATER:
        ticks *= facts.WATER_DIG_FACTOR
    return ticks


@kernel
def dig(s, b, cell):
    """Dig one block with the best pickaxe, or by hand where a pickaxe does not help.

    Time passes, the tool wears, the drop is collected, what lay over the block may slide down.
    """
    block = np.int64(b[cell])
    level = pickaxe_level(s) if facts.NEEDS_PICKAXE[block] == 1 else 0
    s[at.TICK] += dig_cost(s, b, cell, level) + facts.BREAK_DELAY_TICKS
    s[at.DUG + block] += 1
    if level > 0:
        tool = _PICKAXES[level - 1]
        s[at.WEAR + level - 1] += 1
        if s[at.WEAR + level - 1] == _DURABILITY[level - 1]:
            s[at.WEAR + level - 1] = 0
            s[at.INVENTORY + tool] -= 1
            add_event(s, at.EVENT_TOOL_BROKE, tool, 1)
    drop = np.int64(facts.DROP[block])
    if drop != facts.NO_ITEM and level >= facts.LEVEL[block]:
        luck = (
            uniform4(get_key(s), s[at.TURN], STREAM_GRAVEL, cell) if block == facts.GRAVEL else 1.0
        )
        if luck < facts.FLINT_CHANCE:
            drop = facts.I_FLINT
        gain(s, drop, 1)
    b[cell] = facts.AIR
    if block == facts.LOG:
        _felled(s, b, cell)
    elif block == facts.COAL_ORE:
        _remove(s, at.N_COAL, at.COAL, cell)
    elif block == facts.IRON_ORE:
        _remove(s, at.N_IRON, at.IRON, cell)
    elif block == facts.STONE:
        _remove(s, at.N_OUTCROPS, at.OUTCROPS, cell)
    elif block == facts.TABLE and cell == s[at.TABLE_CELL]:
        s[at.TABLE_CELL] = 0
    elif block == facts.FURNACE and cell == s[at.FURNACE_CELL]:
        _empty_furnace(s)
        s[at.FURNACE_CELL] = 0
    _opened(s, b, cell)
    _collapse(s, b, cell)


@kernel
def _felled(s, b, cell):
    """Keep the tree list at the lowest log that stands."""
    spot = spot_of(cell)
    for k in range(s[at.N_TREES]):
        if s[at.TREES + k] == spot:
            for up in range(1, 7):
                if b[cell + up] == facts.LOG:
                    s[at.TREES + k] = spot_of(cell + up)
                    return
                if b[cell + up] >= facts.BEDROCK:
                    break
            _remove(s, at.N_TREES, at.TREES, cell)
            return


@kernel
def _empty_furnace(s):
    """Everything in the furnace goes into the inventory; the fire goes out."""
    sync_furnace(s)
    for slot in range(at.FURNACE_INPUT, at.FURNACE_BURN, 2):
        if s[slot + 1] > 0:
            gain(s, s[slot], s[slot + 1])
    _clear_furnace(s)


@kernel
def _clear_furnace(s):
    for slot in range(at.FURNACE_INPUT, at.FURNACE_BURN, 2):
        s[slot] = facts.NO_ITEM
        s[slot + 1] = 0
    s[at.FURNACE_BURN] = 0
    s[at.FURNACE_PROGRESS] = 0


@kernel
def _dig_and_tell(s, b, cell):
    """Dig one block and write what came of it as an event."""
    block = np.int64(b[cell])
    drop = np.int64(facts.DROP[block])
    before = s[at.INVENTORY + drop] if drop != facts.NO_ITEM else np.int32(0)
    flint = s[at.INVENTORY + facts.I_FLINT]
    dig(s, b, cell)
    if s[at.INVENTORY + facts.I_FLINT] > flint:
        add_event(s, at.EVENT_GOT, facts.I_FLINT, 1)
    elif drop != facts.NO_ITEM and s[at.INVENTORY + drop] > before:
        add_event(s, at.EVENT_GOT, drop, 1)
    else:
        add_event(s, at.EVENT_BROKE, block, 1)


# --- movement -----------------------------------------------------------------------------------


@kernel
def _step_cost(b, before, after, direction):
    """Milliticks of one step from one standing cell to the next."""
    cost = facts.SWIM_MILLITICKS if b[after] == facts.WATER else facts.WALK_MILLITICKS
    rise = after - before - DIRECTION[direction]
    if rise > 0:
        cost += 1000 * facts.JUMP_TICKS
    elif rise < 0:
        cost += 1000 * facts.FALL_TICKS[-rise]
    return cost


@kernel
def _stand(s, feet):
    """Put the body on a cell."""
    s[at.X] = cell_x(feet)
    s[at.Y] = cell_y(feet)
    s[at.Z] = cell_z(feet)


@kernel
def _settle(s, b):
    """Gravity: an unsupported body falls; falls of more than `SAFE_FALL` blocks hurt."""
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    fallen = 0
    while b[feet - 1] <= facts.WATER and b[feet] != facts.WATER:
        feet -= 1
        fallen += 1
    if fallen == 0:
        return
    s[at.Y] -= fallen
    s[at.TICK] += facts.FALL_TICKS[fallen]
    if fallen > 1:
        add_event(s, at.EVENT_FELL, 0, fallen)
    if fallen > facts.SAFE_FALL and b[feet] != facts.WATER:
        s[at.WOUND] += facts.REGENERATION_TICKS * (fallen - facts.SAFE_FALL)
        add_event(s, at.EVENT_HURT, 0, fallen - facts.SAFE_FALL)


@kernel
def _at_work(b, feet, target):
    """Whether a block can be touched from a standing cell: in reach and in sight."""
    return eye_distance_squared(feet, target) <= REACH_SQUARED and sight(b, feet, target) != 0


@kernel
def _go_greedily(s, b, target):
    """Walk straight towards a target, the longer axis first; return whether it worked."""
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    x, z = cell_x(target), cell_z(target)
    cost = 0
    for _ in range(_GREEDY_STEPS):
        dx, dz = x - cell_x(feet), z - cell_z(feet)
        if dx == 0 and dz == 0:
            return False
        along_x = 1 if dx > 0 else 3
        along_z = 2 if dz > 0 else 0
        first, second = along_x, along_z
        if abs(dz) > abs(dx):
            first, second = along_z, along_x
        direction = first
        after = walk_step(b, feet, first)
        if after == 0 and dx != 0 and dz != 0:
            direction = second
            after = walk_step(b, feet, second)
        if after == 0:
            return False
        cost += _step_cost(b, feet, after, direction)
        feet = after
        if _at_work(b, feet, target):
            _stand(s, feet)
            spend(s, cost)
            return True
    return False


@kernel
def _go_by_search(s, b, target):
    """Walk to the nearest cell, by steps, from which a target can be touched (breadth first)."""
    x0, z0 = np.int64(s[at.X]), np.int64(s[at.Z])
    side = 2 * _SEARCH_RADIUS + 1
    visited = np.zeros(side * side, np.uint32)  # a bit per height
    queue = np.empty(_SEARCH_CELLS, np.int64)
    costs = np.empty(_SEARCH_CELLS, np.int64)
    queue[0] = cell_of(s[at.X], s[at.Y], s[at.Z])
    costs[0] = 0
    head, tail = 0, 1
    visited[_SEARCH_RADIUS * side + _SEARCH_RADIUS] = np.uint32(1) << np.uint32(s[at.Y])
    while head < tail:
        feet = queue[head]
        for direction in range(4):
            after = walk_step(b, feet, direction)
            if after == 0 or tail == _SEARCH_CELLS:
                continue
            dx = cell_x(after) - x0 + _SEARCH_RADIUS
            dz = cell_z(after) - z0 + _SEARCH_RADIUS
            if dx < 0 or dz < 0 or dx >= side or dz >= side:
                continue
            bit = np.uint32(1) << np.uint32(cell_y(after))
            if visited[dx * side + dz] & bit:
                continue
            visited[dx * side + dz] |= bit
            cost = costs[head] + _step_cost(b, feet, after, direction)
            if _at_work(b, after, target):
                _stand(s, after)
                spend(s, cost)
                return True
            queue[tail] = after
            costs[tail] = cost
            tail += 1
        head += 1
    return False


@kernel
def _give_up(s, target, kind):
    """No way: remember that, so that the target is left out for a while."""
    slot = at.MARKS + 2 * s[at.MARK_NEXT]
    s[slot] = target
    s[slot + 1] = s[at.TICK] + facts.GIVE_UP_TICKS
    s[at.MARK_UNTIL] = s[slot + 1]
    s[at.MARK_NEXT] = (s[at.MARK_NEXT] + 1) % at.N_MARKS
    s[at.TICK] += facts.BLOCKED_TICKS
    s[at.BLOCKED] += 1
    s[at.LAST_OUTCOME] = at.OUTCOME_BLOCKED
    add_event(s, at.EVENT_BLOCKED, kind, 0)


@kernel
def go_to(s, b, target, kind):
    """Walk until a target can be touched; return whether it can.

    Args:
        target: cell of the block.
        kind: TARGET_..., 4 for a table, 5 for a furnace: for the event.
    """
    if _at_work(b, cell_of(s[at.X], s[at.Y], s[at.Z]), target):
        return True
    if _go_greedily(s, b, target) or _go_by_search(s, b, target):
        return True
    _give_up(s, target, kind)
    return False


@kernel
def _clear_leaves(s, b, target):
    """Break the leaves between the eyes and a block in reach."""
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    how = sight(b, feet, target)
    ex, ey, ez = s[at.X] + 0.5, s[at.Y] + facts.EYE_HEIGHT, s[at.Z] + 0.5
    tx, ty, tz = cell_x(target) + 0.5, cell_y(target) + 0.5, cell_z(target) + 0.5
    if how == 2:
        tx += 0.51 if ex > tx else -0.51
    elif how == 3:
        ty += 0.51 if ey > ty else -0.51
    elif how == 4:
        tz += 0.51 if ez > tz else -0.51
    # Where the line is clear there are no leaves, else step along it finely enough for any cell.
    last = 0
    steps = 64
    for k in range(1, steps + 1):
        t = k / steps
        cell = cell_of(
            np.int64(ex + t * (tx - ex)), np.int64(ey + t * (ty - ey)), np.int64(ez + t * (tz - ez))
        )
        if cell == target:
            return
        if cell != last and b[cell] == facts.LEAVES:
            dig(s, b, cell)
        last = cell


@kernel
def _pick_up(s, b, target, kind):
    """Go to a block and dig it; `kind` as for `go_to`."""
    if go_to(s, b, target, kind):
        _clear_leaves(s, b, target)
        _dig_and_tell(s, b, target)


# --- the Logger ---------------------------------------------------------------------------------


@kernel
def _explore(s, b, direction):
    """Walk about eight blocks in a direction, around obstacles one block wide."""
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    steps, cost = 0, 0
    while steps < facts.EXPLORE_STEPS:
        way = direction
        after = walk_step(b, feet, way)
        if after == 0:
            # To the right, else to the left, if the way is free from there.
            for turn in range(1, 4, 2):
                side = (direction + turn) % 4
                beside = walk_step(b, feet, side)
                if beside != 0 and walk_step(b, beside, direction) != 0:
                    way, after = side, beside
                    break
        if after == 0:
            break
        cost += _step_cost(b, feet, after, way)
        feet = after
        steps += 1
    _stand(s, feet)
    spend(s, cost)
    s[at.HEADING] = direction
    add_event(s, at.EVENT_WALKED, direction, steps)


@kernel
def _climb(s, b):
    """Go straight up: dig what is overhead and pile up blocks under the feet."""
    levels = 0
    while levels < facts.CLIMB_LEVELS:
        feet = cell_of(s[at.X], s[at.Y], s[at.Z])
        if np.int64(b[at.GROUND_OFFSET + s[at.X] * at.WIDTH + s[at.Z]]) + 1 - s[at.Y] <= 0:
            break
        if s[at.Y] >= at.HEIGHT - 3:
            break
        for _ in range(_MAX_COLLAPSE):
            if b[feet + 2] <= facts.WATER or b[feet + 2] >= facts.BEDROCK:
                break
            dig(s, b, feet + 2)
        if b[feet + 2] > facts.WATER:
            break
        filler = -1
        for k in range(_FILLERS.shape[0]):
            if s[at.INVENTORY + _FILLERS[k]] > 0:
                filler = k
                break
        if filler < 0:
            break
        s[at.INVENTORY + _FILLERS[filler]] -= 1
        b[feet] = _FILLER_BLOCKS[filler]
        s[at.PLACED + _FILLER_BLOCKS[filler]] += 1
        s[at.Y] += 1
        s[at.TICK] += facts.PILLAR_TICKS
        levels += 1
    add_event(s, at.EVENT_CLIMBED, 0, levels)


# --- the Miner ----------------------------------------------------------------------------------


@kernel
def _tunnel(s, b, direction):
    """Dig a passage two high and up to three long, and walk into it."""
    moved = 0
    got = s[at.INVENTORY + facts.I_COBBLESTONE]
    for _ in range(facts.TUNNEL_LENGTH):
        feet = cell_of(s[at.X], s[at.Y], s[at.Z])
        ahead = feet + DIRECTION[direction]
        if b[ahead] >= facts.TABLE or b[ahead + 1] >= facts.TABLE:
            break
        if b[ahead] == facts.WATER or b[ahead + 1] == facts.WATER:
            break
        for _ in range(_MAX_COLLAPSE):
            if b[ahead + 1] <= facts.WATER:
                break
            dig(s, b, ahead + 1)
        for _ in range(_MAX_COLLAPSE):
            if b[ahead] <= facts.WATER:
                break
            dig(s, b, ahead)
        after = walk_step(b, feet, direction)
        if after == 0 or after > ahead:
            break
        spend(s, _step_cost(b, feet, after, direction))
        _stand(s, after)
        moved += 1
        if after != ahead:
            break
    s[at.HEADING] = direction
    add_event(s, at.EVENT_TUNNELLED, direction, moved)
    got = s[at.INVENTORY + facts.I_COBBLESTONE] - got
    if got > 0:
        add_event(s, at.EVENT_GOT, facts.I_COBBLESTONE, got)


# --- the Smith ----------------------------------------------------------------------------------


@kernel
def _craft(s, b, item):
    """Use the ingredients of a recipe once, at the table where it takes one."""
    if facts.AT_TABLE[item] and not go_to(s, b, np.int64(s[at.TABLE_CELL]), 4):
        return
    if item == facts.I_TORCH and s[at.INVENTORY + facts.I_COAL] == 0:
        # The recipe takes charcoal as well: trade one for the other and craft.
        s[at.INVENTORY + facts.I_CHARCOAL] -= 1
        s[at.INVENTORY + facts.I_COAL] += 1
    for ingredient in range(facts.N_ITEMS):
        s[at.INVENTORY + ingredient] -= facts.NEED[item, ingredient]
    gain(s, item, facts.MAKES[item])
    s[at.TICK] += facts.CRAFT_TICKS
    add_event(s, at.EVENT_CRAFTED, item, facts.MAKES[item])


@kernel
def _place(s, b, item, block):
    """Put a table or furnace beside the feet, into a free cell or else into a niche dug for it.

    Returns:
        The cell.
    """
    feet = cell_of(s[at.X], s[at.Y], s[at.Z])
    spot = 0
    for k in range(4):
        cell = feet + DIRECTION[k]
        if b[cell] <= facts.WATER and (
            spot == 0 or (b[spot - 1] <= facts.WATER and b[cell - 1] > facts.WATER)
        ):
            spot = cell
    if spot == 0:
        for k in range(4):
            cell = feet + DIRECTION[k]
            if b[cell] < facts.TABLE and spot == 0:
                spot = cell
        for _ in range(_MAX_COLLAPSE):
            if b[spot] <= facts.WATER:
                break
            dig(s, b, spot)
    s[at.INVENTORY + item] -= 1
    b[spot] = block
    s[at.PLACED + block] += 1
    s[at.TICK] += facts.PLACE_TICKS
    add_event(s, at.EVENT_PLACED, item, 1)
    return spot


@kernel
def _smelt(s, b, item):
    """Load the furnace with what is to be smelted and with fuel enough for all of it."""
    if not go_to(s, b, np.int64(s[at.FURNACE_CELL]), 5):
        return
    sync_furnace(s)
    amount = smelt_amount(s, item)
    if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] != facts.SMELTS_TO[item]:
        amount = 0
    needed = fuel_needed(s, amount)
    fuel = choose_fuel(s, needed, item, amount) if needed > 0 else facts.NO_ITEM
    if amount > 0:
        s[at.INVENTORY + item] -= amount
        s[at.FURNACE_INPUT] = item
        s[at.FURNACE_INPUT_COUNT] += amount
    if fuel != facts.NO_ITEM:
        burn = np.int64(facts.BURN[fuel])
        count = min(np.int64(s[at.INVENTORY + fuel]), (needed + burn - 1) // burn)
        s[at.INVENTORY + fuel] -= count
        s[at.FURNACE_FUEL] = fuel
        s[at.FURNACE_FUEL_COUNT] += count
    s[at.TICK] += facts.PLACE_TICKS
    add_event(s, at.EVENT_SMELTING, item, amount)


@kernel
def _take_smelted(s, b):
    if not go_to(s, b, np.int64(s[at.FURNACE_CELL]), 5):
        return
    s[at.TICK] += facts.PLACE_TICKS
    sync_furnace(s)
    item, count = np.int64(s[at.FURNACE_OUTPUT]), s[at.FURNACE_OUTPUT_COUNT]
    s[at.FURNACE_OUTPUT] = facts.NO_ITEM
    s[at.FURNACE_OUTPUT_COUNT] = 0
    gain(s, item, count)
    add_event(s, at.EVENT_TOOK, item, count)


@kernel
def _tend_furnace(s, b):
    """Stand by the furnace until everything in it is smelted, at most `TEND_TICKS`."""
    if not go_to(s, b, np.int64(s[at.FURNACE_CELL]), 5):
        return
    sync_furnace(s)
    left = s[at.FURNACE_INPUT_COUNT] * facts.SMELT_TICKS - s[at.FURNACE_PROGRESS]
    span = max(1, min(left, facts.TEND_TICKS))
    s[at.TICK] += span
    add_event(s, at.EVENT_WAITED, 0, span)


# --- turns --------------------------------------------------------------------------------------


@kernel
def _logger(s, b, action):
    if action == facts.CHOP_LOG:
        _pick_up(s, b, np.int64(s[at.TARGET_CELL + at.TARGET_LOG]), at.TARGET_LOG)
    elif action == facts.CLIMB:
        _climb(s, b)
    else:
        _explore(s, b, action - facts.EXPLORE)


@kernel
def _miner(s, b, action):
    if action == facts.MINE_STONE:
        _pick_up(s, b, np.int64(s[at.TARGET_CELL + at.TARGET_STONE]), at.TARGET_STONE)
    elif action == facts.MINE_COAL:
        _pick_up(s, b, np.int64(s[at.TARGET_CELL + at.TARGET_COAL]), at.TARGET_COAL)
    elif action == facts.MINE_IRON:
        _pick_up(s, b, np.int64(s[at.TARGET_CELL + at.TARGET_IRON]), at.TARGET_IRON)
    elif action == facts.DIG_DOWN:
        _dig_and_tell(s, b, cell_of(s[at.X], s[at.Y], s[at.Z]) - 1)
    else:
        _tunnel(s, b, action - facts.TUNNEL)


@kernel
def _smith(s, b, action):
    """One of the Smith's decisions."""
    if facts.CRAFTED[action] != facts.NO_ITEM:
        _craft(s, b, np.int64(facts.CRAFTED[action]))
    elif action == facts.SMELT_IRON:
        _smelt(s, b, facts.I_IRON_ORE)
    elif action == facts.SMELT_STONE:
        _smelt(s, b, facts.I_COBBLESTONE)
    elif action == facts.SMELT_CHARCOAL:
        _smelt(s, b, facts.I_LOG)
    elif action == facts.TAKE_SMELTED:
        _take_smelted(s, b)
    elif action == facts.TEND_FURNACE:
        _tend_furnace(s, b)
    elif action == facts.PLACE_TABLE:
        s[at.TABLE_CELL] = _place(s, b, facts.I_TABLE, facts.TABLE)
    elif action == facts.PLACE_FURNACE:
        # A furnace left behind keeps what is in it, out of reach of memory.
        cell = _place(s, b, facts.I_FURNACE, facts.FURNACE)
        _clear_furnace(s)
        s[at.FURNACE_CELL] = cell
        s[at.FURNACE_TICK] = s[at.TICK]
    elif action == facts.PICK_UP_TABLE:
        _pick_up(s, b, np.int64(s[at.TABLE_CELL]), 4)
    elif action == facts.PICK_UP_FURNACE:
        _pick_up(s, b, np.int64(s[at.FURNACE_CELL]), 5)


@kernel
def _finish(s, b, tick, seen, feet, dug, marked):
    """What every turn ends with: gravity, furnace, milestones, end of the episode, perception.

    Args:
        tick, seen, feet, marked: of the record before the turn.
        dug: whether blocks may have changed.

    Returns:
        The reward of the turn.
    """
    _settle(s, b)
    sync_furnace(s)
    passed = s[at.TICK] - tick
    s[at.LAST_TICKS] = passed
    reward = 0
    fresh = s[at.SEEN] & ~seen
    if fresh != 0:
        for item in range(facts.N_ITEMS):
            if fresh >> item & 1:
                worth = MILESTONE_VALUE[s[at.GOAL], item]
                if worth > 0:
                    reward += worth
                    add_event(s, at.EVENT_MILESTONE, item, worth)
    s[at.SCORE] += reward
    if s[at.SEEN] >> GOAL_ITEM[s[at.GOAL]] & 1:
        s[at.DONE] = at.DONE_GOAL
    elif s[at.WOUND] >= facts.MAX_HEALTH * facts.REGENERATION_TICKS:
        s[at.DONE] = at.DONE_DEATH
    elif s[at.TICK] >= s[at.BUDGET]:
        s[at.DONE] = at.DONE_TIME
    s[at.WOUND] = max(0, s[at.WOUND] - passed)
    s[at.TURN] += 1
    if dug or marked > tick or cell_of(s[at.X], s[at.Y], s[at.Z]) != feet:
        perceive(s, b)
    else:
        set_masks(s)
    return reward


@kernel
def skip(s, b):
    """Nobody acts: time passes. Returns the reward, which is 0 (smelting pays when it is taken)."""
    if s[at.DONE] != at.DONE_RUNNING:
        return 0
    tick, seen, feet = s[at.TICK], s[at.SEEN], cell_of(s[at.X], s[at.Y], s[at.Z])
    s[at.LAST_ROLE] = -1
    s[at.LAST_ACTION] = -1
    s[at.LAST_OUTCOME] = at.OUTCOME_SKIPPED
    s[at.TICK] += facts.SKIP_TICKS
    add_event(s, at.EVENT_SKIPPED, 0, facts.SKIP_TICKS)
    return _finish(s, b, tick, seen, feet, False, s[at.MARK_UNTIL])


@kernel
def act(s, b, role, action):
    """One role takes one decision. What the mask forbids is the same as `skip`.

    Args:
        s, b: one record as int32 and as uint8.
        role: LOGGER, MINER or SMITH.
        action: index into the role's actions; any integer.

    Returns:
        The reward: the worth of the milestones reached. 0 once the episode has ended.
    """
    if s[at.DONE] != at.DONE_RUNNING:
        return 0
    if action < 0 or action > 30 or not s[at.MASKS + role] >> action & 1:
        return skip(s, b)
    tick, seen, feet = s[at.TICK], s[at.SEEN], cell_of(s[at.X], s[at.Y], s[at.Z])
    marked = s[at.MARK_UNTIL]
    s[at.LAST_ROLE] = role
    s[at.LAST_ACTION] = action
    s[at.LAST_OUTCOME] = at.OUTCOME_DONE
    dug = False
    if action == facts.WAIT:
        s[at.TICK] += facts.WAIT_TICKS
        add_event(s, at.EVENT_WAITED, 0, facts.WAIT_TICKS)
    elif role == facts.LOGGER:
        _logger(s, b, action)
        dug = True
    elif role == facts.MINER:
        _miner(s, b, action)
        dug = True
    else:
        _smith(s, b, action)
        dug = (
            action
            in (facts.PLACE_TABLE, facts.PLACE_FURNACE, facts.PICK_UP_TABLE, facts.PICK_UP_FURNACE)
            or s[at.LAST_OUTCOME] == at.OUTCOME_BLOCKED
        )
    return _finish(s, b, tick, seen, feet, dug, marked)


@kernel
def begin(s, b, r64, goal, budget, key):
    """Start an episode: draw a world and put an empty-handed body into it.

    Args:
        s, b, r64: one record as int32, uint8 and uint64.
        goal: index into goals.GOALS.
        budget: game ticks.
        key: uint64; fixes the world and the random draws of the episode.
    """
    for k in range(at.N_INTS):
        s[k] = 0
    generate(s, b, r64, key)
    s[at.VERSION] = at.LAYOUT_VERSION
    s[at.GOAL] = goal
    s[at.BUDGET] = budget
    s[at.SEED_LOW] = np.int32(key & _LOW_WORD)
    s[at.SEED_HIGH] = np.int32(key >> np.uint64(32))
    set_key(s, key)
    s[at.HEADING] = -1
    s[at.LAST_ROLE] = -1
    s[at.LAST_ACTION] = -1
    _clear_furnace(s)
    perceive(s, b)
