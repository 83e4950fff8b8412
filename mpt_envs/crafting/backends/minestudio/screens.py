"""Minecraft's windows: where their slots lie on the screen, and which clicks craft something.

Everything is counted in pixels of a picture of 640 x 360 at a GUI scale of 1, MineStudio's own. A
window is 176 pixels wide and 166 high and lies in the middle; its slots have the places of
Minecraft 1.16. The cursor starts in the middle of the picture, and a camera input of 0.15 degrees
moves it by one pixel (360 degrees are 2,400 pixels of mouse).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from mpt_envs.crafting.backends.minestudio.names import item_of, planks_of
from mpt_envs.crafting.backends.minestudio.report import N_SLOTS, Stack
from mpt_envs.crafting.world import facts

SCREEN: Final = (640, 360)
CENTRE: Final = (320, 180)
DEGREES_PER_PIXEL: Final = 360.0 / 2400.0
STACK_LIMIT: Final = 64

_LEFT: Final = (SCREEN[0] - 176) // 2
_TOP: Final = (SCREEN[1] - 166) // 2
_PITCH: Final = 18  # from slot to slot
_HALF: Final = 8  # from a slot's corner to its middle

Screen = Literal["inventory", "table", "furnace"]
Button = Literal["left", "right"]


class Click(NamedTuple):
    """A click of a mouse button on a place of the screen.

    Attributes:
        x, y: pixels.
        button: "left" takes or puts down a stack, "right" puts down one item.
    """

    x: int
    y: int
    button: Button


def _at(x: int, y: int) -> tuple[int, int]:
    return _LEFT + x + _HALF, _TOP + y + _HALF


def player_slot(index: int) -> tuple[int, int]:
    """The middle of a slot of the inventory, in any window: 0 to 8 is the hotbar.

    Raises:
        ValueError: there is no such slot.
    """
    if not 0 <= index < N_SLOTS:
        raise ValueError(f"slots are 0 to {N_SLOTS - 1}, got {index}")
    if index < 9:
        return _at(8 + _PITCH * index, 142)
    row, column = divmod(index - 9, 9)
    return _at(8 + _PITCH * column, 84 + _PITCH * row)


def grid_slot(screen: Screen, row: int, column: int) -> tuple[int, int]:
    """The middle of a slot of the crafting grid: 2 x 2 in the inventory, 3 x 3 at a table."""
    left, top = (98, 18) if screen == "inventory" else (30, 17)
    return _at(left + _PITCH * column, top + _PITCH * row)


def result_slot(screen: Screen) -> tuple[int, int]:
    """The middle of the slot where the product appears."""
    return {"inventory": _at(154, 28), "table": _at(124, 35), "furnace": _at(116, 35)}[screen]


FURNACE_INPUT_SLOT: Final = _at(56, 17)
FURNACE_FUEL_SLOT: Final = _at(56, 53)

#: The shape of each recipe: rows of items, None for an empty place.
SHAPES: Final[dict[int, tuple[tuple[int | None, ...], ...]]] = {
    facts.I_PLANKS: ((facts.I_LOG,),),
    facts.I_STICK: ((facts.I_PLANKS,), (facts.I_PLANKS,)),
    facts.I_TABLE: ((facts.I_PLANKS,) * 2,) * 2,
    facts.I_TORCH: ((facts.I_COAL,), (facts.I_STICK,)),
    facts.I_STONE_BRICKS: ((facts.I_STONE,) * 2,) * 2,
    facts.I_FURNACE: (
        (facts.I_COBBLESTONE,) * 3,
        (facts.I_COBBLESTONE, None, facts.I_COBBLESTONE),
        (facts.I_COBBLESTONE,) * 3,
    ),
    **{
        pickaxe: ((head,) * 3, (None, facts.I_STICK, None), (None, facts.I_STICK, None))
        for pickaxe, head in (
            (facts.I_WOODEN_PICKAXE, facts.I_PLANKS),
            (facts.I_STONE_PICKAXE, facts.I_COBBLESTONE),
            (facts.I_IRON_PICKAXE, facts.I_IRON_INGOT),
        )
    },
}


class NoRoomError(Exception):
    """The inventory has no ingredients, or no slot for the product."""


class Desk:
    """An inventory on which clicks are planned: it knows what each one would do.

    Args:
        slots: what the inventory holds now.

    Attributes:
        clicks: planned so far.
    """

    def __init__(self, slots: Sequence[Stack | None]) -> None:
        self.slots: list[Stack | None] = list(slots)
        self.clicks: list[Click] = []

    def _click(self, at: tuple[int, int], button: Button = "left") -> None:
        self.clicks.append(Click(*at, button))

    def find(self, item: int) -> int:
        """A slot that holds an item of the domain.

        Raises:
            NoRoomError: there is none.
        """
        for index, stack in enumerate(self.slots):
            if stack is not None and item_of(stack.name) == item:
                return index
        raise NoRoomError(f"no {facts.ITEM_NAMES[item]} in the inventory")

    def room_for(self, name: str, count: int) -> int:
        """A slot that can take a product.

        Raises:
            NoRoomError: the inventory is full.
        """
        for index, stack in enumerate(self.slots):
            if stack is not None and stack.name == name and stack.amount + count <= STACK_LIMIT:
                return index
        for index, stack in enumerate(self.slots):
            if stack is None:
                return index
        raise NoRoomError(f"no slot is free for {name}")

    def deal(self, item: int, places: Sequence[tuple[int, int]]) -> str:
        """Put one of an item on each of some places; returns the name of what went last.

        Raises:
            NoRoomError: there are not enough.
        """
        left = list(places)
        name = ""
        while left:
            index = self.find(item)
            stack = self.slots[index]
            assert stack is not None
            name = stack.name
            used = min(len(left), stack.amount)
            self._click(player_slot(index))
            for place in left[:used]:
                self._click(place, "right")
            rest = stack.amount - used
            if rest:
                self._click(player_slot(index))
            self.slots[index] = Stack(stack.name, rest) if rest else None
            left = left[used:]
        return name

    def collect(self, at: tuple[int, int], name: str, count: int) -> None:
        """Take a product and put it into the inventory."""
        index = self.room_for(name, count)
        self._click(at)
        self._click(player_slot(index))
        stack = self.slots[index]
        self.slots[index] = Stack(name, count + (stack.amount if stack is not None else 0))

    def swap(self, one: int, other: int) -> None:
        """Exchange what two slots hold."""
        self._click(player_slot(one))
        self._click(player_slot(other))
        if self.slots[other] is not None:
            self._click(player_slot(one))
        self.slots[one], self.slots[other] = self.slots[other], self.slots[one]

    def craft(self, item: int, screen: Screen) -> None:
        """Craft an item once in a window that has just been opened.

        Args:
            item: of `SHAPES`.
            screen: "inventory" or "table".

        Raises:
            NoRoomError: something is missing, or the inventory is full.
        """
        by_item: dict[int, list[tuple[int, int]]] = {}
        for row, line in enumerate(SHAPES[item]):
            for column, ingredient in enumerate(line):
                if ingredient is not None:
                    by_item.setdefault(ingredient, []).append(grid_slot(screen, row, column))
        product = facts.ITEM_NAMES[item]
        for ingredient, places in by_item.items():
            name = self.deal(self._or_charcoal(ingredient), places)
            if item == facts.I_PLANKS:
                product = planks_of(name)
        self.collect(result_slot(screen), product, facts.RECIPES[item].makes)

    def _or_charcoal(self, item: int) -> int:
        """Charcoal where coal is wanted and there is none."""
        have = any(stack is not None and item_of(stack.name) == item for stack in self.slots)
        return facts.I_CHARCOAL if item == facts.I_COAL and not have else item
