"""A new domain takes one short file: it plays, trains, speaks and passes the contract."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.testing import TaskContractTests, VectorContractTests
from mpt_train.config import ColdStartConfig, EvalConfig
from mpt_train.language.config import LanguageConfig
from mpt_train.loop import Trainer
from mpt_train.methods import method_config
from tests.mpt_envs import toy
from wrappers.errors import MissingCapabilityError
from wrappers.task import ParseError


class TestShed(TaskContractTests, VectorContractTests):
    id = toy.SHED


def test_the_file_is_short() -> None:
    assert len(Path(toy.__file__).read_text(encoding="utf-8").splitlines()) <= 150


def test_its_expert_solves_it() -> None:
    game = mpt_envs.make(toy.SHED, api="vector", num_envs=20)
    game.reset(np.arange(20))
    while game.active.any():
        bids, actions = game.expert()
        winners = game.auction(np.round(bids * 10).astype(np.int64)).winners
        game.act(actions[np.arange(20), np.maximum(winners, 0)])
    success = game.metrics()[:, game.metric_names.index("success")]
    assert success.mean() > 0.9


def test_its_texts_are_read_and_spoken() -> None:
    task = mpt_envs.make_task(toy.SHED)
    task.reset(0)
    assert "0 of 3 walls. Choose: fell." in task.prompt("cutter_0", "act")
    assert task.parse("cutter_0", "Fell") == toy.FELL
    assert isinstance(task.parse("cutter_0", "sing"), ParseError)
    env = mpt_envs.make(toy.SHED, observation="text", action="text")
    env.reset(seed=0)
    assert "Bid for the turn." in env.observe("cutter_0")["text"]


def _trained(method: str, **changes: Any) -> list[dict[str, Any]]:
    config = method_config(method, task=toy.SHED, num_envs=4, **changes)
    small = dataclasses.replace(
        config,
        cold_start=ColdStartConfig(episodes=4, epochs=1, batch_size=16),
        eval=EvalConfig(worlds=2, repeats=1, curve_points=1, curve_worlds=2),
    )
    trainer = Trainer(small)
    return [trainer.step() for _ in range(3)]


@pytest.mark.parametrize("method", ["mpt", "monolithic"])
def test_it_trains(method: str) -> None:
    assert all(np.isfinite(step["return_mean"]) for step in _trained(method))


def test_language_models_learn_it() -> None:
    language = LanguageConfig(
        model="tiny", answers="plain", profile=False, max_answer_tokens=4, rank=4
    )
    steps = _trained("mpt", policy="language", budget_gflop=24.0, language=language)
    assert all(np.isfinite(step["return_mean"]) for step in steps)


def test_keywords_are_the_batch_s() -> None:
    assert mpt_envs.make_task(toy.SHED, walls=1).batch.walls == 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Did you mean 'walls'"):
        mpt_envs.make_task(toy.SHED, wals=1)
    with pytest.raises(TypeError, match="'num_envs'"):
        mpt_envs.make_task(toy.SHED, num_envs=2)


def test_what_is_not_implemented_is_named() -> None:
    class Half(toy.PlainBatch):
        world_type = np.dtype([("key", "u8")])

    with pytest.raises(TypeError, match="play"):
        Half(1)  # type: ignore[abstract]
    with pytest.raises(MissingCapabilityError):
        ShedWithoutExpert(1).expert(np.zeros((1, 2)), np.zeros((1, 2), np.int64))


class ShedWithoutExpert(toy.Shed):
    """The same without an expert."""

    advise = toy.PlainBatch.advise
