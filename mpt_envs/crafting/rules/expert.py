"""A scripted expert: each role's own best decision now, and which role should act.

It reads nothing but the record's scalars, keeps no memory, and sees no more than the observation
vector shows. It serves cold starts and as an upper reference; it is good, not optimal.

The plan: fell as many logs as everything still missing takes, craft as soon as it is possible,
carry the table along, dig down to where the ore is, walk and tunnel on until it shows, smelt on the
spot.
"""

from __future__ import annotations

from typing import Final

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.rules.perception import pickaxe_level
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import MILESTONE_VALUE

#: Bids: of the role that should act, of one that has something sensible to do, of one that has not.
BID_ACT: Final = 0.9
BID_COULD: Final = 0.3
BID_IDLE: Final = 0.1

_MINING_LAYER: Final = 5  # where to tunnel for iron
_COAL_LAYER: Final = 7
_UNDERGROUND: Final = 3  # depth from which one is in a cave or a tunnel
_PASSAGE: Final = 3  # steps that make a side passage worth walking
_EDGE: Final = 6  # columns from the edge of the world at which a tunnel turns
_SPARE_PLANKS: Final = 4  # fuel for the case that no coal shows
_PATIENCE: Final = 0.3  # share of the tick budget that is kept back from the search for coal


@kernel
def _legal(s, role, action):
    return (s[at.MASKS + role] >> action & 1) == 1


@kernel
def _wants(s, item):
    """Whether an item is on the goal's path."""
    return MILESTONE_VALUE[s[at.GOAL], item] > 0


@kernel
def _wants_stone_pickaxe(s):
    """A goal that needs ore wants it too: it digs twice as fast and lasts twice as long."""
    return _wants(s, facts.I_STONE_PICKAXE) or _wants(s, facts.I_COAL)


@kernel
def _table_crafts(s, level, furnace):
    """Crafts at a table that are still to come."""
    count = 0
    if _wants(s, facts.I_WOODEN_PICKAXE) and level == 0:
        count += 1
    if _wants_stone_pickaxe(s) and level < 2:
        count += 1
    if _wants(s, facts.I_FURNACE) and not furnace:
        count += 1
    if _wants(s, facts.I_IRON_PICKAXE):
        count += 1
    return count


@kernel
def _has_furnace(s):
    return s[at.INVENTORY + facts.I_FURNACE] > 0 or s[at.FURNACE_NEAR] > 0


@kernel
def _needs_table(s, crafts):
    """Whether a table has to be made."""
    if s[at.INVENTORY + facts.I_TABLE] > 0 or s[at.TABLE_NEAR] > 0:
        return False
    return crafts > 0 or (s[at.SEEN] >> facts.I_TABLE & 1) == 0


@kernel
def _sticks_missing(s, level):
    wanted = 0
    if _wants(s, facts.I_WOODEN_PICKAXE) and level == 0:
        wanted += 2
    if _wants_stone_pickaxe(s) and level < 2:
        wanted += 2
    if _wants(s, facts.I_IRON_PICKAXE):
        wanted += 2
    if _wants(s, facts.I_TORCH):
        wanted += 1
    return max(0, wanted - s[at.INVENTORY + facts.I_STICK])


@kernel
def _planks_wanted(s, level, crafts, sticks):
    """Planks for everything still to be made of wood."""
    wanted = (sticks + 3) // 4 * 2
    if _needs_table(s, crafts):
        wanted += 4
    if _wants(s, facts.I_WOODEN_PICKAXE) and level == 0:
        wanted += 3
    return wanted


@kernel
def _smelting(s):
    """Item that the goal wants smelted, and how many are still wanted (beyond the furnace's)."""
    if _wants(s, facts.I_IRON_INGOT):
        item, product, wanted = facts.I_IRON_ORE, facts.I_IRON_INGOT, 3
    elif _wants(s, facts.I_STONE):
        item, product, wanted = facts.I_COBBLESTONE, facts.I_STONE, 4
    else:
        return -1, 0
    wanted -= s[at.INVENTORY + product]
    if s[at.FURNACE_NEAR] > 0:
        if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] == product:
            wanted -= s[at.FURNACE_OUTPUT_COUNT]
        if s[at.FURNACE_INPUT_COUNT] > 0 and s[at.FURNACE_INPUT] == item:
            wanted -= s[at.FURNACE_INPUT_COUNT]
    return item, max(0, wanted)


@kernel
def _coal_missing(s):
    return _wants(s, facts.I_COAL) and (s[at.SEEN] >> facts.I_COAL & 1) == 0


@kernel
def _out_of_patience(s):
    return s[at.TICK] > (1.0 - _PATIENCE) * s[at.BUDGET]


@kernel
def smith_action(s):
    """The Smith's best decision now."""
    level = pickaxe_level(s)
    furnace = _has_furnace(s)
    crafts = _table_crafts(s, level, furnace)
    sticks = _sticks_missing(s, level)
    planks = _planks_wanted(s, level, crafts, sticks)
    item, smelt = _smelting(s)
    legal = s[at.MASKS + facts.SMITH]

    if _wants(s, facts.I_IRON_PICKAXE) and legal >> facts.CRAFT_IRON_PICKAXE & 1:
        return facts.CRAFT_IRON_PICKAXE
    if _wants(s, facts.I_TORCH) and legal >> facts.CRAFT_TORCH & 1:
        return facts.CRAFT_TORCH
    if _wants(s, facts.I_STONE_BRICKS) and legal >> facts.CRAFT_STONE_BRICKS & 1:
        return facts.CRAFT_STONE_BRICKS
    if legal >> facts.TAKE_SMELTED & 1 and s[at.FURNACE_INPUT_COUNT] == 0:
        return facts.TAKE_SMELTED
    if legal >> facts.CRAFT_PLANKS & 1 and s[at.INVENTORY + facts.I_PLANKS] < planks:
        return facts.CRAFT_PLANKS
    if _needs_table(s, crafts) and legal >> facts.CRAFT_TABLE & 1:
        return facts.CRAFT_TABLE
    if sticks > 0 and legal >> facts.CRAFT_STICKS & 1 and not _needs_table(s, crafts):
        return facts.CRAFT_STICKS
    wooden = (
        _wants(s, facts.I_WOODEN_PICKAXE)
        and level == 0
        and s[at.INVENTORY + facts.I_PLANKS] >= 3
        and s[at.INVENTORY + facts.I_STICK] >= 2
    )
    stone = (
        _wants_stone_pickaxe(s)
        and level == 1
        and s[at.INVENTORY + facts.I_COBBLESTONE] >= 3
        and s[at.INVENTORY + facts.I_STICK] >= 2
    )
    oven = (
        _wants(s, facts.I_FURNACE)
        and not furnace
        and s[at.INVENTORY + facts.I_COBBLESTONE] >= 8
        and not stone
    )
    iron = (
        _wants(s, facts.I_IRON_PICKAXE)
        and s[at.INVENTORY + facts.I_IRON_INGOT] >= 3
        and s[at.INVENTORY + facts.I_STICK] >= 2
    )
    if wooden and legal >> facts.CRAFT_WOODEN_PICKAXE & 1:
        return facts.CRAFT_WOODEN_PICKAXE
    if stone and legal >> facts.CRAFT_STONE_PICKAXE & 1:
        return facts.CRAFT_STONE_PICKAXE
    if oven and legal >> facts.CRAFT_FURNACE & 1:
        return facts.CRAFT_FURNACE
    if (
        (wooden or stone or oven or iron)
        and legal >> facts.PLACE_TABLE & 1
        and s[at.TABLE_NEAR] == 0
    ):
        return facts.PLACE_TABLE
    # The fire first: other things can be done while it burns.
    ready = item >= 0 and smelt > 0 and s[at.INVENTORY + item] >= smelt and furnace
    if item == facts.I_COBBLESTONE and level == 0:
        ready = False
    if ready and (not _coal_missing(s) or _out_of_patience(s)):
        if item == facts.I_IRON_ORE and legal >> facts.SMELT_IRON & 1:
            return facts.SMELT_IRON
        if item == facts.I_COBBLESTONE and legal >> facts.SMELT_STONE & 1:
            return facts.SMELT_STONE
        if s[at.FURNACE_NEAR] == 0 and legal >> facts.PLACE_FURNACE & 1:
            return facts.PLACE_FURNACE
    if legal >> facts.TEND_FURNACE & 1:
        return facts.TEND_FURNACE
    if (
        legal >> facts.PICK_UP_TABLE & 1
        and crafts > 0
        and level > 0
        and s[at.INVENTORY + facts.I_TABLE] == 0
    ):
        return facts.PICK_UP_TABLE
    return facts.WAIT


@kernel
def _towards_middle(s, axis):
    """Direction along an axis (0: x, 1: z) that leads to the middle of the world."""
    if axis == 0:
        return 1 if s[at.X] < at.WIDTH // 2 else 3
    return 2 if s[at.Z] < at.WIDTH // 2 else 0


@kernel
def _explore_direction(s):
    """Straight on if that leads somewhere, else to the side that leads further; -1: nowhere."""
    heading = s[at.HEADING]
    if heading < 0:
        heading = 0
    if s[at.WALK_STEPS + heading] >= facts.EXPLORE_STEPS // 2 and s[at.HEADING] >= 0:
        return heading
    best, best_worth = -1, 0.0
    for direction in range(4):
        steps = s[at.WALK_STEPS + direction]
        if steps == 0:
            continue
        worth = 2.0 * steps - 0.5 * s[at.WALK_WATER + direction]
        if direction == (heading + 2) % 4 and s[at.HEADING] >= 0:
            worth -= 8.0
        if direction == _towards_middle(s, 0) or direction == _towards_middle(s, 1):
            worth += 1.0
        if best < 0 or worth > best_worth:
            best, best_worth = direction, worth
    return best


@kernel
def wood_missing(s):
    """Planks that the inventory's wood does not cover, with spares while still at the surface."""
    level = pickaxe_level(s)
    crafts = _table_crafts(s, level, _has_furnace(s))
    sticks = _sticks_missing(s, level)
    wanted = _planks_wanted(s, level, crafts, sticks)
    if level == 0 and _wants_stone_pickaxe(s):
        wanted += _SPARE_PLANKS
    return max(0, wanted - s[at.INVENTORY + facts.I_PLANKS] - 4 * s[at.INVENTORY + facts.I_LOG])


@kernel
def _cave_direction(s):
    """Where to walk on under ground instead of tunnelling; -1: nowhere.

    Straight on where the way is open, else into a side passage; walking shows more rock than
    digging in the same time.
    """
    heading = s[at.HEADING]
    if heading < 0 or s[at.DEPTH] < _UNDERGROUND:
        return -1
    if s[at.WALK_STEPS + heading] > 0 and not _legal(s, facts.MINER, facts.TUNNEL + heading):
        return heading
    best, most = -1, _PASSAGE - 1
    for turn in range(4):
        direction = (heading + turn) % 4
        if turn != 2 and s[at.WALK_STEPS + direction] > most:
            best, most = direction, s[at.WALK_STEPS + direction]
    return best


@kernel
def logger_action(s):
    """The Logger's best decision now."""
    if wood_missing(s) == 0 and pickaxe_level(s) > 0:
        direction = _cave_direction(s)
        if direction >= 0:
            return facts.EXPLORE + direction
    if _legal(s, facts.LOGGER, facts.CHOP_LOG):
        return facts.CHOP_LOG
    if wood_missing(s) > 0 and _legal(s, facts.LOGGER, facts.CLIMB):
        return facts.CLIMB
    direction = _explore_direction(s)
    if direction >= 0:
        return facts.EXPLORE + direction
    if _legal(s, facts.LOGGER, facts.CLIMB):
        return facts.CLIMB
    return facts.WAIT


@kernel
def _cobblestone_missing(s):
    level = pickaxe_level(s)
    wanted = 0
    if _wants(s, facts.I_COBBLESTONE) and (s[at.SEEN] >> facts.I_COBBLESTONE & 1) == 0:
        wanted = 1
    if _wants_stone_pickaxe(s) and level < 2:
        wanted += 3
    if _wants(s, facts.I_FURNACE) and not _has_furnace(s):
        wanted += 8
    item, smelt = _smelting(s)
    if item == facts.I_COBBLESTONE:
        wanted += smelt
    return max(0, wanted - s[at.INVENTORY + facts.I_COBBLESTONE])


@kernel
def _near_edge(s, direction):
    """Whether the end of the world is so near that there is little rock ahead."""
    if direction == 0:
        return s[at.Z] < _EDGE
    if direction == 1:
        return s[at.X] >= at.WIDTH - _EDGE
    if direction == 2:
        return s[at.Z] >= at.WIDTH - _EDGE
    return s[at.X] < _EDGE


@kernel
def _tunnel_direction(s):
    """Straight on, else to the side that leads to the middle, else anywhere; -1: nowhere."""
    heading = s[at.HEADING]
    if heading < 0:
        heading = _towards_middle(s, 0)
    if _legal(s, facts.MINER, facts.TUNNEL + heading) and not _near_edge(s, heading):
        return heading
    side = _towards_middle(s, 1 if heading % 2 == 1 else 0)
    for direction in (side, (side + 2) % 4, (heading + 2) % 4):
        if _legal(s, facts.MINER, facts.TUNNEL + direction):
            return direction
    return -1


@kernel
def miner_action(s):
    """The Miner's best decision now."""
    level = pickaxe_level(s)
    if level == 0:
        return facts.WAIT
    iron = _wants(s, facts.I_IRON_ORE)
    item, smelt = _smelting(s)
    ore_missing = iron and item == facts.I_IRON_ORE and s[at.INVENTORY + facts.I_IRON_ORE] < smelt
    if ore_missing and _legal(s, facts.MINER, facts.MINE_IRON):
        return facts.MINE_IRON
    if _coal_missing(s) and _legal(s, facts.MINER, facts.MINE_COAL):
        return facts.MINE_COAL
    cobblestone = _cobblestone_missing(s)
    layer = _MINING_LAYER if iron else (_COAL_LAYER if _coal_missing(s) else 99)
    if s[at.Y] > layer and _legal(s, facts.MINER, facts.DIG_DOWN):
        return facts.DIG_DOWN
    if cobblestone > 0:
        if _legal(s, facts.MINER, facts.MINE_STONE):
            return facts.MINE_STONE
        if s[at.Y] > 3 and _legal(s, facts.MINER, facts.DIG_DOWN):
            return facts.DIG_DOWN
    if cobblestone > 0 or ore_missing or _coal_missing(s):
        direction = _tunnel_direction(s)
        if direction >= 0:
            return facts.TUNNEL + direction
        if s[at.Y] > 2 and _legal(s, facts.MINER, facts.DIG_DOWN):
            return facts.DIG_DOWN
    return facts.WAIT


@kernel
def expert_role(s, logger, miner, smith):
    """The role that should act, given what each would do."""
    if smith != facts.WAIT and smith != facts.TEND_FURNACE:
        return facts.SMITH
    if wood_missing(s) > 0 and logger != facts.WAIT:
        return facts.LOGGER
    if smith == facts.TEND_FURNACE:
        return facts.SMITH
    if miner >= facts.TUNNEL and logger >= facts.EXPLORE and _cave_direction(s) >= 0:
        return facts.LOGGER
    if miner != facts.WAIT:
        return facts.MINER
    return facts.LOGGER if logger != facts.WAIT else facts.SMITH


@kernel
def expert(s, bids, actions):
    """Write the bid and the decision of each role.

    Args:
        s: the record as int32.
        bids: float64 (3,).
        actions: int64 (3,).
    """
    logger, miner, smith = logger_action(s), miner_action(s), smith_action(s)
    role = expert_role(s, logger, miner, smith)
    actions[facts.LOGGER] = logger
    actions[facts.MINER] = miner
    actions[facts.SMITH] = smith
    for k in range(3):
        bids[k] = BID_COULD if actions[k] != facts.WAIT else BID_IDLE
    bids[role] = BID_ACT
