"""What one step of the simulator tells: its info dictionary, read once and checked.

MineStudio keeps the last value of every key in ``info`` and counts up its statistics, so what a
step did is the difference of two reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mpt_envs.crafting.backends.engine_errors import EngineDiedError, EngineError
from mpt_envs.crafting.backends.minestudio.geometry import Point, Spot, feet_spot
from mpt_envs.crafting.backends.minestudio.names import AIR_NAMES, item_of, plain
from mpt_envs.crafting.world.facts import MAX_HEALTH, N_ITEMS

N_SLOTS: Final = 36  # 0 to 8 is the hotbar
STATISTICS: Final = ("mine_block", "craft_item", "pickup", "break_item", "use_item")


class Stack(NamedTuple):
    """Items in a slot of the inventory; ``name`` is plain."""

    name: str
    amount: int


@dataclass(frozen=True)
class Report:
    """One step's report.

    Attributes:
        place: of the feet.
        yaw, pitch: degrees.
        health: half hearts, 0 to 20.
        slots: 36 stacks; None where a slot is empty.
        held: plain name of what the hand holds, or "".
        damage: wear of what the hand holds.
        gui_open: whether a window is open.
        statistics: counts since the episode began, by statistic and plain name.
        voxels: the blocks that were asked for in this step, as they came; None if none were.
        over: whether Minecraft has ended the episode.
    """

    place: Point
    yaw: float
    pitch: float
    health: float
    slots: tuple[Stack | None, ...]
    held: str = ""
    damage: int = 0
    gui_open: bool = False
    statistics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    voxels: Sequence[Mapping[str, Any]] | None = None
    over: bool = False

    @property
    def feet(self) -> Spot:
        """The block in which the feet are."""
        return feet_spot(self.place)

    @property
    def dead(self) -> bool:
        """Whether the body has died."""
        return self.health <= 0

    def counts(self) -> list[int]:
        """How many of each item of the domain the inventory holds, ``N_ITEMS`` numbers."""
        counts = [0] * N_ITEMS
        for stack in self.slots:
            if stack is not None:
                item = item_of(stack.name)
                if item >= 0:
                    counts[item] += stack.amount
        return counts

    def slot_of(self, item: int) -> int:
        """The first slot that holds an item of the domain, or -1."""
        for index, stack in enumerate(self.slots):
            if stack is not None and item_of(stack.name) == item:
                return index
        return -1


def read_report(info: Mapping[str, Any], over: bool, with_voxels: bool) -> Report:
    """Read an info dictionary.

    Args:
        info: as `MinecraftSim.step` returns it.
        over: whether the step said that the episode is over.
        with_voxels: whether blocks were asked for in this step; what an earlier step said of
            blocks is still in ``info`` and does not count.

    Raises:
        EngineDiedError: the connection to Minecraft was lost; what ``info`` says then is made up.
        EngineError: something that MineStudio always tells is missing.
    """
    if "error" in info:
        raise EngineDiedError(
            f"MineStudio lost its connection to Minecraft ({info['error']}); reset the environment "
            "to start Minecraft again"
        )
    try:
        at = info["player_pos"]
        place = Point(float(at["x"]), float(at["y"]), float(at["z"]))
        yaw, pitch = float(at["yaw"]), float(at["pitch"])
        slots = _slots(info["inventory"])
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(
            f"MineStudio's info lacks what this backend reads ({error!r}); it has: "
            f"{', '.join(sorted(map(str, info)))}. This backend is written for MineStudio 1.1.6"
        ) from error
    held, damage = _held(info.get("equipped_items"))
    return Report(
        place,
        yaw,
        pitch,
        float(info.get("health", MAX_HEALTH)),
        slots,
        held,
        damage,
        bool(info.get("is_gui_open", info.get("isGuiOpen", False))),
        MappingProxyType({name: _statistic(info.get(name)) for name in STATISTICS}),
        info.get("voxels") if with_voxels else None,
        over,
    )


def _slots(inventory: Mapping[Any, Mapping[str, Any]]) -> tuple[Stack | None, ...]:
    slots: list[Stack | None] = [None] * N_SLOTS
    for key, stack in inventory.items():
        index, name, count = int(key), plain(str(stack["type"])), int(stack["quantity"])
        if 0 <= index < N_SLOTS and name not in AIR_NAMES and count > 0:
            slots[index] = Stack(name, count)
    return tuple(slots)


def _held(equipped: Any) -> tuple[str, int]:
    if not isinstance(equipped, Mapping) or "mainhand" not in equipped:
        return "", 0
    hand = equipped["mainhand"]
    name = plain(str(hand.get("type", "none")))
    return ("", 0) if name in AIR_NAMES else (name, int(hand.get("damage", 0)))


def _statistic(counts: Any) -> Mapping[str, int]:
    if not isinstance(counts, Mapping):
        return {}
    return {plain(str(name).rpartition(".")[2]): int(count) for name, count in counts.items()}


def grown(before: Report, after: Report, statistic: str) -> Counter[str]:
    """By how much a statistic has grown between two reports, by plain name."""
    old = before.statistics.get(statistic, {})
    new = after.statistics.get(statistic, {})
    found: Counter[str] = Counter()
    for name, count in new.items():
        if count > old.get(name, 0):
            found[name] = count - old.get(name, 0)
    return found


def gained(before: Report, after: Report) -> list[int]:
    """Change of the inventory between two reports, ``N_ITEMS`` numbers; negative where used up."""
    return [b - a for a, b in zip(before.counts(), after.counts(), strict=True)]


def obtained(before: Report, after: Report) -> set[int]:
    """Items of the domain that came in between two reports, also those that are gone again."""
    items = {item for item, change in enumerate(gained(before, after)) if change > 0}
    for statistic in ("craft_item", "pickup"):
        items |= {item_of(name) for name in grown(before, after, statistic)}
    items.discard(-1)
    return items
