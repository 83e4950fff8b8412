"""Facts of Minecraft 1.16 that the simulator uses: blocks, items, recipes, dig times, fuel, tools.

Everything here is a constant. Numbers follow Minecraft Java 1.16.5 (block hardness, tool speeds and
tiers, durability, recipes, burn times); the few costs that Minecraft leaves to the player's hands
(opening a crafting grid, placing a block, aiming) are named at the end and are ours.

Units: time in game ticks (20 a second), lengths in blocks, hardness in hundredths.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

TICKS_PER_SECOND: Final = 20

# --- blocks -------------------------------------------------------------------------------------
# The order carries meaning, so that a test is one comparison: ids up to WATER can be walked
# through, ids up to LEAVES can be seen through, ids from BEDROCK on can never be dug.
(
    AIR, WATER, LEAVES, GRASS, DIRT, SAND, GRAVEL, STONE, COAL_ORE, IRON_ORE, LOG, COBBLESTONE,
    TABLE, FURNACE, BEDROCK, BARRIER,
) = range(16)  # fmt: skip

BLOCK_NAMES: Final = (
    "air", "water", "leaves", "grass_block", "dirt", "sand", "gravel", "stone", "coal_ore",
    "iron_ore", "log", "cobblestone", "crafting_table", "furnace", "bedrock", "barrier",
)  # fmt: skip
N_BLOCKS: Final = len(BLOCK_NAMES)

# --- items --------------------------------------------------------------------------------------
(
    I_LOG, I_PLANKS, I_STICK, I_COBBLESTONE, I_STONE, I_DIRT, I_SAND, I_GRAVEL, I_FLINT,
    I_COAL, I_CHARCOAL, I_IRON_ORE, I_IRON_INGOT, I_TABLE, I_FURNACE, I_TORCH, I_STONE_BRICKS,
    I_WOODEN_PICKAXE, I_STONE_PICKAXE, I_IRON_PICKAXE,
) = range(20)  # fmt: skip

ITEM_NAMES: Final = (
    "log", "planks", "stick", "cobblestone", "stone", "dirt", "sand", "gravel", "flint",
    "coal", "charcoal", "iron_ore", "iron_ingot", "crafting_table", "furnace", "torch",
    "stone_bricks", "wooden_pickaxe", "stone_pickaxe", "iron_pickaxe",
)  # fmt: skip
N_ITEMS: Final = len(ITEM_NAMES)
NO_ITEM: Final = -1

# Names in the game's own registry, where they differ from ours (one kind of wood stands for all).
MINECRAFT_NAMES: Final = {"log": "oak_log", "planks": "oak_planks", "leaves": "oak_leaves"}

# --- tools --------------------------------------------------------------------------------------
# Tool level 0 is the bare hand, then wooden, stone and iron pickaxe.
PICKAXES: Final = (I_WOODEN_PICKAXE, I_STONE_PICKAXE, I_IRON_PICKAXE)
PICKAXE_SPEED: Final = (2, 4, 6)
PICKAXE_DURABILITY: Final = (59, 131, 250)


class BlockFact(NamedTuple):
    """How one block is dug.

    Attributes:
        hardness: Minecraft's hardness in hundredths (stone 150).
        pickaxe: whether a pickaxe speeds up digging it.
        level: the least tool level whose digging makes it drop something (0: the bare hand).
        drop: the item that it drops, or ``NO_ITEM``.
    """

    hardness: int
    pickaxe: bool
    level: int
    drop: int


# Blocks that are not listed cannot be dug. Gravel drops flint instead of itself in one of ten
# cases. Leaves drop saplings and apples in Minecraft; no recipe here uses them: they drop nothing.
BLOCK_FACTS: Final = {
    LEAVES: BlockFact(20, False, 0, NO_ITEM),
    GRASS: BlockFact(60, False, 0, I_DIRT),
    DIRT: BlockFact(50, False, 0, I_DIRT),
    SAND: BlockFact(50, False, 0, I_SAND),
    GRAVEL: BlockFact(60, False, 0, I_GRAVEL),
    STONE: BlockFact(150, True, 1, I_COBBLESTONE),
    COAL_ORE: BlockFact(300, True, 1, I_COAL),
    IRON_ORE: BlockFact(300, True, 2, I_IRON_ORE),
    LOG: BlockFact(200, False, 0, I_LOG),
    COBBLESTONE: BlockFact(200, True, 1, I_COBBLESTONE),
    TABLE: BlockFact(250, False, 0, I_TABLE),
    FURNACE: BlockFact(350, True, 1, I_FURNACE),
}
FLINT_CHANCE: Final = 0.1


def dig_ticks(block: int, level: int) -> int:
    """Ticks to dig ``block`` standing on dry ground with the pickaxe of ``level`` (0: bare hand).

    Minecraft's rule: ``ceil(hardness * (30 if the block can be harvested so, else 100) / speed)``.

    Args:
        block: a block id that can be dug.
        level: tool level 0 to 3.

    Raises:
        ValueError: if the block cannot be dug at all.
    """
    if block not in BLOCK_FACTS:
        raise ValueError(f"{BLOCK_NAMES[block]} cannot be dug")
    fact = BLOCK_FACTS[block]
    speed = PICKAXE_SPEED[level - 1] if fact.pickaxe and level > 0 else 1
    numerator = fact.hardness * (30 if level >= fact.level else 100)
    return -(-numerator // (100 * speed))


def _table(value: str) -> np.ndarray:
    table = np.full(N_BLOCKS, -1, dtype=np.int32)
    for block, fact in BLOCK_FACTS.items():
        table[block] = int(getattr(fact, value))
    return table


#: int32 (N_BLOCKS, 4): ticks to dig a block by tool level; -1 where it cannot be dug.
DIG_TICKS: Final = np.array(
    [
        [dig_ticks(block, level) if block in BLOCK_FACTS else -1 for level in range(4)]
        for block in range(N_BLOCKS)
    ],
    dtype=np.int32,
)
#: int32 (N_BLOCKS,): item dropped, tool level needed for the drop, whether a pickaxe helps; or -1.
DROP: Final = _table("drop")
LEVEL: Final = _table("level")
NEEDS_PICKAXE: Final = _table("pickaxe")


# --- recipes ------------------------------------------------------------------------------------
class Recipe(NamedTuple):
    """One crafting recipe.

    Attributes:
        ingredients: pairs of item and amount.
        makes: amount of the product.
        table: whether the 3x3 grid of a crafting table is needed.
    """

    ingredients: tuple[tuple[int, int], ...]
    makes: int
    table: bool


RECIPES: Final = {
    I_PLANKS: Recipe(((I_LOG, 1),), 4, False),
    I_STICK: Recipe(((I_PLANKS, 2),), 4, False),
    I_TABLE: Recipe(((I_PLANKS, 4),), 1, False),
    I_WOODEN_PICKAXE: Recipe(((I_PLANKS, 3), (I_STICK, 2)), 1, True),
    I_STONE_PICKAXE: Recipe(((I_COBBLESTONE, 3), (I_STICK, 2)), 1, True),
    I_IRON_PICKAXE: Recipe(((I_IRON_INGOT, 3), (I_STICK, 2)), 1, True),
    I_FURNACE: Recipe(((I_COBBLESTONE, 8),), 1, True),
    I_TORCH: Recipe(((I_COAL, 1), (I_STICK, 1)), 4, False),
    I_STONE_BRICKS: Recipe(((I_STONE, 4),), 4, False),
}
# A torch takes charcoal where there is no coal.
TORCH_ALTERNATIVE: Final = ((I_CHARCOAL, 1), (I_STICK, 1))

#: int32 (N_ITEMS, N_ITEMS): how much of the second item one crafting of the first needs.
NEED: Final = np.zeros((N_ITEMS, N_ITEMS), dtype=np.int32)
MAKES: Final = np.zeros(N_ITEMS, dtype=np.int32)
for _item, _recipe in RECIPES.items():
    MAKES[_item] = _recipe.makes
    for _ingredient, _amount in _recipe.ingredients:
        NEED[_item, _ingredient] = _amount

# --- smelting -----------------------------------------------------------------------------------
SMELT_TICKS: Final = 200
SMELTING: Final = {I_IRON_ORE: I_IRON_INGOT, I_COBBLESTONE: I_STONE, I_LOG: I_CHARCOAL}
#: Burn time in ticks. The order is that in which the furnace is fed: the first fuel that is enough.
BURN_TICKS: Final = {I_COAL: 1600, I_CHARCOAL: 1600, I_PLANKS: 300, I_LOG: 300, I_STICK: 100}
FUELS: Final = tuple(BURN_TICKS)

SMELTS_TO: Final = np.full(N_ITEMS, NO_ITEM, dtype=np.int32)
for _item, _product in SMELTING.items():
    SMELTS_TO[_item] = _product
BURN: Final = np.zeros(N_ITEMS, dtype=np.int32)
for _item, _ticks in BURN_TICKS.items():
    BURN[_item] = _ticks

# --- the body -----------------------------------------------------------------------------------
WALK_SPEED: Final = 4.317  # blocks a second
SWIM_SPEED: Final = 2.2
EYE_HEIGHT: Final = 1.62
REACH: Final = 4.5
SAFE_FALL: Final = 3
MAX_HEALTH: Final = 20
REGENERATION_TICKS: Final = 80  # of one point of health, with a full stomach
BREAK_DELAY_TICKS: Final = 6  # between two blocks dug
WATER_DIG_FACTOR: Final = 5  # eyes under water, and again for floating

# Thousandths of a tick, so that distances add up exactly.
WALK_MILLITICKS: Final = round(1000 * TICKS_PER_SECOND / WALK_SPEED)
SWIM_MILLITICKS: Final = round(1000 * TICKS_PER_SECOND / SWIM_SPEED)
#: Ticks to fall 0, 1, 2, ... blocks (gravity 0.08 blocks a tick squared, drag 0.98).
FALL_TICKS: Final = np.array(
    [0, 6, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 20, 21, 22, 23, 23, 24, 25, 25, 26, 27],
    dtype=np.int32,
)

# --- costs that are ours ------------------------------------------------------------------------
WAIT_TICKS: Final = 20  # the action `wait`
SKIP_TICKS: Final = 20  # a turn in which nobody acts, or in which the action is not legal
BLOCKED_TICKS: Final = 20  # looking for a way to a target that cannot be reached
CRAFT_TICKS: Final = 10  # opening the grid and crafting once
PLACE_TICKS: Final = 8  # placing a table or furnace, loading or emptying a furnace
JUMP_TICKS: Final = 3  # stepping up one block, on top of walking
PILLAR_TICKS: Final = 12  # jumping and placing a block under one's feet
TEND_TICKS: Final = 200  # longest wait of `tend_furnace`

# --- roles and actions --------------------------------------------------------------------------
ROLES: Final = ("logger", "miner", "smith")
LOGGER, MINER, SMITH = range(3)

#: Directions in action order, and their steps along x (east) and z (south), as in Minecraft.
DIRECTIONS: Final = ("north", "east", "south", "west")
STEP_X: Final = (0, 1, 0, -1)
STEP_Z: Final = (-1, 0, 1, 0)

ACTIONS: Final = {
    "logger": (
        "wait", "chop_log", "explore_north", "explore_east", "explore_south", "explore_west",
        "climb_to_surface",
    ),
    "miner": (
        "wait", "mine_stone", "mine_coal", "mine_iron", "dig_down", "tunnel_north",
        "tunnel_east", "tunnel_south", "tunnel_west",
    ),
    "smith": (
        "wait", "tend_furnace", "craft_planks", "craft_sticks", "craft_table", "place_table",
        "pick_up_table", "craft_wooden_pickaxe", "craft_stone_pickaxe", "craft_iron_pickaxe",
        "craft_furnace", "place_furnace", "pick_up_furnace", "smelt_iron", "smelt_stone",
        "smelt_charcoal", "take_smelted", "craft_torch", "craft_stone_bricks",
    ),
}  # fmt: skip
N_ACTIONS: Final = tuple(len(ACTIONS[role]) for role in ROLES)

# Their numbers; a direction is added to `EXPLORE` and `TUNNEL`.
WAIT: Final = 0
CHOP_LOG, EXPLORE, CLIMB = 1, 2, 6
MINE_STONE, MINE_COAL, MINE_IRON, DIG_DOWN, TUNNEL = range(1, 6)
(
    TEND_FURNACE, CRAFT_PLANKS, CRAFT_STICKS, CRAFT_TABLE, PLACE_TABLE, PICK_UP_TABLE,
    CRAFT_WOODEN_PICKAXE, CRAFT_STONE_PICKAXE, CRAFT_IRON_PICKAXE, CRAFT_FURNACE, PLACE_FURNACE,
    PICK_UP_FURNACE, SMELT_IRON, SMELT_STONE, SMELT_CHARCOAL, TAKE_SMELTED, CRAFT_TORCH,
    CRAFT_STONE_BRICKS,
) = range(1, 19)  # fmt: skip
#: What an action of the Smith crafts, by its number.
CRAFTS: Final = {
    CRAFT_PLANKS: I_PLANKS,
    CRAFT_STICKS: I_STICK,
    CRAFT_TABLE: I_TABLE,
    CRAFT_WOODEN_PICKAXE: I_WOODEN_PICKAXE,
    CRAFT_STONE_PICKAXE: I_STONE_PICKAXE,
    CRAFT_IRON_PICKAXE: I_IRON_PICKAXE,
    CRAFT_FURNACE: I_FURNACE,
    CRAFT_TORCH: I_TORCH,
    CRAFT_STONE_BRICKS: I_STONE_BRICKS,
}
#: int32 ``(smith's actions,)``: the same, `NO_ITEM` where nothing is crafted.
CRAFTED: Final = np.full(N_ACTIONS[SMITH], NO_ITEM, dtype=np.int32)
#: bool ``(N_ITEMS,)``: whether crafting it takes a table.
AT_TABLE: Final = np.zeros(N_ITEMS, dtype=np.bool_)
for _action, _item in CRAFTS.items():
    CRAFTED[_action] = _item
    AT_TABLE[_item] = RECIPES[_item].table

EXPLORE_STEPS: Final = 8
TUNNEL_LENGTH: Final = 2
CLIMB_LEVELS: Final = 8
SIGHT: Final = 10  # blocks from the eyes within which a target is seen
GIVE_UP_TICKS: Final = 400  # how long a target to which no way led is left out
SMELT_BATCH: Final = 4  # cobblestone that one `smelt_stone` loads
