"""The contract of a task and of the game around it, on the engine."""

from __future__ import annotations

from typing import Any

import mpt_envs
from mpt_envs.crafting.backends.minetest import make_task
from mpt_envs.testing import EnvContractTests, TaskContractTests
from wrappers.task import TurnTask


class TestShortTask(TaskContractTests):
    seeds = (0,)
    snapshot_pairs = 4
    pettingzoo_cycles = 24
    ties = 5

    def make_task(self) -> TurnTask:
        return make_task("crafting-table")


class TestLongGame(EnvContractTests):
    """Copies of the roles and absent agents, on a goal with all rules."""

    seeds = (3,)
    snapshot_pairs = 3
    pettingzoo_cycles = 24

    def make_env(self) -> Any:
        return mpt_envs.make(
            "crafting/iron-pickaxe-v0", backend="minetest", agents=6, dropout=0.1, max_turns=60
        )
