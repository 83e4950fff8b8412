"""Places and clicks in Minecraft's windows; the double's windows have the same recipes."""

from __future__ import annotations

import pytest

from mpt_envs.crafting.backends.minestudio.report import Stack
from mpt_envs.crafting.backends.minestudio.screens import (
    SHAPES,
    Click,
    Desk,
    NoRoomError,
    grid_slot,
    player_slot,
    result_slot,
)
from mpt_envs.crafting.world import facts
from tests.mpt_envs.crafting.minestudio.double import DoubleSim

PRODUCTS = sorted(SHAPES)


def test_the_places_of_slots() -> None:
    """By Minecraft's own layout of windows, in a picture of 640 x 360."""
    assert player_slot(0) == (248, 247) and player_slot(8) == (392, 247)
    assert player_slot(9) == (248, 189) and player_slot(35) == (392, 225)
    assert grid_slot("inventory", 0, 0) == (338, 123) and grid_slot("inventory", 1, 1) == (356, 141)
    assert grid_slot("table", 0, 0) == (270, 122) and grid_slot("table", 2, 2) == (306, 158)
    assert [result_slot(s) for s in ("inventory", "table", "furnace")] == [  # type: ignore[arg-type]
        (394, 133),
        (364, 140),
        (356, 140),
    ]
    with pytest.raises(ValueError, match="slots are 0 to 35"):
        player_slot(36)


@pytest.mark.parametrize("item", PRODUCTS, ids=lambda i: facts.ITEM_NAMES[i])
def test_shapes_hold_the_ingredients_of_the_recipes(item: int) -> None:
    found: dict[int, int] = {}
    for row in SHAPES[item]:
        for ingredient in row:
            if ingredient is not None:
                found[ingredient] = found.get(ingredient, 0) + 1
    assert found == dict(facts.RECIPES[item].ingredients)
    big = len(SHAPES[item]) > 2 or len(SHAPES[item][0]) > 2
    assert big == facts.RECIPES[item].table


def window(screen: str, slots: list[Stack | None]) -> DoubleSim:
    """A double that stands before an open window."""
    sim = DoubleSim(action_type="env")
    sim.env.seed(0)
    sim.reset()
    sim.slots = [None if s is None else [s.name, s.amount, 0] for s in slots]
    sim._open(screen, {"inventory": 4, "table": 9}[screen])
    return sim


def carry_out(sim: DoubleSim, clicks: list[Click]) -> dict[str, int]:
    for click in clicks:
        sim.cursor = [float(click.x), float(click.y)]
        sim._click(click.button)
    assert sim.carried is None and not any(sim.grid), "something is left lying about"
    sim._close_screen()
    found: dict[str, int] = {}
    for stack in sim.slots:
        if stack:
            found[stack[0]] = found.get(stack[0], 0) + stack[1]
    return found


@pytest.mark.parametrize("item", PRODUCTS, ids=lambda i: facts.ITEM_NAMES[i])
def test_the_clicks_craft_and_nothing_is_lost(item: int) -> None:
    """From stacks that are split over slots, with some to spare of everything."""
    slots: list[Stack | None] = [None] * 36
    before: dict[str, int] = {}
    free = iter((35, 0, 17, 4, 9, 30))
    for ingredient, amount in facts.RECIPES[item].ingredients:
        name = facts.MINECRAFT_NAMES.get(facts.ITEM_NAMES[ingredient], facts.ITEM_NAMES[ingredient])
        first = max(1, amount // 2)
        slots[next(free)] = Stack(name, first)
        slots[next(free)] = Stack(name, amount - first + 3)
        before[name] = amount + 3
    screen = "table" if facts.RECIPES[item].table else "inventory"
    desk = Desk(slots)
    desk.craft(item, screen)  # type: ignore[arg-type]
    after = carry_out(window(screen, slots), desk.clicks)
    product = facts.MINECRAFT_NAMES.get(facts.ITEM_NAMES[item], facts.ITEM_NAMES[item])
    wanted = dict.fromkeys(before, 3)
    wanted[product] = wanted.get(product, 0) + facts.RECIPES[item].makes
    assert after == wanted
    planned: dict[str, int] = {}
    for stack in desk.slots:
        if stack is not None:
            planned[stack.name] = planned.get(stack.name, 0) + stack.amount
    assert planned == wanted


def test_other_woods_and_charcoal() -> None:
    slots: list[Stack | None] = [Stack("birch_log", 2), *[None] * 35]
    desk = Desk(slots)
    desk.craft(facts.I_PLANKS, "inventory")
    assert desk.slots[1] == Stack("birch_planks", 4)
    slots = [Stack("charcoal", 1), Stack("stick", 1), *[None] * 34]
    desk = Desk(slots)
    desk.craft(facts.I_TORCH, "inventory")
    assert carry_out(window("inventory", slots), desk.clicks) == {"torch": 4}


def test_what_cannot_be_crafted() -> None:
    with pytest.raises(NoRoomError, match="no planks"):
        Desk([Stack("oak_planks", 1), *[None] * 35]).craft(facts.I_STICK, "inventory")
    full: list[Stack | None] = [Stack("dirt", 64)] * 35
    with pytest.raises(NoRoomError, match="no slot is free for oak_planks"):
        Desk([Stack("oak_log", 2), *full]).craft(facts.I_PLANKS, "inventory")
    # The slot of the last log is free when the planks come.
    desk = Desk([Stack("oak_log", 1), *full])
    desk.craft(facts.I_PLANKS, "inventory")
    assert desk.slots[0] == Stack("oak_planks", 4)


def test_swapping_slots() -> None:
    for other in (Stack("dirt", 5), None):
        slots: list[Stack | None] = [None] * 36
        slots[20], slots[3] = Stack("crafting_table", 1), other
        desk = Desk(slots)
        desk.swap(20, 3)
        sim = window("inventory", slots)
        carry_out(sim, desk.clicks)
        assert sim.slots[3] == ["crafting_table", 1, 0]
        assert sim.slots[20] == (["dirt", 5, 0] if other else None)
