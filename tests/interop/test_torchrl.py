"""TorchRL's PettingZoo wrapper: specs, masks and rollouts over our games.

TorchRL puts agents that share a name's prefix (a role) into one group. To put different roles into
one group it needs equal spaces, so that is done with the padded view.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.games import game, needs

pytestmark = [
    needs("torchrl"),
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TASKS = ("relay", "taxi", "crafting/iron-pickaxe-v0")
GAMES: dict[str, tuple[dict[str, Any], bool]] = {
    # keywords of make, and whether all agents go into one group
    "aec": ({}, False),
    "aec with dropout": ({"dropout": 0.3}, False),
    "padded": ({"homogeneous": True}, True),
    "parallel": ({"api": "parallel"}, False),
    "parallel padded": ({"api": "parallel", "homogeneous": True}, True),
}


def wrapped(task: str, kind: str) -> Any:
    from torchrl.envs import MarlGroupMapType, PettingZooWrapper

    keywords, one_group = GAMES[kind]
    return PettingZooWrapper(
        game(task, **keywords),
        use_mask=True,
        categorical_actions=True,
        group_map=MarlGroupMapType.ALL_IN_ONE_GROUP if one_group else None,
        seed=0,
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", GAMES)
def test_specs_and_a_rollout_by_the_masks(task: str, kind: str) -> None:
    from torchrl.envs import check_env_specs

    env = wrapped(task, kind)
    check_env_specs(env, seed=0)
    steps = 100
    rollout = env.rollout(steps, break_when_any_done=False)
    assert rollout.batch_size == (steps,)
    # Every action that TorchRL sampled was legal.
    assert env._env.metrics()["illegal"] == 0.0
    env.close()


@pytest.mark.parametrize("kind", ["aec", "parallel"])
def test_an_episode_ends_where_ours_does(kind: str) -> None:
    env = wrapped("relay", kind)
    rollout = env.rollout(1_000)
    game_inside = env._env
    assert rollout.batch_size[0] < 1_000
    assert bool(rollout["next", "done"][-1].all())
    assert not bool(rollout["next", "done"][:-1].any())
    # One step of the wrapper is one bid or one action.
    assert game_inside.turn * 2 <= rollout.batch_size[0] <= game_inside.turn * 3


def test_masks_and_rewards_arrive() -> None:
    env = wrapped("relay", "padded")
    rollout = env.rollout(1_000)
    masks = rollout["agents", "action_mask"]
    chosen = rollout["agents", "action"].unsqueeze(-1)
    asked = rollout["agents", "mask"]
    assert bool(masks.gather(-1, chosen).squeeze(-1)[asked].all())
    assert asked.sum(-1).unique().tolist() == [1]
    total = env._env.metrics()["return"]
    assert rollout["next", "agents", "reward"].sum(0).max().item() == pytest.approx(total)
