"""Seeing and walking: what is in sight, where a step leads, what is legal."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.crafting.rules.perception import clear_line, sight, walk_step
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, layout
from tests.mpt_envs.crafting.worlds import (
    START,
    flat,
    give,
    grow,
    legal,
    look,
    put,
    scalars,
    stand,
)

NORTH, EAST, SOUTH, WEST = range(4)
X, Y, Z = START


def target(task: CraftingTask, kind: int) -> tuple[int, int, int] | None:
    cell = int(scalars(task)[layout.TARGET_CELL + kind])
    return layout.position(cell) if cell else None


def step(task: CraftingTask, direction: int) -> tuple[int, int, int] | None:
    after = walk_step(task.record, layout.cell_of(X, Y, Z), direction)
    return layout.position(after) if after else None


# -- sight ---------------------------------------------------------------------------------------


def test_a_block_in_the_open_is_seen_up_to_ten_blocks_away() -> None:
    for away, seen in ((3, True), (9, True), (11, False)):
        task = flat()
        put(task, facts.COAL_ORE, X + away, Y, Z)
        assert (target(task, layout.TARGET_COAL) is not None) == seen


def test_nothing_is_seen_through_a_wall() -> None:
    task = flat()
    put(task, facts.IRON_ORE, X + 5, Y, Z)
    assert target(task, layout.TARGET_IRON) == (X + 5, Y, Z)
    for z in range(Z - 4, Z + 5):
        for y in range(Y, Y + 5):
            put(task, facts.COBBLESTONE, X + 3, y, z)
    assert target(task, layout.TARGET_IRON) is None


@pytest.mark.parametrize("pane", [facts.LEAVES, facts.WATER])
def test_leaves_and_water_are_seen_through(pane: int) -> None:
    task = flat()
    put(task, facts.IRON_ORE, X + 5, Y, Z)
    for z in range(Z - 4, Z + 5):
        for y in range(Y, Y + 5):
            put(task, pane, X + 3, y, z)
    assert target(task, layout.TARGET_IRON) == (X + 5, Y, Z)


def test_buried_ore_is_not_seen() -> None:
    task = flat()
    put(task, facts.COAL_ORE, X + 2, Y - 3, Z)
    assert target(task, layout.TARGET_COAL) is None


def test_a_face_is_enough() -> None:
    """The centre is hidden behind a corner, a face is not."""
    task = flat()
    cell = put(task, facts.COAL_ORE, X + 4, Y - 1, Z)  # flush with the grass
    assert sight(task.record, layout.cell_of(X, Y, Z), cell) > 0


def test_the_nearest_visible_one_is_the_target() -> None:
    task = flat()
    put(task, facts.COAL_ORE, X + 6, Y, Z)
    put(task, facts.COAL_ORE, X, Y, Z - 4)
    assert target(task, layout.TARGET_COAL) == (X, Y, Z - 4)
    distance = scalars(task)[layout.TARGET_DISTANCE + layout.TARGET_COAL]
    assert distance == int(10 * np.hypot(4, 1.12))
    for y in range(Y, Y + 4):
        for x in range(X - 3, X + 4):
            put(task, facts.COBBLESTONE, x, y, Z - 2)
    assert target(task, layout.TARGET_COAL) == (X + 6, Y, Z)


def test_the_block_under_the_feet_is_no_target() -> None:
    task = flat()
    put(task, facts.COAL_ORE, X, Y - 1, Z)
    assert target(task, layout.TARGET_COAL) is None


def test_a_tree_is_seen_by_its_lowest_log() -> None:
    task = flat()
    grow(task, X + 4, Z + 1, 5)
    assert target(task, layout.TARGET_LOG) == (X + 4, Y, Z + 1)


def test_lines_against_fine_sampling() -> None:
    """An independent check of the ray: sampled finely, the same first opaque cell is met."""
    rng = np.random.default_rng(0)
    task = flat()
    blocks = layout.blocks(task.record)
    blocks[12:29, 12:29, 11:19] = np.where(
        rng.random((17, 17, 8)) < 0.1, facts.COBBLESTONE, facts.AIR
    )
    outcomes = []
    for _ in range(400):
        eye, end = rng.uniform([12, 11, 12], [29, 19, 29], (2, 3))
        points = eye + np.linspace(0, 1, 8001)[:, None] * (end - eye)
        cells = np.floor(points).astype(int)
        opaque = blocks[cells[:, 0], cells[:, 2], cells[:, 1]] >= facts.GRASS
        if opaque[0]:
            continue
        goal = cells[-1]
        first = cells[int(np.argmax(opaque))] if opaque.any() else goal
        x, y, z = (int(c) for c in goal)
        clear = clear_line(task.record, *eye, *end, layout.cell_of(x, y, z))
        outcomes.append((bool(clear), bool((first == goal).all())))
    assert all(ours == sampled for ours, sampled in outcomes)
    share = np.mean([ours for ours, _ in outcomes])
    assert 0.2 < share < 0.8


# -- walking -------------------------------------------------------------------------------------


def test_level_steps() -> None:
    task = flat()
    assert step(task, NORTH) == (X, Y, Z - 1)
    assert step(task, EAST) == (X + 1, Y, Z)
    assert step(task, SOUTH) == (X, Y, Z + 1)
    assert step(task, WEST) == (X - 1, Y, Z)


def test_one_block_is_climbed_two_are_not() -> None:
    task = flat()
    put(task, facts.STONE, X + 1, Y, Z)
    assert step(task, EAST) == (X + 1, Y + 1, Z)
    put(task, facts.STONE, X + 1, Y + 1, Z)
    assert step(task, EAST) is None


def test_no_jump_under_a_low_ceiling() -> None:
    task = flat()
    put(task, facts.STONE, X + 1, Y, Z)
    put(task, facts.STONE, X, Y + 2, Z)
    assert step(task, EAST) is None


def test_no_room_for_the_head() -> None:
    task = flat()
    put(task, facts.LEAVES, X + 1, Y + 1, Z)
    assert step(task, EAST) is None


@pytest.mark.parametrize(("depth", "safe"), [(1, True), (3, True), (4, False)])
def test_drops(depth: int, safe: bool) -> None:
    task = flat()
    for y in range(Y - depth, Y):
        put(task, facts.AIR, X + 1, y, Z)
    assert step(task, EAST) == ((X + 1, Y - depth, Z) if safe else None)


def test_deep_water_is_swum_at_the_top() -> None:
    task = flat()
    for y in range(Y - 3, Y):
        put(task, facts.WATER, X + 1, y, Z)
    assert step(task, EAST) == (X + 1, Y - 1, Z)
    assert scalars(task)[layout.WALK_WATER + EAST] == 1
    stand(task, X + 1, Y - 1, Z)
    assert scalars(task)[layout.BELOW] == facts.WATER
    assert walk_step(task.record, layout.cell_of(X + 1, Y - 1, Z), WEST) == layout.cell_of(X, Y, Z)


def test_ways_end_at_walls_and_at_the_edge_of_the_world() -> None:
    task = flat()
    s = scalars(task)
    assert s[layout.WALK_STEPS : layout.WALK_STEPS + 4].tolist() == [8, 8, 8, 8]
    for y in (Y, Y + 1):
        put(task, facts.STONE, X + 4, y, Z)
    assert s[layout.WALK_STEPS + EAST] == 3
    stand(task, 2, Y, Z)
    assert s[layout.WALK_STEPS + WEST] == 1
    stand(task, 1, Y, Z)
    assert s[layout.WALK_STEPS + WEST] == 0
    assert not legal(task, "explore_west")


# -- legality ------------------------------------------------------------------------------------


def test_an_empty_hand_can_only_dig_and_walk() -> None:
    task = flat()
    assert task.action_mask("smith_0").tolist() == [1] + [0] * 18
    assert legal(task, "dig_down")
    assert legal(task, "explore_north")
    assert not legal(task, "chop_log")
    assert not legal(task, "climb_to_surface")
    assert not legal(task, "tunnel_north")


def test_ores_need_their_pickaxes() -> None:
    task = flat()
    put(task, facts.COAL_ORE, X + 3, Y, Z)
    put(task, facts.IRON_ORE, X - 3, Y, Z)
    put(task, facts.STONE, X + 1, Y, Z + 1)
    for items, expected in (
        ({}, (False, False, False)),
        ({"wooden_pickaxe": 1}, (True, True, False)),
        ({"stone_pickaxe": 1}, (True, True, True)),
    ):
        give(task, **items)
        found = tuple(legal(task, f"mine_{what}") for what in ("stone", "coal", "iron"))
        assert found == expected


def test_crafting_needs_ingredients_and_a_table() -> None:
    task = flat()
    give(task, planks=3, stick=2)
    assert not legal(task, "craft_wooden_pickaxe")
    cell = put(task, facts.TABLE, X + 1, Y, Z)
    scalars(task)[layout.TABLE_CELL] = cell
    look(task)
    assert legal(task, "craft_wooden_pickaxe")
    give(task, planks=2)
    assert not legal(task, "craft_wooden_pickaxe")
    assert not legal(task, "craft_table")
    give(task, planks=4)
    assert legal(task, "craft_table")


def test_a_table_is_used_from_as_far_as_it_is_seen() -> None:
    for away, near in ((2, layout.NEAR_REACH), (7, layout.NEAR_WALK), (12, layout.NEAR_NONE)):
        task = flat()
        cell = put(task, facts.TABLE, X + away, Y, Z)
        scalars(task)[layout.TABLE_CELL] = cell
        give(task, planks=3, stick=2)
        assert scalars(task)[layout.TABLE_NEAR] == near
        assert legal(task, "craft_wooden_pickaxe") == (near != layout.NEAR_NONE)
