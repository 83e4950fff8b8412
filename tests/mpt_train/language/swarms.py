"""Small swarms of tiny language models on crafting, for the tests here."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from mpt_train.agents import Agents, build_agents
from mpt_train.config import ColdStartConfig, EnvConfig, EvalConfig, TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.language.config import LanguageConfig
from mpt_train.language.game import TextVectorGame
from mpt_train.language.policy import LanguagePolicy
from mpt_train.methods import method_config
from mpt_train.records import Batch
from mpt_train.rollout import rollout

TASK = "crafting/crafting-table-v0"


def config(method: str = "mpt", turns: int | None = 4, **language: Any) -> TrainConfig:
    """A run that takes seconds; keywords are fields of `LanguageConfig`."""
    settings: dict[str, Any] = {
        "model": "tiny",
        "answers": "plain",
        "prompts": "brief",
        "profile": False,
        "max_answer_tokens": 4,
        "rank": 4,
    }
    base = method_config(
        method,
        task=TASK,
        policy="language",
        num_envs=3,
        budget_gflop=24.0,
        action_steps=1,
        env=EnvConfig(max_turns=turns),
        cold_start=ColdStartConfig(episodes=4, epochs=1, batch_size=16, learning_rate=5e-3),
        eval=EvalConfig(worlds=2, repeats=1, curve_points=1, curve_worlds=2),
        language=LanguageConfig(**{**settings, **language}),
    )
    if base.bids.kind in ("policy_gradient", "both"):
        base = dataclasses.replace(base, bids=dataclasses.replace(base.bids, estimator="sampled"))
    return base


def build(run: TrainConfig, worlds: int = 3) -> tuple[Agents, LanguagePolicy, TextVectorGame]:
    """Agents with adapters that do something, and a game whose episodes have begun."""
    game = build_game(run, worlds)
    assert isinstance(game, TextVectorGame)
    agents = build_agents(run, game)
    policy = agents.policy
    assert isinstance(policy, LanguagePolicy)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        if run.language.parameters == "adapters":
            for adapter in policy.agents:
                for b in adapter.b:  # type: ignore[union-attr]
                    b.copy_(torch.randn(b.shape, generator=generator) * 0.3)
    game.reset(np.arange(worlds))
    return agents, policy, game


def play(run: TrainConfig, worlds: int = 3) -> tuple[Agents, LanguagePolicy, Batch]:
    """Agents and a batch of episodes that they played."""
    agents, policy, game = build(run, worlds)
    return agents, policy, rollout(game, policy, agents.coordination, FlopCounter())
