"""What a comparison found: the raw numbers of every run, and the statistics over training seeds.

`Comparison` is what results.json holds; tables, plots and the report are made from it alone, so
they can be made again at any time (``python -m mpt_train.comparison.report FOLDER``).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_train.comparison.stats import (
    Interval,
    PairedDifference,
    adjust,
    bootstrap_interval,
    mean_interval,
    paired_difference,
    ratio_interval,
    separate,
)
from mpt_train.runs.files import write_atomically
from mpt_train.runs.plain import to_plain
from wrappers.errors import MarketError

RESULTS = "results.json"

FORMAT = 1
"""Version of results.json; raised whenever a reader of the old one would misread the new one."""

MILESTONE_PREFIX = "reached_"
"""Metrics with this prefix are success rates of a task's milestones."""

MPT_METHODS = ("mpt-plus", "mpt")
"""The two configurations of market-based post-training; a comparison reports both."""

LEARNED = "learned"

_NUMBERS = re.compile(r"\[[-+.,eE\d\s]*\]")


class ResultsError(MarketError, OSError):
    """A results folder cannot be read; the message says what to do."""


@dataclass(frozen=True)
class SeedResult:
    """One training run.

    Attributes:
        seed: training seed.
        summary: the run's summary.json (see `mpt_train.loop.RunSummary`), without its folder.
    """

    seed: int
    summary: dict[str, Any]

    @property
    def final(self) -> dict[str, Any]:
        """Evaluation after training."""
        return dict(self.summary["final"])

    @property
    def cold_start(self) -> dict[str, Any]:
        """Evaluation before training."""
        return dict(self.summary["cold_start"])

    @property
    def gflop(self) -> float:
        """Compute of the run, in 10^9 floating-point operations."""
        return float(self.summary["flop"]) / 1e9


@dataclass(frozen=True)
class MethodResult:
    """All training runs of one method.

    Attributes:
        name: of the method, or of the variant in an ablation.
        title: how plots call it.
        description: one sentence.
        config: the training configuration of the first seed, as plain JSON.
        runs: in the order of their seeds; empty if all failed.
        group: methods of one group are compared with each other (ablations have two).
    """

    name: str
    title: str
    description: str
    config: dict[str, Any]
    runs: tuple[SeedResult, ...]
    group: str = ""

    def values(self, get: Callable[[SeedResult], float]) -> dict[int, float]:
        """One number per training seed."""
        return {run.seed: float(get(run)) for run in self.runs}

    @property
    def final_returns(self) -> dict[int, float]:
        """Mean return over worlds and repeats after training, by seed."""
        return self.values(lambda run: run.summary["final"]["return_mean"])

    @property
    def cold_returns(self) -> dict[int, float]:
        """The same before training."""
        return self.values(lambda run: run.summary["cold_start"]["return_mean"])


@dataclass(frozen=True)
class Failure:
    """A run that did not end.

    Attributes:
        method, seed: which run; no seed for what belongs to no single run.
        reason: one line.
        details: file with the full error, relative to the results folder.
    """

    method: str
    seed: int | None
    reason: str
    details: str = ""


@dataclass(frozen=True)
class Comparison:
    """Everything that one comparison found.

    Attributes:
        kind: "compare" or "ablation".
        task, mode: environment id; "quick", "full" or "custom".
        budget_gflop: compute of each run.
        methods: in the order asked for.
        swap: returns by method, coordination and training seed, over the same trained policies:
            ``swap["mpt"]["round-robin"][0]``.
        reference: return of the scripted expert on the held-out worlds; None if there is none.
        failures: runs that are missing.
        provenance: versions, machine, date, command.
        complete: whether every run that was asked for was tried.
    """

    kind: str
    task: str
    mode: str
    budget_gflop: float
    methods: tuple[MethodResult, ...]
    swap: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)
    reference: float | None = None
    failures: tuple[Failure, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def trained(self) -> tuple[MethodResult, ...]:
        """Methods with at least one finished run."""
        return tuple(method for method in self.methods if method.runs)

    def method(self, name: str) -> MethodResult | None:
        """The method of this name if it has a finished run."""
        return next((m for m in self.trained if m.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values, statistics included (they are derived and ignored on reading)."""
        plain: dict[str, Any] = {"format": FORMAT, **dataclasses.asdict(self)}
        plain["statistics"] = {
            "rows": [row.to_json() for row in summarize(self)],
            "bootstrap": {
                method.name: bootstrap_interval(list(method.final_returns.values())).to_json()
                for method in self.trained
            },
            "differences": [d.to_json() for d in differences(self)],
            "swap": [row.to_json() for row in summarize_swap(self)],
            "claims": [dataclasses.asdict(c) for c in claims(self)],
        }
        return plain

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Comparison:
        """Inverse of `to_json`."""
        if values.get("format") != FORMAT:
            raise ResultsError(
                f"these results have format {values.get('format')!r}, this release reads {FORMAT}"
            )
        methods = tuple(
            MethodResult(
                m["name"],
                m["title"],
                m["description"],
                m["config"],
                tuple(SeedResult(int(r["seed"]), r["summary"]) for r in m["runs"]),
                m["group"],
            )
            for m in values["methods"]
        )
        swap = {
            method: {
                coordination: {int(seed): float(value) for seed, value in seeds.items()}
                for coordination, seeds in by_coordination.items()
            }
            for method, by_coordination in values["swap"].items()
        }
        return cls(
            values["kind"],
            values["task"],
            values["mode"],
            float(values["budget_gflop"]),
            methods,
            swap,
            values["reference"],
            tuple(Failure(**f) for f in values["failures"]),
            dict(values["provenance"]),
            bool(values["complete"]),
        )


def save(comparison: Comparison, folder: Path) -> Path:
    """Write results.json, replacing an older one in one step."""
    path = folder / RESULTS
    write_numbers(path, comparison.to_json())
    return path


def write_numbers(path: Path, values: Any) -> None:
    """Write JSON atomically, indented, but with each list of numbers on one line."""
    text = json.dumps(to_plain(values), indent=1, allow_nan=False)
    text = _NUMBERS.sub(lambda found: " ".join(found.group().split()), text)
    write_atomically(path, (text + "\n").encode())


def load(folder: Path) -> Comparison:
    """Read results.json.

    Raises:
        ResultsError: there is none, it is broken, or another release wrote it.
    """
    path = folder / "results.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(
            f"{folder} holds no results.json: is it a folder of `mpt compare`?"
        ) from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error})") from error
    try:
        return Comparison.from_json(values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} is not a file of results: {error!r}") from error


# -- one row per method ----------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One method's line in the table; intervals are over training seeds.

    Attributes:
        method: its name.
        group: see `MethodResult`.
        final, cold_start: mean return on the held-out worlds.
        ratio: final by cold start.
        success: share of episodes that reach the goal.
        milestones: mean number of milestones reached; None where the task has none.
        turns: mean length of an episode.
        gflop: compute of a run.
        experience: turns played in training, without those of branches.
        wall_seconds: time of a run on one core.
    """

    method: str
    group: str
    final: Interval
    cold_start: Interval
    ratio: Interval
    success: Interval
    milestones: Interval | None
    turns: Interval
    gflop: float
    experience: float
    wall_seconds: float

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return dataclasses.asdict(self)


def milestones_of(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """Success rate per milestone in an evaluation, in the task's order."""
    return {
        name.removeprefix(MILESTONE_PREFIX): float(value)
        for name, value in evaluation["metrics"].items()
        if name.startswith(MILESTONE_PREFIX)
    }


def summarize_method(method: MethodResult) -> Row:
    """The row of one method (at least one run)."""
    runs = method.runs
    milestones = [milestones_of(run.final) for run in runs]
    final, cold = list(method.final_returns.values()), list(method.cold_returns.values())
    return Row(
        method.name,
        method.group,
        mean_interval(final),
        mean_interval(cold),
        ratio_interval(final, cold),
        mean_interval([run.final["success"] for run in runs]),
        mean_interval([sum(m.values()) for m in milestones]) if all(milestones) else None,
        mean_interval([run.final["turns_mean"] for run in runs]),
        float(np.mean([run.gflop for run in runs])),
        float(np.mean([run.summary["turns"] for run in runs])),
        float(np.mean([run.summary["wall_seconds"] for run in runs])),
    )


def summarize(comparison: Comparison) -> list[Row]:
    """One row per method with a finished run, in the comparison's order."""
    return [summarize_method(method) for method in comparison.trained]


def best_mpt(comparison: Comparison) -> MethodResult | None:
    """The better of the two MPT configurations by its mean final return."""
    candidates = [m for name in MPT_METHODS if (m := comparison.method(name)) is not None]
    return max(
        candidates, key=lambda m: float(np.mean(list(m.final_returns.values()))), default=None
    )


def differences(comparison: Comparison) -> list[PairedDifference]:
    """Paired differences in final return, Holm-corrected together.

    In a comparison: the better MPT configuration minus each other method. In an ablation: each
    variant minus the first of its group.
    """
    found = []
    best = best_mpt(comparison)
    for method in comparison.trained:
        if comparison.kind == "ablation":
            base = next(m for m in comparison.methods if m.group == method.group)
            if not base.runs:
                continue
            first, second = method, base
        else:
            if best is None:
                return []
            first, second = best, method
        if first.name == second.name:
            continue
        if set(first.final_returns) & set(second.final_returns):
            found.append(
                paired_difference(
                    first.name, second.name, first.final_returns, second.final_returns
                )
            )
    return adjust(found)


# -- swapping the coordination ---------------------------------------------------------------


@dataclass(frozen=True)
class SwapRow:
    """One method's trained action policies under several coordinations.

    Attributes:
        method: its name.
        returns: by coordination.
        best_other: the coordination with the highest mean return besides learned bids.
        ratio: learned bids by ``best_other``.
    """

    method: str
    returns: dict[str, Interval]
    best_other: str
    ratio: Interval

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return dataclasses.asdict(self)


def summarize_swap(comparison: Comparison) -> list[SwapRow]:
    """One row per method whose coordination was swapped; needs learned bids and another one."""
    rows = []
    for method, by_coordination in comparison.swap.items():
        learned = by_coordination.get(LEARNED, {})
        others = {name: seeds for name, seeds in by_coordination.items() if name != LEARNED}
        shared = sorted(set(learned).intersection(*others.values())) if others else []
        if not shared:
            continue
        returns = {
            name: mean_interval([seeds[s] for s in shared])
            for name, seeds in by_coordination.items()
        }
        best = max(others, key=lambda name: returns[name].mean)
        ratio = ratio_interval([learned[s] for s in shared], [others[best][s] for s in shared])
        rows.append(SwapRow(method, returns, best, ratio))
    return rows


# -- curves and participation ----------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A method's learning curve on a common grid of compute.

    Attributes:
        gflop: ``float64 (P,)``.
        mean, low, high: return; ``low`` and ``high`` are None with one seed.
    """

    gflop: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None


def learning_curve(method: MethodResult, points: int = 60) -> Curve:
    """Return against compute, interpolated between the evaluations of each run.

    The grid covers the range that all runs of the method cover; nothing is extrapolated.
    """
    curves = []
    for run in method.runs:
        records = run.summary["curve"]
        flop = np.array([float(r["flop"]) for r in records]) / 1e9
        curves.append((flop, np.array([float(r["return_mean"]) for r in records])))
    start = max(float(flop[0]) for flop, _ in curves)
    end = min(float(flop[-1]) for flop, _ in curves)
    grid = np.linspace(start, max(start, end), points)
    values = np.array([np.interp(grid, flop, returns) for flop, returns in curves])
    intervals = [mean_interval(column) for column in values.T]
    mean = values.mean(axis=0)
    if len(curves) < 2:
        return Curve(grid, mean, None, None)
    low = np.array([i.low for i in intervals], np.float64)
    high = np.array([i.high for i in intervals], np.float64)
    return Curve(grid, mean, low, high)


def participation(method: MethodResult, when: str) -> dict[str, NDArray[np.float64]]:
    """Share of each role among the acting agents, by part of the episode; mean over seeds.

    Args:
        when: "cold_start" or "final".

    Returns:
        ``float64 (B,)`` per role; what is missing to 1 are parts that no episode reached.
    """
    evaluations = [run.summary[when]["participation"] for run in method.runs]
    return {
        role: np.mean([np.asarray(e[role], np.float64) for e in evaluations], axis=0)
        for role in evaluations[0]
    }


# -- claims ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A statement that these results support or not.

    Attributes:
        text: the statement.
        holds: whether the numbers support it; None where one training seed cannot tell.
        value: the numbers, as text.
    """

    text: str
    holds: bool | None
    value: str

    @property
    def verdict(self) -> str:
        """``holds`` in words."""
        return {True: "yes", False: "no", None: "one seed"}[self.holds]


def claims(comparison: Comparison) -> list[Claim]:
    """What the results say about the questions that a comparison is run for."""
    best = best_mpt(comparison)
    if comparison.kind != "compare" or best is None:
        return []
    row = summarize_method(best)
    found = [
        Claim(
            f"{best.name} ends at least 2 times above its cold start",
            _told(row.ratio.mean >= 2.0, row.ratio),
            f"{row.ratio.mean:.2f} times ({row.cold_start.mean:.1f} to {row.final.mean:.1f})",
        )
    ]
    for name in ("round-robin", "random-bids", "monolithic"):
        other = comparison.method(name)
        if other is None:
            continue
        other_row = summarize_method(other)
        found.append(
            Claim(
                f"{best.name} is above {name}, and the intervals are separate",
                _told(separate(row.final, other_row.final), row.final, other_row.final),
                f"{row.final.mean:.1f} against {other_row.final.mean:.1f}",
            )
        )
    swaps = {swap.method: swap for swap in summarize_swap(comparison)}
    if best.name in swaps:
        swap = swaps[best.name]
        found.append(
            Claim(
                "over the same trained action policies, learned bids are at least 1.3 times the "
                "best other coordination",
                _told(swap.ratio.mean >= 1.3, swap.ratio),
                f"{swap.ratio.mean:.2f} times {swap.best_other} ({best.name})",
            )
        )
    return found


def _told(holds: bool, *intervals: Interval) -> bool | None:
    """Whether a statement holds; None where one of its numbers is of one training seed."""
    return None if any(interval.n < 2 for interval in intervals) else holds


def swap_order(names: Sequence[str]) -> list[str]:
    """Coordinations with learned bids first, the others as they came."""
    return sorted(names, key=lambda name: name != LEARNED)
