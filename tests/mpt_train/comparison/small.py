"""A small experiment on the real trainer; also a program, for tests that interrupt it."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from mpt_train.comparison.experiment import Plan, Variant, run_experiment
from mpt_train.config import ColdStartConfig, EvalConfig, NetworkConfig
from mpt_train.methods import METHODS, method_config


def variant(name: str, budget: float = 0.02, **changes: object) -> Variant:
    config = method_config(
        name,
        task="crafting/wooden-pickaxe-v0",
        budget_gflop=budget,
        num_envs=4,
        network=NetworkConfig(hidden=(8,)),
        cold_start=ColdStartConfig(episodes=2, epochs=1),
        eval=EvalConfig(worlds=4, repeats=2, curve_points=2, curve_worlds=4),
        checkpoint_every=1,
    )
    optimizer = dataclasses.replace(config.optimizer, minibatches=1)
    config = dataclasses.replace(config, **{"optimizer": optimizer, **changes})  # type: ignore[arg-type]
    method = METHODS[name]
    return Variant(name, method.title, method.description, config, swap=name == "mpt-plus")


def plan(out: Path, *variants: Variant, resume: bool = False, jobs: int = 2) -> Plan:
    return Plan(
        kind="compare",
        mode="custom",
        variants=variants,
        seeds=(0, 1),
        out=out,
        jobs=jobs,
        resume=resume,
        command="mpt compare small",
    )


def main() -> int:
    out, budget, resume = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "resume"
    return run_experiment(plan(out, variant("mpt-plus", budget), resume=resume, jobs=1))


if __name__ == "__main__":
    sys.exit(main())
