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
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.goals import MILESTONES
from mpt_envs.crafting.world.layout import cell_x, cell_y, cell_z

# Counts are shown in full up to what the recipes need, and saturate there.
_STACKS: Final = (
    ((facts.I_LOG,), 4),
    ((facts.I_PLANKS,), 8),
    ((facts.I_STICK,), 4),
    ((facts.I_COBBLESTONE,), 11),
    ((facts.I_STONE,), 4),
    ((facts.I_DIRT, facts.I_SAND, facts.I_GRAVEL), 8),
    ((facts.I_COAL,), 2),
    ((facts.I_CHARCOAL,), 2),
    ((facts.I_IRON_ORE,), 3),
    ((facts.I_IRON_INGOT,), 3),
    ((facts.I_TABLE,), 1),
    ((facts.I_FURNACE,), 1),
    ((facts.I_TORCH,), 4),
    ((facts.I_STONE_BRICKS,), 4),
)
# Decisions whose legality is told beside the masks, since masks are not seen while bidding.
_SMITH_S: Final = (*facts.CRAFTS, facts.SMELT_IRON, facts.SMELT_STONE, facts.SMELT_CHARCOAL)
_AFFORDANCES: Final = (
    (facts.LOGGER, facts.CLIMB),
    *((facts.MINER, action) for action in range(1, facts.N_ACTIONS[facts.MINER])),
    *((facts.SMITH, action) for action in sorted(_SMITH_S)),
)

_STACK_ITEMS: Final = np.array([(*i, -1, -1)[:3] for i, _ in _STACKS], dtype=np.int64)
_STACK_SCALE: Final = np.array([1.0 / cap for _, cap in _STACKS], dtype=np.float32)
_MILESTONES: Final = np.array(MILESTONES, dtype=np.int64)
_AFFORDANCE_ROLE: Final = np.array([role for role, _ in _AFFORDANCES], dtype=np.int64)
_AFFORDANCE_ACTION: Final = np.array([action for _, action in _AFFORDANCES], dtype=np.int64)
_DURABILITY: Final = np.array(facts.PICKAXE_DURABILITY, dtype=np.float32)


def _feature_names() -> tuple[str, ...]:
    names = [
        "has_" + ("filler" if len(items) > 1 else facts.ITEM_NAMES[items[0]])
        for items, _ in _STACKS
    ]
    for kind in ("wooden", "stone", "iron"):
        names += [f"has_{kind}_pickaxe", f"{kind}_pickaxe_condition"]
    names += [f"reached_{facts.ITEM_NAMES[item]}" for item in MILESTONES]
    names += ["ticks_left", "height", "depth", "covered", "health", "swimming"]
    for target in at.TARGET_NAMES:
        names += [
            f"{target}_{what}" for what in ("seen", "east", "up", "south", "near", "in_reach")
        ]
    for direction in facts.DIRECTIONS:
        names += [f"walk_{direction}", f"rise_{direction}", f"water_{direction}"]
    names += ["below_soil", "below_stone", "below_fixed", "below_water", "above_solid"]
    for station in ("table", "furnace"):
        names += [f"{station}_{what}" for what in ("placed", "usable", "east", "up", "south")]
    names += [f"smelting_{name}" for name in ("iron_ore", "cobblestone", "log")]
    names += [f"smelted_{name}" for name in ("iron_ingot", "stone", "charcoal")]
    names += ["smelting_progress", "burning", "fuel"]
    names += ["last_logger", "last_miner", "last_smith", "last_blocked", "last_skipped"]
    names += [f"gave_up_{target}" for target in at.TARGET_NAMES]
    names += [f"heading_{direction}" for direction in facts.DIRECTIONS]
    names += [f"can_{facts.ACTIONS[facts.ROLES[role]][action]}" for role, action in _AFFORDANCES]
    return tuple(names)


#: Names of the features in order; the length is the observation size.
FEATURE_NAMES: Final = _feature_names()
OBSERVATION_SIZE: Final = len(FEATURE_NAMES)

_OFFSET_SCALE: Final = np.float32(1.0 / facts.SIGHT)
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
    i = 0
    for k in range(_STACK_ITEMS.shape[0]):
        count = s[at.INVENTORY + _STACK_ITEMS[k, 0]]
        if _STACK_ITEMS[k, 1] >= 0:
            count += s[at.INVENTORY + _STACK_ITEMS[k, 1]] + s[at.INVENTORY + _STACK_ITEMS[k, 2]]
        out[i] = min(np.float32(count) * _STACK_SCALE[k], one)
        i += 1
    for k in range(3):
        if s[at.INVENTORY + facts.I_WOODEN_PICKAXE + k] > 0:
            out[i] = one
            out[i + 1] = one - np.float32(s[at.WEAR + k]) / _DURABILITY[k]
        else:
            out[i] = zero
            out[i + 1] = zero
        i += 2
    for k in range(_MILESTONES.shape[0]):
        out[i] = np.float32(s[at.SEEN] >> _MILESTONES[k] & 1)
        i += 1
    x, y, z = np.int64(s[at.X]), np.int64(s[at.Y]), np.int64(s[at.Z])
    out[i] = max(zero, one - np.float32(s[at.TICK]) / np.float32(s[at.BUDGET]))
    out[i + 1] = np.float32(y) / np.float32(at.HEIGHT)
    out[i + 2] = _clip(np.float32(s[at.DEPTH]) / np.float32(16.0))
    out[i + 3] = np.float32(s[at.COVERED])
    out[i + 4] = max(
        zero,
        one - np.float32(s[at.WOUND]) / np.float32(facts.MAX_HEALTH * facts.REGENERATION_TICKS),
    )
    out[i + 5] = one if s[at.BELOW] == facts.WATER else zero
    i += 6
    for k in range(4):
        cell = np.int64(s[at.TARGET_CELL + k])
        if cell != 0:
            dx = np.float32(cell_x(cell) - x)
            dy = np.float32(cell_y(cell) - y)
            dz = np.float32(cell_z(cell) - z)
            up = dy - np.float32(1.12)
            distance = np.sqrt(dx * dx + up * up + dz * dz)
            out[i] = one
            out[i + 1] = dx * _OFFSET_SCALE
            out[i + 2] = _clip(dy * _OFFSET_SCALE)
            out[i + 3] = dz * _OFFSET_SCALE
            out[i + 4] = one - distance * _OFFSET_SCALE
            out[i + 5] = one if distance <= np.float32(facts.REACH) else zero
        else:
            for j in range(6):
                out[i + j] = zero
        i += 6
    for k in range(4):
        out[i] = np.float32(s[at.WALK_STEPS + k]) / np.float32(facts.EXPLORE_STEPS)
        out[i + 1] = _clip(np.float32(s[at.WALK_RISE + k]) / np.float32(8.0))
        out[i + 2] = np.float32(s[at.WALK_WATER + k])
        i += 3
    below = s[at.BELOW]
    out[i] = one if facts.GRASS <= below <= facts.GRAVEL else zero
    out[i + 1] = one if facts.STONE <= below < facts.BEDROCK else zero
    out[i + 2] = one if below >= facts.BEDROCK else zero
    out[i + 3] = one if below == facts.WATER else zero
    out[i + 4] = one if s[at.ABOVE] >= facts.LEAVES else zero
    i += 5
    for k in range(2):
        cell = np.int64(s[at.TABLE_CELL + k])
        if cell != 0:
            out[i] = one
            out[i + 1] = np.float32(s[at.TABLE_NEAR + k]) * np.float32(0.5)
            out[i + 2] = _clip(np.float32(cell_x(cell) - x) * _STATION_SCALE)
            out[i + 3] = np.float32(cell_y(cell) - y) * _STATION_SCALE
            out[i + 4] = _clip(np.float32(cell_z(cell) - z) * _STATION_SCALE)
        else:
            for j in range(5):
                out[i + j] = zero
        i += 5
    for k in range(9):
        out[i + k] = zero
    if s[at.FURNACE_CELL] != 0:
        for k in range(3):
            raw = facts.I_IRON_ORE if k == 0 else (facts.I_COBBLESTONE if k == 1 else facts.I_LOG)
            if s[at.FURNACE_INPUT_COUNT] > 0 and s[at.FURNACE_INPUT] == raw:
                out[i + k] = min(one, np.float32(s[at.FURNACE_INPUT_COUNT]) * np.float32(0.25))
            if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] == facts.SMELTS_TO[raw]:
                out[i + 3 + k] = min(one, np.float32(s[at.FURNACE_OUTPUT_COUNT]) * np.float32(0.25))
        out[i + 6] = np.float32(s[at.FURNACE_PROGRESS]) / np.float32(facts.SMELT_TICKS)
        out[i + 7] = one if s[at.FURNACE_BURN] > 0 else zero
        fuel = np.float32(s[at.FURNACE_BURN])
        if s[at.FURNACE_FUEL_COUNT] > 0:
            fuel += np.float32(s[at.FURNACE_FUEL_COUNT] * facts.BURN[s[at.FURNACE_FUEL]])
        out[i + 8] = min(one, fuel / np.float32(1600.0))
    i += 9
    for k in range(3):
        out[i + k] = one if s[at.LAST_ROLE] == k else zero
    out[i + 3] = one if s[at.LAST_OUTCOME] == at.OUTCOME_BLOCKED else zero
    out[i + 4] = one if s[at.LAST_OUTCOME] == at.OUTCOME_SKIPPED else zero
    i += 5
    for k in range(4):
        out[i + k] = np.float32(s[at.GIVEN_UP] >> k & 1)
    i += 4
    for k in range(4):
        out[i + k] = one if s[at.HEADING] == k else zero
    i += 4
    for k in range(_AFFORDANCE_ROLE.shape[0]):
        out[i + k] = np.float32(s[at.MASKS + _AFFORDANCE_ROLE[k]] >> _AFFORDANCE_ACTION[k] & 1)


assert at.TABLE_CELL + 1 == at.FURNACE_CELL and at.TABLE_NEAR + 1 == at.FURNACE_NEAR
