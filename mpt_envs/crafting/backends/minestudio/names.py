"""Minecraft's names of blocks and items as the domain's kinds.

Minecraft has hundreds of blocks, the domain sixteen kinds. What a kind stands for here is what a
body can do with it: walk through it, swim in it, dig it, stand on it. What nothing in the domain
corresponds to is a barrier: the body keeps out of it and leaves it alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from mpt_envs.crafting.world import facts

_PLAIN: Final = re.compile(r"[a-z0-9_]+")

AIR_NAMES: Final = frozenset({"air", "cave_air", "void_air", "none"})

_BLOCKS: Final = {
    "water": facts.WATER,
    "bubble_column": facts.WATER,
    "seagrass": facts.WATER,
    "tall_seagrass": facts.WATER,
    "kelp": facts.WATER,
    "kelp_plant": facts.WATER,
    "grass_block": facts.GRASS,
    "podzol": facts.GRASS,
    "mycelium": facts.GRASS,
    "grass_path": facts.GRASS,
    "dirt": facts.DIRT,
    "coarse_dirt": facts.DIRT,
    "farmland": facts.DIRT,
    "clay": facts.DIRT,
    "snow_block": facts.DIRT,
    # Rock that gives no cobblestone: it can be dug and piled up, and is no target.
    "granite": facts.DIRT,
    "diorite": facts.DIRT,
    "andesite": facts.DIRT,
    "sandstone": facts.DIRT,
    "red_sandstone": facts.DIRT,
    "sand": facts.SAND,
    "red_sand": facts.SAND,
    "gravel": facts.GRAVEL,
    "stone": facts.STONE,
    "infested_stone": facts.STONE,
    "coal_ore": facts.COAL_ORE,
    "iron_ore": facts.IRON_ORE,
    "cobblestone": facts.COBBLESTONE,
    "mossy_cobblestone": facts.DIRT,
    "crafting_table": facts.TABLE,
    "furnace": facts.FURNACE,
    "bedrock": facts.BEDROCK,
    "obsidian": facts.BEDROCK,
}
# Walked through as if nothing were there.
_NOTHING: Final = frozenset(
    {
        *AIR_NAMES,
        "grass",
        "tall_grass",
        "fern",
        "large_fern",
        "dead_bush",
        "dandelion",
        "poppy",
        "blue_orchid",
        "allium",
        "azure_bluet",
        "oxeye_daisy",
        "cornflower",
        "lily_of_the_valley",
        "sunflower",
        "lilac",
        "rose_bush",
        "peony",
        "brown_mushroom",
        "red_mushroom",
        "sugar_cane",
        "vine",
        "snow",
        "torch",
        "wall_torch",
        "rail",
        "lever",
    }
)
_NOTHING_ENDINGS: Final = ("_sapling", "_tulip", "_carpet", "_button")

#: What hurts whoever touches it, or falls into it.
DANGERS: Final = frozenset(
    {"lava", "fire", "magma_block", "cactus", "sweet_berry_bush", "wither_rose"}
)

_ITEMS: Final = {
    **{name: item for item, name in enumerate(facts.ITEM_NAMES)},
    "coarse_dirt": facts.I_DIRT,
    "granite": facts.I_DIRT,
    "diorite": facts.I_DIRT,
    "andesite": facts.I_DIRT,
    "red_sand": facts.I_SAND,
}


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """A name without its namespace and block states: ``minecraft:oak_log[axis=y]`` -> ``oak_log``.

    Raises:
        ValueError: it is no name.
    """
    found = _PLAIN.fullmatch(name.partition("[")[0].rpartition(":")[2].strip().lower())
    if found is None:
        raise ValueError(f"not a name of Minecraft: {name[:60]!r}")
    return found[0]


@lru_cache(maxsize=4096)
def kind_of(name: str) -> int:
    """The kind of a block by its plain name."""
    if name in _BLOCKS:
        return _BLOCKS[name]
    if name in _NOTHING or name.endswith(_NOTHING_ENDINGS):
        return facts.AIR
    if name.endswith("_leaves"):
        return facts.LEAVES
    if name.endswith(("_log", "_wood")):
        return facts.LOG
    return facts.BARRIER


@lru_cache(maxsize=4096)
def item_of(name: str) -> int:
    """The item of a plain name, or ``NO_ITEM`` for one that the domain does not know."""
    if name.endswith("_log"):
        return facts.I_LOG
    if name.endswith("_planks"):
        return facts.I_PLANKS
    return _ITEMS.get(name, facts.NO_ITEM)


def planks_of(log: str) -> str:
    """Which planks a log is sawn into, by plain name."""
    return log.removeprefix("stripped_").removesuffix("_log") + "_planks"


def minecraft_name(item: int) -> str:
    """Minecraft's plain name of an item of the domain."""
    name = facts.ITEM_NAMES[item]
    return facts.MINECRAFT_NAMES.get(name, name)
