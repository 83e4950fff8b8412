"""What a comparison has to know of a domain: compute, cold start, and an order of its roles.

The same for all methods. A domain that is not listed has the settings of crafting, without an order
of roles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpt_train.config import ColdStartConfig, TrainConfig


@dataclass(frozen=True)
class Tuned:
    """What is best for a method on the validation worlds of a domain (benchmarks/tuning.py).

    Attributes:
        learning_rate, entropy, minibatches: see `TrainConfig`; None: as in crafting, for which
            `mpt_train.methods` is tuned. The entropy bonus is that of actions and of choices.
    """

    learning_rate: float | None = None
    entropy: float | None = None
    minibatches: int | None = None

    def apply(self, config: TrainConfig) -> TrainConfig:
        """The configuration with these settings."""
        optimizer, action, bids = config.optimizer, config.action, config.bids
        if self.learning_rate is not None:
            optimizer = dataclasses.replace(optimizer, learning_rate=self.learning_rate)
        if self.minibatches is not None:
            optimizer = dataclasses.replace(optimizer, minibatches=self.minibatches)
        if self.entropy is not None:
            action = dataclasses.replace(action, entropy=self.entropy)
            bids = dataclasses.replace(bids, entropy=self.entropy)
        return dataclasses.replace(config, optimizer=optimizer, action=action, bids=bids)


@dataclass(frozen=True)
class Domain:
    """Settings of the comparisons in one domain.

    Attributes:
        full_gflop: compute of each run of a full comparison: enough for the learning curves of the
            methods to level off.
        quick_gflop: the same with --quick: what takes some minutes on two cores.
        priority: the best order of roles for a fixed priority (any order that puts a role early
            that can always do something starves those behind it); empty: that of the roster.
        cold_start: demonstrations. Where episodes are shorter there are more of them: an expert's
            episode of crafting has some sixty turns, one of navigation twenty, of research seven.
            None: the default one.
        batch: episodes of a batch, times those of the method: where they are shorter a batch needs
            more of them, or its updates have too few turns to learn from.
        tuned: by method, what is not as in crafting.
    """

    full_gflop: float = 200.0
    quick_gflop: float = 60.0
    priority: tuple[str, ...] = ()
    cold_start: ColdStartConfig | None = None
    batch: int = 1
    tuned: Mapping[str, Tuned] = field(default_factory=dict)

    def budget(self, quick: bool) -> float:
        """Compute of each run."""
        return self.quick_gflop if quick else self.full_gflop


DOMAINS = {
    "crafting": Domain(priority=("smith", "logger", "miner")),
    "navigation": Domain(
        quick_gflop=30.0,
        priority=("mover", "turner", "stopper"),
        cold_start=ColdStartConfig(episodes=192),
        tuned={
            "mpt-plus": Tuned(entropy=0.03),
            "monolithic": Tuned(entropy=0.03),
            "random-bids": Tuned(learning_rate=4e-3),
            "graph-of-agents": Tuned(entropy=0.01),
            "router": Tuned(learning_rate=16e-3),
        },
    ),
    "research": Domain(
        full_gflop=100.0,
        quick_gflop=60.0,
        priority=("finder", "opener", "searcher"),
        cold_start=ColdStartConfig(episodes=256, epochs=8),
        batch=4,
        tuned={
            "mpt": Tuned(learning_rate=8e-3),
            "mpt-plus": Tuned(entropy=0.03),
            "monolithic": Tuned(learning_rate=8e-3, entropy=0.03),
            "round-robin": Tuned(learning_rate=4e-3, entropy=0.03),
            "random-bids": Tuned(learning_rate=2e-3),
            "graph-of-agents": Tuned(learning_rate=16e-3),
            "router": Tuned(learning_rate=16e-3),
        },
    ),
}


def domain_name(task: str) -> str:
    """The domain that a task's id names, with or without a module before it."""
    return task.split(":")[-1].split("/")[0]


def domain_of(task: str) -> Domain:
    """The settings of the domain that a task's id names."""
    return DOMAINS.get(domain_name(task), Domain())


def for_domain(config: TrainConfig) -> TrainConfig:
    """The configuration with what a method can only know once the domain is known."""
    domain = domain_of(config.task)
    found = dataclasses.replace(
        config,
        priority=domain.priority or config.priority,
        cold_start=domain.cold_start or config.cold_start,
        num_envs=domain.batch * config.num_envs,
    )
    return domain.tuned.get(config.method, Tuned()).apply(found)
