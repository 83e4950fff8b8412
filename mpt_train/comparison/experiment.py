"""An experiment: variants of the training configuration, each trained with several seeds.

Both the comparison of methods and the ablation are one. The results folder::

    runs/VARIANT/seed-K/   the run folders (see `mpt_train.runs.folder`)
    swap/                  evaluations under other coordinations
    logs/                  output of the workers, and the full error of each failed job
    results.json           all numbers (`mpt_train.comparison.results.Comparison`)
    table.txt, table.md    the tables
    plots/                 pictures, each with its numbers beside it
    report.html            one page with everything
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mpt_envs import spec
from mpt_train.comparison.jobs import RunProgress
from mpt_train.comparison.progress import Progress
from mpt_train.comparison.provenance import provenance
from mpt_train.comparison.report import write_outputs
from mpt_train.comparison.results import LEARNED, Comparison, Failure, MethodResult, SeedResult
from mpt_train.comparison.runner import Interrupted, Job, Outcome, State, run_jobs
from mpt_train.comparison.tables import as_text, duration
from mpt_train.config import TrainConfig, to_json
from mpt_train.errors import RunFolderError
from mpt_train.runs.files import reason
from mpt_train.runs.folder import FREE_FIELDS, RunFolder, config_differences
from mpt_train.runs.plain import from_plain

SWAPS = ("round-robin", "random", "priority", "graph-of-agents")
"""Coordinations that need no training of their own."""

SECONDS_PER_GFLOP = {
    "mpt": 0.46,
    "mpt-plus": 0.2,
    "monolithic": 0.19,
    "round-robin": 0.17,
    "random-bids": 0.19,
    "graph-of-agents": 0.13,
    "fixed-priority": 0.11,
    "router": 0.18,
}
"""Rough time of training on one core, for the order of the runs and the first guess of the time."""


@dataclass(frozen=True)
class Variant:
    """One configuration of an experiment.

    Attributes:
        name: unique; also the name of its folder.
        title, description, group: see `MethodResult`.
        config: its seed is replaced.
        swap: whether its coordination is swapped after training.
    """

    name: str
    title: str
    description: str
    config: TrainConfig
    group: str = ""
    swap: bool = False


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Attributes:
        kind, mode: see `Comparison`.
        variants: the configurations.
        seeds: training seeds of each.
        out: results folder.
        jobs: runs at once.
        resume: keep the finished runs of the folder and continue the others.
        command: the command line that makes these results.
    """

    kind: str
    mode: str
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    out: Path
    jobs: int
    resume: bool
    command: str

    @property
    def first(self) -> TrainConfig:
        """A configuration to read task, budget and evaluation from."""
        return self.variants[0].config

    def folder(self, variant: Variant, seed: int) -> Path:
        """Run folder."""
        return self.out / "runs" / folder_name(variant.name) / f"seed-{seed}"

    def swap_file(self, variant: Variant, seed: int) -> Path:
        """Evaluations of a run under other coordinations."""
        return self.out / "swap" / f"{folder_name(variant.name)}-seed-{seed}.json"

    @property
    def reference_file(self) -> Path:
        """Return of the scripted expert."""
        return self.out / "reference.json"


def folder_name(name: str) -> str:
    """A variant's name as a folder's: only letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_")


def seeded(variant: Variant, seed: int) -> TrainConfig:
    """The variant's configuration for one training seed."""
    return dataclasses.replace(variant.config, seed=seed)


def check_games(plan: Plan) -> None:
    """Make a game of each kind that the plan wants, so that a mistake is told once, at once.

    Raises:
        ValueError, TypeError, UnknownTaskError, MissingBackendError: it cannot be made.
    """
    from mpt_train.games import build_game

    kinds = {
        (v.config.task, v.config.env, v.config.coordination == "solo"): v.config
        for v in plan.variants
    }
    for config in kinds.values():
        build_game(config, 1).close()


def run_experiment(plan: Plan, stream: TextIO | None = None) -> int:
    """Train, evaluate, and write the results folder.

    Returns:
        Exit code: 0; 1 if a run failed; 130 after Ctrl-C.

    Raises:
        RunFolderError: the results folder cannot be used.
        UnknownTaskError: there is no such task.
    """
    stream = sys.stdout if stream is None else stream
    spec(plan.first.task)
    _check_names(plan)
    finished = prepare_folder(plan)
    jobs = make_jobs(plan, finished)
    progress = Progress(_describe, stream)
    _announce(plan, jobs, finished, progress)
    started = time.monotonic()
    interrupted = False
    try:
        outcomes = run_jobs(jobs, plan.jobs, plan.out / "logs", progress.update) if jobs else []
    except Interrupted as stop:
        interrupted = True
        outcomes = stop.outcomes
    progress.close()
    try:
        failures = _failures(plan, outcomes)
        comparison = collect(plan, failures, complete=not interrupted)
        comparison.provenance["wall_seconds"] = time.monotonic() - started
        plots = write_outputs(comparison, plan.out)
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"the results in {plan.out} cannot be written: {reason(error)}; make room or change "
            f"the permissions, then continue with: {plan.command} --out {plan.out} --resume"
        ) from error
    progress.print("")
    progress.print(as_text(comparison).rstrip())
    progress.print("")
    progress.print(
        f"{duration(time.monotonic() - started)} in all. {plan.out}/report.html shows everything"
        + (f", with {len(plots)} plots" if plots else "")
        + f"; the numbers are in {plan.out}/results.json."
    )
    if interrupted:
        progress.print(
            "Interrupted. Finished runs are kept, the others have a checkpoint. Continue with: "
            f"{plan.command} --out {plan.out} --resume"
        )
        return 130
    if failures:
        progress.print(
            f"{len(failures)} job{'s' if len(failures) > 1 else ''} failed (full errors in "
            f"{plan.out}/logs); to try again: {plan.command} --out {plan.out} --resume"
        )
        return 1
    return 0


def _check_names(plan: Plan) -> None:
    folders = [folder_name(variant.name) for variant in plan.variants]
    if len(set(folders)) != len(folders):
        raise ValueError("variants must have different names")
    if len(set(plan.seeds)) != len(plan.seeds) or not plan.seeds:
        raise ValueError("training seeds must be different, and at least one")


# -- the folder ------------------------------------------------------------------------------


def prepare_folder(plan: Plan) -> set[tuple[str, int]]:
    """Make the results folder, or find out what it already holds.

    Returns:
        Variant and seed of the runs that are finished.

    Raises:
        RunFolderError: it is not writable, holds something else, or runs with other settings.
    """
    out = plan.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not plan.resume and any(out.iterdir()):
            raise RunFolderError(
                f"{out} is not empty: continue what it holds with --resume, or name another --out"
            )
        probe = out / ".writable"
        probe.touch()
        probe.unlink()
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"the results folder {out} cannot be used: {reason(error)}; name another --out, or "
            "change its permissions"
        ) from error
    finished = set()
    for variant in plan.variants:
        for seed in plan.seeds:
            run = RunFolder(plan.folder(variant, seed))
            if not run.config.is_file():
                continue
            different = [
                line
                for line in config_differences(run.read_config(), seeded(variant, seed))
                if line.split(":")[0] not in FREE_FIELDS
            ]
            if different:
                raise RunFolderError(
                    f"{run.path} was run with other settings ({'; '.join(different)}): resume with "
                    "the settings it was started with, or name another --out"
                )
            if run.summary.is_file():
                finished.add((variant.name, seed))
    return finished


# -- the jobs --------------------------------------------------------------------------------


SETUP = "set-up"
REFERENCE = "scripted expert"


def make_jobs(plan: Plan, finished: set[tuple[str, int]]) -> list[Job]:
    """The jobs that are left to do, in no particular order."""
    jobs = []
    for variant in plan.variants:
        for seed in plan.seeds:
            name = f"{variant.name} seed {seed}"
            done = (variant.name, seed) in finished
            config, folder = seeded(variant, seed), plan.folder(variant, seed)
            if not done:
                jobs.append(
                    Job(
                        name,
                        "mpt_train.comparison.jobs:train",
                        {"config": to_json(config), "folder": str(folder), "resume": plan.resume},
                        cost=expected_seconds(config),
                        after=SETUP,
                        progress=RunProgress(folder, config.budget_gflop),
                    )
                )
            path = plan.swap_file(variant, seed)
            if variant.swap and not (done and path.is_file()):
                jobs.append(
                    Job(
                        f"swap of {name}",
                        "mpt_train.comparison.jobs:swap",
                        {"folder": str(folder), "coordinations": list(SWAPS), "path": str(path)},
                        cost=len(SWAPS) * _evaluation_seconds(config),
                        after=SETUP if done else name,
                    )
                )
    if not plan.reference_file.is_file():
        jobs.append(
            Job(
                REFERENCE,
                "mpt_train.comparison.jobs:reference",
                {"config": to_json(plan.first), "path": str(plan.reference_file)},
                cost=0.3 * _evaluation_seconds(plan.first),
                after=SETUP,
            )
        )
    if jobs:
        # One configuration of each shape of networks and game is enough to compile everything.
        shapes = {
            (v.config.coordination, v.config.bids.kind): to_json(v.config) for v in plan.variants
        }
        jobs.append(
            Job(
                SETUP,
                "mpt_train.comparison.jobs:prepare",
                {"configs": list(shapes.values())},
                cost=5.0,
                typical=False,
            )
        )
    return jobs


def expected_seconds(config: TrainConfig) -> float:
    """A rough guess of the time that a run takes."""
    rate = SECONDS_PER_GFLOP.get(config.method, 0.3)
    points = config.eval.curve_points * config.eval.curve_worlds
    whole = 2 * config.eval.worlds * config.eval.repeats
    share = (points + whole) / (config.eval.worlds * config.eval.repeats)
    return 1.5 + rate * config.budget_gflop + share * _evaluation_seconds(config)


def _evaluation_seconds(config: TrainConfig) -> float:
    return 0.3 + 0.002 * config.eval.worlds * config.eval.repeats


def _announce(
    plan: Plan, jobs: Sequence[Job], finished: set[tuple[str, int]], progress: Progress
) -> None:
    count = len(plan.variants) * len(plan.seeds)
    seeds = f"{len(plan.seeds)} training seed{'s' if len(plan.seeds) > 1 else ''}"
    progress.print(
        f"{plan.first.task}: {len(plan.variants)} configurations x {seeds} = {count} runs of "
        f"{plan.first.budget_gflop:g} GFLOP, {plan.jobs} at a time, into {plan.out}"
    )
    if finished:
        progress.print(f"{len(finished)} runs are finished already and are kept")
    guess = State(plan.jobs, [job for job in jobs if job.name != SETUP]).remaining()
    progress.print(
        f"About {duration(guess)} after set-up, going by another machine; the estimate follows "
        "this one as it goes."
    )
    if jobs:
        progress.print("Set-up compiles the simulator, which takes a minute the first time.")


def _describe(outcome: Outcome) -> str | None:
    name, value = outcome.job.name, outcome.value
    if outcome.job.target.endswith(":train"):
        final, cold = value["final"], value["cold_start"]
        return f"{name}: return {final['return_mean']:.1f} (cold start {cold['return_mean']:.1f})"
    return name


def _failures(plan: Plan, outcomes: Sequence[Outcome]) -> list[Failure]:
    """Failed jobs, their full errors written to the log folder."""
    failures = []
    for outcome in outcomes:
        if outcome.error is None or outcome.skipped:
            continue
        name = outcome.job.name
        file = plan.out / "logs" / f"{folder_name(name)}.error.txt"
        file.write_text(outcome.details + "\n", encoding="utf-8")
        variant, seed = _whose(plan, name)
        failures.append(
            Failure(variant, seed, outcome.error, str(file.relative_to(plan.out).as_posix()))
        )
    return failures


def _whose(plan: Plan, job: str) -> tuple[str, int | None]:
    for variant in plan.variants:
        for seed in plan.seeds:
            name = f"{variant.name} seed {seed}"
            if job == name:
                return variant.name, seed
            if job == f"swap of {name}":
                return f"swap of {variant.name}", seed
    return job, None


# -- the results -----------------------------------------------------------------------------


def collect(plan: Plan, failures: Sequence[Failure], complete: bool = True) -> Comparison:
    """Read what the results folder holds of the plan's runs."""
    methods, swaps = [], {}
    for variant in plan.variants:
        runs = []
        by_coordination: dict[str, dict[int, float]] = {}
        for seed in plan.seeds:
            folder = RunFolder(plan.folder(variant, seed))
            if not folder.summary.is_file():
                continue
            summary = folder.read_summary()
            summary.pop("folder", None)
            runs.append(SeedResult(seed, summary))
            path = plan.swap_file(variant, seed)
            if variant.swap and path.is_file():
                by_coordination.setdefault(LEARNED, {})[seed] = summary["final"]["return_mean"]
                for name, evaluation in _read(path).items():
                    by_coordination.setdefault(name, {})[seed] = evaluation["return_mean"]
        methods.append(
            MethodResult(
                variant.name,
                variant.title,
                variant.description,
                to_json(seeded(variant, plan.seeds[0])),
                tuple(runs),
                variant.group,
            )
        )
        if by_coordination:
            swaps[variant.name] = by_coordination
    reference = None
    if plan.reference_file.is_file():
        reference = _read(plan.reference_file)["return_mean"]
    return Comparison(
        kind=plan.kind,
        task=plan.first.task,
        mode=plan.mode,
        budget_gflop=plan.first.budget_gflop,
        methods=tuple(methods),
        swap=swaps,
        reference=reference,
        failures=tuple(failures),
        provenance=provenance(plan.command, plan.jobs),
        complete=complete,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = from_plain(json.loads(path.read_bytes()))
    except ValueError as error:
        raise RunFolderError(
            f"{path} is damaged: {error}; delete it and continue with --resume"
        ) from error
    return values
