"""Every contract test of the testing kit on the wrappers: tasks around tasks, and views."""

from __future__ import annotations

from typing import Any

import pytest

from mpt_envs.testing import EnvContractTests, TaskContractTests
from tests.toys import RelayTask
from tests.wrappers import test_gymnasium_task as gymnasium_tasks
from tests.wrappers.games import relay
from wrappers.image import ImageView
from wrappers.one_agent import OneAgentTask
from wrappers.padding import PaddedView
from wrappers.population import PopulationTask
from wrappers.task import TurnTask
from wrappers.text import TextView

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")


class TestPopulation(TaskContractTests):
    def make_task(self) -> TurnTask:
        return PopulationTask(RelayTask(), 3)


class TestOneAgent(TaskContractTests):
    def make_task(self) -> TurnTask:
        return OneAgentTask(RelayTask())


class TestTaxi(TaskContractTests):
    seeds = (0, 1)

    def make_task(self) -> TurnTask:
        task = gymnasium_tasks.taxi()
        task.default_max_turns = 40
        return task


class TestCartPole(TaskContractTests):
    seeds = (0, 1)

    def make_task(self) -> TurnTask:
        task = gymnasium_tasks.cart_pole()
        task.default_max_turns = 40
        return task


@gymnasium_tasks.needs_minigrid
class TestDynamicObstacles(TaskContractTests):
    seeds = (0, 1)
    snapshot_pairs = 12

    def make_task(self) -> TurnTask:
        return gymnasium_tasks.obstacles()


class TestPaddedView(EnvContractTests):
    def make_env(self) -> Any:
        return PaddedView(relay(2, dropout=0.1), role_one_hot=True)


class TestTextView(EnvContractTests):
    def make_env(self) -> Any:
        return TextView(relay(2, dropout=0.1))


class TestTextToRead(EnvContractTests):
    def make_env(self) -> Any:
        return TextView(relay(2), text_action=False)


class TestImageView(EnvContractTests):
    seeds = (0, 1)

    def make_env(self) -> Any:
        return ImageView(relay(2))
