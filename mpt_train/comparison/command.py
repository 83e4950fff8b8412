"""`mpt compare`: all methods at equal compute, over several training seeds, side by side."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from mpt_train.cli.console import run, usage_errors
from mpt_train.cli.listings import describe_methods, description
from mpt_train.comparison.domains import domain_of, for_domain
from mpt_train.comparison.experiment import Plan, Variant, check_games, run_experiment
from mpt_train.comparison.results import MPT_METHODS
from mpt_train.comparison.runner import usable_cores
from mpt_train.config import EvalConfig, TrainConfig, check_config
from mpt_train.errors import RunFolderError
from mpt_train.methods import METHODS, method_config

RESULTS = Path("results")
"""Where results folders go by default."""


@dataclass(frozen=True)
class Preset:
    """What --quick and the full comparison do in every domain, unless told otherwise.

    Attributes:
        seeds: see `CompareConfig`.
        eval: held-out worlds and points of the learning curve.
    """

    seeds: int
    eval: EvalConfig


FULL = Preset(5, EvalConfig())
QUICK = Preset(3, EvalConfig(worlds=64, repeats=3, curve_points=10, curve_worlds=32))


@dataclass(frozen=True)
class CompareConfig:
    """Train methods at equal compute, evaluate them, and write tables, plots and a report."""

    task: tyro.conf.Positional[str] = "crafting/iron-pickaxe-v0"
    """Environment id."""
    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Less of everything: a few minutes on two cores."""
    methods: tuple[str, ...] = ()
    """Methods to compare; empty: all of them."""
    seeds: int | None = None
    """Number of training seeds: 0, 1, ...; None: 5 (3 with --quick)."""
    budget_gflop: float | None = None
    """Compute of each run in 10^9 floating-point operations; None: crafting 200 (60 with
    --quick), navigation 200 (30), research 100 (60)."""
    out: Path | None = None
    """Results folder; None: a new one under results/."""
    jobs: int | None = None
    """Runs at a time, one core each; None: one per core."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Keep what a results folder holds and do what is missing; without --out: the latest folder
    of this task and mode."""
    agents: int | None = None
    """Number of agents, a multiple of the number of roles; None: one per role."""
    dropout: float = 0.0
    """Probability that an agent is absent in a turn."""
    max_turns: int | None = None
    """Turn budget of an episode; None: the task's own."""
    backend: str | None = None
    """Backend of the domain; None: its embedded simulator."""


DESCRIPTION = description(
    """
    Train methods of one task at equal compute over several training seeds, evaluate them on
    held-out worlds, and write a results folder: tables, plots, raw numbers and one HTML page.

    {methods}

    examples:
      mpt compare crafting/iron-pickaxe-v0 --quick
      mpt compare crafting/iron-pickaxe-v0
      mpt compare crafting/torch-v0 --methods mpt-plus monolithic --seeds 3 --budget-gflop 100
      mpt compare crafting/iron-pickaxe-v0 --quick --resume      after Ctrl-C or a failure
    """
)


def main(arguments: Sequence[str], prog: str = "mpt compare") -> int:
    """Run the command; returns the exit code: 0; 1 if a run failed; 130 after Ctrl-C."""
    text = DESCRIPTION.format(methods=describe_methods())
    with usage_errors():
        config = tyro.cli(CompareConfig, prog=prog, args=list(arguments), description=text)
        plan = plan_of(config)
        check_games(plan)
    return run_experiment(plan)


def plan_of(config: CompareConfig) -> Plan:
    """What the configuration asks for.

    Raises:
        ValueError: it makes no sense.
    """
    methods = config.methods or tuple(METHODS)
    preset = QUICK if config.quick else FULL
    seeds = preset.seeds if config.seeds is None else config.seeds
    budget = config.budget_gflop
    if budget is None:
        budget = domain_of(config.task).budget(config.quick)
    jobs = usable_cores() if config.jobs is None else config.jobs
    repeated = sorted({m for m in methods if methods.count(m) > 1})
    if repeated:
        raise ValueError(f"methods are named twice: {', '.join(repeated)}")
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    if not budget > 0:
        raise ValueError(f"--budget-gflop must be positive, got {budget}")
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}")
    if (config.agents or config.dropout) and not config.methods:
        # A monolithic policy has neither agents nor dropout.
        methods = tuple(m for m in methods if METHODS[m].config.coordination != "solo")
    variants = tuple(
        Variant(
            name,
            METHODS[name].title,
            METHODS[name].description,
            run,
            swap=name in MPT_METHODS,
        )
        for name, run in ((name, _run_config(name, config, preset, budget)) for name in methods)
    )
    for made in variants:
        check_config(made.config)
    mode = "quick" if config.quick else "full"
    stem = f"{config.task.replace('/', '-')}-{mode}"
    return Plan(
        kind="compare",
        mode=mode,
        variants=variants,
        seeds=tuple(range(seeds)),
        out=choose_folder(config.out, stem, config.resume),
        jobs=jobs,
        resume=config.resume,
        command=command_line(
            f"mpt compare {config.task}", dataclasses.replace(config, task=CompareConfig.task)
        ),
    )


def _run_config(name: str, config: CompareConfig, preset: Preset, budget: float) -> TrainConfig:
    run = method_config(name, task=config.task, budget_gflop=budget, eval=preset.eval)
    env = dataclasses.replace(
        run.env,
        agents=config.agents,
        dropout=config.dropout,
        max_turns=config.max_turns,
        backend=config.backend,
    )
    return for_domain(dataclasses.replace(run, env=env))


def choose_folder(out: Path | None, stem: str, resume: bool) -> Path:
    """The results folder: the one named, the latest of its kind, or a new one.

    Raises:
        RunFolderError: there is nothing to resume.
    """
    if out is not None:
        return out
    if resume:
        latest = sorted(RESULTS.glob(f"{stem}-*"))
        if not latest:
            raise RunFolderError(
                f"there is no folder {RESULTS / stem}-* to resume: name one with --out, or start "
                "without --resume"
            )
        return latest[-1]
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return RESULTS / f"{stem}-{stamp}"


def command_line(program: str, config: Any) -> str:
    """The command line that asks for the same results, wherever they are written.

    Args:
        program: its first words.
        config: a dataclass of options; only those that are not at their defaults are named.
    """
    words: list[Any] = program.split()
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in ("out", "jobs", "resume") or value == field.default:
            continue
        words.append("--" + field.name.replace("_", "-"))
        if isinstance(value, tuple):
            words += value
        elif not isinstance(value, bool):
            words.append(value)
    return shlex.join(str(word) for word in words)


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:], "python -m mpt_train.comparison.command")))
