"""What each decision does, and how long it takes, in worlds made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.crafting.rules.turn import sync_furnace
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, layout
from tests.mpt_envs.crafting.worlds import (
    START,
    block,
    do,
    flat,
    give,
    grow,
    has,
    legal,
    look,
    position,
    put,
    scalars,
    stand,
)

X, Y, Z = START
DELAY = facts.BREAK_DELAY_TICKS


def walk_ticks(steps: int) -> int:
    return steps * facts.WALK_MILLITICKS // 1000


def last_events(task: CraftingTask) -> list[tuple[str, int, int]]:
    return [(layout.EVENT_NAMES[e], a, n) for _, e, a, n in layout.events(task.record)]


# -- the Logger ----------------------------------------------------------------------------------


def test_a_log_beside_the_body() -> None:
    task = flat()
    grow(task, X + 1, Z, 5)
    assert do(task, "chop_log") == 60 + DELAY
    assert has(task, "log") == 1
    assert block(task, X + 1, Y, Z) == facts.AIR
    assert ("got", facts.I_LOG, 1) in last_events(task)


def test_the_whole_trunk_can_be_felled_from_the_ground() -> None:
    task = flat()
    grow(task, X + 3, Z + 1, 6)
    for count in range(1, 7):
        do(task, "chop_log")
        assert has(task, "log") == count
    assert not legal(task, "chop_log")
    assert scalars(task)[layout.N_TREES] == 0


def test_walking_to_a_tree_takes_its_time() -> None:
    task = flat()
    grow(task, X + 9, Z, 4)
    ticks = do(task, "chop_log")
    steps = position(task)[0] - X
    # Reach is 4.5 from the eyes, 1.12 over the middle of the log.
    assert steps == 9 - int(np.sqrt(4.5**2 - 1.12**2))
    assert ticks == walk_ticks(steps) + 60 + DELAY


def test_leaves_in_the_way_are_broken() -> None:
    task = flat()
    grow(task, X + 3, Z, 4)
    for z in range(Z - 3, Z + 4):
        for y in range(Y, Y + 5):
            put(task, facts.LEAVES, X + 1, y, z)
    ticks = do(task, "chop_log")
    assert has(task, "log") == 1
    broken = int(scalars(task)[layout.DUG + facts.LEAVES])
    assert broken >= 1
    assert ticks == 60 + DELAY + broken * (6 + DELAY)


def test_a_detour_is_found() -> None:
    task = flat()
    grow(task, X + 6, Z, 4)
    for z in range(Z - 3, Z + 4):
        put(task, facts.STONE, X + 2, Y, z)
        put(task, facts.STONE, X + 2, Y + 1, z) if z != Z else None
    # A window at eye height shows the tree; the wall has to be walked around.
    put(task, facts.STONE, X + 2, Y + 2, Z)
    assert legal(task, "chop_log")
    ticks = do(task, "chop_log")
    assert has(task, "log") == 1
    assert ticks > walk_ticks(6) + 60


def test_a_target_without_a_way_is_given_up_for_a_while() -> None:
    task = flat()
    grow(task, X + 8, Z, 4)
    for x in range(X - 1, X + 2):  # a moat all around, four deep
        for z in range(Z - 1, Z + 2):
            if (x, z) != (X, Z):
                for y in range(Y - 4, Y):
                    put(task, facts.AIR, x, y, z)
    assert legal(task, "chop_log")
    assert do(task, "chop_log") == facts.BLOCKED_TICKS
    s = scalars(task)
    assert s[layout.LAST_OUTCOME] == layout.OUTCOME_BLOCKED
    assert s[layout.BLOCKED] == 1
    assert s[layout.GIVEN_UP] == 1 << layout.TARGET_LOG
    assert ("blocked", layout.TARGET_LOG, 0) in last_events(task)
    assert not legal(task, "chop_log")
    assert position(task) == START
    waited = 0
    while not legal(task, "chop_log"):
        waited += do(task, "wait", "logger")
    assert facts.GIVE_UP_TICKS - 20 <= waited + facts.BLOCKED_TICKS <= facts.GIVE_UP_TICKS + 40


def test_exploring() -> None:
    task = flat()
    assert do(task, "explore_east") == walk_ticks(8)
    assert position(task) == (X + 8, Y, Z)
    assert scalars(task)[layout.HEADING] == 1
    # Fractions of ticks are kept, not lost.
    total = sum(do(task, "explore_west") for _ in range(2))
    assert walk_ticks(8) + total == walk_ticks(24)


def test_exploring_goes_around_a_trunk() -> None:
    task = flat()
    for y in range(Y, Y + 4):
        put(task, facts.LOG, X + 3, y, Z)
    do(task, "explore_east")
    assert position(task) == (X + 7, Y, Z + 1)


def test_climbing_out_of_a_shaft() -> None:
    task = flat()
    for y in range(Y - 5, Y):
        put(task, facts.AIR, X, y, Z)
    stand(task, X, Y - 5, Z)
    assert scalars(task)[layout.DEPTH] == 5
    assert not legal(task, "climb_to_surface")  # nothing to stand on
    give(task, dirt=2, cobblestone=9)
    assert do(task, "climb_to_surface") == 5 * facts.PILLAR_TICKS
    assert position(task) == START
    assert (has(task, "dirt"), has(task, "cobblestone")) == (0, 6)
    column = [block(task, X, y, Z) for y in range(Y - 5, Y)]
    assert column == [facts.DIRT] * 2 + [facts.COBBLESTONE] * 3


def test_climbing_digs_what_is_overhead() -> None:
    task = flat()
    for y in (Y - 5, Y - 4):
        put(task, facts.AIR, X, y, Z)
    stand(task, X, Y - 5, Z)
    give(task, wooden_pickaxe=1)
    assert legal(task, "climb_to_surface")  # digging gives what to stand on
    give(task, wooden_pickaxe=1, dirt=2)
    ticks = do(task, "climb_to_surface")
    # Two cells were open; over them lie two of stone and the grass.
    assert ticks == 2 * (23 + DELAY) + 18 + DELAY + 5 * facts.PILLAR_TICKS
    assert position(task) == START


# -- the Miner -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "ticks"), [("wooden", 23), ("stone", 12), ("iron", 8)])
def test_mining_stone(tool: str, ticks: int) -> None:
    task = flat()
    put(task, facts.STONE, X + 1, Y, Z)
    give(task, **{f"{tool}_pickaxe": 1})
    assert do(task, "mine_stone") == ticks + DELAY
    assert has(task, "cobblestone") == 1
    assert scalars(task)[layout.WEAR : layout.WEAR + 3].sum() == 1


def test_the_best_pickaxe_is_used_and_the_hand_where_it_does_not_matter() -> None:
    task = flat()
    give(task, wooden_pickaxe=1, stone_pickaxe=1)
    assert do(task, "dig_down") == 18 + DELAY + facts.FALL_TICKS[1]  # grass
    assert scalars(task)[layout.WEAR : layout.WEAR + 3].tolist() == [0, 0, 0]
    assert do(task, "dig_down") == 12 + DELAY + facts.FALL_TICKS[1]
    assert scalars(task)[layout.WEAR : layout.WEAR + 3].tolist() == [0, 1, 0]
    assert position(task) == (X, Y - 2, Z)
    assert (has(task, "dirt"), has(task, "cobblestone")) == (1, 1)


def test_bare_hands_break_stone_and_get_nothing() -> None:
    task = flat()
    do(task, "dig_down")
    assert do(task, "dig_down") == 150 + DELAY + facts.FALL_TICKS[1]
    assert has(task, "cobblestone") == 0
    assert ("broke", facts.STONE, 1) in last_events(task)


def test_iron_ore_is_lost_to_a_wooden_pickaxe() -> None:
    task = flat()
    for y in (Y, Y + 1):
        put(task, facts.IRON_ORE, X + 1, y, Z)
    give(task, wooden_pickaxe=1)
    do(task, "tunnel_east")
    assert has(task, "iron_ore") == 0
    assert scalars(task)[layout.N_IRON] == 0


@pytest.mark.parametrize(
    ("ore", "what", "item"),
    [(facts.COAL_ORE, "coal", "coal"), (facts.IRON_ORE, "iron", "iron_ore")],
)
def test_mining_ore(ore: int, what: str, item: str) -> None:
    task = flat()
    put(task, ore, X + 2, Y, Z)
    give(task, stone_pickaxe=1)
    assert do(task, f"mine_{what}") == 23 + DELAY
    assert has(task, item) == 1
    assert not legal(task, f"mine_{what}")


def test_a_pickaxe_breaks_after_its_durability() -> None:
    task = flat()
    give(task, wooden_pickaxe=2)
    s = scalars(task)
    s[layout.WEAR] = 57
    put(task, facts.STONE, X + 1, Y, Z)
    put(task, facts.STONE, X, Y, Z + 1)
    put(task, facts.STONE, X, Y, Z - 1)
    do(task, "mine_stone")
    assert (has(task, "wooden_pickaxe"), s[layout.WEAR]) == (2, 58)
    do(task, "mine_stone")
    assert (has(task, "wooden_pickaxe"), s[layout.WEAR]) == (1, 0)
    assert ("tool_broke", facts.I_WOODEN_PICKAXE, 1) in last_events(task)
    do(task, "mine_stone")
    assert (has(task, "wooden_pickaxe"), s[layout.WEAR]) == (1, 1)
    assert has(task, "cobblestone") == 3


def test_tunnelling() -> None:
    task = flat()
    do(task, "dig_down")
    give(task, stone_pickaxe=1)
    do(task, "dig_down")
    do(task, "dig_down")
    ticks = do(task, "tunnel_south")
    assert position(task) == (X, Y - 3, Z + facts.TUNNEL_LENGTH)
    stones = 2 * facts.TUNNEL_LENGTH
    assert abs(ticks - stones * (12 + DELAY) - walk_ticks(facts.TUNNEL_LENGTH)) <= 1
    assert scalars(task)[layout.HEADING] == 2


def test_a_tunnel_stops_at_water_and_at_an_abyss() -> None:
    task = flat()
    for y in range(Y - 4, Y - 1):
        put(task, facts.AIR, X, y, Z)
    stand(task, X, Y - 4, Z)
    give(task, stone_pickaxe=1)
    put(task, facts.WATER, X + 1, Y - 4, Z)
    assert not legal(task, "tunnel_east")
    for y in range(Y - 10, Y - 4):
        put(task, facts.AIR, X - 1, y, Z)
    do(task, "tunnel_west")
    assert block(task, X - 1, Y - 4, Z) == facts.AIR
    # Six deep: too deep to step down.
    assert position(task) == (X, Y - 4, Z)


def test_bedrock_ends_the_shaft() -> None:
    task = flat()
    stand(task, X, 1, Z)
    put(task, facts.AIR, X, 1, Z)
    put(task, facts.AIR, X, 2, Z)
    assert not legal(task, "dig_down")


def test_falling_hurts_beyond_three_blocks() -> None:
    for depth, hurt in ((2, 0), (4, 1), (6, 3)):
        task = flat()
        for y in range(Y - 1 - (depth - 1), Y - 1):
            put(task, facts.AIR, X, y, Z)
        ticks = do(task, "dig_down")
        assert position(task) == (X, Y - depth, Z)
        assert ticks == 18 + DELAY + facts.FALL_TICKS[depth]
        wound = scalars(task)[layout.WOUND]
        assert wound == max(0, hurt * facts.REGENERATION_TICKS - ticks)


def test_water_breaks_a_fall() -> None:
    task = flat()
    for y in range(Y - 6, Y - 1):
        put(task, facts.AIR, X, y, Z)
    put(task, facts.WATER, X, Y - 7, Z)
    do(task, "dig_down")
    assert position(task) == (X, Y - 7, Z)
    assert scalars(task)[layout.WOUND] == 0


def test_wounds_heal_and_kill() -> None:
    task = flat()
    s = scalars(task)
    s[layout.WOUND] = 100
    do(task, "wait", "miner")
    assert s[layout.WOUND] == 80
    s[layout.WOUND] = facts.MAX_HEALTH * facts.REGENERATION_TICKS
    result = task.act("miner_0", facts.WAIT)
    assert result.terminated
    assert s[layout.DONE] == layout.DONE_DEATH
    assert task.metrics()["success"] == 0


def test_sand_and_gravel_fall() -> None:
    task = flat()
    put(task, facts.STONE, X + 1, Y, Z)
    put(task, facts.SAND, X + 1, Y + 1, Z)
    put(task, facts.GRAVEL, X + 1, Y + 2, Z)
    give(task, wooden_pickaxe=1)
    put(task, facts.COBBLESTONE, X + 1, Y + 3, Z)
    do(task, "mine_stone")
    got = (has(task, "cobblestone"), has(task, "sand"), has(task, "gravel"))
    assert got == (1, 0, 0)
    column = [block(task, X + 1, y, Z) for y in range(Y, Y + 4)]
    if column[3] == facts.COBBLESTONE:
        assert column == [facts.SAND, facts.GRAVEL, facts.AIR, facts.COBBLESTONE]
    else:  # the upper cobblestone was the nearer one
        assert column == [facts.STONE, facts.SAND, facts.GRAVEL, facts.AIR]


def test_sand_does_not_fall_into_the_body() -> None:
    task = flat()
    for y in (Y - 5, Y - 4):
        put(task, facts.AIR, X, y, Z)
    for y in (Y - 3, Y - 2, Y - 1):
        put(task, facts.SAND, X, y, Z)
    stand(task, X, Y - 5, Z)
    give(task, dirt=2)
    do(task, "climb_to_surface")
    assert position(task) == START
    # The sand was dug where it lay over the head, and piled up under the feet.
    assert scalars(task)[layout.DUG + facts.SAND] == 3


def test_gravel_sometimes_drops_flint_by_the_key_alone() -> None:
    def dig(key: int) -> bool:
        task = flat()
        task.reseed(key)
        put(task, facts.GRAVEL, X, Y - 1, Z)
        do(task, "dig_down")
        assert has(task, "flint") + has(task, "gravel") == 1
        return has(task, "flint") == 1

    flints = [dig(key) for key in range(300)]
    assert flints == [dig(key) for key in range(300)]
    assert 12 <= sum(flints) <= 50


def test_digging_is_slow_in_water() -> None:
    task = flat()
    put(task, facts.WATER, X, Y, Z)
    put(task, facts.WATER, X, Y - 1, Z)  # floating: five times as slow
    put(task, facts.STONE, X + 1, Y + 1, Z)
    give(task, wooden_pickaxe=1)
    assert do(task, "mine_stone") in (5 * 23 + DELAY, 5 * 23 + DELAY + walk_ticks(1))


# -- the Smith -----------------------------------------------------------------------------------


def test_hand_crafting() -> None:
    task = flat()
    give(task, log=2)
    assert do(task, "craft_planks") == facts.CRAFT_TICKS
    assert (has(task, "log"), has(task, "planks")) == (1, 4)
    do(task, "craft_sticks")
    assert (has(task, "planks"), has(task, "stick")) == (2, 4)
    give(task, planks=4, coal=1)
    do(task, "craft_table")
    assert (has(task, "planks"), has(task, "crafting_table")) == (0, 1)
    do(task, "craft_torch")
    assert (has(task, "coal"), has(task, "stick"), has(task, "torch")) == (0, 3, 4)


def test_a_torch_from_charcoal() -> None:
    task = flat()
    give(task, charcoal=1, stick=1)
    do(task, "craft_torch")
    assert (has(task, "charcoal"), has(task, "coal"), has(task, "torch")) == (0, 0, 4)
    assert not scalars(task)[layout.SEEN] >> facts.I_COAL & 1


def test_placing_and_picking_up_a_table() -> None:
    task = flat()
    give(task, crafting_table=1, planks=3, stick=2)
    assert do(task, "place_table") == facts.PLACE_TICKS
    assert has(task, "crafting_table") == 0
    assert block(task, X, Y, Z - 1) == facts.TABLE
    assert do(task, "craft_wooden_pickaxe") == facts.CRAFT_TICKS
    assert has(task, "wooden_pickaxe") == 1
    assert do(task, "pick_up_table") == 75 + DELAY
    assert has(task, "crafting_table") == 1
    assert block(task, X, Y, Z - 1) == facts.AIR
    assert scalars(task)[layout.TABLE_CELL] == 0


def test_walking_back_to_the_table() -> None:
    task = flat()
    give(task, crafting_table=1, planks=3, stick=2)
    do(task, "place_table")
    stand(task, X + 8, Y, Z)
    ticks = do(task, "craft_wooden_pickaxe")
    steps = X + 8 - position(task)[0]
    assert steps > 0
    assert ticks == walk_ticks(steps) + facts.CRAFT_TICKS


def test_in_a_shaft_a_niche_is_dug_for_the_table() -> None:
    task = flat()
    for y in range(Y - 4, Y):
        put(task, facts.AIR, X, y, Z)
    stand(task, X, Y - 4, Z)
    give(task, crafting_table=1, wooden_pickaxe=1)
    assert do(task, "place_table") == 23 + DELAY + facts.PLACE_TICKS
    assert block(task, X, Y - 4, Z - 1) == facts.TABLE
    assert has(task, "cobblestone") == 1


def furnace_task(**items: int) -> CraftingTask:
    task = flat()
    give(task, furnace=1, **items)
    do(task, "place_furnace")
    return task


def furnace(task: CraftingTask, field: str) -> int:
    return int(scalars(task)[getattr(layout, f"FURNACE_{field}")])


def test_smelting_takes_200_ticks_an_item_while_other_things_are_done() -> None:
    task = furnace_task(iron_ore=3, coal=2)
    assert do(task, "smelt_iron") == facts.PLACE_TICKS
    assert (has(task, "iron_ore"), has(task, "coal")) == (0, 1)
    burnt = facts.PLACE_TICKS  # the fire is lit when the ore is put in, at the action's beginning
    assert furnace(task, "PROGRESS") == burnt
    while furnace(task, "INPUT_COUNT"):
        do(task, "wait", "miner")
        burnt += facts.WAIT_TICKS
        assert furnace(task, "OUTPUT_COUNT") == burnt // 200
        assert furnace(task, "BURN") == 1600 - burnt
    assert furnace(task, "OUTPUT_COUNT") == 3
    assert do(task, "take_smelted") == facts.PLACE_TICKS
    assert has(task, "iron_ingot") == 3
    assert scalars(task)[layout.SEEN] >> facts.I_IRON_INGOT & 1


def test_tending_waits_until_the_furnace_is_done() -> None:
    task = furnace_task(cobblestone=5, planks=3)
    do(task, "smelt_stone")  # four of them, three planks burn 900 ticks
    assert (has(task, "cobblestone"), has(task, "planks")) == (1, 0)
    waits = []
    while legal(task, "tend_furnace"):
        waits.append(do(task, "tend_furnace"))
    assert sum(waits) <= 800
    assert max(waits) == 200
    assert furnace(task, "OUTPUT_COUNT") == 4


@pytest.mark.parametrize(
    ("fuels", "used"),
    [
        ({"coal": 2, "planks": 9}, ("coal", 1)),
        ({"charcoal": 1, "planks": 9}, ("charcoal", 1)),
        ({"planks": 9, "stick": 9}, ("planks", 2)),
        ({"stick": 9}, ("stick", 6)),
        ({"log": 4, "stick": 1}, ("log", 2)),
    ],
)
def test_fuel_is_the_first_kind_that_is_enough(
    fuels: dict[str, int], used: tuple[str, int]
) -> None:
    task = furnace_task(iron_ore=3, **fuels)
    do(task, "smelt_iron")
    name, count = used
    assert has(task, name) == fuels[name] - count
    assert all(has(task, other) == n for other, n in fuels.items() if other != name)


def test_too_little_fuel_stalls_and_can_be_added() -> None:
    task = furnace_task(iron_ore=3, stick=2)
    do(task, "smelt_iron")
    for _ in range(20):
        do(task, "wait", "logger")
    assert furnace(task, "OUTPUT_COUNT") == 1  # two sticks burn 200 ticks
    assert furnace(task, "INPUT_COUNT") == 2
    assert not legal(task, "tend_furnace")
    assert not legal(task, "smelt_iron")
    give(task, coal=1)
    assert legal(task, "smelt_iron")
    do(task, "smelt_iron")
    for _ in range(3):
        do(task, "tend_furnace") if legal(task, "tend_furnace") else None
    assert furnace(task, "OUTPUT_COUNT") == 3


def test_progress_is_lost_without_fire() -> None:
    task = furnace_task()
    s = scalars(task)
    s[layout.FURNACE_INPUT] = facts.I_LOG
    s[layout.FURNACE_INPUT_COUNT] = 1
    s[layout.FURNACE_PROGRESS] = 150
    s[layout.TICK] += 30
    sync_furnace(s)
    assert furnace(task, "PROGRESS") == 90


def test_a_burning_fire_is_used_up_without_anything_to_smelt() -> None:
    task = furnace_task(log=2, coal=1)
    do(task, "smelt_charcoal")
    assert has(task, "log") == 1
    do(task, "tend_furnace")
    assert furnace(task, "OUTPUT_COUNT") == 1
    before = furnace(task, "BURN")
    do(task, "wait", "smith")
    assert furnace(task, "BURN") == before - 20
    do(task, "smelt_charcoal")  # no further fuel needed
    assert furnace(task, "FUEL_COUNT") == 0


def test_the_log_to_be_smelted_is_not_burnt() -> None:
    task = furnace_task(log=1)
    assert not legal(task, "smelt_charcoal")
    give(task, log=2)
    do(task, "smelt_charcoal")
    assert has(task, "log") == 0
    do(task, "tend_furnace")
    assert furnace(task, "OUTPUT_COUNT") == 1


def test_kinds_do_not_mix() -> None:
    task = furnace_task(iron_ore=1, cobblestone=4, coal=3)
    do(task, "smelt_iron")
    assert not legal(task, "smelt_stone")
    do(task, "tend_furnace")
    assert not legal(task, "smelt_stone")  # the ingot is still in the way
    do(task, "take_smelted")
    assert legal(task, "smelt_stone")


def test_picking_up_the_furnace_takes_its_contents_along() -> None:
    task = furnace_task(iron_ore=3, coal=1, wooden_pickaxe=1)
    do(task, "smelt_iron")
    do(task, "tend_furnace")
    assert do(task, "pick_up_furnace") == 53 + DELAY
    assert has(task, "furnace") == 1
    assert has(task, "iron_ore") + has(task, "iron_ingot") == 3
    assert scalars(task)[layout.FURNACE_CELL] == 0


def test_without_a_pickaxe_the_furnace_stays() -> None:
    task = furnace_task()
    assert not legal(task, "pick_up_furnace")


# -- rewards and ends ----------------------------------------------------------------------------


def test_a_milestone_pays_once() -> None:
    task = flat()
    grow(task, X + 1, Z, 5)
    chop = facts.CHOP_LOG
    assert task.act("logger_0", chop).reward == 1
    assert task.act("logger_0", chop).reward == 0
    assert task.act("smith_0", facts.CRAFT_PLANKS).reward == 2
    assert task.act("smith_0", facts.CRAFT_PLANKS).reward == 0
    assert scalars(task)[layout.SCORE] == 3


def test_what_is_off_the_path_pays_nothing() -> None:
    task = flat("crafting-table")
    give(task, planks=2)
    assert task.act("smith_0", facts.CRAFT_STICKS).reward == 0


def test_the_goal_ends_the_episode() -> None:
    task = flat("crafting-table")
    give(task, planks=4)
    result = task.act("smith_0", facts.CRAFT_TABLE)
    assert result.reward == 3
    assert result.terminated
    assert task.metrics()["success"] == 1
    before = task.snapshot()
    again = task.act("smith_0", facts.WAIT)
    assert (again.reward, again.terminated) == (0, True)
    assert task.skip().terminated
    assert task.snapshot() == before


def test_the_tick_budget_ends_the_episode() -> None:
    task = flat(tick_budget=50)
    assert not task.skip().terminated
    assert not task.act("smith_0", 0).terminated
    assert task.act("miner_0", 0).terminated
    assert task.metrics()["success"] == 0
    assert scalars(task)[layout.DONE] == layout.DONE_TIME


def test_skipping_costs_time() -> None:
    task = flat()
    task.skip()
    s = scalars(task)
    assert s[layout.TICK] == facts.SKIP_TICKS
    assert s[layout.LAST_ROLE] == -1
    look(task)
    assert position(task) == START
