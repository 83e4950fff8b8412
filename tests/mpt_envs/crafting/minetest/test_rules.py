"""The engine's rules in small scenes: what it lets a body do, and what comes of it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mpt_envs.crafting.backends.minetest import make_task
from mpt_envs.crafting.backends.minetest.task import MinetestTask
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at
from tests.mpt_envs.crafting.minetest import play
from tests.mpt_envs.crafting.minetest.scenes import arrange, body, node, parts, room


@pytest.fixture(scope="module")
def task() -> MinetestTask:
    return make_task(tick_budget=100_000)


@pytest.fixture(autouse=True)
def _fresh(task: MinetestTask) -> None:
    task.reset(0)


def legal(task: MinetestTask, role: str) -> set[str]:
    return set(task.legal_action_names(f"{role}_0"))


def do(task: MinetestTask, role: str, name: str) -> int:
    """Take an action that must be legal; returns its ticks."""
    agent = f"{role}_0"
    result = task.act(agent, task.action_names(agent).index(name))
    assert not result.info.get("illegal"), f"{name} is not legal"
    return int(task._s[at.LAST_TICKS])


def count(task: MinetestTask, item: int) -> int:
    return int(task._s[at.INVENTORY + item])


PICKS = ("default:pick_wood", "default:pick_stone", "default:pick_steel")


def test_the_hand_digs_wood_and_earth_but_no_stone(task: MinetestTask) -> None:
    x, y, z = body(task)
    nodes = room(task)
    nodes[x + 2, y, z] = "default:tree"
    nodes[x + 2, y + 1, z] = "default:tree"
    arrange(task, nodes, [])
    assert "dig_down" not in legal(task, "miner")
    assert "mine_stone" not in legal(task, "miner")
    assert do(task, "logger", "chop_log") == 70 + facts.BREAK_DELAY_TICKS  # 3.5 s
    assert count(task, facts.I_LOG) == 1
    assert node(task, (x + 2, y, z)) == "air"
    nodes[x, y - 1, z] = "default:dirt"
    arrange(task, nodes, [])
    assert do(task, "miner", "dig_down") > 14
    assert count(task, facts.I_DIRT) == 1
    assert body(task) == (x, y - 1, z)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_each_pickaxe_digs_what_the_game_lets_it(task: MinetestTask, level: int) -> None:
    x, y, z = body(task)
    nodes = room(task)
    nodes[x + 2, y + 1, z] = "default:stone_with_coal"
    nodes[x - 2, y + 1, z] = "default:stone_with_iron"
    arrange(task, nodes, [PICKS[level - 1]])
    assert ("mine_iron" in legal(task, "miner")) == (level > 1)
    # Seconds of the game's tools on cracky 3 (stone, coal: 3) and 2 (iron).
    stone = {1: 1.6, 2: 1.0, 3: 0.8}[level]
    level_difference = 2 if level == 3 else 1
    expected = round(20 * stone / level_difference) + facts.BREAK_DELAY_TICKS
    assert do(task, "miner", "mine_stone") == expected
    assert count(task, facts.I_COBBLESTONE) == 1
    do(task, "miner", "mine_coal")
    assert count(task, facts.I_COAL) == 1
    if level > 1:
        do(task, "miner", "mine_iron")
        assert count(task, facts.I_IRON_ORE) == 1
    # Every node dug with it wore it.
    assert task._s[at.WEAR + level - 1] > 0


def test_a_pickaxe_breaks(task: MinetestTask) -> None:
    arrange(task, room(task), ["default:pick_wood 1 65000"])
    do(task, "miner", "mine_stone")
    assert count(task, facts.I_WOODEN_PICKAXE) == 0
    assert "the wooden_pickaxe broke" in " ".join(task.narrate())
    assert "mine_stone" not in legal(task, "miner")


def test_crafting_follows_the_game(task: MinetestTask) -> None:
    arrange(task, room(task), ["default:aspen_tree 2"])
    for name, item, amount in (
        ("craft_planks", facts.I_PLANKS, 4),
        ("craft_sticks", facts.I_STICK, 4),
        ("craft_planks", facts.I_PLANKS, 7),
        ("craft_table", facts.I_TABLE, 1),
    ):
        assert do(task, "smith", name) == facts.CRAFT_TICKS
        assert count(task, item) == amount
    # The game lets one craft 3x3 by hand; the workbench is ours.
    assert "craft_wooden_pickaxe" not in legal(task, "smith")
    do(task, "smith", "place_table")
    do(task, "smith", "craft_wooden_pickaxe")
    assert count(task, facts.I_WOODEN_PICKAXE) == 1
    assert count(task, facts.I_PLANKS) == 0 and count(task, facts.I_STICK) == 2


def test_recipes_take_any_kind_of_wood(task: MinetestTask) -> None:
    arrange(task, room(task), ["default:wood 2", "default:pine_wood 1", "default:junglewood 1"])
    do(task, "smith", "craft_table")
    assert count(task, facts.I_TABLE) == 1 and count(task, facts.I_PLANKS) == 0


def test_torch_and_stone_bricks(task: MinetestTask) -> None:
    arrange(task, room(task), ["default:coal_lump", "default:stick", "default:stone 4"])
    do(task, "smith", "craft_torch")
    do(task, "smith", "craft_stone_bricks")
    assert count(task, facts.I_TORCH) == 4 and count(task, facts.I_STONE_BRICKS) == 4


def test_a_furnace_smelts_with_fuel_and_in_time(task: MinetestTask) -> None:
    inventory = ["default:furnace", "default:iron_lump 3", "default:coal_lump 1"]
    arrange(task, room(task), inventory)
    do(task, "smith", "place_furnace")
    assert legal(task, "smith") >= {"smelt_iron"} and "tend_furnace" not in legal(task, "smith")
    do(task, "smith", "smelt_iron")
    assert count(task, facts.I_IRON_ORE) == count(task, facts.I_COAL) == 0
    assert "take_smelted" not in legal(task, "smith")
    for _ in range(2):
        task.skip()  # the fire burns on; an ingot takes 3 s, of which loading took 8 ticks
    assert task._s[at.FURNACE_OUTPUT_COUNT] == 0 and task._s[at.FURNACE_BURN] > 0
    ticks = do(task, "smith", "tend_furnace")
    assert 100 < ticks <= facts.TEND_TICKS
    assert task._s[at.FURNACE_OUTPUT_COUNT] >= 2
    while "tend_furnace" in legal(task, "smith"):
        do(task, "smith", "tend_furnace")
    do(task, "smith", "take_smelted")
    assert count(task, facts.I_IRON_INGOT) == 3


def test_without_fuel_nothing_smelts(task: MinetestTask) -> None:
    arrange(task, room(task), ["default:furnace", "default:cobble 4"])
    do(task, "smith", "place_furnace")
    assert "smelt_stone" not in legal(task, "smith")
    assert "smelt_charcoal" not in legal(task, "smith")


def test_a_full_furnace_goes_with_what_is_in_it(task: MinetestTask) -> None:
    inventory = ["default:furnace", "default:cobble 4", "default:coal_lump 1", "default:pick_stone"]
    arrange(task, room(task), inventory)
    do(task, "smith", "place_furnace")
    do(task, "smith", "smelt_stone")
    do(task, "smith", "tend_furnace")
    do(task, "smith", "pick_up_furnace")
    assert count(task, facts.I_FURNACE) == 1
    assert count(task, facts.I_COBBLESTONE) + count(task, facts.I_STONE) == 4
    assert task._s[at.FURNACE_CELL] == 0


def test_falls_hurt_as_in_the_game(task: MinetestTask) -> None:
    x, y, z = body(task)
    for depth, hurt in ((8, 0), (11, 1)):
        nodes = room(task)
        for dy in range(1, depth + 1):
            nodes[x, y - dy, z] = "air"
        nodes[x, y - depth - 1, z] = "default:stone"
        nodes[x, y - 1, z] = "default:dirt"
        if y - depth - 1 < 1:
            pytest.skip("the body stands too low in this world")
        arrange(task, nodes, [], at=(x, y, z))
        do(task, "miner", "dig_down")
        assert body(task)[1] == y - depth
        assert task._s[at.WOUND] == hurt * facts.REGENERATION_TICKS


def test_sand_and_gravel_fall_but_not_into_the_body(task: MinetestTask) -> None:
    x, y, z = body(task)
    nodes = room(task)
    nodes[x + 1, y, z] = nodes[x + 1, y + 1, z] = "default:dirt"
    nodes[x + 1, y + 2, z] = nodes[x + 1, y + 3, z] = "default:sand"
    arrange(task, nodes, [])
    do(task, "miner", "tunnel_east")
    assert count(task, facts.I_SAND) + count(task, facts.I_DIRT) >= 3
    assert node(task, body(task)) == "air"


def test_walls_hide_and_leaves_do_not(task: MinetestTask) -> None:
    x, y, z = body(task)
    nodes = room(task)
    nodes[x + 4, y + 1, z] = "default:stone_with_coal"
    for dz in range(-4, 5):
        for dy in range(4):
            nodes[x + 2, y + dy, z + dz] = "default:leaves"
    arrange(task, nodes, ["default:pick_stone"])
    assert "mine_coal" in legal(task, "miner")
    for place, name in nodes.items():
        if name == "default:leaves":
            nodes[place] = "mpt_body:bedrock"
    arrange(task, nodes, ["default:pick_stone"])
    assert "mine_coal" not in legal(task, "miner")


def wall_with_windows(task: MinetestTask, door: bool) -> dict[tuple[int, int, int], str]:
    """A tree behind a wall that can be looked through, but neither stepped over nor through."""
    x, y, z = body(task)
    nodes = room(task)
    nodes[x + 4, y + 1, z] = "default:tree"
    for dz in range(-4, 4 if door else 5):
        for dy in (0, 2, 3):
            nodes[x, y + dy, z + dz] = "mpt_body:bedrock"
    return nodes


def test_a_way_leads_around_a_wall(task: MinetestTask) -> None:
    x, y, z = body(task)
    arrange(task, wall_with_windows(task, door=True), [], at=(x - 4, y, z))
    ticks = do(task, "logger", "chop_log")
    assert count(task, facts.I_LOG) == 1
    # Four steps aside, four across and on: 5 ticks a node, then 3.5 s for the log.
    assert ticks > 9 * 5 + 70
    assert body(task)[0] >= x


def test_no_way_is_told_and_remembered(task: MinetestTask) -> None:
    x, y, z = body(task)
    arrange(task, wall_with_windows(task, door=False), [], at=(x - 4, y, z))
    assert do(task, "logger", "chop_log") == facts.BLOCKED_TICKS
    assert task._s[at.LAST_OUTCOME] == at.OUTCOME_BLOCKED
    assert "chop_log" not in legal(task, "logger")
    assert task.metrics()["blocked"] == 1
    for _ in range(facts.GIVE_UP_TICKS // facts.SKIP_TICKS):
        task.skip()
    assert "chop_log" in legal(task, "logger")


def test_deep_water_is_swum(task: MinetestTask) -> None:
    x, y, z = body(task)
    nodes = room(task)
    for dx in range(1, 5):
        nodes[x + dx, y - 1, z] = "default:water_source"
        nodes[x + dx, y, z] = "air"
    arrange(task, nodes, [])
    before = body(task)
    water = do(task, "logger", "explore_east")
    assert body(task)[0] == before[0] + 4
    assert task.observe("logger_0")[list(task.feature_names).index("below_water")] in (0.0, 1.0)
    for dx in range(1, 5):
        nodes[x + dx, y - 1, z] = "default:stone"
    arrange(task, nodes, [], at=before)
    assert do(task, "logger", "explore_east") < water


def test_climbing_piles_up_blocks(task: MinetestTask) -> None:
    x, _, z = body(task)
    nodes = room(task)
    ground = parts(task.snapshot())[4]
    low = int(ground[x * at.WIDTH + z]) - 3
    for dy in range(2, 8):
        nodes[x, low + dy, z] = "default:dirt"
    nodes[x, low, z] = nodes[x, low + 1, z] = "air"
    nodes[x, low - 1, z] = "default:stone"
    arrange(task, nodes, ["default:cobble 2"], at=(x, low, z))
    do(task, "logger", "climb_to_surface")
    assert body(task)[1] > low
    assert node(task, (x, low, z)) in ("default:dirt", "default:cobble")


def test_the_map_and_its_mirror_agree_after_everything(task: MinetestTask) -> None:
    """`read` compares them, and the client's copy is the third."""
    rng = random.Random(1)
    for _ in range(120):
        play.do(task, play.mixed_move(task, rng))
    _, names, _, cells, _ = parts(task.snapshot())
    blocks = at.blocks(task.record)
    logs = [i for i, name in enumerate(names) if name.endswith("tree")]
    for block, codes in (
        (facts.STONE, [names.index("default:stone")]),
        (facts.LOG, logs),
        (facts.COAL_ORE, [names.index("default:stone_with_coal")]),
    ):
        assert np.array_equal(blocks == block, np.isin(cells, codes))
