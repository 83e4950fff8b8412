"""Building the vector game that a configuration asks for."""

from __future__ import annotations

from typing import Any

from mpt_train.config import TrainConfig
from wrappers.vector import VectorGame


def game_options(config: TrainConfig, *, solo: bool | None = None) -> dict[str, Any]:
    """The keywords of `mpt_envs.make`, for any api, that a configuration stands for.

    Args:
        config: the run.
        solo: one agent with all roles' actions; None: whether the coordination is "solo".
    """
    if solo is None:
        solo = config.coordination == "solo"
    env = config.env
    options: dict[str, Any] = {"max_turns": env.max_turns, "bid_levels": env.bid_levels}
    if env.backend is not None:
        options["backend"] = env.backend
    if solo:
        options["one_agent"] = True
    else:
        options["agents"] = env.agents
        options["dropout"] = env.dropout
    return options


def build_game(config: TrainConfig, num_envs: int, *, solo: bool | None = None) -> VectorGame:
    """A vector game of ``config.task``.

    Args:
        config: the run.
        num_envs: number of worlds.
        solo: one agent with all roles' actions; None: whether the coordination is "solo".
    """
    # Imported here: the registry loads domains, which compile their rules.
    from mpt_envs import make

    options = game_options(config, solo=solo)
    if config.policy == "language":
        from mpt_train.language.game import as_text_game

        options["vectorization"] = "lockstep"
        lockstep = make(config.task, api="vector", num_envs=num_envs, **options)
        return as_text_game(lockstep, config.language.prompts == "brief")
    game = make(config.task, api="vector", num_envs=num_envs, **options)
    assert isinstance(game, VectorGame)
    return game
