"""What each decision of a role does in Minecraft: a plan of the body's skills.

The decisions are those of the embedded world (`rules`): chop the nearest log, explore east, dig
down, craft a pickaxe. Masks say beforehand what is legal, from the same record; what Minecraft then
does is Minecraft's. A decision that comes to nothing is told as blocked.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.minestudio.body import Body
from mpt_envs.crafting.backends.minestudio.crafters import CommandCrafter, Crafter
from mpt_envs.crafting.backends.minestudio.geometry import Spot
from mpt_envs.crafting.backends.minestudio.window import Window
from mpt_envs.crafting.rules.perception import choose_fuel, fuel_needed, smelt_amount, walk_step
from mpt_envs.crafting.rules.turn import add_event, gain, sync_furnace
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at

#: Blocks to pile up, in the order in which they are used: what no recipe needs comes first.
FILLERS: Final = (facts.I_DIRT, facts.I_SAND, facts.I_GRAVEL, facts.I_COBBLESTONE, facts.I_STONE)
TABLE_EVENT: Final = 4  # what `layout.EVENT_BLOCKED` calls the stations
FURNACE_EVENT: Final = 5

_STEPS: Final = tuple(zip(facts.STEP_X, facts.STEP_Z, strict=True))
_CRAFTS: Final = {
    facts.CRAFT_PLANKS: facts.I_PLANKS,
    facts.CRAFT_STICKS: facts.I_STICK,
    facts.CRAFT_TABLE: facts.I_TABLE,
    facts.CRAFT_WOODEN_PICKAXE: facts.I_WOODEN_PICKAXE,
    facts.CRAFT_STONE_PICKAXE: facts.I_STONE_PICKAXE,
    facts.CRAFT_IRON_PICKAXE: facts.I_IRON_PICKAXE,
    facts.CRAFT_FURNACE: facts.I_FURNACE,
    facts.CRAFT_TORCH: facts.I_TORCH,
    facts.CRAFT_STONE_BRICKS: facts.I_STONE_BRICKS,
}
_SMELTS: Final = {
    facts.SMELT_IRON: facts.I_IRON_ORE,
    facts.SMELT_STONE: facts.I_COBBLESTONE,
    facts.SMELT_CHARCOAL: facts.I_LOG,
}
_FALLING: Final = (facts.SAND, facts.GRAVEL)
_MAX_COLLAPSE: Final = 12
_TEND_CHUNK: Final = 20


class Planner:
    """Carries out decisions.

    Args:
        body: whose decisions they are.
        crafter: who crafts for it.
        record: uint8 ``(RECORD_BYTES,)``; stations, furnace, marks and events are written here.

    Attributes:
        table, furnace: places in the world of the stations that are in use, or None.
        start: the engine's tick at which the episode began.
    """

    def __init__(self, body: Body, crafter: Crafter, record: NDArray[np.uint8]) -> None:
        self.body = body
        self.crafter = crafter
        body.hands = crafter
        self._b = record
        self._s = record.view(np.int32)
        self.table: Spot | None = None
        self.furnace: Spot | None = None
        self.start = 0

    @property
    def window(self) -> Window:
        """What the body has seen."""
        return self.body.window

    def now(self) -> int:
        """Write the present tick into the record, let the furnace go on, and return the tick."""
        self._s[at.TICK] = self.body.engine.ticks - self.start
        sync_furnace(self._s)
        return int(self._s[at.TICK])

    def decide(self, role: int, action: int) -> int:
        """Carry out a legal decision.

        Args:
            role: index into `facts.ROLES`; -1 lets time pass.
            action: index into the role's actions.

        Returns:
            The outcome, one of ``OUTCOME_...``.

        Raises:
            BodyDied: the body died of it.
        """
        self.body.close_windows()
        if role < 0:
            self.body.engine.wait(facts.SKIP_TICKS)
            self._tell(at.EVENT_SKIPPED, 0, facts.SKIP_TICKS)
            return at.OUTCOME_SKIPPED
        if action == facts.WAIT:
            self.body.engine.wait(facts.WAIT_TICKS)
            self._tell(at.EVENT_WAITED, 0, facts.WAIT_TICKS)
            return at.OUTCOME_DONE
        if role == facts.LOGGER:
            done = self._logger(action)
        elif role == facts.MINER:
            done = self._miner(action)
        else:
            done = self._smith(action)
        fallen = self.body.settle()
        if fallen > 1:
            self._tell(at.EVENT_FELL, 0, fallen)
        return at.OUTCOME_DONE if done else at.OUTCOME_BLOCKED

    def _tell(self, event: int, argument: int, amount: int) -> None:
        add_event(self._s, event, argument, amount)

    def _blocked(self, spot: Spot, kind: int) -> bool:
        """No way: remember that, so that the target is left out for a while. Returns False."""
        s = self._s
        tick = self.now()
        slot = at.MARKS + 2 * int(s[at.MARK_NEXT])
        s[slot] = self.window.cell(spot)
        s[slot + 1] = s[at.MARK_UNTIL] = tick + facts.GIVE_UP_TICKS
        s[at.MARK_NEXT] = (s[at.MARK_NEXT] + 1) % at.N_MARKS
        s[at.BLOCKED] += 1
        self._tell(at.EVENT_BLOCKED, kind, 0)
        return False

    def _failed(self) -> bool:
        """Something legal came to nothing, and no target is to blame. Returns False."""
        self._s[at.BLOCKED] += 1
        return False

    # -- digging -----------------------------------------------------------------------------

    def _dig(self, spot: Spot, pick_up: bool = True) -> bool:
        """Dig one block and write what came of it."""
        kind = self.window.kind(spot)
        before = self.body.engine.report.counts()
        tools = [before[item] for item in facts.PICKAXES]
        if not self.body.dig(spot, pick_up):
            return False
        s = self._s
        s[at.DUG + kind] += 1
        counts = self.body.engine.report.counts()
        gained = [(i, b - a) for i, (a, b) in enumerate(zip(before, counts, strict=True)) if b > a]
        for item, amount in gained:
            self._tell(at.EVENT_GOT, item, amount)
        if not gained:
            self._tell(at.EVENT_BROKE, kind, 1)
        for item, had in zip(facts.PICKAXES, tools, strict=True):
            if counts[item] < had:
                self._tell(at.EVENT_TOOL_BROKE, item, 1)
        if spot == self.table:
            self.table = None
        if spot == self.furnace:
            self.furnace = None
            self._forget_furnace()
        return True

    def _work_on(self, kind: int) -> bool:
        """Go to the visible target of a kind and dig it."""
        spot = self.window.spot(int(self._s[at.TARGET_CELL + kind]))
        if self.body.go_to(spot) and self._dig(spot):
            return True
        return self._blocked(spot, kind)

    # -- the Logger --------------------------------------------------------------------------

    def _logger(self, action: int) -> bool:
        if action == facts.CHOP_LOG:
            return self._work_on(at.TARGET_LOG)
        if action == facts.CLIMB:
            return self._climb()
        return self._explore(action - facts.EXPLORE)

    def _explore(self, direction: int) -> bool:
        """Walk about eight blocks in a direction, around obstacles one block wide."""
        steps = 0
        while steps < facts.EXPLORE_STEPS:
            way = self._way(direction)
            if way is None or not self.body.step_to(way):
                break
            steps += 1
        self._s[at.HEADING] = direction
        self._tell(at.EVENT_WALKED, direction, steps)
        return steps > 0 or self._failed()

    def _way(self, direction: int) -> Spot | None:
        """The next step in a direction: straight on, else aside if the way is free from there."""
        feet = self.window.cell(self.body.engine.report.feet)
        if not feet:
            return None
        after = int(walk_step(self._b, feet, direction))
        for turn in (1, 3):
            if after:
                break
            beside = int(walk_step(self._b, feet, (direction + turn) % 4))
            if beside and int(walk_step(self._b, beside, direction)):
                after = beside
        return self.window.spot(after) if after else None

    def _climb(self) -> bool:
        """Go straight up: dig what is overhead and pile up blocks under the feet."""
        levels = 0
        while levels < facts.CLIMB_LEVELS:
            feet = self.body.engine.report.feet
            cell = self.window.cell(feet)
            if not cell:
                break
            x, y, z = at.position(cell)
            if int(at.ground(self._b)[x, z]) + 1 - y <= 0:
                break
            over = feet.moved(dy=2)
            for _ in range(_MAX_COLLAPSE):
                if not facts.WATER < self.window.kind(over) < facts.BEDROCK:
                    break
                if not self._dig(over, pick_up=False):
                    break
                self.body.look_around()
            if self.window.kind(over) > facts.WATER:
                break
            counts = self.body.engine.report.counts()
            filler = next((item for item in FILLERS if counts[item] > 0), None)
            if filler is None or not self.body.tower(filler):
                break
            self._s[at.PLACED + self.window.kind(feet)] += 1
            levels += 1
        self._tell(at.EVENT_CLIMBED, 0, levels)
        return levels > 0 or self._failed()

    # -- the Miner ---------------------------------------------------------------------------

    def _miner(self, action: int) -> bool:
        if action == facts.DIG_DOWN:
            return self._dig_down()
        if action >= facts.TUNNEL:
            return self._tunnel(action - facts.TUNNEL)
        kinds = {
            facts.MINE_STONE: at.TARGET_STONE,
            facts.MINE_COAL: at.TARGET_COAL,
            facts.MINE_IRON: at.TARGET_IRON,
        }
        return self._work_on(kinds[action])

    def _dig_down(self) -> bool:
        feet = self.body.engine.report.feet
        below = feet.moved(dy=-1)
        # What hurts is a barrier in the window, and so is what nobody has seen.
        if self.window.kind(below.moved(dy=-1)) == facts.BARRIER:
            return self._failed()
        self.body.step_to(feet)
        if not self._dig(below, pick_up=False):
            return self._failed()
        fallen = self.body.settle()
        if fallen > 1:
            self._tell(at.EVENT_FELL, 0, fallen)
        self.body.engine.wait(2)
        return True

    def _tunnel(self, direction: int) -> bool:
        """Dig a passage two high and walk into it."""
        dx, dz = _STEPS[direction]
        moved = 0
        got = self.body.engine.report.counts()[facts.I_COBBLESTONE]
        for _ in range(facts.TUNNEL_LENGTH):
            feet = self.body.engine.report.feet
            ahead = feet.moved(dx, 0, dz)
            if not self._open_up(ahead.moved(dy=1)) or not self._open_up(ahead):
                break
            way = int(walk_step(self._b, self.window.cell(feet), direction))
            if not way or self.window.spot(way).y > ahead.y:
                break
            goal = self.window.spot(way)
            if not self.body.step_to(goal):
                break
            moved += 1
            self.body.look_around()
            if goal != ahead:
                break
        self._s[at.HEADING] = direction
        self._tell(at.EVENT_TUNNELLED, direction, moved)
        # What was dug lies where the body is now.
        self.body.engine.wait(2)
        got = self.body.engine.report.counts()[facts.I_COBBLESTONE] - got
        if got > 0:
            self._tell(at.EVENT_GOT, facts.I_COBBLESTONE, got)
        return moved > 0 or self._failed()

    def _open_up(self, spot: Spot) -> bool:
        """Dig a block ahead, and the sand that slides after it; return whether it is free."""
        for _ in range(_MAX_COLLAPSE):
            kind = self.window.kind(spot)
            if kind == facts.WATER or kind >= facts.TABLE:
                return False
            if kind <= facts.WATER:
                return True
            if not self.body.dig(spot, pick_up=False):
                return False
            self._s[at.DUG + kind] += 1
            if self.window.kind(spot.moved(dy=1)) in _FALLING:
                self.body.engine.wait(10)
                self.body.look_around()
        return False

    # -- the Smith ---------------------------------------------------------------------------

    def _smith(self, action: int) -> bool:
        if action in _CRAFTS:
            return self._craft(_CRAFTS[action])
        if action == facts.PLACE_TABLE:
            return self._place(facts.I_TABLE, facts.TABLE)
        if action == facts.PLACE_FURNACE:
            return self._place(facts.I_FURNACE, facts.FURNACE)
        if action == facts.PICK_UP_TABLE:
            return self._pick_up(self.table, TABLE_EVENT)
        if action == facts.PICK_UP_FURNACE:
            return self._pick_up(self.furnace, FURNACE_EVENT)
        if self.furnace is None:
            return self._failed()
        if not self.body.go_to(self.furnace):
            return self._blocked(self.furnace, FURNACE_EVENT)
        if action in _SMELTS:
            return self._smelt(self.furnace, _SMELTS[action])
        if action == facts.TAKE_SMELTED:
            return self._take_smelted(self.furnace)
        return self._tend()

    def _craft(self, item: int) -> bool:
        recipe = facts.RECIPES[item]
        table = self.table if recipe.table else None
        if recipe.table:
            if table is None:
                return self._failed()
            if not self.body.go_to(table):
                return self._blocked(table, TABLE_EVENT)
        if not self.crafter.craft(item, table):
            return self._failed()
        self._tell(at.EVENT_CRAFTED, item, recipe.makes)
        return True

    def _place(self, item: int, kind: int) -> bool:
        """Put a station beside the feet, into a free cell or else into a niche dug for it."""
        feet = self.body.engine.report.feet
        beside = [feet.moved(dx, 0, dz) for dx, dz in _STEPS]
        free = [spot for spot in beside if self.window.kind(spot) <= facts.WATER]
        free.sort(key=lambda spot: self.window.kind(spot.moved(dy=-1)) <= facts.WATER)
        niches = [spot for spot in beside if facts.WATER < self.window.kind(spot) < facts.TABLE]
        for spot in [*free, *niches]:
            if not self._open_up(spot) and self.window.kind(spot) != facts.WATER:
                continue
            if self.body.place(item, spot, kind):
                self._s[at.PLACED + kind] += 1
                self._tell(at.EVENT_PLACED, item, 1)
                if kind == facts.TABLE:
                    self.table = spot
                else:
                    # A furnace left behind keeps what is in it, out of reach of memory.
                    self._forget_furnace()
                    self.furnace = spot
                    self.now()
                    self.write_stations()
                return True
        return self._failed()

    def _pick_up(self, spot: Spot | None, kind: int) -> bool:
        if spot is None:
            return self._failed()
        if self.body.go_to(spot) and self._dig(spot):
            # The rest of what lay in it falls out as well.
            self.body.engine.wait(10)
            return True
        return self._blocked(spot, kind)

    def _smelt(self, furnace: Spot, item: int) -> bool:
        """Load the furnace with what is to be smelted and with fuel enough for all of it."""
        s = self._s
        self.now()
        self.write_inventory()
        amount = int(smelt_amount(s, item))
        if s[at.FURNACE_OUTPUT_COUNT] > 0 and s[at.FURNACE_OUTPUT] != facts.SMELTS_TO[item]:
            amount = 0
        needed = int(fuel_needed(s, amount))
        fuel = int(choose_fuel(s, needed, item, amount)) if needed > 0 else facts.NO_ITEM
        count = 0
        if fuel != facts.NO_ITEM:
            burn = int(facts.BURN[fuel])
            count = min(int(s[at.INVENTORY + fuel]), (needed + burn - 1) // burn)
            if fuel == item:
                count = min(count, int(s[at.INVENTORY + fuel]) - amount)
        if amount == 0 and count == 0:
            return self._failed()
        if isinstance(self.crafter, CommandCrafter):
            self.crafter.inside = (int(s[at.FURNACE_INPUT_COUNT]), int(s[at.FURNACE_FUEL_COUNT]))
        if not self.crafter.load(furnace, item, amount, fuel, count):
            return self._failed()
        self.now()
        if amount:
            s[at.FURNACE_INPUT] = item
            s[at.FURNACE_INPUT_COUNT] += amount
        if count:
            s[at.FURNACE_FUEL] = fuel
            s[at.FURNACE_FUEL_COUNT] += count
        self._tell(at.EVENT_SMELTING, item, amount)
        return True

    def _take_smelted(self, furnace: Spot) -> bool:
        s = self._s
        self.now()
        item, count = int(s[at.FURNACE_OUTPUT]), int(s[at.FURNACE_OUTPUT_COUNT])
        if count == 0:
            return self._failed()
        before = self.body.engine.report.counts()[item]
        if not self.crafter.unload(furnace, item, count):
            return self._failed()
        # Minecraft may have smelted one more, or one less, than the rule says.
        taken = self.body.engine.report.counts()[item] - before
        self.now()
        s[at.FURNACE_OUTPUT_COUNT] = max(0, int(s[at.FURNACE_OUTPUT_COUNT]) - taken)
        if s[at.FURNACE_OUTPUT_COUNT] == 0:
            s[at.FURNACE_OUTPUT] = facts.NO_ITEM
        gain(s, item, taken)
        self._tell(at.EVENT_TOOK, item, taken)
        return True

    def _tend(self) -> bool:
        """Stand by the furnace until everything in it is smelted, at most `facts.TEND_TICKS`."""
        s = self._s
        begun = self.now()
        left = int(s[at.FURNACE_INPUT_COUNT]) * facts.SMELT_TICKS - int(s[at.FURNACE_PROGRESS])
        span = max(1, min(left, facts.TEND_TICKS))
        while self.body.engine.ticks - self.start < begun + span:
            self.body.engine.wait(
                min(_TEND_CHUNK, begun + span - (self.body.engine.ticks - self.start))
            )
        self._tell(at.EVENT_WAITED, 0, span)
        return True

    # -- the record --------------------------------------------------------------------------

    def _forget_furnace(self) -> None:
        s = self._s
        for slot in (at.FURNACE_INPUT, at.FURNACE_FUEL, at.FURNACE_OUTPUT):
            s[slot], s[slot + 1] = facts.NO_ITEM, 0
        s[at.FURNACE_BURN] = s[at.FURNACE_PROGRESS] = 0

    def write_inventory(self) -> None:
        """Write what the body carries into the record, and the wear of what it holds."""
        s = self._s
        report = self.body.engine.report
        s[at.INVENTORY : at.INVENTORY + facts.N_ITEMS] = report.counts()
        self.body.note_wear()
        for kind, item in enumerate(facts.PICKAXES):
            s[at.WEAR + kind] = min(self.body.wear.get(item, 0), facts.PICKAXE_DURABILITY[kind] - 1)

    def write_stations(self) -> None:
        """Write where the stations are into the record: at its rim if they are beyond."""
        for slot, spot in ((at.TABLE_CELL, self.table), (at.FURNACE_CELL, self.furnace)):
            self._s[slot] = 0 if spot is None else self.window.nearest_cell(spot)


assert at.FURNACE_INPUT + 1 == at.FURNACE_INPUT_COUNT
assert at.FURNACE_FUEL + 1 == at.FURNACE_FUEL_COUNT
assert at.FURNACE_OUTPUT + 1 == at.FURNACE_OUTPUT_COUNT
