"""The window on the world: what is told is written, moves along, and what changed is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpt_envs.crafting.backends.engine_errors import EngineError
from mpt_envs.crafting.backends.minestudio.geometry import Spot
from mpt_envs.crafting.backends.minestudio.window import (
    REACH_FLAT,
    REACH_UP,
    SPAWN_HEIGHT,
    Window,
    box_around,
    read_voxels,
)
from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.rules.turn import begin
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at

FEET = Spot(-100, 70, 333)


def plain_land(extra: dict[Spot, str] | None = None, feet: Spot = FEET) -> dict[Spot, str]:
    """Grass over stone as far as can be told, the feet on it, and some other blocks."""
    told = {}
    for x in range(-REACH_FLAT, REACH_FLAT + 1):
        for z in range(-REACH_FLAT, REACH_FLAT + 1):
            for y in range(-REACH_UP, REACH_UP + 1):
                height = feet.y + y
                if height < FEET.y:
                    name = "grass_block" if height == FEET.y - 1 else "stone"
                    told[Spot(feet.x + x, height, feet.z + z)] = name
    return {**told, **(extra or {})}


@pytest.fixture
def record() -> Any:
    record = at.new_records(1)[0]
    begin(record.view(np.int32), record, record.view(np.uint64), 0, 100, np.uint64(1))
    record[at.BLOCKS_OFFSET :] = 0
    return record


@pytest.fixture
def window(record: Any) -> Window:
    window = Window(record)
    window.begin(FEET)
    window.update(FEET, plain_land(), box_around())
    return window


def see(record: Any) -> np.ndarray:
    s: np.ndarray = record.view(np.int32)
    perceive(s, record)
    return s


def test_where_the_body_is_and_what_is_unknown(record: Any, window: Window) -> None:
    s = see(record)
    assert tuple(s[at.X : at.X + 3]) == (at.WIDTH // 2, SPAWN_HEIGHT, at.WIDTH // 2)
    assert s[at.BELOW] == facts.GRASS and s[at.DEPTH] == 0 and not s[at.COVERED]
    assert s[at.WALK_STEPS : at.WALK_STEPS + 4].tolist() == [facts.EXPLORE_STEPS] * 4
    assert window.kind(FEET.moved(REACH_FLAT + 1)) == facts.BARRIER
    assert window.name(FEET.moved(dy=-1)) == "grass_block"
    assert window.name(FEET.moved(500)) == ""


def test_targets_are_seen_where_they_stand(record: Any, window: Window) -> None:
    log, coal = FEET.moved(3, 0, 1), FEET.moved(-4, 0, 0)
    hidden = FEET.moved(2, -4, 2)
    blocks = {
        log: "birch_log",
        log.moved(dy=1): "birch_log",
        coal: "coal_ore",
        hidden: "iron_ore",
    }
    window.update(FEET, plain_land(blocks), box_around())
    s = see(record)
    assert window.spot(int(s[at.TARGET_CELL + at.TARGET_LOG])) == log
    assert window.spot(int(s[at.TARGET_CELL + at.TARGET_COAL])) == coal
    assert s[at.TARGET_CELL + at.TARGET_IRON] == 0 and s[at.N_IRON] == 0
    assert s[at.N_TREES] == 1, "a trunk is one target: its lowest log"


def test_changes_are_those_of_known_blocks(window: Window) -> None:
    assert not window.changes
    dug, put = FEET.moved(1, -1, 0), FEET.moved(0, 0, 2)
    told = plain_land({put: "crafting_table"})
    del told[dug]
    window.update(FEET, told, box_around())
    assert window.changes == {dug: ("grass_block", "air"), put: ("air", "crafting_table")}
    window.update(FEET, plain_land({put: "stone"}), box_around())
    assert window.changes[put] == ("air", "stone")
    assert window.changes[dug] == ("grass_block", "grass_block")


def test_the_window_moves_and_forgets_nothing_that_it_still_shows(
    record: Any, window: Window
) -> None:
    s = record.view(np.int32)
    mark = FEET.moved(2, 0, 0)
    s[at.MARKS] = window.cell(mark)
    far = FEET.moved(15, 0, -3)
    window.update(far, plain_land(feet=far), box_around())
    assert s[at.X] == at.WIDTH // 2
    assert window.kind(FEET.moved(dy=-1)) == facts.GRASS
    assert window.kind(far.moved(dy=-2)) == facts.STONE
    assert window.spot(int(s[at.MARKS])) == mark
    assert not window.changes
    assert see(record)[at.DEPTH] == 0


def test_deep_down_the_ground_is_remembered(record: Any, window: Window) -> None:
    for depth in range(1, 31):
        feet = FEET.moved(0, -depth, 0)
        told = plain_land(feet=feet)
        for dug in range(depth + 1):
            told.pop(FEET.moved(0, -dug, 0), None)
            told.pop(FEET.moved(0, -dug + 1, 0), None)
        window.update(feet, told, box_around())
        s = see(record)
        assert 4 <= s[at.Y] <= 18
        assert s[at.DEPTH] == min(depth, at.HEIGHT - s[at.Y]), depth
        assert s[at.COVERED] == 0 or depth > 10


def test_the_shell_is_closed_and_what_hurts_is_walled(record: Any, window: Window) -> None:
    lava = FEET.moved(3, -1, 0)
    window.update(FEET, plain_land({lava: "lava"}), box_around())
    blocks = at.blocks(record)
    assert (blocks[:, :, 0] == facts.BEDROCK)[1:-1, 1:-1].all()
    for wall in (blocks[0], blocks[-1], blocks[:, 0], blocks[:, -1], blocks[:, :, -1]):
        assert (wall == facts.BARRIER).all()
    s = see(record)
    assert s[at.WALK_STEPS + 1] == 2, "the way east ends before the lava"
    assert s[at.WALK_STEPS + 3] == facts.EXPLORE_STEPS


def test_lists_of_blocks_are_read_in_either_frame() -> None:
    box = (-1, 1, -1, 1, -1, 1)
    inner = [{"x": 1, "y": -1, "z": 0, "type": "minecraft:stone"}]
    outer = [{"x": -99, "y": 69, "z": 333, "type": "minecraft:stone"}]
    wanted = {FEET.moved(1, -1, 0): "stone"}
    assert read_voxels(inner, FEET, box) == read_voxels(outer, FEET, box) == wanted
    assert read_voxels([], FEET, box) == {}


@pytest.mark.parametrize(
    ("voxels", "why"),
    [
        (None, "told nothing of the blocks"),
        ({"block_name": []}, "told nothing of the blocks"),
        ([{"x": 0, "y": 0, "type": "stone"}], "does not know"),
        ([{"x": 0, "y": 0, "z": 9, "type": "stone"}], "listed some outside"),
        ([{"x": 0, "y": 0, "z": 0, "type": "a b"}], "does not know"),
    ],
)
def test_lists_that_are_none(voxels: Any, why: str) -> None:
    with pytest.raises(EngineError, match=why):
        read_voxels(voxels, FEET, (-1, 1, -1, 1, -1, 1))


def test_a_station_beyond_the_window_is_at_its_rim(window: Window) -> None:
    assert window.cell(FEET.moved(300, 0, 0)) == 0
    x, y, z = at.position(window.nearest_cell(FEET.moved(300, -90, 1)))
    assert (x, y, z) == (at.WIDTH - 1, 0, at.WIDTH // 2 + 1)
