"""The observation vector: one record as float32 features in [-1, 1], the same for every role.

The features say what the body carries, what has been reached, where the body is, what it sees and
what it could make or do, so that a policy without memory can play well. `FEATURE_NAMES` lists them
in order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.kernel import kernel
from mpt_envs.crafting.world.facts import (
    BEDROCK,
    BURN,
    CLIMB,
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
    DIRECTIONS,
    EXPLORE_STEPS,
    GRASS,
    GRAVEL,
    I_CHARCOAL,
    I_COAL,
    I_COBBLESTONE,
    I_DIRT,
    I_FURNACE,
    I_GRAVEL,
    I_IRON_INGOT,
    I_IRON_ORE,
    I_LOG,
    I_PLANKS,
    I_SAND,
    I_STICK,
    I_STONE,
    I_STONE_BRICKS,
    I_TABLE,
    I_TORCH,
    I_WOODEN_PICKAXE,
    ITEM_NAMES,
    LEAVES,
    LOGGER,
    MAX_HEALTH,
    MINE_COAL,
    MINE_IRON,
    MINE_STONE,
    MINER,
    PICKAXE_DURABILITY,
    REACH,
    REGENERATION_TICKS,
    SIGHT,
    SMELT_CHARCOAL,
    SMELT_IRON,
    SMELT_STONE,
    SMELT_TICKS,
    SMELTS_TO,
    SMITH,
    STONE,
    TUNNEL,
    WATER,
)
from mpt_envs.crafting.world.goals import MILESTONES
from mpt_envs.crafting.world.layout import (
    ABOVE,
    BELOW,
    BUDGET,
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
    HEADING,
    HEIGHT,
    INVENTORY,
    LAST_OUTCOME,
    LAST_ROLE,
    MASKS,
    OUTCOME_BLOCKED,
    OUTCOME_SKIPPED,
    SEEN,
    TABLE_CELL,
    TABLE_NEAR,
    TARGET_CELL,
    TARGET_NAMES,
    TICK,
    WALK_RISE,
    WALK_STEPS,
    WALK_WATER,
    WEAR,
    WOUND,
    X,
    Y,
    Z,
    cell_x,
    cell_y,
    cell_z,
)

# Counts are shown in full up to what the recipes need, and saturate there.
_STACKS: Final = (
    ((I_LOG,), 4),
    ((I_PLANKS,), 8),
    ((I_STICK,), 4),
    ((I_COBBLESTONE,), 11),
    ((I_STONE,), 4),
    ((I_DIRT, I_SAND, I_GRAVEL), 8),
    ((I_COAL,), 2),
    ((I_CHARCOAL,), 2),
    ((I_IRON_ORE,), 3),
    ((I_IRON_INGOT,), 3),
    ((I_TABLE,), 1),
    ((I_FURNACE,), 1),
    ((I_TORCH,), 4),
    ((I_STONE_BRICKS,), 4),
)
# Decisions whose legality is told beside the masks, since masks are not seen while bidding.
_AFFORDANCES: Final = (
    (LOGGER, CLIMB, "climb_to_surface"),
    (MINER, MINE_STONE, "mine_stone"),
    (MINER, MINE_COAL, "mine_coal"),
    (MINER, MINE_IRON, "mine_iron"),
    (MINER, DIG_DOWN, "dig_down"),
    (MINER, TUNNEL, "tunnel_north"),
    (MINER, TUNNEL + 1, "tunnel_east"),
    (MINER, TUNNEL + 2, "tunnel_south"),
    (MINER, TUNNEL + 3, "tunnel_west"),
    (SMITH, CRAFT_PLANKS, "craft_planks"),
    (SMITH, CRAFT_STICKS, "craft_sticks"),
    (SMITH, CRAFT_TABLE, "craft_table"),
    (SMITH, CRAFT_WOODEN_PICKAXE, "craft_wooden_pickaxe"),
    (SMITH, CRAFT_STONE_PICKAXE, "craft_stone_pickaxe"),
    (SMITH, CRAFT_IRON_PICKAXE, "craft_iron_pickaxe"),
    (SMITH, CRAFT_FURNACE, "craft_furnace"),
    (SMITH, SMELT_IRON, "smelt_iron"),
    (SMITH, SMELT_STONE, "smelt_stone"),
    (SMITH, SMELT_CHARCOAL, "smelt_charcoal"),
    (SMITH, CRAFT_TORCH, "craft_torch"),
    (SMITH, CRAFT_STONE_BRICKS, "craft_stone_bricks"),
)

_STACK_ITEMS: Final = np.array([(*i, -1, -1)[:3] for i, _ in _STACKS], dtype=np.int64)
_STACK_SCALE: Final = np.array([1.0 / cap for _, cap in _STACKS], dtype=np.float32)
_MILESTONES: Final = np.array(MILESTONES, dtype=np.int64)
_AFFORDANCE_ROLE: Final = np.array([role for role, _, _ in _AFFORDANCES], dtype=np.int64)
_AFFORDANCE_ACTION: Final = np.array([action for _, action, _ in _AFFORDANCES], dtype=np.int64)
_DURABILITY: Final = np.array(PICKAXE_DURABILITY, dtype=np.float32)


def _feature_names() -> tuple[str, ...]:
    names = [
        "has_" + ("filler" if len(items) > 1 else ITEM_NAMES[items[0]]) for items, _ in _STACKS
    ]
    for kind in ("wooden", "stone", "iron"):
        names += [f"has_{kind}_pickaxe", f"{kind}_pickaxe_condition"]
    names += [f"reached_{ITEM_NAMES[item]}" for item in MILESTONES]
    names += ["ticks_left", "height", "depth", "covered", "health", "swimming"]
    for target in TARGET_NAMES:
        names += [
            f"{target}_{what}" for what in ("seen", "east", "up", "south", "near", "in_reach")
        ]
    for direction in DIRECTIONS:
        names += [f"walk_{direction}", f"rise_{direction}", f"water_{direction}"]
    names += ["below_soil", "below_stone", "below_fixed", "below_water", "above_solid"]
    for station in ("table", "furnace"):
        names += [f"{station}_{what}" for what in ("placed", "usable", "east", "up", "south")]
    names += [f"smelting_{name}" for name in ("iron_ore", "cobblestone", "log")]
    names += [f"smelted_{name}" for name in ("iron_ingot", "stone", "charcoal")]
    names += ["smelting_progress", "burning", "fuel"]
    names += ["last_logger", "last_miner", "last_smith", "last_blocked", "last_skipped"]
    names += [f"gave_up_{target}" for target in TARGET_NAMES]
    names += [f"heading_{direction}" for direction in DIRECTIONS]
    names += [f"can_{name}" for _, _, name in _AFFORDANCES]
    return tuple(names)


#: Names of the features in order; the length is the observation size.
FEATURE_NAMES: Final = _feature_names()
OBSERVATION_SIZE: Final = len(FEATURE_NAMES)

_OFFSET_SCALE: Final = np.float32(1.0 / SIGHT)
_STATION_SCALE: Final = np.float32(1.0 / 24.0)


@kernel
def _clip(value: float) -> float:
    return min(max(value, np.float32(-1.0)), np.float32(1.0))


@kernel
def write_observation(s: NDArray[np.int32], out: NDArray[np.float32]) -> None:
    """Write the features of a record.

    Args:
        s: the record as int32.
        out: at least `OBSERVATION_SIZE` entries; those beyond are left alone.
    """
    zero, one = np.float32(0.0), np.float32(1.0)
    at = 0
    for k in range(_STACK_ITEMS.shape[0]):
        count = s[INVENTORY + _STACK_ITEMS[k, 0]]
        if _STACK_ITEMS[k, 1] >= 0:
            count += s[INVENTORY + _STACK_ITEMS[k, 1]] + s[INVENTORY + _STACK_ITEMS[k, 2]]
        out[at] = min(np.float32(count) * _STACK_SCALE[k], one)
        at += 1
    for k in range(3):
        if s[INVENTORY + I_WOODEN_PICKAXE + k] > 0:
            out[at] = one
            out[at + 1] = one - np.float32(s[WEAR + k]) / _DURABILITY[k]
        else:
            out[at] = zero
            out[at + 1] = zero
        at += 2
    for k in range(_MILESTONES.shape[0]):
        out[at] = np.float32(s[SEEN] >> _MILESTONES[k] & 1)
        at += 1
    x, y, z = np.int64(s[X]), np.int64(s[Y]), np.int64(s[Z])
    out[at] = max(zero, one - np.float32(s[TICK]) / np.float32(s[BUDGET]))
    out[at + 1] = np.float32(y) / np.float32(HEIGHT)
    out[at + 2] = _clip(np.float32(s[DEPTH]) / np.float32(16.0))
    out[at + 3] = np.float32(s[COVERED])
    out[at + 4] = max(
        zero, one - np.float32(s[WOUND]) / np.float32(MAX_HEALTH * REGENERATION_TICKS)
    )
    out[at + 5] = one if s[BELOW] == WATER else zero
    at += 6
    for k in range(4):
        cell = np.int64(s[TARGET_CELL + k])
        if cell != 0:
            dx = np.float32(cell_x(cell) - x)
            dy = np.float32(cell_y(cell) - y)
            dz = np.float32(cell_z(cell) - z)
            up = dy - np.float32(1.12)
            distance = np.sqrt(dx * dx + up * up + dz * dz)
            out[at] = one
            out[at + 1] = dx * _OFFSET_SCALE
            out[at + 2] = _clip(dy * _OFFSET_SCALE)
            out[at + 3] = dz * _OFFSET_SCALE
            out[at + 4] = one - distance * _OFFSET_SCALE
            out[at + 5] = one if distance <= np.float32(REACH) else zero
        else:
            for j in range(6):
                out[at + j] = zero
        at += 6
    for k in range(4):
        out[at] = np.float32(s[WALK_STEPS + k]) / np.float32(EXPLORE_STEPS)
        out[at + 1] = _clip(np.float32(s[WALK_RISE + k]) / np.float32(8.0))
        out[at + 2] = np.float32(s[WALK_WATER + k])
        at += 3
    below = s[BELOW]
    out[at] = one if GRASS <= below <= GRAVEL else zero
    out[at + 1] = one if STONE <= below < BEDROCK else zero
    out[at + 2] = one if below >= BEDROCK else zero
    out[at + 3] = one if below == WATER else zero
    out[at + 4] = one if s[ABOVE] >= LEAVES else zero
    at += 5
    for k in range(2):
        cell = np.int64(s[TABLE_CELL + k])
        if cell != 0:
            out[at] = one
            out[at + 1] = np.float32(s[TABLE_NEAR + k]) * np.float32(0.5)
            out[at + 2] = _clip(np.float32(cell_x(cell) - x) * _STATION_SCALE)
            out[at + 3] = np.float32(cell_y(cell) - y) * _STATION_SCALE
            out[at + 4] = _clip(np.float32(cell_z(cell) - z) * _STATION_SCALE)
        else:
            for j in range(5):
                out[at + j] = zero
        at += 5
    for k in range(9):
        out[at + k] = zero
    if s[FURNACE_CELL] != 0:
        for k in range(3):
            raw = I_IRON_ORE if k == 0 else (I_COBBLESTONE if k == 1 else I_LOG)
            if s[FURNACE_INPUT_COUNT] > 0 and s[FURNACE_INPUT] == raw:
                out[at + k] = min(one, np.float32(s[FURNACE_INPUT_COUNT]) * np.float32(0.25))
            if s[FURNACE_OUTPUT_COUNT] > 0 and s[FURNACE_OUTPUT] == SMELTS_TO[raw]:
                out[at + 3 + k] = min(one, np.float32(s[FURNACE_OUTPUT_COUNT]) * np.float32(0.25))
        out[at + 6] = np.float32(s[FURNACE_PROGRESS]) / np.float32(SMELT_TICKS)
        out[at + 7] = one if s[FURNACE_BURN] > 0 else zero
        fuel = np.float32(s[FURNACE_BURN])
        if s[FURNACE_FUEL_COUNT] > 0:
            fuel += np.float32(s[FURNACE_FUEL_COUNT] * BURN[s[FURNACE_FUEL]])
        out[at + 8] = min(one, fuel / np.float32(1600.0))
    at += 9
    for k in range(3):
        out[at + k] = one if s[LAST_ROLE] == k else zero
    out[at + 3] = one if s[LAST_OUTCOME] == OUTCOME_BLOCKED else zero
    out[at + 4] = one if s[LAST_OUTCOME] == OUTCOME_SKIPPED else zero
    at += 5
    for k in range(4):
        out[at + k] = np.float32(s[GIVEN_UP] >> k & 1)
    at += 4
    for k in range(4):
        out[at + k] = one if s[HEADING] == k else zero
    at += 4
    for k in range(_AFFORDANCE_ROLE.shape[0]):
        out[at + k] = np.float32(s[MASKS + _AFFORDANCE_ROLE[k]] >> _AFFORDANCE_ACTION[k] & 1)


assert TABLE_CELL + 1 == FURNACE_CELL and TABLE_NEAR + 1 == FURNACE_NEAR
