"""Tuning with equal effort: ``python -m benchmarks.tuning``.

Every method is trained on the same grid, at the same compute, with one training seed that no
comparison uses: first learning rates times network widths, then, at the best of these, entropy
bonuses. The best point of each method is what
`mpt_train.methods` holds; all points are written beside it. The return is measured on the held-out
worlds, as in the comparison: four points a method are too few to fit them.
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

from benchmarks.compare import for_domain
from benchmarks.runner import usable_cores
from mpt_train.cli.console import run, usage_errors
from mpt_train.config import EvalConfig, TrainConfig
from mpt_train.files import write_json
from mpt_train.methods import METHODS, method_config

SEED = 1000
"""Training seed of all tuning runs."""
LEARNING_RATES = (2e-3, 4e-3)
HIDDEN = ((32, 32), (64, 64))
ENTROPIES = (0.003, 0.01, 0.03)
"""Entropy bonuses; the first one serves while learning rates and widths are chosen. `mpt` has none,
as in the paper."""


@dataclass(frozen=True)
class TuningConfig:
    """Train every method on the same grid and report the best point of each."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Methods to tune."""
    stage: Literal["width", "entropy"] = "width"
    """"width": learning rates times widths. "entropy": entropy bonuses, at the learning rate and
    width that the method is set to."""
    budget_gflop: float = 60.0
    """Compute of each run in 10^9 floating-point operations."""
    out: Path = Path("results/tuning.json")
    """Where the numbers go."""
    jobs: int | None = None
    """Runs at a time, one core each; None: one per core."""


def grid(config: TuningConfig) -> list[TrainConfig]:
    """All configurations, method by method."""
    points = []
    for name in config.methods:
        base = for_domain(method_config(name, task=config.task, budget_gflop=config.budget_gflop))
        own = (base.optimizer.learning_rate, base.network.hidden)
        triples: list[tuple[float, tuple[int, ...], float]]
        if config.stage == "width":
            triples = [
                (*point, ENTROPIES[0]) for point in itertools.product(LEARNING_RATES, HIDDEN)
            ]
        else:
            triples = [(*own, entropy) for entropy in ENTROPIES]
        if name == "mpt":
            triples = list(dict.fromkeys((rate, hidden, 0.0) for rate, hidden, _ in triples))
        points += [_point(base, *triple) for triple in triples]
    return points


def _point(base: TrainConfig, rate: float, hidden: tuple[int, ...], entropy: float) -> TrainConfig:
    return dataclasses.replace(
        base,
        seed=SEED,
        network=dataclasses.replace(base.network, hidden=hidden),
        optimizer=dataclasses.replace(base.optimizer, learning_rate=rate),
        action=dataclasses.replace(base.action, entropy=entropy),
        bids=dataclasses.replace(base.bids, entropy=entropy),
        eval=EvalConfig(worlds=96, repeats=2, curve_points=4, curve_worlds=32),
    )


def measure(config: TrainConfig) -> dict[str, Any]:
    """Train one point; what it is and what it reached."""
    import torch

    from mpt_train.loop import Trainer

    torch.set_num_threads(1)
    summary = Trainer(config).train()
    row = {
        "method": config.method,
        "learning_rate": config.optimizer.learning_rate,
        "hidden": list(config.network.hidden),
        "entropy": config.action.entropy,
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
        points = grid(config)
    with multiprocessing.get_context("spawn").Pool(config.jobs or usable_cores()) as pool:
        rows = pool.map(measure, points, chunksize=1)
    best = {
        name: max((r for r in rows if r["method"] == name), key=lambda r: r["return_mean"])
        for name in config.methods
    }
    config.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(config.out, {"seed": SEED, "rows": rows, "best": best})
    for name, row in best.items():
        print(
            f"{name:16s} {row['return_mean']:6.2f}  learning rate {row['learning_rate']}, "
            f"hidden {row['hidden']}, entropy {row['entropy']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
