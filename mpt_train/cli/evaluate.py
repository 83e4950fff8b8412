"""`mpt eval`: a finished run on held-out worlds, also under another coordination."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import tyro
from numpy.typing import NDArray

from mpt_train.cli.console import bars, number, table, usage_errors
from mpt_train.cli.listings import description
from mpt_train.errors import UsageError

if TYPE_CHECKING:
    from mpt_train.config import TrainConfig
    from mpt_train.evaluate import Evaluation

DESCRIPTION = description(
    """
    Evaluate a run on held-out worlds.

    The worlds are the same for every run and method. Policies and bids are sampled, as in training.

    examples:
      mpt eval runs/mine
      mpt eval runs/mine --coordination round-robin     the same action policies, other bids
      mpt eval runs/mine --checkpoint cold_start        before reinforcement learning
      mpt eval runs/mine --worlds 1000 --json > evaluation.json
      mpt eval crafting/torch-v0 --engine http://localhost:8000/v1 --engine-model NAME --worlds 8
    """
)


@dataclass(frozen=True)
class Arguments:
    """What `mpt eval` is told."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Run folder."""
    coordination: str | None = None
    """Who decides who acts: learned, round-robin, random, priority, ...; None: as in training."""
    checkpoint: Literal["final", "cold_start"] = "final"
    """The last checkpoint, or the one right after the cold start; a server has none."""
    worlds: int | None = None
    """Number of held-out worlds; None: as in the run's configuration."""
    repeats: int | None = None
    """Evaluations of each world; None: as in the run's configuration."""
    backend: str | None = None
    """Play in another backend of the domain, e.g. minetest; None: the run's."""
    engine: str | None = None
    """Address of an OpenAI-compatible server, such as http://localhost:8000/v1, whose models answer
    instead of the run's agents. RUN may be a task's id then."""
    engine_model: str | None = None
    """Name of the model on the server; "{agent}" and "{role}" in it are replaced."""
    as_json: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False
    """Print everything as JSON instead of a table."""


def main(arguments: Sequence[str], prog: str = "mpt eval") -> int:
    """Run the command; returns the exit code."""
    parsed = tyro.cli(Arguments, prog=prog, description=DESCRIPTION, args=arguments)
    for name in ("worlds", "repeats"):
        value = getattr(parsed, name)
        with usage_errors():
            if value is not None and value < 1:
                raise ValueError(f"--{name} must be at least 1, got {value}")
    if parsed.engine is None and parsed.engine_model is not None:
        raise UsageError("--engine-model names a model on a server: give its address as --engine")
    if parsed.engine is not None and parsed.checkpoint != "final":
        raise UsageError(
            f"--checkpoint {parsed.checkpoint} is of the run's agents, and a server has none: "
            "leave it out, or leave out --engine"
        )
    from mpt_train.config import TrainConfig
    from mpt_train.evaluate import evaluate_run, evaluate_server, in_backend
    from mpt_train.runs.folder import RunFolder

    if parsed.engine is not None and not parsed.run.is_dir():
        from mpt_envs import spec

        config = TrainConfig(task=spec(str(parsed.run)).id, method=parsed.engine_model or "server")
        with usage_errors():
            evaluation = evaluate_server(
                in_backend(config, parsed.backend),
                parsed.engine,
                parsed.engine_model,
                parsed.coordination,
                worlds=parsed.worlds,
                repeats=parsed.repeats,
            )
        return _show(parsed, config, evaluation)
    config = RunFolder.existing(parsed.run).read_config()
    with usage_errors():
        evaluation = evaluate_run(
            parsed.run,
            coordination=parsed.coordination,
            checkpoint=parsed.checkpoint,
            worlds=parsed.worlds,
            repeats=parsed.repeats,
            backend=parsed.backend,
            engine=parsed.engine,
            engine_model=parsed.engine_model,
        )
    return _show(parsed, config, evaluation)


def _show(parsed: Arguments, config: TrainConfig, evaluation: Evaluation) -> int:
    """Print an evaluation."""
    from mpt_train.runs.plain import to_plain

    if parsed.as_json:
        json.dump(to_plain(evaluation.to_json()), sys.stdout, indent=1)
        print()
    else:
        agents = parsed.checkpoint if parsed.engine is None else f"none, {parsed.engine} answers"
        print(report(config, evaluation, agents))
    return 0


def report(config: TrainConfig, evaluation: Evaluation, checkpoint: str) -> str:
    """An evaluation as a few lines for people."""
    returns = evaluation.returns.mean(axis=0)
    error = 1.96 * returns.std(ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else np.nan
    repeats, worlds = evaluation.returns.shape
    low, high = number(evaluation.return_mean - error), number(evaluation.return_mean + error)
    rows = {
        "run": f"{config.method} on {config.task}, seed {config.seed}",
        "checkpoint": checkpoint,
        "coordination": evaluation.coordination,
        "worlds": f"{worlds} held out, {repeats} times each",
        **_coverage(evaluation),
        "return": f"{number(evaluation.return_mean)}  (95 % over worlds: {low} to {high})",
    }
    rows |= {name: number(value) for name, value in evaluation.metrics.items() if name != "return"}
    rows["FLOP per turn"] = number(evaluation.flop_per_turn)
    everyone = np.array(list(evaluation.participation.values()))
    played = everyone.any(axis=0)
    shares = {
        role: f"{bars(values)}  {number(_percent(np.array(values)[played]))} %"
        for role, values in evaluation.participation.items()
    }
    return f"{table(rows, '')}\n\nwho acts, from the first turn to the last:\n{table(shares)}"


def _coverage(evaluation: Evaluation) -> dict[str, str]:
    """How much of its data set a task plays, if it has one."""
    if evaluation.coverage is None:
        return {}
    used, total = evaluation.coverage
    left = f"; {total - used} cannot be played and are left out" if used < total else ""
    return {"data set": f"{used} of {total} episodes{left}"}


def _percent(shares: NDArray[np.float64]) -> float:
    """Mean share in per cent; 0 where nobody ever acted."""
    return 100 * float(np.mean(shares)) if len(shares) else 0.0
