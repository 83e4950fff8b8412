"""Angles as Minecraft measures them."""

from __future__ import annotations

import math

import pytest

from mpt_envs.crafting.backends.minestudio.geometry import (
    YAW,
    Point,
    Spot,
    angles,
    clamp,
    feet_spot,
    turn,
    wrap,
)
from mpt_envs.crafting.world.facts import EYE_HEIGHT, STEP_X, STEP_Z


@pytest.mark.parametrize("direction", range(4))
def test_directions_and_yaws_agree(direction: int) -> None:
    feet = Point(10.5, 64.0, -3.5)
    there = Point(feet.x + 5 * STEP_X[direction], 64 + EYE_HEIGHT, feet.z + 5 * STEP_Z[direction])
    yaw, pitch = angles(feet, there)
    assert wrap(yaw - YAW[direction]) == pytest.approx(0, abs=1e-9)
    assert pitch == pytest.approx(0, abs=1e-9)


def test_the_look_meets_its_target() -> None:
    """Minecraft's own formula of the direction of a look leads from the eyes to the point."""
    feet = Point(0.4, 70.0, 0.6)
    for target in (Point(3, 71, -2), Point(-4.5, 68.2, 1), Point(0.4, 66, 0.7), Point(7, 80, 7)):
        yaw, pitch = (math.radians(v) for v in angles(feet, target))
        way = (
            -math.sin(yaw) * math.cos(pitch),
            -math.sin(pitch),
            math.cos(yaw) * math.cos(pitch),
        )
        eyes = (feet.x, feet.y + EYE_HEIGHT, feet.z)
        far = math.dist(eyes, target)
        assert [e + far * w for e, w in zip(eyes, way, strict=True)] == pytest.approx(list(target))


def test_straight_down_and_up_have_any_yaw_but_a_right_pitch() -> None:
    assert angles(Point(0, 5, 0), Point(0, 0, 0)) == (0.0, pytest.approx(90.0))
    assert angles(Point(0, 5, 0), Point(0, 20, 0))[1] == pytest.approx(-90.0)


def test_turning_takes_the_short_way() -> None:
    assert turn(170.0, 0.0, -170.0, 10.0) == (10.0, 20.0)
    assert turn(-170.0, 30.0, 170.0, 10.0) == (-20.0, -20.0)
    assert [wrap(v) for v in (180, -180, 540, 359)] == [-180, -180, -180, -1]
    assert [clamp(v, 45) for v in (-50, 3, 99)] == [-45, 3, 45]


def test_feet_on_a_path_and_west_of_zero() -> None:
    assert feet_spot(Point(-0.5, 63.9375, -12.1)) == Spot(-1, 64, -13)
    assert feet_spot(Point(2.9, 64.0, 0.0)) == Spot(2, 64, 0)
    assert Spot(1, 2, 3).moved(1, -1, 2) == Spot(2, 1, 5)
    assert Spot(-1, 0, 2).centre == Point(-0.5, 0.5, 2.5)
