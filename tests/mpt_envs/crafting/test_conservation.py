"""Nothing is made from nothing: every change of the inventory in random play is accounted for.

The accounts are kept by code of its own: blocks are counted in the record before and after, and the
recipes, drops and smelting products come from `facts`.
"""

from __future__ import annotations

import numpy as np
import pytest

from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.world import facts, layout
from tests.mpt_envs.crafting.worlds import random_legal, scalars

CRAFTS = {
    "craft_planks": facts.I_PLANKS,
    "craft_sticks": facts.I_STICK,
    "craft_table": facts.I_TABLE,
    "craft_wooden_pickaxe": facts.I_WOODEN_PICKAXE,
    "craft_stone_pickaxe": facts.I_STONE_PICKAXE,
    "craft_iron_pickaxe": facts.I_IRON_PICKAXE,
    "craft_furnace": facts.I_FURNACE,
    "craft_stone_bricks": facts.I_STONE_BRICKS,
}
FILLERS = {
    facts.DIRT: facts.I_DIRT,
    facts.SAND: facts.I_SAND,
    facts.GRAVEL: facts.I_GRAVEL,
    facts.COBBLESTONE: facts.I_COBBLESTONE,
    facts.STONE: facts.I_STONE,
    facts.TABLE: facts.I_TABLE,
    facts.FURNACE: facts.I_FURNACE,
}


def blocks_by_kind(task: CraftingTask) -> np.ndarray:
    return np.bincount(task.record[layout.BLOCKS_OFFSET :], minlength=facts.N_BLOCKS)


def held(task: CraftingTask) -> np.ndarray:
    """What the body carries, and what is in its furnace."""
    s = scalars(task).astype(np.int64)
    items = s[layout.INVENTORY : layout.INVENTORY + facts.N_ITEMS].copy()
    for field in ("INPUT", "FUEL", "OUTPUT"):
        item = s[getattr(layout, f"FURNACE_{field}")]
        if item != facts.NO_ITEM:
            items[item] += s[getattr(layout, f"FURNACE_{field}_COUNT")]
    return items


def account(task: CraftingTask, agent: str, action: int) -> None:
    """Play one legal action and check everything that changed."""
    role = agent.split("_")[0]
    name = facts.ACTIONS[role][action]
    s = scalars(task)
    before, blocks, items = s.copy(), blocks_by_kind(task), held(task)
    level = int(np.max(np.nonzero([1, *before[layout.INVENTORY + 17 : layout.INVENTORY + 20]])))
    result = task.act(agent, action)
    assert "illegal" not in result.info, name
    change = held(task) - items
    expected = np.zeros(facts.N_ITEMS, np.int64)

    dug = s[layout.DUG : layout.DUG + facts.N_BLOCKS] - before[layout.DUG : layout.PLACED]
    placed = (
        s[layout.PLACED : layout.PLACED + facts.N_BLOCKS]
        - before[layout.PLACED : layout.PLACED + facts.N_BLOCKS]
    )
    vanished = blocks - blocks_by_kind(task)
    solid = slice(facts.LEAVES, None)
    assert (vanished[solid] == (dug - placed)[solid]).all(), name

    if name == "place_furnace" and before[layout.FURNACE_CELL]:
        return  # the old furnace keeps its contents, forgotten
    broken = 0
    for tool, durability in zip(facts.PICKAXES, facts.PICKAXE_DURABILITY, strict=True):
        wear = layout.WEAR + facts.PICKAXES.index(tool)
        uses = int(s[wear]) - int(before[wear])
        if uses < 0:
            broken += 1
            expected[tool] -= 1
            uses += durability
        assert 0 <= uses <= dug.sum()
    if not broken:  # (with a tool that broke on the way the drops depend on when)
        for kind, count in enumerate(dug.tolist()):
            if count and kind in facts.BLOCK_FACTS:
                fact = facts.BLOCK_FACTS[kind]
                used = level if fact.pickaxe else 0
                if fact.drop != facts.NO_ITEM and used >= fact.level:
                    expected[fact.drop] += count
        for kind, count in enumerate(placed.tolist()):
            if count:
                expected[FILLERS[kind]] -= count
        # One item of gravel may have come as flint.
        flint = change[facts.I_FLINT]
        assert 0 <= flint <= dug[facts.GRAVEL]
        expected[facts.I_FLINT] += flint
        expected[facts.I_GRAVEL] -= flint
        done = s[layout.LAST_OUTCOME] == layout.OUTCOME_DONE
        if name in CRAFTS and done:
            recipe = facts.RECIPES[CRAFTS[name]]
            expected[CRAFTS[name]] += recipe.makes
            for item, amount in recipe.ingredients:
                expected[item] -= amount
        if name == "craft_torch":
            expected[facts.I_TORCH] += 4
            expected[facts.I_STICK] -= 1
            coal = facts.I_COAL if items[facts.I_COAL] > 0 else facts.I_CHARCOAL
            coal = facts.I_COAL if before[layout.INVENTORY + facts.I_COAL] > 0 else coal
            coal = coal if before[layout.INVENTORY + coal] > 0 else facts.I_CHARCOAL
            expected[coal] -= 1
        # What the furnace did: products come from what they are made of, fuel burns away.
        difference = change - expected
        smelted = {facts.SMELTING[raw]: raw for raw in facts.SMELTING}
        for product, raw in smelted.items():
            made = difference[product]
            if product == facts.I_CHARCOAL and made < 0:
                continue  # burnt
            assert made >= 0, name
            expected[product] += made
            expected[raw] -= made
        difference = change - expected
        for item in facts.FUELS:
            if difference[item] < 0 and before[layout.FURNACE_CELL]:
                passed = s[layout.LAST_TICKS]
                assert -difference[item] <= 1 + passed / facts.BURN_TICKS[item]
                expected[item] += difference[item]
        assert (change == expected).all(), (name, change.tolist(), expected.tolist())
    assert (s[layout.INVENTORY : layout.INVENTORY + facts.N_ITEMS] >= 0).all(), name


def check_body(task: CraftingTask) -> None:
    """The body is in open cells, supported, inside the world."""
    s = scalars(task)
    x, y, z = (int(s[i]) for i in (layout.X, layout.Y, layout.Z))
    assert 1 <= x <= layout.WIDTH - 2
    assert 1 <= z <= layout.WIDTH - 2
    column = layout.blocks(task.record)[x, z]
    assert column[y] <= facts.WATER
    assert column[y + 1] <= facts.WATER
    assert column[y - 1] >= facts.LEAVES or column[y] == facts.WATER


def start(seed: int, rich: bool) -> CraftingTask:
    task = CraftingTask("iron-pickaxe", tick_budget=10**6)
    task.reset(seed)
    if rich:  # so that random play gets to the later rules
        s = scalars(task)
        for item, amount in (
            (facts.I_LOG, 9),
            (facts.I_PLANKS, 9),
            (facts.I_STICK, 9),
            (facts.I_COBBLESTONE, 12),
            (facts.I_COAL, 1),
            (facts.I_IRON_ORE, 3),
            (facts.I_STONE_PICKAXE, 1),
            (facts.I_TABLE, 1),
            (facts.I_FURNACE, 1),
        ):
            s[layout.INVENTORY + item] = amount
        perceive(task.record.view(np.int32), task.record)
    return task


@pytest.mark.parametrize("rich", [False, True])
def test_random_play_conserves_everything(rich: bool) -> None:
    rng = np.random.default_rng(7)
    kinds: set[str] = set()
    for seed in range(25):
        task = start(seed, rich)
        for _ in range(120):
            if scalars(task)[layout.DONE]:
                break
            agent, action = random_legal(task, rng)
            account(task, agent, action)
            check_body(task)
            kinds.add(facts.ACTIONS[agent.split("_")[0]][action])
    every = {action for role in facts.ROLES for action in facts.ACTIONS[role]}
    unseen = every - kinds
    if rich:
        assert unseen <= {"craft_iron_pickaxe", "craft_stone_bricks", "smelt_charcoal"}
    else:
        assert "chop_log" in kinds


def test_perception_never_lags_behind() -> None:
    """Where an action skips looking again, nothing could have changed."""
    rng = np.random.default_rng(8)
    for seed in range(20):
        task = start(seed, rich=True)
        for _ in range(60):
            if scalars(task)[layout.DONE]:
                break
            agent, action = random_legal(task, rng)
            task.act(agent, action)
            copy = task.record.copy()
            perceive(copy.view(np.int32), copy)
            different = np.flatnonzero(copy.view(np.int32) != task.record.view(np.int32))
            assert different.size == 0, (agent, action, different)


def test_every_legal_action_does_something() -> None:
    """Legal means executed: time passes, and the record says who did what."""
    rng = np.random.default_rng(9)
    for seed in range(10):
        task = start(seed, rich=True)
        for _ in range(40):
            s = scalars(task)
            if s[layout.DONE]:
                break
            snapshot = task.snapshot()
            for agent in task.possible_agents:
                for action in np.flatnonzero(task.action_mask(agent)).tolist():
                    tick = int(s[layout.TICK])
                    result = task.act(agent, action)
                    assert "illegal" not in result.info
                    assert s[layout.TICK] > tick, facts.ACTIONS[agent.split("_")[0]][action]
                    assert s[layout.LAST_ROLE] == task.possible_agents.index(agent)
                    assert s[layout.LAST_ACTION] == action
                    assert s[layout.LAST_OUTCOME] in (
                        layout.OUTCOME_DONE,
                        layout.OUTCOME_BLOCKED,
                    )
                    task.restore(snapshot)
            task.act(*random_legal(task, rng))


def test_an_illegal_action_is_a_skipped_turn() -> None:
    rng = np.random.default_rng(10)
    for seed in range(10):
        task = start(seed, rich=seed % 2 == 0)
        for _ in range(30):
            if scalars(task)[layout.DONE]:
                break
            snapshot = task.snapshot()
            expected = task.skip()
            after = task.snapshot()
            for agent in task.possible_agents:
                mask = task.action_mask(agent)
                task.restore(snapshot)
                mask = task.action_mask(agent)
                wrong = [*np.flatnonzero(mask == 0).tolist(), len(mask), -1, 99]
                for action in wrong:
                    task.restore(snapshot)
                    result = task.act(agent, action)
                    assert result.info["illegal"]
                    assert result[:2] == expected[:2]
                    assert task.snapshot() == after
            task.restore(snapshot)
            task.act(*random_legal(task, rng))
