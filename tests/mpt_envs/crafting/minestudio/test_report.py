"""Reading info dictionaries as MineStudio gives them: recorded ones, sticky and cumulative."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from mpt_envs.crafting.backends.engine_errors import EngineDiedError, EngineError
from mpt_envs.crafting.backends.minestudio.geometry import Spot
from mpt_envs.crafting.backends.minestudio.names import (
    AIR_NAMES,
    item_of,
    kind_of,
    plain,
    planks_of,
)
from mpt_envs.crafting.backends.minestudio.report import (
    Stack,
    gained,
    grown,
    obtained,
    read_report,
)
from mpt_envs.crafting.world import facts


def counts(**values: float) -> defaultdict[str, Any]:
    """A statistic as MineStudio keeps it: arrays without dimensions, 0 for what it lacks."""
    return defaultdict(
        lambda: np.zeros((), dtype=float), {k: np.array(float(v)) for k, v in values.items()}
    )


RECORDED: dict[str, Any] = {
    "pov": np.zeros((360, 640, 3), np.uint8),
    "player_pos": {"x": -8.3, "y": 71.0, "z": 233.69, "yaw": -170.25, "pitch": 12.5},
    "inventory": {
        **{slot: {"type": "none", "quantity": 0} for slot in range(36)},
        0: {"type": "oak_log", "quantity": 3},
        1: {"type": "birch_log", "quantity": 1},
        20: {"type": "wooden_pickaxe", "quantity": 1},
        21: {"type": "wheat_seeds", "quantity": 7},
    },
    "equipped_items": {"mainhand": {"type": "wooden_pickaxe", "damage": 9, "maxDamage": 59}},
    "health": 17.5,
    "food_level": 20,
    "is_gui_open": False,
    "pickup": counts(oak_log=3, birch_log=1, wheat_seeds=7),
    "mine_block": counts(oak_log=3, birch_log=1, grass=4),
    "craft_item": counts(),
    "break_item": counts(),
    "use_item": counts(),
    "location_stats": {"can_see_sky": np.array(1)},
    "voxels": [{"x": 0, "y": -1, "z": 0, "type": "minecraft:grass_block"}],
}


def later(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RECORDED), **changes}


def test_what_a_report_says() -> None:
    report = read_report(RECORDED, False, False)
    assert report.feet == Spot(-9, 71, 233)
    assert (report.yaw, report.pitch, report.health) == (-170.25, 12.5, 17.5)
    assert report.slots[0] == Stack("oak_log", 3) and report.slots[2] is None
    assert (report.held, report.damage) == ("wooden_pickaxe", 9)
    held = report.counts()
    assert held[facts.I_LOG] == 4 and held[facts.I_WOODEN_PICKAXE] == 1 and sum(held) == 5
    assert report.slot_of(facts.I_WOODEN_PICKAXE) == 20
    assert report.slot_of(facts.I_COAL) == -1
    assert not report.dead and not report.gui_open


def test_blocks_of_an_earlier_step_do_not_count() -> None:
    """`info` keeps the last list of blocks that was asked for."""
    assert read_report(RECORDED, False, False).voxels is None
    assert read_report(RECORDED, False, True).voxels == RECORDED["voxels"]


def test_statistics_count_up_and_deltas_are_taken() -> None:
    before = read_report(RECORDED, False, False)
    inventory = copy.deepcopy(RECORDED["inventory"])
    inventory[0] = {"type": "oak_log", "quantity": 2}
    inventory[2] = {"type": "oak_planks", "quantity": 1}
    inventory[3] = {"type": "stick", "quantity": 4}
    after = read_report(
        later(
            inventory=inventory,
            craft_item=counts(oak_planks=4, stick=4, crafting_table=1),
            mine_block=counts(oak_log=3, birch_log=1, grass=5),
        ),
        False,
        False,
    )
    assert grown(before, after, "mine_block") == {"grass": 1}
    assert grown(before, after, "pickup") == {}
    change = gained(before, after)
    assert change[facts.I_LOG] == -1 and change[facts.I_PLANKS] == 1
    # The table was crafted and put down in between: it was had all the same.
    assert obtained(before, after) == {facts.I_PLANKS, facts.I_STICK, facts.I_TABLE}
    assert obtained(after, after) == set()


def test_a_pickup_of_what_is_gone_again_counts() -> None:
    before = read_report(RECORDED, False, False)
    after = read_report(later(pickup=counts(oak_log=3, coal=1)), False, False)
    assert obtained(before, after) == {facts.I_COAL}


def test_a_lost_connection_is_told_and_its_made_up_report_is_not_read() -> None:
    with pytest.raises(EngineDiedError, match=r"Connection timed out!.*reset the environment"):
        read_report(later(error="Connection timed out!"), True, False)


@pytest.mark.parametrize("key", ["player_pos", "inventory"])
def test_a_report_that_lacks_something_says_what(key: str) -> None:
    info = later()
    del info[key]
    with pytest.raises(EngineError, match=rf"'{key}'.*1\.1\.6"):
        read_report(info, False, False)


def test_a_hand_that_holds_nothing() -> None:
    for hand in ({"type": "air"}, {"type": "none", "damage": 3}):
        report = read_report(later(equipped_items={"mainhand": hand}), False, False)
        assert (report.held, report.damage) == ("", 0)
    assert read_report(later(equipped_items=None), False, False).held == ""


def test_names() -> None:
    assert plain("minecraft:oak_log[axis=y]") == "oak_log"
    assert plain("Oak_Log") == "oak_log"
    with pytest.raises(ValueError, match="not a name"):
        plain("oak log; /kill @p")
    assert {kind_of(name) for name in AIR_NAMES} == {facts.AIR}
    assert kind_of("grass") == facts.AIR and kind_of("grass_block") == facts.GRASS
    assert kind_of("dark_oak_log") == facts.LOG and kind_of("spruce_leaves") == facts.LEAVES
    assert kind_of("granite") == facts.DIRT and kind_of("stone") == facts.STONE
    assert kind_of("oak_fence") == facts.BARRIER and kind_of("lava") == facts.BARRIER
    assert item_of("acacia_log") == facts.I_LOG and item_of("wheat_seeds") == facts.NO_ITEM
    assert planks_of("dark_oak_log") == "dark_oak_planks"
    assert planks_of("stripped_birch_log") == "birch_planks"
    for kind, name in enumerate(facts.BLOCK_NAMES):
        assert kind_of(facts.MINECRAFT_NAMES.get(name, name)) == kind, name
    for item, name in enumerate(facts.ITEM_NAMES):
        assert item_of(facts.MINECRAFT_NAMES.get(name, name)) == item, name
