"""Tuning with equal effort: ``python -m benchmarks.tuning``.

Every method is trained on the same grid, at the same compute, with training seeds that no
comparison uses: in crafting first learning rates times network widths, then, at the best of these,
entropy bonuses times updates per batch; in another domain learning rates, then entropy bonuses, at
what is best in crafting. The best point of each method, by the mean over the seeds, is what
`mpt_train.methods` holds, and `mpt_train.comparison.domains` for other domains; all points are
written beside it. The return is measured on validation worlds, on which nothing else is.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import multiprocessing
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from mpt_train.cli.console import run, usage_errors
from mpt_train.comparison.domains import Tuned, for_domain
from mpt_train.comparison.runner import usable_cores
from mpt_train.config import EvalConfig, TrainConfig
from mpt_train.methods import METHODS, method_config
from mpt_train.runs.files import write_json

FIRST_SEED = 1000
"""First training seed of tuning runs."""
LEARNING_RATES = (2e-3, 4e-3, 8e-3)
RATES = (*LEARNING_RATES, 16e-3)
"""Learning rates of the stage of that name, for larger batches."""
HIDDEN = ((32, 32), (64, 64))
ENTROPIES = (0.01, 0.03)
"""Entropy bonuses; `mpt` has none, as in the paper."""
MINIBATCHES = (8, 16)
"""Updates per batch of 128 episodes; `mpt` makes one per batch of 16, as in the paper."""


@dataclass(frozen=True)
class TuningConfig:
    """Train every method on the same grid and report the best point of each."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Methods to tune."""
    stage: Literal["width", "entropy", "rate", "bonus"] = "width"
    """"width": learning rates times widths. "entropy": entropy bonuses times updates per batch, at
    the learning rate and width that the method is set to. "rate" and "bonus": learning rates and
    entropy bonuses alone."""
    seeds: int = 3
    """Training seeds of each point."""
    budget_gflop: float = 60.0
    """Compute of each run in 10^9 floating-point operations."""
    out: Path = Path("results/tuning.json")
    """Where the numbers go."""
    jobs: int | None = None
    """Runs at a time, one core each; None: one per core."""


def grid(config: TuningConfig) -> list[TrainConfig]:
    """All configurations, method by method, the seeds of a point side by side."""
    runs = []
    for name in config.methods:
        base = for_domain(method_config(name, task=config.task, budget_gflop=config.budget_gflop))
        paper = name == "mpt"
        if config.stage == "width":
            changed = [_width(base, *point) for point in itertools.product(LEARNING_RATES, HIDDEN)]
        elif config.stage == "rate":
            changed = [Tuned(learning_rate=rate).apply(base) for rate in RATES]
        elif paper:
            changed = [base]
        elif config.stage == "bonus":
            changed = [Tuned(entropy=entropy).apply(base) for entropy in ENTROPIES]
        else:
            changed = [
                Tuned(entropy=entropy, minibatches=updates).apply(base)
                for entropy, updates in itertools.product(ENTROPIES, MINIBATCHES)
            ]
        runs += [
            dataclasses.replace(
                point,
                seed=FIRST_SEED + i,
                eval=EvalConfig(
                    worlds=96, repeats=2, curve_points=4, curve_worlds=32, split="validation"
                ),
            )
            for point in changed
            for i in range(config.seeds)
        ]
    return runs


def _width(base: TrainConfig, rate: float, hidden: tuple[int, ...]) -> TrainConfig:
    network = dataclasses.replace(base.network, hidden=hidden)
    return Tuned(learning_rate=rate).apply(dataclasses.replace(base, network=network))


def measure(config: TrainConfig) -> dict[str, Any]:
    """Train one point; what it is and what it reached."""
    import torch

    from mpt_train.loop import Trainer

    torch.set_num_threads(1)
    summary = Trainer(config).train()
    row = {
        "method": config.method,
        "seed": config.seed,
        "learning_rate": config.optimizer.learning_rate,
        "hidden": list(config.network.hidden),
        "entropy": config.action.entropy,
        "minibatches": config.optimizer.minibatches,
        "return_mean": summary.final["return_mean"],
        "success": summary.final["success"],
        "cold_start": summary.cold_start["return_mean"],
        "turns": summary.turns,
        "seconds": round(summary.wall_seconds, 1),
    }
    print(json.dumps(row), flush=True)
    return row


def main(arguments: Sequence[str]) -> int:
    """Run the grid and write the results; returns the exit code."""
    with usage_errors():
        config = tyro.cli(TuningConfig, args=list(arguments), description=__doc__)
        runs = grid(config)
    with multiprocessing.get_context("spawn").Pool(config.jobs or usable_cores()) as pool:
        rows = pool.map(measure, runs, chunksize=1)
    points = summarise(rows)
    best = {
        name: max((p for p in points if p["method"] == name), key=lambda p: p["return_mean"])
        for name in config.methods
    }
    config.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        config.out,
        {
            "task": config.task,
            "stage": config.stage,
            "budget_gflop": config.budget_gflop,
            "seeds": [FIRST_SEED + i for i in range(config.seeds)],
            "rows": rows,
            "points": points,
            "best": best,
        },
    )
    for point in points:
        mark = "*" if point is best[point["method"]] else " "
        print(
            f"{mark} {point['method']:16s} {point['return_mean']:6.2f}  learning rate "
            f"{point['learning_rate']}, hidden {point['hidden']}, entropy {point['entropy']}, "
            f"mini-batches {point['minibatches']}"
        )
    return 0


_POINT = ("method", "learning_rate", "hidden", "entropy", "minibatches")


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each point of the grid with the mean of its seeds' returns and the single returns."""
    points: dict[str, dict[str, Any]] = {}
    for row in rows:
        what = {name: row[name] for name in _POINT}
        point = points.setdefault(json.dumps(what), {**what, "returns": []})
        point["returns"].append(row["return_mean"])
    for point in points.values():
        point["return_mean"] = sum(point["returns"]) / len(point["returns"])
    return list(points.values())


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
