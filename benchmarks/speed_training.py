"""Speed of training: the share of time in torch's kernels, and turns a second of collection."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from benchmarks.timing import Measure, clock
from mpt_train.config import TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.loop import Trainer
from mpt_train.rollout import rollout
from mpt_train.seeds import training_seeds

# -- kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelShare:
    """Where the time of training steps goes.

    Attributes:
        share: time inside torch's operators by the time of all, under the profiler.
        at_least: the same if all that the profiler costs fell into operators and is taken off
            again: a lower bound of the share without a profiler.
        milliseconds: of a training step without the profiler.
    """

    share: float
    at_least: float
    milliseconds: float


def kernel_share(config: TrainConfig, steps: int) -> KernelShare:
    """Profile training steps (from random weights; no logs, no evaluation)."""
    trainer = Trainer(config)
    cycle = max(1, config.action_steps + 1)
    steps = -(-steps // cycle) * cycle
    for _ in range(cycle):
        trainer.step()
    start = clock()
    for _ in range(steps):
        trainer.step()
    plain = clock() - start
    activities = [torch.profiler.ProfilerActivity.CPU]
    with (
        _silence(),
        torch.profiler.profile(activities=activities) as profile,
        torch.profiler.record_function("benchmark::steps"),
    ):
        start = clock()
        for _ in range(steps):
            trainer.step()
        profiled = clock() - start
    events = profile.key_averages()
    whole = sum(e.cpu_time_total for e in events if e.key == "benchmark::steps")
    inside = sum(e.self_cpu_time_total for e in events if e.key.startswith("aten::"))
    share = inside / whole
    overhead = max(0.0, profiled / plain - 1.0)
    at_least = max(0.0, share * (1.0 + overhead) - overhead)
    return KernelShare(share, at_least, 1e3 * plain / steps)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No warnings, and nothing on standard error: the profiler's library writes there by itself."""
    saved = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nothing)


# -- collection ------------------------------------------------------------------------------


def our_rate(config: TrainConfig, batches: int) -> Measure:
    """Turns a second of the loop's own collection, resets included."""
    trainer = Trainer(config)
    counter = FlopCounter()
    agents = trainer.agents
    state = {"episodes": 0}

    def measure() -> float:
        turns = 0
        start = clock()
        for _ in range(batches):
            seeds = training_seeds(config.seed, state["episodes"], config.num_envs)
            state["episodes"] += config.num_envs
            trainer.game.reset(seeds)
            batch = rollout(trainer.game, agents.policy, agents.coordination, counter)
            turns += batch.num_turns
        return turns / (clock() - start)

    return measure
