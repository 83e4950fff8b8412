"""Crafting and smelting in Minecraft: by clicks in its windows, or by commands.

Both use Minecraft's real furnace, which smelts while ticks pass. What is in it is not in
MineStudio's reports, so it is kept in the record by Minecraft's rule (`rules.sync_furnace`), and
what comes out is believed only when it is in the inventory.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable
from typing import Final

from mpt_envs.crafting.backends.minestudio.body import Body
from mpt_envs.crafting.backends.minestudio.engine import Engine
from mpt_envs.crafting.backends.minestudio.geometry import Spot
from mpt_envs.crafting.backends.minestudio.names import item_of, minecraft_name, planks_of
from mpt_envs.crafting.backends.minestudio.report import Report, Stack, grown
from mpt_envs.crafting.backends.minestudio.screens import (
    CENTRE,
    DEGREES_PER_PIXEL,
    FURNACE_FUEL_SLOT,
    FURNACE_INPUT_SLOT,
    Click,
    Desk,
    NoRoomError,
    Screen,
    player_slot,
    result_slot,
)
from mpt_envs.crafting.world import facts

CRAFTING_MODES: Final = ("gui", "command")

_OPEN_TICKS: Final = 10
_SETTLE_TICKS: Final = 5
_PIXELS_PER_TICK: Final = 120


class Crafter(abc.ABC):
    """Who crafts for a body. Each method returns whether Minecraft agreed.

    Args:
        body: whose inventory and furnace it is.
    """

    def __init__(self, body: Body) -> None:
        self.body = body

    @property
    def engine(self) -> Engine:
        """Where the body lives."""
        return self.body.engine

    def spent(self, before: Report, item: int) -> int:
        """How many of an item went away since a report, apart from what was picked up."""
        after = self.engine.report
        flown = sum(
            n for name, n in grown(before, after, "pickup").items() if item_of(name) == item
        )
        return before.counts()[item] + flown - after.counts()[item]

    @abc.abstractmethod
    def exchange(self, slot: int, hotbar: int) -> bool:
        """Swap two slots of the inventory."""

    @abc.abstractmethod
    def craft(self, item: int, table: Spot | None) -> bool:
        """Craft an item once, at a table in reach if its recipe needs one."""

    @abc.abstractmethod
    def load(self, furnace: Spot, item: int, amount: int, fuel: int, count: int) -> bool:
        """Put items and fuel into a furnace in reach; an amount of 0 leaves a slot alone."""

    @abc.abstractmethod
    def unload(self, furnace: Spot, item: int, amount: int) -> bool:
        """Take what a furnace in reach has made."""


class GuiCrafter(Crafter):
    """Crafts by keys and mouse in Minecraft's own windows."""

    # -- windows -----------------------------------------------------------------------------

    def _open(self, at: Spot | None) -> bool:
        """Open the inventory, or what stands somewhere; return whether a window is open."""
        if at is None:
            self.engine.step("inventory")
        else:
            self.body.look_at(self.body.aim(at))
            self.engine.step("use")
        for _ in range(_OPEN_TICKS):
            if self.engine.report.gui_open:
                return True
            self.engine.step()
        return self.engine.report.gui_open

    def _close(self) -> Report:
        self.body.close_windows()
        # What lay in the grid comes back a tick later.
        return self.engine.wait(1)

    def _click_all(self, clicks: list[Click]) -> None:
        x, y = CENTRE
        for click in clicks:
            while (x, y) != (click.x, click.y):
                dx = max(-_PIXELS_PER_TICK, min(_PIXELS_PER_TICK, click.x - x))
                dy = max(-_PIXELS_PER_TICK, min(_PIXELS_PER_TICK, click.y - y))
                self.engine.step(camera=(dy * DEGREES_PER_PIXEL, dx * DEGREES_PER_PIXEL))
                x, y = x + dx, y + dy
            self.engine.step("attack" if click.button == "left" else "use")
            # Let the button go, or the next click would be none.
            self.engine.step()

    def _work(self, at: Spot | None, plan: Callable[[Desk], None]) -> Report | None:
        """Open a window, plan and make clicks, close it; None if that was not possible.

        What is planned before a window is open may be wrong: things still fly in.
        """
        if not self._open(at):
            return None
        desk = Desk(self.engine.report.slots)
        try:
            plan(desk)
        except NoRoomError:
            self._close()
            return None
        self._click_all(desk.clicks)
        return self._close()

    # -- the crafter -------------------------------------------------------------------------

    def exchange(self, slot: int, hotbar: int) -> bool:
        wanted = self.engine.report.slots[slot]
        after = self._work(None, lambda desk: desk.swap(slot, hotbar))
        return after is not None and after.slots[hotbar] == wanted

    def craft(self, item: int, table: Spot | None) -> bool:
        screen: Screen = "inventory" if table is None else "table"
        before = self.engine.report.counts()[item]
        after = self._work(table, lambda desk: desk.craft(item, screen))
        return after is not None and after.counts()[item] > before

    def load(self, furnace: Spot, item: int, amount: int, fuel: int, count: int) -> bool:
        def plan(desk: Desk) -> None:
            desk.deal(item, [FURNACE_INPUT_SLOT] * amount)
            desk.deal(fuel, [FURNACE_FUEL_SLOT] * count)

        before = self.engine.report
        if self._work(furnace, plan) is None:
            return False
        wanted = Counter({item: amount}) + Counter({fuel: count})
        return all(self.spent(before, i) == n for i, n in wanted.items())

    def unload(self, furnace: Spot, item: int, amount: int) -> bool:
        before = self.engine.report.counts()[item]
        name = minecraft_name(item)
        after = self._work(furnace, lambda desk: desk.collect(result_slot("furnace"), name, amount))
        return after is not None and after.counts()[item] > before


class CommandCrafter(Crafter):
    """Crafts by commands: ingredients are cleared and products given, by the recipes of `facts`."""

    def exchange(self, slot: int, hotbar: int) -> bool:
        slots = self.engine.report.slots
        wanted = slots[slot]
        for index, stack in ((hotbar, wanted), (slot, slots[hotbar])):
            wear = 0 if stack is None else self.body.wear.get(item_of(stack.name), 0)
            self.engine.command(replace_slot(index, stack, wear))
        self.engine.wait(1)
        return self.engine.report.slots[hotbar] == wanted

    def _take(self, item: int, amount: int) -> None:
        """Clear so many of an item, whatever Minecraft calls each of them."""
        for command in clear_commands(self.engine.report.slots, item, amount):
            self.engine.command(command)

    def _came(self, item: int, wanted: int) -> bool:
        """Whether so many of an item are there; the report may come a tick late."""
        for _ in range(_SETTLE_TICKS):
            if self.engine.report.counts()[item] >= wanted:
                return True
            self.engine.step()
        return self.engine.report.counts()[item] >= wanted

    def craft(self, item: int, table: Spot | None) -> bool:
        counts = self.engine.report.counts()
        need = dict(facts.RECIPES[item].ingredients)
        if item == facts.I_TORCH and counts[facts.I_COAL] == 0:
            need = dict(facts.TORCH_ALTERNATIVE)
        if any(counts[ingredient] < amount for ingredient, amount in need.items()):
            return False
        product = minecraft_name(item)
        if item == facts.I_PLANKS:
            stack = self.engine.report.slots[self.engine.report.slot_of(facts.I_LOG)]
            assert stack is not None
            product = planks_of(stack.name)
        makes = facts.RECIPES[item].makes
        for ingredient, amount in need.items():
            self._take(ingredient, amount)
        self.engine.command(f"/give @p minecraft:{product} {makes}")
        return self._came(item, counts[item] + makes)

    def load(self, furnace: Spot, item: int, amount: int, fuel: int, count: int) -> bool:
        before = self.engine.report
        counts = before.counts()
        name, fuel_name = self._name_of(item), self._name_of(fuel)
        if counts[item] < amount or (count and counts[fuel] < count):
            return False
        inside = self.inside
        if amount:
            self._take(item, amount)
            self.engine.command(replace_content(furnace, 0, name, inside[0] + amount))
        if count:
            self._take(fuel, count)
            self.engine.command(replace_content(furnace, 1, fuel_name, inside[1] + count))
        wanted = Counter({item: amount}) + Counter({fuel: count})
        for _ in range(_SETTLE_TICKS):
            if all(self.spent(before, i) == n for i, n in wanted.items()):
                return True
            self.engine.step()
        return False

    #: How many items of input and fuel the furnace holds now; the planner keeps it.
    inside: tuple[int, int] = (0, 0)

    def _name_of(self, item: int) -> str:
        slot = self.engine.report.slot_of(item) if item >= 0 else -1
        stack = self.engine.report.slots[slot] if slot >= 0 else None
        return minecraft_name(item) if stack is None and item >= 0 else stack.name if stack else ""

    def unload(self, furnace: Spot, item: int, amount: int) -> bool:
        before = self.engine.report.counts()[item]
        self.engine.command(replace_content(furnace, 2, "air", 0))
        self.engine.command(f"/give @p minecraft:{minecraft_name(item)} {amount}")
        return self._came(item, before + amount)


def replace_slot(index: int, stack: Stack | None, damage: int = 0) -> str:
    """The command that puts a stack into a slot of the inventory.

    Args:
        index: 0 to 35; 0 to 8 is the hotbar.
        stack: None empties the slot.
        damage: wear of a tool.
    """
    player_slot(index)
    where = f"hotbar.{index}" if index < 9 else f"inventory.{index - 9}"
    if stack is None:
        return f"/replaceitem entity @p {where} minecraft:air"
    wear = f"{{Damage:{damage}}}" if damage else ""
    return f"/replaceitem entity @p {where} minecraft:{stack.name}{wear} {stack.amount}"


def replace_content(furnace: Spot, slot: int, name: str, count: int) -> str:
    """The command that puts items into a furnace: slot 0 is input, 1 fuel, 2 output."""
    amount = f" {count}" if count and name != "air" else ""
    what = "air" if not count else name
    return (
        f"/replaceitem block {furnace.x} {furnace.y} {furnace.z} container.{slot} "
        f"minecraft:{what}{amount}"
    )


def clear_commands(slots: tuple[Stack | None, ...], item: int, amount: int) -> list[str]:
    """The commands that take so many of an item of the domain out of the inventory."""
    commands = []
    have: dict[str, int] = {}
    for stack in slots:
        if stack is not None and item_of(stack.name) == item:
            have[stack.name] = have.get(stack.name, 0) + stack.amount
    for name, count in have.items():
        taken = min(count, amount)
        if taken:
            commands.append(f"/clear @p minecraft:{name} {taken}")
            amount -= taken
    return commands


def make_crafter(mode: str, body: Body) -> Crafter:
    """The crafter of a mode.

    Raises:
        ValueError: there is no such mode.
    """
    if mode == "gui":
        return GuiCrafter(body)
    if mode == "command":
        return CommandCrafter(body)
    raise ValueError(f"crafting_mode must be 'gui' or 'command', got {mode!r}")
