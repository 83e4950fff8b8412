"""What each option does, one at a time: ``python -m benchmarks.ablation``.

Two groups of runs. The first starts from `mpt`, the paper to the letter, and adds one option (or
two that belong together). The second starts from `mpt-plus`, the configuration that measures best,
and takes back each of the options by which it differs from `mpt`. Everything else is as in the
comparison of methods: same loop, same compute, same demonstrations, same held-out worlds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from mpt_train.cli.console import run, usage_errors
from mpt_train.comparison.command import FULL, QUICK, choose_folder, command_line
from mpt_train.comparison.domains import domain_of, for_domain
from mpt_train.comparison.experiment import Plan, Variant, run_experiment
from mpt_train.comparison.runner import usable_cores
from mpt_train.config import TrainConfig, from_json, to_json
from mpt_train.methods import METHODS, method_config

ADDED, TAKEN_BACK, CHANGED = "mpt + option", "mpt-plus - option", "mpt-plus, changed"


@dataclass(frozen=True)
class Option:
    """A change of a configuration.

    Attributes:
        name: short, for tables and folders.
        what: in words.
        changes: new values by dotted field name.
    """

    name: str
    what: str
    changes: Mapping[str, Any]


OPTIONS: tuple[Option, ...] = (
    Option(
        "independent-noise",
        "branches draw random numbers of their own",
        {"bids.branch_noise": "independent"},
    ),
    Option(
        "crowded-levels",
        "bid levels crowded towards 1, so that credit reaches further back",
        {"env.bid_levels": "crowded"},
    ),
    Option(
        "value-credit",
        "credit without the actor's own factor 1 - b",
        {"action.credit": "value"},
    ),
    Option(
        "discounted-credit",
        "discounted return as credit, blind to bids",
        {"action.credit": "discounted"},
    ),
    Option(
        "turn-baseline",
        "baseline: mean over the batch at the same turn",
        {"action.baseline": "turn"},
    ),
    Option("critic-baseline", "baseline: a central critic", {"action.baseline": "value"}),
    Option(
        "normalized", "advantages divided by their standard deviation", {"action.normalize": True}
    ),
    Option(
        "discounted-score",
        "branches scored by discounted rewards",
        {"bids.score_discount": 0.97},
    ),
    Option(
        "weighted-pairs",
        "pairs weighted by the difference of their scores",
        {"bids.pair_weighting": "difference"},
    ),
    Option(
        "discounted-score-weighted-pairs",
        "both of these",
        {"bids.score_discount": 0.97, "bids.pair_weighting": "difference"},
    ),
    Option("one-contested-turn", "one branch an episode", {"bids.contested_turns": 1}),
    Option("16-contested-turns", "16 branches an episode", {"bids.contested_turns": 16}),
    Option(
        "bid-network",
        "a small bid network of its own instead of a second head",
        {"network.bid_hidden": [32]},
    ),
    Option(
        "policy-gradient",
        "bids learned by policy gradient, no branches, every step learns both",
        {"bids.kind": "policy_gradient", "action_steps": 0},
    ),
    Option(
        "policy-gradient-and-preference",
        "bids learned by both, every step learns everything",
        {"bids.kind": "both", "action_steps": 0},
    ),
    Option(
        "sampled-estimator",
        "bids learned by policy gradient of each agent's own bid",
        {"bids.kind": "policy_gradient", "bids.estimator": "sampled", "action_steps": 0},
    ),
)
"""What is added to `mpt`."""

VARIED: tuple[Option, ...] = (
    Option(
        "sampled-estimator",
        "policy gradient of each agent's own bid, not of the auction's outcome",
        {"bids.estimator": "sampled"},
    ),
    Option("discounted-credit", "discounted return as credit", {"action.credit": "discounted"}),
    Option(
        "preferences-too",
        "bids learned by both, branches scored by discounted rewards, pairs weighted",
        {"bids.kind": "both", "bids.score_discount": 0.97, "bids.pair_weighting": "difference"},
    ),
    Option(
        "more-entropy",
        "entropy bonuses of 0.03",
        {"action.entropy": 0.03, "bids.entropy": 0.03},
    ),
)
"""What is changed in `mpt-plus`, besides taking its options back."""

TOGETHER: tuple[tuple[str, ...], ...] = (
    ("bids.kind", "action_steps"),
    ("num_envs", "optimizer.minibatches"),
)
"""Fields that are taken back in one line, because one makes no sense without the other."""


@dataclass(frozen=True)
class AblationConfig:
    """Train `mpt` with each option added, and `mpt-plus` with each of its options taken back."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id."""
    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Compute, seeds and evaluation of `mpt compare --quick`."""
    only: tuple[str, ...] = ()
    """Names of options; empty: all. The two base configurations are always there."""
    seeds: int | None = None
    """Number of training seeds; None: as `mpt compare`."""
    budget_gflop: float | None = None
    """Compute of each run in 10^9 floating-point operations; None: as `mpt compare`."""
    out: Path | None = None
    """Results folder; None: a new one under results/."""
    jobs: int | None = None
    """Runs at a time, one core each; None: one per core."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Keep what a results folder holds and do what is missing."""


def changed(config: TrainConfig, changes: Mapping[str, Any]) -> TrainConfig:
    """The configuration with some fields replaced, named by their dotted paths.

    Raises:
        ValueError: there is no such field.
    """
    plain = to_json(config)
    for path, value in changes.items():
        *parents, name = path.split(".")
        part = plain
        for parent in parents:
            part = part[parent]
        if name not in part:
            raise ValueError(f"a configuration has no field {path!r}")
        part[name] = value
    return from_json(plain)


def flat(config: TrainConfig) -> dict[str, Any]:
    """All fields by their dotted paths."""

    def walk(values: dict[str, Any], where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, dict):
                found |= walk(value, f"{where}{name}.")
            else:
                found[where + name] = value
        return found

    return walk(to_json(config), "")


def taken_back() -> list[Option]:
    """One option for each field (or fields that belong together) in which `mpt-plus` differs."""
    plus, paper = flat(method_config("mpt-plus")), flat(method_config("mpt"))
    differing = [path for path in plus if plus[path] != paper[path] and path != "method"]
    options = []
    done: set[str] = set()
    for path in differing:
        if path in done:
            continue
        group = next((g for g in TOGETHER if path in g), (path,))
        fields = [p for p in group if p in differing]
        done |= set(fields)
        changes = {p: paper[p] for p in fields}
        what = ", ".join(f"{p} = {_plain(paper[p])}" for p in fields)
        options.append(Option(re.sub(r"[._]", "-", fields[0]), what, changes))
    return options


def _plain(value: Any) -> str:
    return "none" if value is None else str(value)


def variants(config: AblationConfig) -> list[Variant]:
    """The two base configurations, each followed by its changes.

    Raises:
        ValueError: ``only`` names an option that there is not.
    """
    preset = QUICK if config.quick else FULL
    budget = config.budget_gflop
    if budget is None:
        budget = domain_of(config.task).budget(config.quick)
    groups = (
        ("mpt", ADDED, "+", OPTIONS),
        ("mpt-plus", TAKEN_BACK, "-without-", taken_back()),
        ("mpt-plus", CHANGED, "-with-", VARIED),
    )
    known = {option.name for _, _, _, options in groups for option in options}
    unknown = sorted(set(config.only) - known)
    if unknown:
        raise ValueError(f"unknown options {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    found: list[Variant] = []
    for name, group, sign, options in groups:
        method = METHODS[name]
        base = for_domain(
            method_config(name, task=config.task, budget_gflop=budget, eval=preset.eval)
        )
        if not any(variant.name == name for variant in found):
            found.append(Variant(name, method.title, method.description, base, group))
        for option in options:
            new = changed(base, option.changes)
            if new == base or (config.only and option.name not in config.only):
                continue
            title = option.what if group != ADDED else f"+ {option.name.replace('-', ' ')}"
            found.append(
                Variant(
                    f"{name}{sign}{option.name}",
                    title,
                    option.what,
                    new,
                    group,
                )
            )
    return found


def plan_of(config: AblationConfig) -> Plan:
    """What the configuration asks for.

    Raises:
        ValueError: it makes no sense.
    """
    preset = QUICK if config.quick else FULL
    seeds = preset.seeds if config.seeds is None else config.seeds
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    mode = "quick" if config.quick else "full"
    stem = f"ablation-{config.task.replace('/', '-')}-{mode}"
    return Plan(
        kind="ablation",
        mode=mode,
        variants=tuple(variants(config)),
        seeds=tuple(range(seeds)),
        out=choose_folder(config.out, stem, config.resume),
        jobs=usable_cores() if config.jobs is None else config.jobs,
        resume=config.resume,
        command=command_line("python -m benchmarks.ablation", config),
    )


def main(arguments: Sequence[str], prog: str = "python -m benchmarks.ablation") -> int:
    """Run the ablation; returns the exit code, as that of `mpt compare`."""
    with usage_errors():
        config = tyro.cli(AblationConfig, prog=prog, args=list(arguments), description=__doc__)
        plan = plan_of(config)
    return run_experiment(plan)


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
