"""The body's skills, closed loops of low-level inputs: look, walk, dig, pick up, place, tower.

A skill plans on the record (what was seen), acts by keys and camera, and believes only the reports.
Each has a limit of ticks, after which it gives up and says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.minestudio.engine import Engine
from mpt_envs.crafting.backends.minestudio.geometry import (
    Point,
    Spot,
    angles,
    clamp,
    flat_distance,
    turn,
)
from mpt_envs.crafting.backends.minestudio.names import item_of, kind_of
from mpt_envs.crafting.backends.minestudio.window import Window, box_around, read_voxels
from mpt_envs.crafting.rules.perception import REACH_SQUARED, eye_distance_squared, sight, walk_step
from mpt_envs.crafting.world.facts import (
    DIG_TICKS,
    LEAVES,
    NEEDS_PICKAXE,
    PICKAXES,
    WATER,
    WATER_DIG_FACTOR,
)

TURN_PER_TICK: Final = 45.0  # degrees of camera in one step
AIM: Final = 1.0  # degrees off that still count as looking at something
NEAR: Final = 0.3  # blocks off a cell's middle that still count as standing in it
FALL_DEPTH: Final = 24
_LOOK_TICKS: Final = 16
_STEP_TICKS: Final = 40
_SEARCH_CELLS: Final = 600
_SEARCH_RADIUS: Final = 12
_TRIES: Final = 3
_PICK_UP_TICKS: Final = 30
_TOWER_TICKS: Final = 40
_PLACE_TICKS: Final = 6
_CLOSE_TICKS: Final = 5
_EYES: Final = 1.62

#: Neighbours of a block, from which another can be placed against it: below first.
_SIDES: Final = ((0, -1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1), (0, 1, 0))


class Hands(Protocol):
    """Whoever can bring an item from the back of the inventory into the hotbar."""

    def exchange(self, slot: int, hotbar: int) -> bool:
        """Swap two slots; return whether it worked."""


class Body:
    """Skills of the one body.

    Args:
        engine: where it lives.
        window: what it has seen.
        record: uint8 ``(RECORD_BYTES,)`` of the window.
    """

    def __init__(self, engine: Engine, window: Window, record: NDArray[np.uint8]) -> None:
        self.engine = engine
        self.window = window
        self._b = record
        self.hands: Hands | None = None
        #: Wear of the pickaxes, by item, as it was last seen in the hand.
        self.wear: dict[int, int] = {}

    # -- seeing ------------------------------------------------------------------------------

    def look_around(self) -> None:
        """Ask for the blocks around and write them into the window. Takes a tick."""
        box = box_around()
        feet = self.engine.report.feet
        report = self.engine.step(voxels=box)
        # The engine counts from where the body is after the step.
        told = read_voxels(report.voxels, report.feet, box) if report.feet == feet else None
        if told is None:
            report = self.engine.step(voxels=box)
            told = read_voxels(report.voxels, report.feet, box)
        self.window.update(report.feet, told, box)

    def _probe(self, spot: Spot, *keys: str) -> str:
        """Name of the block at a place; takes a tick, with some keys down."""
        feet = self.engine.report.feet
        dx, dy, dz = spot.x - feet.x, spot.y - feet.y, spot.z - feet.z
        # One more to each side, whether or not the engine counts the ends in.
        box = (dx - 1, dx + 1, dy - 1, dy + 1, dz - 1, dz + 1)
        report = self.engine.step(*keys, voxels=box)
        told = read_voxels(report.voxels, report.feet, box)
        return told.get(spot, "air")

    def look(self, yaw: float, pitch: float) -> bool:
        """Turn the camera; return whether it points there."""
        for _ in range(_LOOK_TICKS):
            report = self.engine.report
            down, right = turn(report.yaw, report.pitch, yaw, pitch)
            if abs(down) <= AIM and abs(right) <= AIM:
                return True
            self.engine.step(camera=(clamp(down, TURN_PER_TICK), clamp(right, TURN_PER_TICK)))
        return False

    def look_at(self, point: Point) -> bool:
        """Turn the camera to a point."""
        return self.look(*angles(self.engine.report.place, point))

    def aim(self, spot: Spot) -> Point:
        """The point of a block that is seen from here; its middle if none is."""
        cell = self.window.cell(spot)
        feet = self.window.cell(self.engine.report.feet)
        centre = spot.centre
        if not cell or not feet:
            return centre
        how = int(sight(self._b, feet, cell))
        eyes = self.engine.report.place
        if how == 2:
            return centre._replace(x=centre.x + (0.5 if eyes.x > centre.x else -0.5))
        if how == 3:
            return centre._replace(y=centre.y + (0.5 if eyes.y + _EYES > centre.y else -0.5))
        if how == 4:
            return centre._replace(z=centre.z + (0.5 if eyes.z > centre.z else -0.5))
        return centre

    def close_windows(self) -> None:
        """Close whatever window is open: while one is, keys and camera do something else."""
        for _ in range(_TRIES):
            if not self.engine.report.gui_open:
                return
            self.engine.step("inventory")
            for _ in range(_CLOSE_TICKS):
                if self.engine.report.gui_open:
                    self.engine.step()

    # -- walking -----------------------------------------------------------------------------

    def _path(self, done: Callable[[int], bool]) -> list[Spot] | None:
        """The shortest way, by steps, to a cell where ``done`` holds; None if there is none."""
        start = self.window.cell(self.engine.report.feet)
        if not start:
            return None
        origin = self.window.spot(start)
        came: dict[int, int] = {start: 0}
        queue = deque([start])
        while queue:
            cell = queue.popleft()
            if done(cell):
                way: list[Spot] = []
                while cell != start:
                    way.append(self.window.spot(cell))
                    cell = came[cell]
                return way[::-1]
            for direction in range(4):
                after = int(walk_step(self._b, cell, direction))
                if after == 0 or after in came or len(came) >= _SEARCH_CELLS:
                    continue
                spot = self.window.spot(after)
                if max(abs(spot.x - origin.x), abs(spot.z - origin.z)) > _SEARCH_RADIUS:
                    continue
                came[after] = cell
                queue.append(after)
        return None

    def step_to(self, spot: Spot) -> bool:
        """Walk to the middle of a neighbouring cell; return whether the body stands there."""
        middle = Point(spot.x + 0.5, spot.y, spot.z + 0.5)
        for _ in range(_STEP_TICKS):
            report = self.engine.report
            away = flat_distance(report.place, middle)
            if report.feet == spot and away < NEAR:
                break
            keys: list[str] = []
            right = 0.0
            if away >= NEAR:
                yaw, _ = angles(report.place, middle)
                _, right = turn(report.yaw, report.pitch, yaw, report.pitch)
                if abs(right) < TURN_PER_TICK:
                    keys.append("forward")
            swims = self.window.kind(report.feet) == WATER
            if swims or spot.y > report.feet.y:
                keys.append("jump")
            self.engine.step(*keys, camera=(0.0, clamp(right, TURN_PER_TICK)))
        self.window.stand(self.engine.report.feet)
        return self.engine.report.feet == spot

    def walk(self, done: Callable[[int], bool]) -> bool:
        """Walk to a cell where ``done`` holds, looking again where the way was not as expected."""
        for _ in range(_TRIES):
            way = self._path(done)
            if way is None:
                return False
            if all(self.step_to(spot) for spot in way):
                return True
            self.look_around()
        return False

    def at_work(self, spot: Spot) -> bool:
        """Whether a block can be touched from here: in reach and in sight."""
        return self._touches(self.window.cell(self.engine.report.feet), spot)

    def _touches(self, feet: int, spot: Spot) -> bool:
        target = self.window.cell(spot)
        return (
            feet != 0
            and target != 0
            and float(eye_distance_squared(feet, target)) <= REACH_SQUARED
            and int(sight(self._b, feet, target)) != 0
        )

    def go_to(self, spot: Spot) -> bool:
        """Walk until a block can be touched; return whether it can."""
        return self.walk(lambda cell: self._touches(cell, spot))

    # -- hands -------------------------------------------------------------------------------

    def hold(self, item: int) -> bool:
        """Take an item into the hand; return whether it is there."""
        self.note_wear()
        slot = self.engine.report.slot_of(item)
        if slot < 0:
            return False
        if slot > 8:
            hotbar = self._spare_hotbar()
            if self.hands is None or not self.hands.exchange(slot, hotbar):
                return False
            slot = hotbar
        return self._select(slot, lambda: item_of(self.engine.report.held) == item)

    def hold_no_tool(self) -> bool:
        """Put tools away, so that they do not wear."""
        self.note_wear()
        if item_of(self.engine.report.held) not in PICKAXES:
            return True
        for slot, stack in enumerate(self.engine.report.slots[:9]):
            if stack is None or item_of(stack.name) not in PICKAXES:
                return self._select(slot, lambda: item_of(self.engine.report.held) not in PICKAXES)
        return False

    def _select(self, slot: int, right: Callable[[], bool]) -> bool:
        # The report of the hand may come a tick late.
        self.engine.step(f"hotbar.{slot + 1}")
        for _ in range(3):
            if right():
                return True
            self.engine.step()
        return right()

    def _spare_hotbar(self) -> int:
        """The slot of the hotbar that is missed least: an empty one, else one without a tool."""
        hotbar = self.engine.report.slots[:9]
        for slot, stack in enumerate(hotbar):
            if stack is None:
                return slot
        for slot in range(8, -1, -1):
            stack = hotbar[slot]
            if stack is not None and item_of(stack.name) not in PICKAXES:
                return slot
        return 8

    def note_wear(self) -> None:
        """Remember the wear of what is in the hand; MineStudio tells that of nothing else."""
        report = self.engine.report
        held = item_of(report.held) if report.held else -1
        if held in PICKAXES:
            self.wear[held] = report.damage
        counts = report.counts()
        for item in PICKAXES:
            if not counts[item]:
                self.wear.pop(item, None)

    def pickaxe_level(self) -> int:
        """Level of the best pickaxe in the inventory; 0: none."""
        counts = self.engine.report.counts()
        return max((k + 1 for k, item in enumerate(PICKAXES) if counts[item]), default=0)

    # -- digging -----------------------------------------------------------------------------

    def dig(self, spot: Spot, pick_up: bool = True) -> bool:
        """Dig a block in reach, and the leaves before it; return whether it is gone.

        Args:
            spot: where it is.
            pick_up: walk to what it drops.
        """
        if kind_of(self.window.name(spot)) != LEAVES and not self._clear_leaves(spot):
            return False
        kind = self.window.kind(spot)
        level = self.pickaxe_level() if NEEDS_PICKAXE[kind] == 1 else 0
        ready = self.hold(PICKAXES[level - 1]) if level else self.hold_no_tool()
        if not ready and level:
            level = 0
        before = self.engine.report.counts()
        name = self._break(spot, kind, level)
        if kind_of(name) == kind:
            return False
        self.window.set_block(spot, name)
        if pick_up and kind != LEAVES:
            self.pick_up(spot, before)
        return True

    def _break(self, spot: Spot, kind: int, level: int) -> str:
        """Hold the button down until a block is another; returns what is there then."""
        ticks = int(DIG_TICKS[kind, level])
        if ticks < 0:
            return self.window.name(spot)
        if self.window.kind(self.engine.report.feet.moved(dy=1)) == WATER:
            ticks *= WATER_DIG_FACTOR
        self.look_at(self.aim(spot))
        name = self.window.name(spot)
        for _ in range(ticks + ticks // 2 + 20):
            name = self._probe(spot, "attack")
            if kind_of(name) != kind:
                break
        # A button that stays down would go on with what lies behind.
        self.engine.step()
        return name

    def _clear_leaves(self, spot: Spot) -> bool:
        """Break the leaves between the eyes and a block; return whether none are left."""
        place = self.engine.report.place
        eyes = (place.x, place.y + _EYES, place.z)
        aim = self.aim(spot)
        last = None
        for k in range(1, 65):
            at = [e + k / 64 * (t - e) for e, t in zip(eyes, aim, strict=True)]
            beside = Spot(*(int(np.floor(v)) for v in at))
            if beside == spot:
                return True
            if beside != last and self.window.kind(beside) == LEAVES:
                name = self._break(beside, LEAVES, 0)
                if kind_of(name) == LEAVES:
                    return False
                self.window.set_block(beside, name)
            last = beside
        return True

    def pick_up(self, spot: Spot, before: list[int]) -> bool:
        """Walk to what a dug block has dropped; return whether something came in.

        Args:
            spot: where the block was.
            before: counts of the inventory before it was dug.
        """

        def came() -> bool:
            counts = self.engine.report.counts()
            return any(b > a for a, b in zip(before, counts, strict=True))

        for _ in range(FALL_DEPTH):
            if self.window.kind(spot.moved(dy=-1)) > WATER:
                break
            spot = spot.moved(dy=-1)

        def near(cell: int) -> bool:
            at = self.window.spot(cell)
            # What lies lower than the feet is not picked up.
            return abs(at.x - spot.x) + abs(at.z - spot.z) <= 1 and 0 <= spot.y - at.y <= 1

        if not came():
            self.walk(near)
        for _ in range(_PICK_UP_TICKS):
            if came():
                return True
            self.engine.step()
        return came()

    # -- placing -----------------------------------------------------------------------------

    def place(self, item: int, spot: Spot, kind: int) -> bool:
        """Put a block from the inventory somewhere; return whether it is there.

        Args:
            item: what is put down.
            spot: a free place in reach, beside something solid.
            kind: of block that it becomes.
        """
        if not self.hold(item):
            return False
        for dx, dy, dz in _SIDES:
            if self.window.kind(spot.moved(dx, dy, dz)) <= LEAVES:
                continue
            # The face of the neighbour that looks at the place.
            centre = spot.centre
            face = Point(centre.x + dx * 0.5, centre.y + dy * 0.5, centre.z + dz * 0.5)
            self.look_at(face)
            # Sneaking, a click on a table or furnace does not open it.
            self.engine.step("sneak")
            self.engine.step("sneak", "use")
            for _ in range(_PLACE_TICKS):
                name = self._probe(spot)
                if kind_of(name) == kind:
                    self.window.set_block(spot, name)
                    return True
        return False

    def tower(self, item: int) -> bool:
        """Jump and put a block under the feet; return whether the body is one higher."""
        if not self.hold(item):
            return False
        below = self.engine.report.feet
        had = self.engine.report.counts()[item]
        self.look(self.engine.report.yaw, 90.0)
        last = -1.0
        for _ in range(_TOWER_TICKS):
            y = self.engine.report.place.y
            if self.engine.report.feet.y > below.y and abs(y - last) < 1e-3:
                name = self._probe(below)
                if kind_of(name) > WATER:
                    self.window.set_block(below, name)
                    self.window.stand(self.engine.report.feet)
                    return True
            last = y
            # Sneaking, a click on a table or furnace underfoot does not open it.
            if self.engine.report.counts()[item] < had:
                self.engine.step("sneak")
            elif y - below.y > 1.02:
                self.engine.step("sneak", "use")
            else:
                self.engine.step("sneak", "jump")
        self.window.stand(self.engine.report.feet)
        return False

    def settle(self) -> int:
        """Wait until the body lies still; returns how many blocks it fell."""
        start = self.engine.report.feet.y
        last = None
        for _ in range(_STEP_TICKS):
            y = self.engine.report.place.y
            if last is not None and abs(y - last) < 1e-3:
                break
            last = y
            self.engine.step()
        self.window.stand(self.engine.report.feet)
        return max(0, start - self.engine.report.feet.y)
