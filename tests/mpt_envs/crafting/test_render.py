"""Pictures of crafting: deterministic, quick, and every part shows what it should."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.views import render, scene, sprites
from mpt_envs.crafting.views.ansi import SYMBOLS, ansi
from mpt_envs.crafting.views.render import HEIGHT, RADIUS, WIDTH, rgb_array
from mpt_envs.crafting.world import facts, goals
from mpt_envs.crafting.world import layout as at

ROOT = Path(__file__).resolve().parents[3]
OVERLAY = {
    "turn": 3,
    "max_turns": 120,
    "bids": {"logger_0": 0.2, "miner_0": 0.9, "smith_0": 0.0},
    "winner": "miner_0",
}
# Parts of the picture, as y, x slices.
MAP = (slice(54, 304), slice(8, 258))
SECTION = (slice(54, 304), slice(266, 516))
SIDE = (slice(36, 306), slice(520, 640))
HEADER = (slice(0, 32), slice(0, 640))
LAST_TURN = (slice(308, 325), slice(0, 420))
INVENTORY = (slice(325, 400), slice(0, 424))
BIDS = (slice(325, 400), slice(424, 640))
PARTS = {
    "map": MAP,
    "section": SECTION,
    "side": SIDE,
    "header": HEADER,
    "last turn": LAST_TURN,
    "inventory": INVENTORY,
    "bids": BIDS,
}


def world(seed: int = 1, goal: str = "iron-pickaxe") -> tuple[np.ndarray, np.ndarray]:
    """A new world's record and its scalars."""
    task = CraftingTask(goal)
    task.reset(seed)
    return task.record, at.scalars(task.record)


def deep_world(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A world whose body stands in a small chamber below the ground."""
    record, s = world(seed)
    s[at.Y] = 5
    x, z = int(s[at.X]), int(s[at.Z])
    b = at.blocks(record)
    b[x - 2 : x + 3, z - 2 : z + 3, 4:8] = facts.STONE
    b[x - 1 : x + 2, z, 5:7] = facts.AIR
    perceive(s, record)
    return record, s


def changed(before: np.ndarray, after: np.ndarray) -> set[str]:
    """Names of the parts in which two pictures differ."""
    return {name for name, part in PARTS.items() if (before[part] != after[part]).any()}


# --- scene --------------------------------------------------------------------------------------
def test_map_from_above_is_the_topmost_block() -> None:
    record, s = world()
    view = scene.map_around(record, 6)
    blocks = at.blocks(record)
    assert view.level is None
    for row in range(13):
        for column in range(13):
            x, z = int(s[at.X]) + column - 6, int(s[at.Z]) + row - 6
            stack = blocks[x, z, : at.HEIGHT - 1]
            top = int(np.flatnonzero(stack != facts.AIR)[-1])
            assert view.block[row, column] == stack[top]
            assert view.height[row, column] == top
            assert view.trunk[row, column] == (stack == facts.LOG).any()


def test_map_below_the_ground_is_the_level_of_the_feet() -> None:
    record, s = deep_world()
    view = scene.map_around(record, 4)
    assert view.level == 5
    assert view.open[4].tolist()[2:7] == [False, True, True, True, False]
    assert view.block[4, 4] == facts.STONE  # the floor
    column = at.blocks(record)[int(s[at.X]) + 1, int(s[at.Z])]
    column[2:5] = facts.AIR, facts.AIR, facts.AIR
    column[1] = facts.DIRT
    lower = scene.map_around(record, 4)
    assert (lower.block[4, 5], lower.height[4, 5]) == (facts.DIRT, 1)
    column[1] = facts.AIR
    assert scene.map_around(record, 4).block[4, 5] == scene.PIT


@pytest.mark.parametrize(("x", "z"), [(1, 1), (46, 46), (1, 46), (24, 1)])
def test_outside_of_the_world_is_shown_as_such(x: int, z: int) -> None:
    record, s = world()
    s[at.X], s[at.Z] = x, z
    perceive(s, record)
    view = scene.map_around(record, RADIUS)
    for row in range(2 * RADIUS + 1):
        for column in range(2 * RADIUS + 1):
            inside = 0 < x + column - RADIUS < 47 and 0 < z + row - RADIUS < 47
            assert (view.block[row, column] != scene.OUTSIDE) == inside
    section = scene.section_through(record, RADIUS)
    columns = [0 < x + c - RADIUS < 47 for c in range(2 * RADIUS + 1)]
    assert (section.block[5] != scene.OUTSIDE).tolist() == columns
    assert rgb_array(record).shape == (HEIGHT, WIDTH, 3)
    assert ansi(record)


def test_section_is_the_plane_of_the_body() -> None:
    record, s = world()
    section = scene.section_through(record, 5)
    x, z = int(s[at.X]), int(s[at.Z])
    blocks = at.blocks(record)
    for column in range(11):
        expected = blocks[x + column - 5, z, : at.HEIGHT - 1][::-1]
        assert section.block[1:, column].tolist() == expected.tolist()
    # Behind: the first block to the north.
    for row, column in np.argwhere(section.block == facts.AIR)[::7]:
        y = at.HEIGHT - 1 - row
        line = blocks[x + column - 5, z - scene.DEPTH_BEHIND : z, y][::-1]
        solid = np.flatnonzero((line != facts.AIR) & (line != facts.BARRIER))
        if y == at.HEIGHT - 1 or len(solid) == 0:
            assert section.behind[row, column] == facts.AIR
        else:
            assert section.behind[row, column] == line[solid[0]]
            assert section.distance[row, column] == solid[0] + 1


# --- sprites ------------------------------------------------------------------------------------
def test_every_block_and_item_has_its_own_look() -> None:
    for side in (False, True):
        atlas = sprites.tiles(side)
        assert atlas.shape == (scene.PIT + 1, sprites.VARIANTS, sprites.TILE, sprites.TILE, 3)
        shown = [b for b in range(scene.PIT + 1) if b not in (facts.AIR, facts.BARRIER)]
        assert len({atlas[b, 0].tobytes() for b in shown}) == len(shown)
    looks = set()
    for item in range(facts.N_ITEMS):
        colour, opaque = sprites.icon(item)
        assert colour.shape == (sprites.ICON, sprites.ICON, 3)
        assert opaque.shape == (sprites.ICON, sprites.ICON) and opaque.any()
        looks.add(colour.tobytes())
    assert len(looks) == facts.N_ITEMS


def test_shared_sprites_cannot_be_painted_over() -> None:
    for array in (sprites.tiles(True), *sprites.icon(0), *sprites.body(True)):
        assert not array.flags.writeable


# --- rgb_array ----------------------------------------------------------------------------------
def test_picture_is_fresh_and_the_same_each_time() -> None:
    record, _ = world()
    before = record.copy()
    first = rgb_array(record, OVERLAY)
    again = first.copy()
    assert first.shape == (HEIGHT, WIDTH, 3) == (400, 640, 3)
    assert first.dtype == np.uint8
    first[:] = 0
    assert np.array_equal(rgb_array(record, OVERLAY), again)
    assert np.array_equal(record, before)


def test_picture_is_the_same_in_another_process() -> None:
    """Neither hashing nor the order of what was drawn before has a say."""
    code = (
        "import hashlib\n"
        "from mpt_envs.crafting.task import CraftingTask\n"
        "from mpt_envs.crafting.views.render import rgb_array\n"
        "task = CraftingTask(); task.reset(1)\n"
        f"print(hashlib.sha256(rgb_array(task.record, {OVERLAY!r}).tobytes()).hexdigest())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    here = hashlib.sha256(rgb_array(world()[0], OVERLAY).tobytes()).hexdigest()
    assert run.stdout.strip() == here


def test_picture_is_quick() -> None:
    record, _ = world()
    rgb_array(record, OVERLAY)
    times = []
    for _ in range(15):
        start = time.perf_counter()
        rgb_array(record, OVERLAY)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.010


def test_each_fact_changes_its_part_and_no_other() -> None:
    record, s = world()
    base = rgb_array(record, OVERLAY)

    def after(change: dict[int, int], overlay: dict[str, object] = OVERLAY) -> set[str]:
        copy = record.copy()
        for field, value in change.items():
            at.scalars(copy)[field] = value
        return changed(base, rgb_array(copy, overlay))

    assert after({at.INVENTORY + facts.I_COAL: 3}) == {"inventory"}
    assert after({at.SEEN: 1 << facts.I_LOG}) == {"side"}
    assert after({at.TICK: 3000}) == {"header"}
    assert after({at.SCORE: 7}) == {"header"}
    assert after({at.DONE: at.DONE_GOAL}) == {"header"}
    assert after({at.TABLE_CELL: int(s[at.X])}) == {"side"}
    assert after({at.TURN: 1, at.LAST_ROLE: 1, at.LAST_ACTION: 0}) == {"last turn"}
    assert after({}, OVERLAY | {"turn": 60}) == {"header"}
    assert after({}, OVERLAY | {"winner": "logger_0"}) == {"bids"}
    assert after({}, OVERLAY | {"bids": dict(OVERLAY["bids"], smith_0=1.0)}) == {"bids"}  # type: ignore[call-overload]


def test_blocks_show_in_map_and_section() -> None:
    record, s = deep_world()
    base = rgb_array(record)
    x, z = int(s[at.X]), int(s[at.Z])
    at.blocks(record)[x + 3, z, 5] = facts.IRON_ORE
    assert changed(base, rgb_array(record)) == {"map", "section"}
    base = rgb_array(record)
    at.blocks(record)[x + 3, z + 3, 5] = facts.IRON_ORE  # beside the section's plane
    assert changed(base, rgb_array(record)) == {"map"}


def test_the_body_is_in_the_middle_of_both_views() -> None:
    for record, s in (world(), deep_world()):
        picture = rgb_array(record)
        head, opaque = sprites.body(False)
        y0, x0 = 54 + 10 * RADIUS, 8 + 10 * RADIUS
        shown = picture[y0 : y0 + 10, x0 : x0 + 10]
        assert np.array_equal(shown[opaque], head[opaque])
        figure, opaque = sprites.body(True)
        y0, x0 = 54 + 10 * (at.HEIGHT - 2 - int(s[at.Y])), 266 + 10 * RADIUS
        shown = picture[y0 : y0 + 20, x0 : x0 + 10]
        assert np.array_equal(shown[opaque], figure[opaque])


def test_what_the_body_sees_is_ringed() -> None:
    record, s = world()
    cell = int(s[at.TARGET_CELL + at.TARGET_LOG])
    assert cell  # the spawn has a tree in sight range
    x, _, z = at.position(cell)
    picture = rgb_array(record)
    row = 54 + 10 * (RADIUS + z - int(s[at.Z])) - 1
    column = 8 + 10 * (RADIUS + x - int(s[at.X])) - 1
    ring = picture[row, column : column + 12]
    assert (ring == (255, 196, 92)).all()
    s[at.TARGET_CELL + at.TARGET_LOG] = 0
    assert changed(picture, rgb_array(record)) <= {"map", "section"}
    assert (rgb_array(record)[row, column : column + 12] != (255, 196, 92)).any()


def test_bars_are_as_high_as_the_bids() -> None:
    record, _ = world()
    heights = []
    for bid in (0.25, 0.5, 1.0):
        picture = rgb_array(record, {"bids": {"miner_0": bid}, "winner": None})
        heights.append(int((picture[BIDS] == (104, 172, 232)).all(axis=2).sum(axis=0).max()))
    assert heights[1] == pytest.approx(2 * heights[0], abs=1)
    assert heights[2] == pytest.approx(2 * heights[1], abs=1)


@pytest.mark.parametrize("copies", [1, 2, 3, 4])
def test_populations_of_up_to_twelve_fit(copies: int) -> None:
    record, _ = world()
    bids = {f"{role}_{i}": 0.1 * i for role in facts.ROLES for i in range(copies)}
    picture = rgb_array(record, {"bids": bids, "winner": f"smith_{copies - 1}"})
    # The right margin stays empty.
    assert (picture[325:, 634:] == picture[399, 639]).all()
    assert "bids" in changed(rgb_array(record), picture)


def test_odd_overlays_are_drawn() -> None:
    record, _ = world()
    for overlay in (
        {},
        {"bids": {}, "winner": None},
        {"bids": {"a": 0.5}, "winner": None},
        {"bids": {"logger_0": 0.0}, "winner": None},
        {"turn": 999, "max_turns": 0},
        {"unknown": object()},
    ):
        assert rgb_array(record, overlay).shape == (HEIGHT, WIDTH, 3)
        assert ansi(record, overlay)


def test_a_full_inventory_fits() -> None:
    record, s = world()
    s[at.INVENTORY : at.INVENTORY + facts.N_ITEMS] = 999
    base = rgb_array(world()[0])
    assert changed(base, rgb_array(record)) == {"inventory"}


@pytest.mark.parametrize("goal", goals.GOAL_NAMES)
def test_every_goal_is_drawn(goal: str) -> None:
    task = CraftingTask(goal)
    task.reset(2)
    for _ in range(6):
        agent = max(task.possible_agents, key=task.expert_bid)
        task.act(agent, task.expert_action(agent))
    assert task.render("rgb_array", OVERLAY).shape == (HEIGHT, WIDTH, 3)
    assert goal.replace("-", " ") in task.render("ansi", OVERLAY).splitlines()[0]


# --- ansi ---------------------------------------------------------------------------------------
def test_ansi_holds_map_section_and_bids() -> None:
    record, s = deep_world()
    x, z = int(s[at.X]), int(s[at.Z])
    at.blocks(record)[x + 3, z, 5] = facts.IRON_ORE
    s[at.INVENTORY + facts.I_COAL] = 3
    plain = ansi(record, OVERLAY, color=False)
    assert "\x1b" not in plain
    lines = plain.splitlines()
    budget = int(s[at.BUDGET])
    assert lines[0] == f"iron pickaxe   turn 3/120   tick 0/{budget}   score 0 of 59"
    assert lines[1].startswith("Map at height 5, north up")
    middle = lines[2 + 10]
    assert middle[16:28] == "##  @@  ##ii"
    feet = lines[2 + at.HEIGHT - 1 - 5]
    assert feet[45 + 16 : 45 + 28] == "##  @@  ##ii"
    assert lines[2 + at.HEIGHT - 1 - 6][65:67] == "@@"
    assert "Has: coal 3." in plain
    assert "  miner_0  0.90 ###########################  <- acted" in plain
    assert "i iron ore" in plain


def test_ansi_is_the_same_with_and_without_colour() -> None:
    for record, _ in (world(), deep_world()):
        coloured = ansi(record, OVERLAY)
        assert "\x1b[" in coloured
        stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        plain = ansi(record, OVERLAY, color=False)
        assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()
        assert plain.isascii()


def test_symbols_are_distinct() -> None:
    symbols = [s for block, s in SYMBOLS.items() if block != facts.BARRIER]
    assert len(set(symbols)) == len(symbols) == scene.PIT
    assert set(SYMBOLS) == set(range(scene.PIT + 1))


def test_render_offers_both() -> None:
    assert render.ansi is ansi
    task = CraftingTask()
    task.reset(0)
    with pytest.raises(ValueError, match="render mode"):
        task.render("human")
