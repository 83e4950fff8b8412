"""Evaluation on held-out worlds, and of finished runs under any coordination strategy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpt_train import coordination as strategies
from mpt_train.agents import Agents, build_agents
from mpt_train.config import TrainConfig, value_problems
from mpt_train.coordination.base import Coordination
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.policies.base import Policy
from mpt_train.records import Batch
from mpt_train.rollout import participation, rollout
from mpt_train.runs.checkpoint import load_checkpoint
from mpt_train.runs.folder import RunFolder
from mpt_train.runs.interrupt import StopRequest
from mpt_train.seeds import evaluation_seeds, validation_seeds
from wrappers.task import Coverage
from wrappers.vector import VectorGame

BINS = 12
"""Parts of the turn budget over which participation is reported."""


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found.

    Attributes:
        returns: undiscounted returns, ``float64 (repeats, worlds)``.
        metrics: mean of every metric of the environment over worlds and repeats.
        participation: share of each role among the acting agents, in 12 parts of the turn budget.
        flop_per_turn: forward cost of one turn, bids and all.
        coordination: name of the strategy.
        coverage: of a task over a data set, how much of it is played; None: nothing is known to be
            left out.
    """

    returns: NDArray[np.float64]
    metrics: dict[str, float]
    participation: dict[str, list[float]]
    flop_per_turn: float
    coordination: str
    coverage: Coverage | None = None

    @property
    def return_mean(self) -> float:
        """Mean over worlds and repeats."""
        return float(self.returns.mean())

    @property
    def success(self) -> float:
        """Share of solved episodes (NaN for a task that does not report it)."""
        return self.metrics.get("success", float("nan"))

    def to_json(self) -> dict[str, Any]:
        """Plain values, as kept in run folders."""
        plain = {
            "return_mean": self.return_mean,
            "success": self.success,
            "turns_mean": self.metrics.get("turns", float("nan")),
            "returns": self.returns.tolist(),
            "metrics": self.metrics,
            "participation": self.participation,
            "flop_per_turn": self.flop_per_turn,
            "worlds": self.returns.shape[1],
            "repeats": self.returns.shape[0],
            "coordination": self.coordination,
        }
        return plain if self.coverage is None else plain | {"coverage": self.coverage._asdict()}


def evaluate(
    game: VectorGame,
    policy: Policy,
    coordination: Coordination,
    repeats: int,
    split: Literal["evaluation", "validation"] = "evaluation",
    stop: StopRequest | None = None,
) -> Evaluation:
    """Play the held-out worlds, one per row of ``game``, ``repeats`` times.

    ``split`` says which held-out worlds (see `EvalConfig`). Policies and bids are sampled, as
    in training. A repeat changes their noise, not the worlds. ``stop`` is polled between turns.
    """
    counter = FlopCounter()
    block = validation_seeds if split == "validation" else evaluation_seeds
    seeds = block(game.num_envs)
    batches: list[Batch] = []
    answers: list[dict[str, float]] = []
    for repeat in range(repeats):
        game.reset(seeds)
        batches.append(rollout(game, policy, coordination, counter, salt=repeat + 1, stop=stop))
        answers.append(_take_answers(batches[-1]))
    names = batches[0].metric_names
    means = np.concatenate([batch.metrics for batch in batches]).mean(axis=0)
    shares = [participation(batch, BINS) for batch in batches]
    return Evaluation(
        returns=np.stack([batch.returns for batch in batches]),
        metrics=dict(zip(names, means.tolist(), strict=True)) | _mean(answers),
        participation={
            role: np.mean([share[role] for share in shares], axis=0).round(4).tolist()
            for role in shares[0]
        },
        flop_per_turn=counter.total / max(sum(batch.num_turns for batch in batches), 1),
        coordination=coordination.name,
        coverage=game.coverage,
    )


def _take_answers(batch: Batch) -> dict[str, float]:
    """Shares of valid answers of agents that answer in text, whose transcript is then forgotten."""
    if batch.transcript is None:
        return {}
    statistics = batch.transcript.statistics()
    batch.transcript = None
    shares = {name: float(statistics[name]) for name in ("valid_bids", "valid_actions")}
    return {name: share for name, share in shares.items() if not np.isnan(share)}


def _mean(records: list[dict[str, float]]) -> dict[str, float]:
    """Mean of each entry over the records that have it.

    A repeat in which nobody acted has no share of valid actions.
    """
    names = dict.fromkeys(name for record in records for name in record)
    return {
        name: float(np.mean([record[name] for record in records if name in record]))
        for name in names
    }


def load_agents(
    folder: Path, game: VectorGame, config: TrainConfig, checkpoint: str = "final"
) -> Agents:
    """The trained agents of a run.

    Args:
        folder: a run folder.
        game: a game of the run's task, for its sizes.
        config: of the run.
        checkpoint: "final" or "cold_start".
    """
    run = RunFolder.existing(folder)
    places = {"final": run.checkpoint, "cold_start": run.cold_start}
    if checkpoint not in places:
        raise ValueError(f"checkpoint must be one of {', '.join(places)}, got {checkpoint!r}")
    tensors, _ = load_checkpoint(places[checkpoint])
    agents = build_agents(config, game)
    agents.load(tensors)
    return agents


def evaluate_run(
    folder: Path,
    *,
    coordination: str | None = None,
    checkpoint: str = "final",
    worlds: int | None = None,
    repeats: int | None = None,
    backend: str | None = None,
    engine: str | None = None,
    engine_model: str | None = None,
) -> Evaluation:
    """Evaluate a run, by default as it was trained.

    Args:
        folder: a run folder.
        coordination: another strategy over the same trained action policies.
        checkpoint: "final" or "cold_start".
        worlds, repeats: None takes the run's own evaluation settings.
        backend: play in another backend of the domain.
        engine: let a server's models answer instead of the run's agents (`language.engine`).
        engine_model: name of the model there.

    Raises:
        ValueError: two of these do not go together.
    """
    config = in_backend(RunFolder.existing(folder).read_config(), backend)
    if engine is not None:
        if checkpoint != "final":
            raise ValueError(f"a server has no checkpoint {checkpoint!r}: it serves what it serves")
        return evaluate_server(
            config, engine, engine_model, coordination, worlds=worlds, repeats=repeats
        )
    if engine_model is not None:
        raise ValueError("a model on a server needs the server's address: give an engine, too")
    game = build_game(config, worlds or config.eval.worlds)
    agents = load_agents(folder, game, config, checkpoint)
    strategy = swap_coordination(agents, config, coordination)
    return evaluate(game, agents.policy, strategy, repeats or config.eval.repeats)


def in_backend(config: TrainConfig, backend: str | None) -> TrainConfig:
    """The configuration with another backend of the domain; None: as it is."""
    if backend is None:
        return config
    return dataclasses.replace(config, env=dataclasses.replace(config.env, backend=backend))


def evaluate_server(
    config: TrainConfig,
    engine: str,
    engine_model: str | None = None,
    coordination: str | None = None,
    *,
    worlds: int | None = None,
    repeats: int | None = None,
) -> Evaluation:
    """Evaluate the models that a server offers (`mpt_train.language.endpoint`).

    Args:
        config: task and game.
        engine: address of the server.
        engine_model: name of the model there; None: as the configuration says.
        coordination: None takes the configuration's own.
        worlds, repeats: None takes the configuration's own.

    Raises:
        ValueError: the address is none, the configuration holds values that mean nothing, or the
            coordination does not go with a server.
    """
    language = dataclasses.replace(
        config.language,
        engine=engine,
        engine_model=config.language.engine_model if engine_model is None else engine_model,
    )
    action = dataclasses.replace(config.action, baseline="agent")
    config = dataclasses.replace(
        config,
        policy="language",
        language=language,
        action=action,
        coordination=coordination or config.coordination,
    )
    problems = value_problems(config)
    if problems:
        raise ValueError("; ".join(problems))
    game = build_game(config, worlds or config.eval.worlds)
    agents = build_agents(config, game)
    if agents.coordination.module is not None:
        raise ValueError(f"{config.coordination!r} has parameters that no server has")
    return evaluate(game, agents.policy, agents.coordination, repeats or config.eval.repeats)


def swap_coordination(agents: Agents, config: TrainConfig, name: str | None) -> Coordination:
    """Another strategy over the same trained action policies.

    Args:
        agents: of a run.
        config: of the run.
        name: of the strategy; None, or the run's own: the one that it was trained with.

    Raises:
        ValueError: there is no such strategy, or it does not go with this run.
    """
    if name is None or name == config.coordination:
        return agents.coordination
    if "solo" in (name, config.coordination):
        raise ValueError(
            "a monolithic policy has one agent: its coordination cannot be swapped, and 'solo' "
            "fits no swarm"
        )
    strategy = strategies.build(name, config, agents.shape)
    if strategy.module is not None:
        raise ValueError(
            f"{name!r} has parameters of its own that this run never trained; train it with "
            f"`mpt train {name}`"
        )
    return strategy
