"""Angles and distances as Minecraft measures them.

Yaw 0 looks south (+z), 90 west (-x), 180 north, -90 east; pitch 90 looks straight down. A camera
input is a difference of both in degrees, pitch first.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from mpt_envs.crafting.world.facts import EYE_HEIGHT

#: Yaw of each direction, in the order of `facts.DIRECTIONS`: north, east, south, west.
YAW: Final = (180.0, -90.0, 0.0, 90.0)


class Point(NamedTuple):
    """A place in the world; blocks fill the cube from their integer place on."""

    x: float
    y: float
    z: float


class Spot(NamedTuple):
    """A block's integer place in the world."""

    x: int
    y: int
    z: int

    @property
    def centre(self) -> Point:
        """The middle of the block."""
        return Point(self.x + 0.5, self.y + 0.5, self.z + 0.5)

    def moved(self, dx: int = 0, dy: int = 0, dz: int = 0) -> Spot:
        """The block so many blocks to the east, up and to the south."""
        return Spot(self.x + dx, self.y + dy, self.z + dz)


def wrap(degrees: float) -> float:
    """An angle in [-180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0


def angles(feet: Point, target: Point) -> tuple[float, float]:
    """Yaw and pitch with which a body that stands at ``feet`` looks at ``target``, in degrees."""
    dx, dz = target.x - feet.x, target.z - feet.z
    dy = target.y - (feet.y + EYE_HEIGHT)
    flat = math.hypot(dx, dz)
    yaw = math.degrees(math.atan2(-dx, dz)) if flat > 1e-6 else 0.0
    return yaw, -math.degrees(math.atan2(dy, flat))


def turn(yaw: float, pitch: float, to_yaw: float, to_pitch: float) -> tuple[float, float]:
    """The difference that a camera has to turn, pitch and yaw, in degrees."""
    return to_pitch - pitch, wrap(to_yaw - yaw)


def clamp(value: float, limit: float) -> float:
    """A value within plus and minus a limit."""
    return max(-limit, min(limit, value))


def flat_distance(a: Point, b: Point) -> float:
    """Distance without height."""
    return math.hypot(a.x - b.x, a.z - b.z)


def feet_spot(place: Point) -> Spot:
    """The block in which the feet are; paths and farmland are a sixteenth lower than others."""
    return Spot(math.floor(place.x), math.floor(place.y + 0.07), math.floor(place.z))
