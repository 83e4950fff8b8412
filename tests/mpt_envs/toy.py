"""A whole domain in one file: two roles build a shed before the wood gets wet.

The cutter fells trees and saws logs into boards; the builder nails two boards to a wall, which it
cannot do while it rains. Whether it rains in a turn is drawn from the episode's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mpt_envs
from wrappers.records import PlainBatch
from wrappers.rng import STREAM_DOMAIN, uniform4
from wrappers.task import Phase

SHED = "toys/shed-v0"
CUTTER, BUILDER = 0, 1
FELL, SAW = 0, 1  # of the cutter
NAIL, REST = 0, 1  # of the builder
MOST = 4  # logs or boards that the yard has room for


class Shed(PlainBatch):
    """Sheds of so many walls; one point a wall.

    Args:
        num_envs: number of worlds.
        walls: that a shed needs.
    """

    task_id = SHED
    roles = ("cutter", "builder")
    action_names = (("fell", "saw"), ("nail", "rest"))
    feature_names = ("logs", "boards", "walls", "rain")
    metric_names = ("success", "walls")
    default_max_turns = 30
    world_type = np.dtype(
        [("key", "u8"), *((name, "i8") for name in ("turn", "rain", "logs", "boards", "walls"))]
    )

    def __init__(self, num_envs: int, *, walls: int = 3) -> None:
        super().__init__(num_envs, walls=walls)
        self.walls = walls

    def begin(self, world: Any) -> None:
        self.draw_weather(world)

    def draw_weather(self, world: Any) -> None:
        # Kept in the world, since another key must not change what is seen now.
        world["rain"] = uniform4(world["key"], world["turn"], STREAM_DOMAIN, 0) < 0.3

    def observation(self, world: Any) -> Sequence[float]:
        yard = world["logs"] / MOST, world["boards"] / MOST
        return (*yard, world["walls"] / self.walls, world["rain"])

    def legal(self, world: Any, role: int) -> Sequence[bool]:
        if role == CUTTER:
            return world["logs"] < MOST, world["logs"] > 0
        return world["boards"] >= 2 and not world["rain"], True

    def play(self, world: Any, role: int, action: int) -> tuple[float, bool]:
        reward = 0.0
        if (role, action) == (CUTTER, FELL):
            world["logs"] += 1
        elif (role, action) == (CUTTER, SAW):
            world["logs"] -= 1
            world["boards"] = min(MOST, world["boards"] + 2)
        elif (role, action) == (BUILDER, NAIL):
            world["boards"] -= 2
            world["walls"] += 1
            reward = 1.0
        world["turn"] += 1
        self.draw_weather(world)
        return reward, bool(world["walls"] == self.walls)

    def measure(self, world: Any) -> Sequence[float]:
        return float(world["walls"] == self.walls), float(world["walls"])

    def advise(self, world: Any) -> Sequence[tuple[float, int]]:
        nail, _ = self.legal(world, BUILDER)
        _, saw = self.legal(world, CUTTER)
        return (0.5, SAW if saw else FELL), ((0.9, NAIL) if nail else (0.0, REST))

    def prompt(self, world: Any, role: int, phase: Phase) -> str:
        weather = "It rains." if world["rain"] else "It is dry."
        yard = f"{world['logs']} logs, {world['boards']} boards"
        names = self.action_names[role]
        allowed = [n for n, free in zip(names, self.legal(world, role), strict=True) if free]
        asked = "Bid for the turn." if phase == "bid" else f"Choose: {', '.join(allowed)}."
        return f"{weather} {yard}, {world['walls']} of {self.walls} walls. {asked}"


mpt_envs.register(SHED, batch=Shed, description="Cut wood and build a shed between two rains.")
