"""Actions as MineStudio takes them, ticks, and a simulator that is made late and ended once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpt_envs.crafting.backends.engine_errors import EngineError
from mpt_envs.crafting.backends.minestudio.engine import (
    KEYS,
    SETTLING_COMMANDS,
    BodyDied,
    Engine,
    action_of,
)
from tests.mpt_envs.crafting.minestudio.double import DoubleSim


def test_an_action_has_all_keys_and_only_what_was_asked_for() -> None:
    action = action_of(["forward", "jump"], (3.0, -4.5))
    assert set(action) == {*KEYS, "camera"}
    assert {key for key in KEYS if action[key]} == {"forward", "jump"}
    assert action["camera"].dtype == np.float32 and action["camera"].tolist() == [3.0, -4.5]
    action = action_of(voxels=(-1, 1, -2, 2, -3, 3), chat="/kill @p")
    assert action["voxels"].tolist() == [-1, 1, -2, 2, -3, 3] and action["chat"] == "/kill @p"
    assert not any(action[key] for key in KEYS)


def test_what_no_action_can_say() -> None:
    with pytest.raises(ValueError, match="no key 'fly'; keys: attack, back"):
        action_of(["fly"])
    with pytest.raises(ValueError, match="must lie within 50"):
        action_of(voxels=(-51, 0, 0, 0, 0, 0))


def test_steps_are_ticks_and_the_simulator_is_made_at_the_first_reset() -> None:
    made: list[DoubleSim] = []

    def make(**keywords: Any) -> DoubleSim:
        made.append(DoubleSim(**keywords))
        return made[-1]

    engine = Engine("forest", make)
    assert not made and not engine.started
    engine.reset(11)
    assert engine.ticks == 0 and engine.seed == 11
    assert made[0].commands == list(SETTLING_COMMANDS)
    engine.step("forward")
    engine.command("/time set 1000")
    engine.wait(3)
    assert engine.ticks == 5 and len(made[0].log) == 5 + len(SETTLING_COMMANDS)
    engine.reset(12)
    assert len(made) == 1 and made[0].env.seeds == [11, 12] and engine.ticks == 0
    engine.close()
    assert made[0].closed and not engine.started
    engine.reset(13)
    assert len(made) == 2


def test_a_dead_body_takes_no_step() -> None:
    engine = Engine("forest", DoubleSim)
    engine.reset(1)
    sim = engine._sim
    sim.health = 0.0
    with pytest.raises(BodyDied):
        engine.step()
    steps = len(sim.log)
    with pytest.raises(BodyDied):
        engine.step("attack")
    assert len(sim.log) == steps


def test_a_world_that_does_not_begin() -> None:
    class Broken(DoubleSim):
        def reset(self) -> Any:
            raise OSError("no free port")

    engine = Engine("forest", Broken)
    with pytest.raises(EngineError, match=r"could not begin a new world \(OSError: no free port\)"):
        engine.reset(1)
    assert not engine.started
