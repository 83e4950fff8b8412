"""The floorplan task and its batch pass every test of the kit."""

from __future__ import annotations

from typing import Any

import mpt_envs
from mpt_envs.testing import EnvContractTests, TaskContractTests, VectorContractTests
from wrappers.task import TurnTask
from wrappers.vector import VectorGame

ID = "navigation/floorplan-v0"


class TestTask(TaskContractTests):
    seeds = (0, 1)
    snapshot_pairs = 8

    def make_task(self) -> TurnTask:
        return mpt_envs.make_task(ID)


class TestGame(EnvContractTests):
    seeds = (3,)
    snapshot_pairs = 8
    pettingzoo_cycles = 60

    def make_env(self) -> Any:
        return mpt_envs.make(ID, agents=6, dropout=0.2)


class TestText(EnvContractTests):
    seeds = (4,)
    snapshot_pairs = 4
    pettingzoo_cycles = 30

    def make_env(self) -> Any:
        return mpt_envs.make(ID, observation="text", action="text", max_turns=20)


class TestVector(VectorContractTests):
    num_envs = 4

    def make_native(self, num_envs: int) -> VectorGame:
        return mpt_envs.make(ID, api="vector", num_envs=num_envs, vectorization="native")

    def make_lockstep(self, num_envs: int) -> VectorGame:
        return mpt_envs.make(ID, api="vector", num_envs=num_envs, vectorization="lockstep")
