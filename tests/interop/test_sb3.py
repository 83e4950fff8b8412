"""sb3-contrib's MaskablePPO: a training iteration over the padded view and the one-agent view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mpt_envs
from tests.interop.games import OWN_TASKS, game, needs
from wrappers.one_agent import OneAgentEnv
from wrappers.padding import SharedPolicyEnv

pytestmark = [
    needs("sb3_contrib", "stable_baselines3"),
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

TASKS = ("relay", "taxi", "crafting/iron-pickaxe-v0")


def shared(task: str) -> SharedPolicyEnv:
    return SharedPolicyEnv(game(task, homogeneous=True))


def one_agent(task: str) -> OneAgentEnv:
    return OneAgentEnv(OWN_TASKS[task]() if task in OWN_TASKS else mpt_envs.make_task(task))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("make", [shared, one_agent])
def test_a_training_iteration(task: str, make: Any) -> None:
    from sb3_contrib import MaskablePPO

    env = make(task)
    model = MaskablePPO(
        "MultiInputPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=0, device="cpu"
    )
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(256)
    after = list(model.policy.parameters())
    assert any(
        not np.array_equal(b.numpy(), a.detach().numpy())
        for b, a in zip(before, after, strict=True)
    )
    assert all(np.isfinite(a.detach().numpy()).all() for a in after)
    # Masks were kept: nothing illegal was ever played.
    assert env.metrics()["illegal"] == 0.0
    observation, _ = env.reset(seed=3)
    for _ in range(20):
        masks = env.action_masks()
        action, _ = model.predict(observation, action_masks=masks)
        assert masks[action]
        observation, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            break


def test_the_example_of_the_readme() -> None:
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "PPO" in code]
    assert "learn(100_000)" in example
    short = example.replace("env).learn(100_000)", 'env, n_steps=64, device="cpu").learn(64)')
    found: dict[str, Any] = {}
    exec(short, found)
    # One policy can only play all roles if it can tell whose turn it is.
    assert found["env"].view.role_one_hot
    assert found["env"].metrics()["illegal"] == 0.0


def test_it_learns_the_relay_alone() -> None:
    """More than a smoke test: the one-agent view of the relay is learned in seconds."""
    from sb3_contrib import MaskablePPO

    env = one_agent("relay")
    model = MaskablePPO(
        "MultiInputPolicy", env, n_steps=512, batch_size=128, gamma=0.95, seed=1, device="cpu"
    )
    model.learn(3_072)
    turns = []
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action, _ = model.predict(
                observation, action_masks=env.action_masks(), deterministic=True
            )
            observation, _, terminated, truncated, _ = env.step(int(action))
            over = terminated or truncated
        turns.append(env.metrics()["turns"])
    # Nine units take about ten turns at best; random play does not finish in half of the 30.
    assert np.mean(turns) < 14
