"""Minecraft's numbers, against values written down by hand and against `minecraft_data`."""

from __future__ import annotations

from typing import Any

import pytest

from mpt_envs.crafting.world import facts, goals

HAND, WOOD, STONE, IRON = range(4)


@pytest.mark.parametrize(
    ("block", "level", "ticks"),
    [
        (facts.LOG, HAND, 60),
        (facts.LOG, IRON, 60),  # a pickaxe does not help
        (facts.DIRT, HAND, 15),
        (facts.GRASS, HAND, 18),
        (facts.SAND, HAND, 15),
        (facts.GRAVEL, HAND, 18),
        (facts.LEAVES, HAND, 6),
        (facts.STONE, HAND, 150),
        (facts.STONE, WOOD, 23),
        (facts.STONE, STONE, 12),
        (facts.STONE, IRON, 8),
        (facts.COBBLESTONE, HAND, 200),
        (facts.COBBLESTONE, WOOD, 30),
        (facts.COAL_ORE, HAND, 300),
        (facts.COAL_ORE, WOOD, 45),
        (facts.COAL_ORE, STONE, 23),
        (facts.IRON_ORE, WOOD, 150),  # not harvested: the slow rule at the wooden speed
        (facts.IRON_ORE, STONE, 23),
        (facts.IRON_ORE, IRON, 15),
        (facts.TABLE, HAND, 75),
        (facts.FURNACE, HAND, 350),
        (facts.FURNACE, WOOD, 53),
    ],
)
def test_dig_ticks(block: int, level: int, ticks: int) -> None:
    assert facts.dig_ticks(block, level) == ticks
    assert facts.DIG_TICKS[block, level] == ticks


@pytest.mark.parametrize("block", [facts.AIR, facts.WATER, facts.BEDROCK, facts.BARRIER])
def test_some_blocks_are_never_dug(block: int) -> None:
    with pytest.raises(ValueError, match="cannot be dug"):
        facts.dig_ticks(block, IRON)
    assert (facts.DIG_TICKS[block] == -1).all()


def test_the_order_of_blocks_carries_meaning() -> None:
    assert facts.AIR < facts.WATER < facts.LEAVES
    assert all(block > facts.LEAVES for block in facts.BLOCK_FACTS if block != facts.LEAVES)
    assert all(block < facts.TABLE for block in facts.BLOCK_FACTS if block < facts.BEDROCK - 2)
    assert max(facts.BLOCK_FACTS) < facts.BEDROCK < facts.BARRIER == facts.N_BLOCKS - 1


def test_tools() -> None:
    assert facts.PICKAXE_SPEED == (2, 4, 6)
    assert facts.PICKAXE_DURABILITY == (59, 131, 250)


def test_walking() -> None:
    assert facts.WALK_MILLITICKS == 4633  # 4.317 blocks a second
    assert facts.FALL_TICKS[0] == 0
    assert all(a <= b for a, b in zip(facts.FALL_TICKS, facts.FALL_TICKS[1:], strict=False))
    # Gravity by its own recurrence: v <- (v + 0.08) * 0.98 a tick.
    for blocks, ticks in enumerate(facts.FALL_TICKS[:10].tolist()):
        speed = fallen = 0.0
        count = 0
        while fallen < blocks:
            speed = (speed + 0.08) * 0.98
            fallen += speed
            count += 1
        assert abs(count - ticks) <= 1


def test_recipes() -> None:
    i = facts
    assert {k: (dict(r.ingredients), r.makes, r.table) for k, r in facts.RECIPES.items()} == {
        i.I_PLANKS: ({i.I_LOG: 1}, 4, False),
        i.I_STICK: ({i.I_PLANKS: 2}, 4, False),
        i.I_TABLE: ({i.I_PLANKS: 4}, 1, False),
        i.I_WOODEN_PICKAXE: ({i.I_PLANKS: 3, i.I_STICK: 2}, 1, True),
        i.I_STONE_PICKAXE: ({i.I_COBBLESTONE: 3, i.I_STICK: 2}, 1, True),
        i.I_IRON_PICKAXE: ({i.I_IRON_INGOT: 3, i.I_STICK: 2}, 1, True),
        i.I_FURNACE: ({i.I_COBBLESTONE: 8}, 1, True),
        i.I_TORCH: ({i.I_COAL: 1, i.I_STICK: 1}, 4, False),
        i.I_STONE_BRICKS: ({i.I_STONE: 4}, 4, False),
    }
    assert dict(facts.TORCH_ALTERNATIVE) == {i.I_CHARCOAL: 1, i.I_STICK: 1}


def test_smelting() -> None:
    i = facts
    assert facts.SMELT_TICKS == 200
    assert facts.SMELTING == {
        i.I_IRON_ORE: i.I_IRON_INGOT,
        i.I_COBBLESTONE: i.I_STONE,
        i.I_LOG: i.I_CHARCOAL,
    }
    items = {item: ticks / facts.SMELT_TICKS for item, ticks in facts.BURN_TICKS.items()}
    assert items == {i.I_COAL: 8, i.I_CHARCOAL: 8, i.I_PLANKS: 1.5, i.I_LOG: 1.5, i.I_STICK: 0.5}


def test_roles_share_no_action_but_waiting() -> None:
    seen: set[str] = set()
    for role in facts.ROLES:
        actions = facts.ACTIONS[role]
        assert actions[0] == "wait"
        assert len(set(actions)) == len(actions)
        assert not seen & set(actions[1:])
        seen |= set(actions)


def test_action_numbers_name_their_actions() -> None:
    for role, name, number in (
        ("logger", "chop_log", facts.CHOP_LOG),
        ("logger", "explore_north", facts.EXPLORE),
        ("logger", "explore_west", facts.EXPLORE + 3),
        ("logger", "climb_to_surface", facts.CLIMB),
        ("miner", "tunnel_north", facts.TUNNEL),
        ("miner", "dig_down", facts.DIG_DOWN),
    ):
        assert facts.ACTIONS[role][number] == name
    for number, name in enumerate(facts.ACTIONS["smith"]):
        assert getattr(facts, name.upper()) == number


def test_values_of_milestones() -> None:
    values = {facts.ITEM_NAMES[item]: goals.value(item) for item in goals.MILESTONES}
    assert values == {
        "log": 1,
        "planks": 2,
        "crafting_table": 3,
        "stick": 3,
        "wooden_pickaxe": 4,
        "cobblestone": 5,
        "coal": 5,
        "furnace": 6,
        "stone_pickaxe": 6,
        "torch": 6,
        "iron_ore": 7,
        "stone": 7,
        "iron_ingot": 8,
        "stone_bricks": 8,
        "iron_pickaxe": 9,
    }


def test_every_value_is_in_the_documentation() -> None:
    """The table at the top of `goals` says what the code computes."""
    text = " ".join((goals.__doc__ or "").split())
    for item in goals.MILESTONES:
        assert f"{facts.ITEM_NAMES[item]} {goals.value(item)}" in text


@pytest.mark.parametrize(
    ("goal", "best"),
    [
        ("iron-pickaxe", 59),
        ("stone-pickaxe", 24),
        ("wooden-pickaxe", 13),
        ("crafting-table", 6),
        ("furnace", 24),
        ("torch", 24),
        ("stone-bricks", 44),
    ],
)
def test_best_returns(goal: str, best: int) -> None:
    assert goals.max_return(goal) == best


def test_unknown_goal() -> None:
    with pytest.raises(ValueError, match="iron-pickaxe"):
        goals.goal_index("diamond-pickaxe")


# -- against the game's own data -----------------------------------------------------------------


@pytest.fixture(scope="module")
def minecraft() -> Any:
    package = pytest.importorskip("minecraft_data", reason="minecraft_data is not installed")
    return package("1.16.5")


def _name(name: str) -> str:
    return facts.MINECRAFT_NAMES.get(name, name)


@pytest.mark.minestudio
def test_blocks_against_minecraft_data(minecraft: Any) -> None:
    by_id = {item["id"]: name for name, item in minecraft.items_name.items()}
    pickaxes = ("wooden_pickaxe", "stone_pickaxe", "iron_pickaxe")
    for block, fact in facts.BLOCK_FACTS.items():
        data = minecraft.blocks_name[_name(facts.BLOCK_NAMES[block])]
        assert round(100 * data["hardness"]) == fact.hardness, facts.BLOCK_NAMES[block]
        tools = {by_id[int(tool)] for tool in data.get("harvestTools", {})}
        least = next((k for k, name in enumerate(pickaxes, 1) if name in tools), 0)
        assert least == fact.level, facts.BLOCK_NAMES[block]
        # (The package lists the block itself as the drop of grass, stone and ores: not checked.)


@pytest.mark.minestudio
def test_tools_against_minecraft_data(minecraft: Any) -> None:
    for item, durability in zip(facts.PICKAXES, facts.PICKAXE_DURABILITY, strict=True):
        name = facts.ITEM_NAMES[item]
        assert minecraft.items_name[name]["maxDurability"] == durability
        speeds = [
            material[str(minecraft.items_name[name]["id"])]
            for material in minecraft.materials.values()
            if str(minecraft.items_name[name]["id"]) in material
        ]
        assert facts.PICKAXE_SPEED[facts.PICKAXES.index(item)] in speeds


@pytest.mark.minestudio
def test_recipes_against_minecraft_data(minecraft: Any) -> None:
    ours = {_name(name): item for item, name in enumerate(facts.ITEM_NAMES)}
    by_id = {item["id"]: name for name, item in minecraft.items_name.items()}

    def ingredients(recipe: dict[str, Any]) -> dict[int | str, int]:
        flat = recipe.get("ingredients") or [i for row in recipe["inShape"] for i in row]
        counts: dict[int | str, int] = {}
        for entry in flat:
            if entry is not None:
                name = by_id[entry["id"] if isinstance(entry, dict) else entry]
                key = ours.get(name, name)
                counts[key] = counts.get(key, 0) + 1
        return counts

    for item, recipe in facts.RECIPES.items():
        number = minecraft.items_name[_name(facts.ITEM_NAMES[item])]["id"]
        found = [
            (ingredients(entry), entry["result"]["count"])
            for entry in minecraft.recipes[str(number)]
        ]
        assert (dict(recipe.ingredients), recipe.makes) in found, facts.ITEM_NAMES[item]
