"""What the workers of an experiment do: one function per kind of job, with plain arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from mpt_train.config import TrainConfig, from_json
from mpt_train.runs.files import write_json
from mpt_train.runs.folder import RunFolder


def prepare(configs: list[dict[str, Any]]) -> float:
    """Play and train a moment with each configuration, so that everything is compiled and cached.

    Returns:
        Seconds.
    """
    from mpt_train.loop import Trainer

    started = time.perf_counter()
    for values in configs:
        config = from_json(values)
        small = dataclasses.replace(
            config,
            num_envs=2,
            budget_gflop=1e-6,
            cold_start=dataclasses.replace(
                config.cold_start, episodes=min(2, config.cold_start.episodes), epochs=1
            ),
            eval=dataclasses.replace(config.eval, worlds=2, repeats=1, curve_worlds=2),
        )
        # What is wrong with one configuration is reported by its own runs, not here for all.
        with contextlib.suppress(Exception):
            Trainer(small).train()
    return time.perf_counter() - started


def train(config: dict[str, Any], folder: str, resume: bool) -> dict[str, Any]:
    """Train one run; a request to stop (SIGTERM) leaves a checkpoint.

    Returns:
        The run's summary.
    """
    from mpt_train.loop import Trainer
    from mpt_train.runs.interrupt import graceful_interrupt

    with graceful_interrupt() as stop:
        trainer = Trainer(from_json(config), Path(folder), resume=resume, stop=stop)
        return trainer.train().to_json()


def swap(folder: str, coordinations: list[str], path: str) -> dict[str, Any]:
    """Evaluate a finished run under other coordinations, over its trained action policies.

    Args:
        folder: the run.
        coordinations: names of strategies.
        path: a JSON file that the evaluations are written to.

    Returns:
        ``{coordination: evaluation}``.
    """
    from mpt_train.evaluate import evaluate_run

    run = Path(folder)
    found = {name: evaluate_run(run, coordination=name).to_json() for name in coordinations}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_json(Path(path), found)
    return found


def reference(config: dict[str, Any], path: str) -> dict[str, Any]:
    """Play the scripted expert on the held-out worlds.

    Args:
        config: whose task and held-out worlds.
        path: a JSON file that the result is written to.

    Returns:
        ``{"return_mean": None}`` where the task has no expert.
    """
    run = from_json(config)
    mean = expert_return(run)
    found = {"return_mean": mean, "worlds": run.eval.worlds}
    write_json(Path(path), found)
    return found


def expert_return(config: TrainConfig) -> float | None:
    """Mean return of the scripted expert, which bids and acts for every role, without noise."""
    from mpt_train.games import build_game
    from mpt_train.seeds import evaluation_seeds

    game = build_game(config, config.eval.worlds, solo=False)
    if not game.has_expert:
        return None
    game.reset(evaluation_seeds(game.num_envs))
    returns = np.zeros(game.num_envs)
    rows = np.arange(game.num_envs)
    while game.active.any():
        wanted, actions = game.expert()
        bids = np.abs(wanted[:, :, None] - game.bid_levels).argmin(axis=2)
        bids[~game.present()] = 0
        winners = game.auction(bids).winners
        returns += game.act(actions[rows, np.maximum(winners, 0)]).rewards
    game.close()
    return float(returns.mean())


# -- in the program that started the workers -------------------------------------------------


class RunProgress:
    """Share of a run's compute budget that is spent, from the end of its log.

    Args:
        folder: of the run.
        budget_gflop: its budget.
    """

    def __init__(self, folder: Path, budget_gflop: float) -> None:
        self._path = RunFolder(folder).metrics
        self._budget = budget_gflop * 1e9
        self._read_at = -1.0
        self._share = 0.0

    def __call__(self) -> float:
        """0 as long as there is no log. The file is read at most once a second."""
        now = time.monotonic()
        if now - self._read_at >= 1.0:
            self._read_at = now
            self._share = self._read()
        return self._share

    def _read(self) -> float:
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - 65536))
                lines = file.read().split(b"\n")
        except OSError:
            return 0.0
        for line in reversed(lines):
            try:
                return min(1.0, float(json.loads(line)["flop"]) / self._budget)
            except (ValueError, KeyError, TypeError):
                # A line that is torn, or that is not about compute.
                continue
        return 0.0
