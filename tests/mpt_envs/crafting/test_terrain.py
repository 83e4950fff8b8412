"""Generated worlds: sound, plausible, playable, and a function of their seed alone."""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.crafting.batch import CraftingBatch
from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.world import facts, layout

WORLDS = 200


@pytest.fixture(scope="module")
def records() -> np.ndarray:
    batch = CraftingBatch("iron-pickaxe", WORLDS)
    rows = np.arange(WORLDS)
    batch.reset(rows, 10_000 + rows, np.zeros(WORLDS, np.int64))
    return batch.records


@pytest.fixture(scope="module")
def blocks(records: np.ndarray) -> np.ndarray:
    return np.stack([layout.blocks(record) for record in records])[:, 1:-1, 1:-1]


def test_same_seed_same_world_and_other_seeds_other_worlds(records: np.ndarray) -> None:
    again = CraftingBatch("iron-pickaxe", 3)
    again.records[:] = 255  # whatever was there before leaves no trace
    again.reset(np.arange(3), np.array([10_000, 10_001, 10_000]), np.array([0, 0, 1]))
    assert (again.records[0] == records[0]).all()
    assert (again.records[1] == records[1]).all()
    assert (again.records[2] != records[0]).any()
    first = layout.BLOCKS_OFFSET
    assert len({record[first:].tobytes() for record in records}) == WORLDS


def test_the_world_is_closed(records: np.ndarray, blocks: np.ndarray) -> None:
    whole = layout.blocks(records[0])
    for edge in (whole[0], whole[-1], whole[:, 0], whole[:, -1]):
        assert (edge == facts.BARRIER).all()
    assert (blocks[..., 0] == facts.BEDROCK).all()
    assert (blocks[..., -1] == facts.BARRIER).all()
    assert (blocks[..., 1:-1] < facts.BEDROCK).all()


def test_ground(records: np.ndarray, blocks: np.ndarray) -> None:
    ground = np.stack([layout.ground(record) for record in records])[:, 1:-1, 1:-1]
    assert ground.min() >= 8
    assert ground.max() <= 17
    assert 12.5 < ground.mean() < 15.5
    assert ground.std() > 1.0
    # Neighbouring columns hardly ever differ by more than a step.
    steps = np.abs(np.diff(ground.astype(int), axis=1))
    assert (steps <= 1).mean() > 0.97
    top = np.take_along_axis(blocks, ground[..., None], axis=3)[..., 0]
    shares = np.bincount(top.ravel(), minlength=facts.N_BLOCKS) / top.size
    assert 0.5 < shares[facts.GRASS] < 0.9
    assert 0.05 < shares[facts.SAND] < 0.4
    assert 0.02 < shares[facts.STONE] < 0.3
    # Over the ground there is air, water, wood and leaves, nothing else.
    over = np.arange(layout.HEIGHT) > ground[..., None]
    allowed = [facts.AIR, facts.WATER, facts.LEAVES, facts.LOG, facts.BARRIER]
    assert np.isin(blocks[over], allowed).all()


def test_water_lies_in_lakes(blocks: np.ndarray) -> None:
    water = blocks == facts.WATER
    assert 0.02 < water.any(axis=3).mean() < 0.25
    # Under water there is water or ground, beside it water or something solid: nothing could flow.
    assert (blocks[..., :-1][water[..., 1:]] != facts.AIR).all()
    for axis in (1, 2):
        first, second = np.split(water, [-1], axis)[0], np.split(blocks, [1], axis)[1]
        assert (second[first] != facts.AIR).all()
        first, second = np.split(water, [1], axis)[1], np.split(blocks, [-1], axis)[0]
        assert (second[first] != facts.AIR).all()


def test_ores_lie_where_they_should(blocks: np.ndarray) -> None:
    layers = np.array([(blocks[..., y] == facts.IRON_ORE).sum() for y in range(layout.HEIGHT)])
    assert layers[1:10].min() > 0.4 * layers[1:10].max()
    assert layers[:10].sum() > 0.95 * layers.sum()
    coal = np.array([(blocks[..., y] == facts.COAL_ORE).sum() for y in range(layout.HEIGHT)])
    assert (coal[1:13] > 0).all()
    rock = np.isin(blocks, [facts.STONE, facts.COAL_ORE, facts.IRON_ORE])
    assert 0.01 < coal.sum() / rock.sum() < 0.03
    assert 0.01 < layers[1:10].sum() / rock[..., 1:10].sum() < 0.03
    per_world = (blocks == facts.IRON_ORE).sum(axis=(1, 2, 3))
    assert per_world.min() >= 40


def test_caves(blocks: np.ndarray) -> None:
    """Air under at least three solid layers: a few per cent of the rock, in every world."""
    solid = blocks >= facts.GRASS
    cover = np.flip(np.cumsum(np.flip(solid[..., :-1], 3), 3), 3)
    cave = (blocks[..., :-1] == facts.AIR) & (cover >= 3)
    shares = cave[..., 2:12].mean(axis=(1, 2, 3))
    assert shares.min() > 0.002
    assert 0.01 < shares.mean() < 0.15


def test_trees(records: np.ndarray, blocks: np.ndarray) -> None:
    s = layout.scalars(records)
    assert s[:, layout.N_TREES].min() >= 10
    for record in records[:50]:
        scalars = layout.scalars(record)
        logs = 0
        for spot in scalars[layout.TREES : layout.TREES + scalars[layout.N_TREES]].tolist():
            x, z, y = spot >> 16, spot >> 8 & 255, spot & 255
            column = layout.blocks(record)[x, z]
            assert column[y - 1] == facts.GRASS
            height = int(np.argmin(column[y:] == facts.LOG))
            assert 4 <= height <= 6
            assert column[y + height] == facts.LEAVES
            logs += height
        assert logs == (layout.blocks(record) == facts.LOG).sum()


def test_lists_hold_exactly_the_exposed_ores(records: np.ndarray) -> None:
    for record in records[:50]:
        blocks = layout.blocks(record)
        s = layout.scalars(record)
        open_cell = blocks <= facts.WATER
        touched = np.zeros_like(open_cell)
        for axis in range(3):
            for shift in (1, -1):
                touched |= np.roll(open_cell, shift, axis)
        for ore, count, first, capacity in (
            (facts.COAL_ORE, layout.N_COAL, layout.COAL, layout.MAX_COAL),
            (facts.IRON_ORE, layout.N_IRON, layout.IRON, layout.MAX_IRON),
        ):
            x, z, y = np.nonzero((blocks == ore) & touched)
            expected = set((x << 16 | z << 8 | y).tolist())
            listed = s[first : first + s[count]].tolist()
            assert len(listed) == len(set(listed)) < capacity
            assert set(listed) == expected


def test_the_body_starts_on_dry_land_with_a_tree_near(records: np.ndarray) -> None:
    for record in records:
        s = layout.scalars(record)
        x, y, z = (int(s[i]) for i in (layout.X, layout.Y, layout.Z))
        column = layout.blocks(record)[x, z]
        assert column[y - 1] > facts.LEAVES
        assert (column[y : y + 2] == facts.AIR).all()
        assert abs(x - 24) <= 15
        assert abs(z - 24) <= 15
        trees = s[layout.TREES : layout.TREES + s[layout.N_TREES]]
        distance = np.hypot((trees >> 16) - x, (trees >> 8 & 255) - z)
        assert distance.min() <= 9
    s = layout.scalars(records)
    assert (s[:, layout.TARGET_CELL + layout.TARGET_LOG] != 0).mean() > 0.9


def test_perception_is_a_function_of_the_rest(records: np.ndarray) -> None:
    for record in records[:20]:
        copy = record.copy()
        perceive(copy.view(np.int32), copy)
        assert (copy == record).all()
