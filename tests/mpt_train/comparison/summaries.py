"""Invented summaries of training runs, in the shape that the trainer writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpt_train.comparison.results import Comparison, Failure, MethodResult, SeedResult
from mpt_train.methods import METHODS

MILESTONES = (
    "log",
    "planks",
    "stick",
    "crafting_table",
    "wooden_pickaxe",
    "cobblestone",
    "stone_pickaxe",
    "furnace",
    "iron_ore",
    "iron_ingot",
    "iron_pickaxe",
)
LEVELS = {
    "mpt": 34.0,
    "mpt-plus": 52.0,
    "monolithic": 50.0,
    "round-robin": 27.0,
    "random-bids": 21.0,
    "graph-of-agents": 30.0,
    "fixed-priority": 24.0,
    "router": 40.0,
}
COORDINATIONS = {
    "learned": 1.0,
    "round-robin": 0.62,
    "random": 0.5,
    "priority": 0.55,
    "graph-of-agents": 0.7,
}


def evaluation(mean: float, rng: np.random.Generator, solo: bool = False) -> dict[str, Any]:
    returns = np.clip(rng.normal(mean, 6.0, (3, 32)), 0.0, 66.0)
    reached = returns.mean() / 6.0
    metrics = {"return": float(returns.mean()), "turns": 110.0, "illegal": 2.0}
    for i, name in enumerate(MILESTONES):
        metrics[f"reached_{name}"] = float(np.clip(reached - i + 0.5, 0.0, 1.0))
    x = np.linspace(0.0, 1.0, 12)
    shift = mean / 60.0
    shares = {
        "logger": 0.33 + shift * (0.5 * (1 - x) ** 2 - 0.3),
        "miner": 0.33 + shift * (0.4 * np.sin(np.pi * x) - 0.1),
        "smith": np.full(12, 0.28),
    }
    total = sum(shares.values())
    return {
        "return_mean": float(returns.mean()),
        "returns": returns.tolist(),
        "success": float((returns > 55).mean()),
        "metrics": metrics,
        "participation": {r: (s / np.maximum(total, 1.0)).tolist() for r, s in shares.items()},
        "turns_mean": 110.0,
        "flop_per_turn": 9e4,
        "worlds": 32,
        "repeats": 3,
        "coordination": "learned",
    }


def run_summary(
    method: str, seed: int, budget: float = 400.0, level: float = 0.0
) -> dict[str, Any]:
    rng = np.random.default_rng([seed, sum(method.encode())])
    cold = rng.normal(15.0, 1.0)
    end = (level or LEVELS[method]) + rng.normal(0.0, 2.0)
    flop = np.linspace(0.02, 1.0, 17) * budget * 1e9
    values = cold + (end - cold) * (1 - np.exp(-4 * flop / flop[-1])) + rng.normal(0, 0.7, 17)
    return {
        "task": "crafting/iron-pickaxe-v0",
        "method": method,
        "seed": seed,
        "flop": float(flop[-1]),
        "turns": 1_500_000,
        "episodes": 12_500,
        "steps": 195,
        "wall_seconds": 260.0 + 10 * seed,
        "cold_start": evaluation(cold, rng),
        "final": evaluation(float(values[-1]), rng),
        "curve": [
            {"flop": f, "turns": f / 3e5, "return_mean": v, "success": max(0.0, v / 60 - 0.3)}
            for f, v in zip(flop.tolist(), values.tolist(), strict=True)
        ],
    }


def comparison(
    methods: tuple[str, ...] = tuple(LEVELS),
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    failures: tuple[Failure, ...] = (),
) -> Comparison:
    results = tuple(
        MethodResult(
            name,
            METHODS[name].title,
            METHODS[name].description,
            {"method": name, "bids": {"kind": "preference"}},
            tuple(SeedResult(seed, run_summary(name, seed)) for seed in seeds),
        )
        for name in methods
    )
    rng = np.random.default_rng(0)
    swap = {
        name: {
            c: {s: LEVELS[name] * share + float(rng.normal(0, 2)) for s in seeds}
            for c, share in COORDINATIONS.items()
        }
        for name in ("mpt", "mpt-plus")
        if name in methods
    }
    return Comparison(
        kind="compare",
        task="crafting/iron-pickaxe-v0",
        mode="full",
        budget_gflop=400.0,
        methods=results,
        swap=swap,
        reference=61.3,
        failures=failures,
        provenance={"command": "mpt compare crafting/iron-pickaxe-v0", "date": "2030-01-01"},
    )
