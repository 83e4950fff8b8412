"""A double of MineStudio's `MinecraftSim`: the part of its documented interface that is used.

The real simulator needs a Java engine of hundreds of megabytes that no package index has. This
double is a small Minecraft of its own: bodies with speed and gravity, a crosshair, blocks that take
time to break, items that lie where they fall, windows with a cursor, furnaces, commands. Its
landscape is one of the embedded world's. Its info dictionaries are as sticky as the real ones.
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from typing import Any

import numpy as np

from mpt_envs.crafting.rules.turn import begin
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world.layout import HEIGHT, WIDTH, X, Z, blocks, new_records
from wrappers.rng import episode_key

EAST, UP, SOUTH = 1000, 50, -2000  # where the embedded landscape lies in this world
NAMES = [facts.MINECRAFT_NAMES.get(name, name) for name in facts.BLOCK_NAMES]
OPEN = {"air", "water", "cave_air"}
HARDNESS = {NAMES[kind]: fact.hardness / 100 for kind, fact in facts.BLOCK_FACTS.items()}
NEEDS = {NAMES[k]: f.level for k, f in facts.BLOCK_FACTS.items()}
DROPS = {
    "grass_block": "dirt",
    "stone": "cobblestone",
    "coal_ore": "coal",
    "oak_leaves": None,
    **{name: name for name in ("dirt", "sand", "gravel", "cobblestone", "iron_ore", "oak_log")},
    "crafting_table": "crafting_table",
    "furnace": "furnace",
}
TOOLS = {
    "wooden_pickaxe": (1, 2, 59),
    "stone_pickaxe": (2, 4, 131),
    "iron_pickaxe": (3, 6, 250),
}
STONY = {"stone", "cobblestone", "coal_ore", "iron_ore", "furnace"}
PLACEABLE = {"dirt", "sand", "gravel", "cobblestone", "stone", "crafting_table", "furnace"}
BURNS = {"coal": 1600, "charcoal": 1600, "oak_planks": 300, "oak_log": 300, "stick": 100}
SMELTS = {"iron_ore": "iron_ingot", "cobblestone": "stone", "oak_log": "charcoal"}
P, S, C, K, I = "oak_planks", "stick", "cobblestone", "coal", "iron_ingot"
RECIPES = {
    (("oak_log",),): ("oak_planks", 4),
    ((P,), (P,)): ("stick", 4),
    ((P, P), (P, P)): ("crafting_table", 1),
    ((K,), (S,)): ("torch", 4),
    (("charcoal",), (S,)): ("torch", 4),
    (("stone", "stone"), ("stone", "stone")): ("stone_bricks", 4),
    ((C, C, C), (C, "", C), (C, C, C)): ("furnace", 1),
    ((P, P, P), ("", S, ""), ("", S, "")): ("wooden_pickaxe", 1),
    ((C, C, C), ("", S, ""), ("", S, "")): ("stone_pickaxe", 1),
    ((I, I, I), ("", S, ""), ("", S, "")): ("iron_pickaxe", 1),
}


class Furnace:
    def __init__(self) -> None:
        self.slots: list[list[Any] | None] = [None, None, None]
        self.burn = self.cook = 0

    def tick(self) -> None:
        raw, fuel, out = self.slots
        product = SMELTS.get(raw[0]) if raw else None
        works = product is not None and (out is None or (out[0] == product and out[1] < 64))
        if self.burn == 0 and works and fuel:
            self.burn = BURNS[fuel[0]]
            self.slots[1] = [fuel[0], fuel[1] - 1, 0] if fuel[1] > 1 else None
        if self.burn > 0:
            self.burn -= 1
            if works:
                assert raw is not None
                self.cook += 1
                if self.cook == 200:
                    self.cook = 0
                    self.slots[0] = [raw[0], raw[1] - 1, 0] if raw[1] > 1 else None
                    self.slots[2] = [product, (out[1] if out else 0) + 1, 0]
                return
        self.cook = max(0, self.cook - 2)


class Env:
    """What `MinecraftSim.env` is used for."""

    def __init__(self) -> None:
        self.pending: int | None = None
        self.seeds: list[int] = []

    def seed(self, seed: int) -> None:
        assert isinstance(seed, int) and 0 <= seed < 2**32
        self.pending = seed
        self.seeds.append(seed)


class DoubleSim:
    """The double. `faults` names what goes wrong, for tests of that."""

    def __init__(self, action_type: str = "agent", **keywords: Any) -> None:
        assert action_type == "env"
        self.keywords = keywords
        self.env = Env()
        self.info: dict[str, Any] = {}
        self.closed = False
        self.faults: set[str] = set()
        self.log: list[dict[str, Any]] = []
        self.commands: list[str] = []

    # -- worlds ------------------------------------------------------------------------------

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert self.env.pending is not None, "MineStudio forgets the seed: seed before each reset"
        record = new_records(1)[0]
        key = episode_key(self.env.pending, 0)
        begin(record.view(np.int32), record, record.view(np.uint64), 0, 10, key)
        self.blocks: dict[tuple[int, int, int], str] = {}
        self.landscape = blocks(record).tobytes()
        self.env.pending = None
        s = record.view(np.int32)
        self.x, self.y, self.z = s[X] + EAST + 0.5, s[X + 1] + UP + 0.0, s[Z] + SOUTH + 0.5
        self.vx = self.vy = self.vz = 0.0
        self.yaw, self.pitch = 123.0, 10.0
        self.health, self.top, self.ground = 20.0, self.y, True
        self.slots: list[list[Any] | None] = [None] * 36
        self.hand, self.held_keys = 0, set[str]()
        self.dug: tuple[int, int, int] | None = None
        self.progress, self.delay, self.use_delay = 0.0, 0, 0
        self.items: list[list[Any]] = []
        self.furnaces: dict[tuple[int, int, int], Furnace] = {}
        self.screen: str | None = None
        self.furnace: Furnace | None = None
        self.grid: list[list[Any] | None] = []
        self.cursor = [320.0, 180.0]
        self.carried: list[Any] | None = None
        self.stats: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.mode = "survival"
        self.dice = random.Random(1)
        self.info = {}
        return {"image": self._picture()}, self._tell(None)

    def close(self) -> None:
        self.closed = True

    def _picture(self) -> np.ndarray:
        return np.full((360, 640, 3), 7, np.uint8)

    def natural(self, x: int, y: int, z: int) -> str:
        """What was here at first."""
        x, y, z = x - EAST, y - UP, z - SOUTH
        if 0 <= x < WIDTH and 0 <= z < WIDTH and 0 <= y < HEIGHT - 1:
            return NAMES[self.landscape[(x * WIDTH + z) * HEIGHT + y]]
        return "air"

    def at(self, x: int, y: int, z: int) -> str:
        return self.blocks.get((x, y, z)) or self.natural(x, y, z)

    def put(self, spot: tuple[int, int, int], name: str) -> None:
        """Change a block; `blocks` holds those that are not what was there at first."""
        self.blocks[spot] = name
        if self.natural(*spot) == name:
            del self.blocks[spot]
        if name == "furnace":
            self.furnaces[spot] = Furnace()
        else:
            self.furnaces.pop(spot, None)
        x, y, z = spot
        while self.at(x, y, z) in OPEN and self.at(x, y + 1, z) in ("sand", "gravel"):
            falling, low = self.at(x, y + 1, z), y
            while self.at(x, low - 1, z) in OPEN:
                low -= 1
            self.blocks[x, y + 1, z] = "air"
            self.blocks[x, low, z] = falling
            y += 1

    # -- a tick ------------------------------------------------------------------------------

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert not self.closed
        self.log.append(action)
        if "die" in self.faults:
            raise RuntimeError("Attempted to step an environment server with done=True")
        if "lost" in self.faults:
            self.info["error"] = "Connection timed out!"
            return {"image": self._picture()}, 0.0, True, True, dict(self.info)
        keys = {key for key, down in action.items() if isinstance(down, int) and down == 1}
        pressed = keys - self.held_keys
        self.held_keys = keys
        if action.get("chat"):
            self.commands.append(action["chat"])
            self._command(action["chat"])
        pitch, yaw = (float(v) for v in action["camera"])
        if self.screen is not None:
            self.cursor[0] += yaw * 2400 / 360
            self.cursor[1] += pitch * 2400 / 360
            if "attack" in pressed:
                self._click("left")
            if "use" in pressed:
                self._click("right")
            if "inventory" in pressed:
                self._close_screen()
            self._move(set())
        else:
            self.pitch = max(-90.0, min(90.0, self.pitch + pitch))
            self.yaw = (self.yaw + yaw + 180) % 360 - 180
            for number in range(9):
                if f"hotbar.{number + 1}" in keys:
                    self.hand = number
            self._attack("attack" in keys)
            self.use_delay = max(0, self.use_delay - 1)
            if "use" in keys and self.use_delay == 0:
                self.use_delay = 4
                self._use("sneak" in keys)
            if "inventory" in pressed and self.screen is None:
                self._open("inventory", 4)
            self._move(keys)
        for furnace in self.furnaces.values():
            furnace.tick()
        self._pick_up()
        dead = self.health <= 0
        box = action.get("voxels")
        return {"image": self._picture()}, 0.0, dead, dead, self._tell(box)

    def _tell(self, box: Any) -> dict[str, Any]:
        hand = self.slots[self.hand]
        news: dict[str, Any] = {
            "pov": self._picture(),
            "player_pos": {
                "x": self.x,
                "y": self.y,
                "z": self.z,
                "yaw": self.yaw,
                "pitch": self.pitch,
            },
            "inventory": {
                i: {"type": stack[0], "quantity": stack[1]}
                if stack
                else {"type": "none", "quantity": 0}
                for i, stack in enumerate(self.slots)
            },
            "equipped_items": {
                "mainhand": {"type": hand[0], "damage": hand[2], "maxDamage": 0}
                if hand
                else {"type": "none", "damage": 0, "maxDamage": 0}
            },
            "health": self.health,
            "food_level": 20,
            "is_gui_open": self.screen is not None,
            "isGuiOpen": self.screen is not None,
        }
        for name in ("mine_block", "craft_item", "pickup", "break_item", "use_item"):
            news[name] = {k: np.array(float(v)) for k, v in self.stats[name].items()}
        if box is not None:
            x, y, z = self._feet()
            x0, x1, y0, y1, z0, z1 = (int(v) for v in box)
            news["voxels"] = [
                {"x": dx, "y": dy, "z": dz, "type": f"minecraft:{name}"}
                for dx in range(x0, x1 + 1)
                for dy in range(y0, y1 + 1)
                for dz in range(z0, z1 + 1)
                if (name := self.at(x + dx, y + dy, z + dz)) != "air"
            ]
        self.info.update(news)
        return dict(self.info)

    # -- moving ------------------------------------------------------------------------------

    def _feet(self) -> tuple[int, int, int]:
        return math.floor(self.x), math.floor(self.y + 1e-9), math.floor(self.z)

    def _free(self, x: float, y: float, z: float) -> bool:
        for i in range(math.floor(x - 0.3), math.floor(x + 0.3 - 1e-9) + 1):
            for j in range(math.floor(y + 1e-9), math.floor(y + 1.8 - 1e-9) + 1):
                for k in range(math.floor(z - 0.3), math.floor(z + 0.3 - 1e-9) + 1):
                    if self.at(i, j, k) not in OPEN:
                        return False
        return True

    def _move(self, keys: set[str]) -> None:
        if self.mode == "spectator":
            self.vx = self.vy = self.vz = 0.0
            self.top = self.y
            return
        wet = self.at(*self._feet()) == "water"
        push = (0.02 if wet else 0.098 if self.ground else 0.02) * ("forward" in keys)
        push *= 0.3 if "sneak" in keys else 1.0
        angle = math.radians(self.yaw)
        self.vx += -math.sin(angle) * push
        self.vz += math.cos(angle) * push
        if "jump" in keys:
            if wet:
                self.vy += 0.04
            elif self.ground:
                self.vy = 0.42
        if self._free(self.x + self.vx, self.y, self.z):
            self.x += self.vx
        else:
            # A body stops at the wall, and in water climbs over its rim.
            self.vx = 0.0
            if wet:
                self.vy = max(self.vy, 0.3)
        if self._free(self.x, self.y, self.z + self.vz):
            self.z += self.vz
        else:
            self.vz = 0.0
            if wet:
                self.vy = max(self.vy, 0.3)
        old = self.y
        if self._free(self.x, self.y + self.vy, self.z):
            self.y += self.vy
            self.ground = False
        else:
            self.ground = self.vy < 0
            if self.ground:
                self.y = float(math.floor(self.y + 1e-9))
                fallen = self.top - self.y
                if fallen > 3 and not wet:
                    self.health -= math.ceil(fallen - 3)
            self.vy = 0.0
        self.top = self.y if self.ground or wet else max(self.top, self.y, old)
        drag = 0.8 if wet else 0.546 if self.ground else 0.91
        self.vx *= drag
        self.vz *= drag
        self.vy = self.vy * 0.8 - 0.02 if wet else (self.vy - 0.08) * 0.98

    # -- the crosshair -----------------------------------------------------------------------

    def _ray(self) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
        """The block in the crosshair, and the free place before it."""
        yaw, pitch = math.radians(self.yaw), math.radians(self.pitch)
        way = (
            -math.sin(yaw) * math.cos(pitch),
            -math.sin(pitch),
            math.cos(yaw) * math.cos(pitch),
        )
        eyes = (self.x, self.y + 1.62, self.z)
        last = tuple(math.floor(v) for v in eyes)
        for n in range(1, 451):
            at = tuple(math.floor(e + w * n / 100) for e, w in zip(eyes, way, strict=True))
            if at == last:
                continue
            if self.at(*at) not in OPEN:
                # Only a neighbour by a face can be built on.
                if sum(abs(a - b) for a, b in zip(at, last, strict=True)) != 1:
                    last = (last[0], at[1], last[2])
                return at, last  # type: ignore[return-value]
            last = at
        return None

    def _attack(self, down: bool) -> None:
        self.delay = max(0, self.delay - 1)
        hit = self._ray() if down and self.delay == 0 else None
        if hit is None or self.at(*hit[0]) not in HARDNESS:
            self.dug, self.progress = None, 0.0
            return
        spot = hit[0]
        if spot != self.dug:
            self.dug, self.progress = spot, 0.0
        name = self.at(*spot)
        stack = self.slots[self.hand]
        tool = TOOLS.get(stack[0]) if stack else None
        level, speed, uses = tool or (0, 1, 0)
        if name not in STONY:
            speed = 1
        can = NEEDS[name] <= (level if name in STONY else 9)
        self.progress += speed / HARDNESS[name] / (30 if can else 100)
        if self.progress < 1.0 - 1e-9:
            return
        self.dug, self.progress, self.delay = None, 0.0, 6
        inside = self.furnaces.get(spot)
        self.put(spot, "air")
        if can and DROPS.get(name):
            self.stats["mine_block"][name] += 1
            self.items.append([DROPS[name], 1, *spot, 10])
        if inside is not None:
            self.items += [[s[0], s[1], *spot, 10] for s in inside.slots if s]
        if stack and tool:
            stack[2] += 1
            if stack[2] >= uses:
                self.slots[self.hand] = None
                self.stats["break_item"][stack[0]] += 1

    def _use(self, sneaks: bool) -> None:
        hit = self._ray()
        if hit is None:
            return
        name = self.at(*hit[0])
        if name == "crafting_table" and not sneaks:
            self._open("table", 9)
            return
        if name == "furnace" and not sneaks:
            self.furnace = self.furnaces[hit[0]]
            self._open("furnace", 0)
            return
        stack = self.slots[self.hand]
        if stack is None or stack[0] not in PLACEABLE or self.at(*hit[1]) not in OPEN:
            return
        x, y, z = hit[1]
        covers = (
            x - 0.3 < self.x < x + 1.3 and z - 0.3 < self.z < z + 1.3 and y - 1.8 < self.y < y + 1
        )
        if covers:
            return
        self.put(hit[1], stack[0])
        self.stats["use_item"][stack[0]] += 1
        self._shrink(self.slots, self.hand, 1)

    def _pick_up(self) -> None:
        left = []
        for item in self.items:
            while self.at(item[2], item[3] - 1, item[4]) in OPEN and item[3] > 0:
                item[3] -= 1
            item[5] -= 1
            near = (
                abs(item[2] + 0.5 - self.x) < 1.425
                and abs(item[4] + 0.5 - self.z) < 1.425
                and -0.75 < item[3] - self.y < 2.3
            )
            if item[5] <= 0 and near and self._give(item[0], item[1]):
                self.stats["pickup"][item[0]] += item[1]
            else:
                left.append(item)
        self.items = left

    # -- inventory ---------------------------------------------------------------------------

    def _give(self, name: str, amount: int, damage: int = 0) -> bool:
        single = name in TOOLS
        for stack in self.slots:
            if stack and not single and stack[0] == name and stack[1] + amount <= 64:
                stack[1] += amount
                return True
        for index, stack in enumerate(self.slots):
            if stack is None:
                self.slots[index] = [name, amount, damage]
                return True
        return False

    @staticmethod
    def _shrink(slots: list[list[Any] | None], index: int, amount: int) -> None:
        stack = slots[index]
        assert stack is not None
        stack[1] -= amount
        if stack[1] <= 0:
            slots[index] = None

    # -- windows -----------------------------------------------------------------------------

    def _open(self, screen: str, grid: int) -> None:
        self.screen = screen
        self.grid = [None] * grid
        self.cursor = [320.0, 180.0]

    def _close_screen(self) -> None:
        for stack in (*self.grid, self.carried):
            if stack:
                self._give(*stack)
        self.screen, self.grid, self.carried, self.furnace = None, [], None, None

    def _slot(self) -> tuple[list[list[Any] | None], int] | str | None:
        """What lies under the cursor: a slot, "result", or nothing."""
        x, y = self.cursor[0] - 232, self.cursor[1] - 97
        places: list[tuple[int, int, Any]] = []
        for i in range(9):
            places.append((8 + 18 * i, 142, (self.slots, i)))
            places += [(8 + 18 * i, 84 + 18 * r, (self.slots, 9 + 9 * r + i)) for r in range(3)]
        if self.screen == "inventory":
            places += [
                (98 + 18 * c, 18 + 18 * r, (self.grid, 2 * r + c)) for r in (0, 1) for c in (0, 1)
            ]
            places.append((154, 28, "result"))
        elif self.screen == "table":
            places += [
                (30 + 18 * c, 17 + 18 * r, (self.grid, 3 * r + c))
                for r in range(3)
                for c in range(3)
            ]
            places.append((124, 35, "result"))
        else:
            assert self.furnace is not None
            slots = self.furnace.slots
            places += [(56, 17, (slots, 0)), (56, 53, (slots, 1)), (116, 35, (slots, 2))]
        for left, top, what in places:
            if left <= x < left + 16 and top <= y < top + 16:
                return what
        return None

    def _product(self) -> tuple[str, int] | None:
        side = 2 if self.screen == "inventory" else 3
        rows = [
            [s[0] if s else "" for s in self.grid[side * r : side * (r + 1)]] for r in range(side)
        ]
        rows = [row for row in rows if any(row)] if any(map(any, rows)) else []
        keep = [c for c in range(side) if any(row[c] for row in rows)]
        return RECIPES.get(tuple(tuple(row[c] for c in keep) for row in rows))

    def _click(self, button: str) -> None:
        slot = self._slot()
        if slot is None:
            return
        if isinstance(slot, str):
            product = self._product()
            fits = product and (
                self.carried is None
                or (self.carried[0] == product[0] and self.carried[1] + product[1] <= 64)
            )
            if product and fits:
                self.carried = [
                    product[0],
                    product[1] + (self.carried[1] if self.carried else 0),
                    0,
                ]
                self.stats["craft_item"][product[0]] += product[1]
                for index, stack in enumerate(self.grid):
                    if stack:
                        self._shrink(self.grid, index, 1)
            return
        slots, index = slot
        there = slots[index]
        takes_only = self.furnace is not None and slots is self.furnace.slots and index == 2
        if button == "left":
            if self.carried and there and self.carried[0] == there[0] and not takes_only:
                there[1] += self.carried[1]
                self.carried = None
            elif not (takes_only and self.carried):
                slots[index], self.carried = self.carried, there
        elif self.carried is not None and (there is None or there[0] == self.carried[0]):
            slots[index] = [self.carried[0], (there[1] if there else 0) + 1, self.carried[2]]
            self.carried[1] -= 1
            if self.carried[1] == 0:
                self.carried = None

    # -- commands ----------------------------------------------------------------------------

    def _command(self, command: str) -> None:
        words = command.split()
        name = words[0].removeprefix("/")
        if name in ("gamerule", "difficulty", "time", "weather"):
            return
        if name == "gamemode":
            self.mode = words[1]
        elif name == "clear":
            self._clear(words[2:])
        elif name == "give":
            self._give(words[2].removeprefix("minecraft:"), int(words[3]))
        elif name == "tp":
            self.x, self.y, self.z, self.yaw, self.pitch = (float(w) for w in words[2:7])
            self.vx = self.vy = self.vz = 0.0
            self.top = self.y
        elif name == "setblock":
            x, y, z = (int(w) for w in words[1:4])
            if "setblock" not in self.faults:
                self.put((x, y, z), words[4].removeprefix("minecraft:"))
        elif name == "kill":
            self.items = []
        elif name == "effect":
            self.health = 20.0
        elif name == "replaceitem":
            self._replace(words[1:])
        elif name == "data":
            furnace = self.furnaces[tuple(int(w) for w in words[3:6])]  # type: ignore[index]
            found = dict(re.findall(r"(\w+):(\d+)s", words[6]))
            furnace.burn, furnace.cook = int(found["BurnTime"]), int(found["CookTime"])
        else:
            raise AssertionError(f"unknown command {command!r}")

    def _clear(self, words: list[str]) -> None:
        if not words:
            self.slots = [None] * 36
            return
        name, left = words[0].removeprefix("minecraft:"), int(words[1])
        for index, stack in enumerate(self.slots):
            if stack and stack[0] == name and left:
                used = min(left, stack[1])
                left -= used
                self._shrink(self.slots, index, used)

    def _replace(self, words: list[str]) -> None:
        amount = int(words[-1]) if words[-1].isdigit() else 1
        what = next(w for w in words if w.startswith("minecraft:")).removeprefix("minecraft:")
        found = re.fullmatch(r"(\w+)(?:\{Damage:(\d+)\})?", what)
        assert found is not None
        stack = None if found[1] == "air" else [found[1], amount, int(found[2] or 0)]
        if words[0] == "entity":
            place, _, number = words[2].partition(".")
            index = int(number) + {"hotbar": 0, "inventory": 9}[place]
            self.slots[index] = stack
        else:
            spot = (int(words[1]), int(words[2]), int(words[3]))
            self.furnaces[spot].slots[int(words[4].removeprefix("container."))] = stack
