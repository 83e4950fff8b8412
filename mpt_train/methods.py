"""Methods: named configurations of the one training loop.

A method is a coordination (``coordination``: who acts), a credit (``action.credit``: what of the
reward an actor gets) and a learner (``learner``: how parameters change).
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

from mpt_train.config import (
    ActionLearning,
    BidLearning,
    EnvConfig,
    NetworkConfig,
    OptimizerConfig,
    TrainConfig,
)


@dataclass(frozen=True)
class Method:
    """A named configuration.

    Attributes:
        title: how tables and plots call it.
        description: one sentence.
        config: the configuration, for the default task.
    """

    title: str
    description: str
    config: TrainConfig


# Learning rate, width, entropy bonus and updates per batch of each method are the best of the same
# small grid on validation worlds (benchmarks/tuning.py; all points are in benchmarks/results).
_BATCH = 128
_HIDDEN = (32, 32)
_CHOOSER = (16,)


def _rate(learning_rate: float, minibatches: int) -> OptimizerConfig:
    return OptimizerConfig(learning_rate=learning_rate, minibatches=minibatches)


def _discounted(entropy: float) -> ActionLearning:
    return ActionLearning(credit="discounted", baseline="value", normalize=True, entropy=entropy)


def _no_bids(entropy: float) -> BidLearning:
    return BidLearning(kind="none", entropy=entropy)


METHODS: dict[str, Method] = {
    "mpt": Method(
        "MPT",
        "The paper to the letter: market credit, agent-mean baseline, tenths, plain preferences.",
        TrainConfig(method="mpt", network=NetworkConfig(hidden=_HIDDEN), optimizer=_rate(4e-3, 1)),
    ),
    "mpt-plus": Method(
        "MPT+",
        "The market in the configuration that measures best: bids learned by policy gradient.",
        TrainConfig(
            method="mpt-plus",
            env=EnvConfig(bid_levels="crowded"),
            network=NetworkConfig(hidden=_HIDDEN, bid_hidden=_CHOOSER),
            action=ActionLearning(credit="value", baseline="value", normalize=True, entropy=0.01),
            bids=BidLearning(kind="policy_gradient", entropy=0.01),
            optimizer=_rate(8e-3, 16),
            num_envs=_BATCH,
            action_steps=0,
        ),
    ),
    "monolithic": Method(
        "Monolithic",
        "One policy with all roles' actions, REINFORCE with discount 0.95.",
        TrainConfig(
            method="monolithic",
            coordination="solo",
            network=NetworkConfig(hidden=_HIDDEN),
            action=_discounted(0.01),
            bids=_no_bids(0.01),
            optimizer=_rate(4e-3, 16),
            num_envs=_BATCH,
        ),
    ),
    "round-robin": Method(
        "Round-robin",
        "Agents act in rotation; discounted credit.",
        TrainConfig(
            method="round-robin",
            coordination="round-robin",
            network=NetworkConfig(hidden=_HIDDEN),
            action=_discounted(0.01),
            bids=_no_bids(0.01),
            optimizer=_rate(8e-3, 8),
            num_envs=_BATCH,
        ),
    ),
    "random-bids": Method(
        "Random bids",
        "Bids are drawn uniformly; discounted credit.",
        TrainConfig(
            method="random-bids",
            coordination="random",
            network=NetworkConfig(hidden=_HIDDEN),
            action=_discounted(0.01),
            bids=_no_bids(0.01),
            optimizer=_rate(8e-3, 16),
            num_envs=_BATCH,
        ),
    ),
    "graph-of-agents": Method(
        "Graph-of-Agents",
        "Agents propose, judge each other, exchange messages; the best-judged executes.",
        TrainConfig(
            method="graph-of-agents",
            coordination="graph-of-agents",
            network=NetworkConfig(hidden=_HIDDEN, bid_hidden=_CHOOSER),
            action=_discounted(0.03),
            bids=_no_bids(0.03),
            optimizer=_rate(8e-3, 8),
            num_envs=_BATCH,
            action_steps=0,
        ),
    ),
    "fixed-priority": Method(
        "Fixed priority",
        "The first role of a fixed order that can do more than idle acts; discounted credit.",
        TrainConfig(
            method="fixed-priority",
            coordination="priority",
            network=NetworkConfig(hidden=_HIDDEN),
            action=_discounted(0.01),
            bids=_no_bids(0.01),
            optimizer=_rate(4e-3, 8),
            num_envs=_BATCH,
        ),
    ),
    "router": Method(
        "Central router",
        "A learned network names the agent that acts; discounted credit.",
        TrainConfig(
            method="router",
            coordination="router",
            network=NetworkConfig(hidden=_HIDDEN, bid_hidden=_CHOOSER),
            action=_discounted(0.03),
            bids=_no_bids(0.03),
            optimizer=_rate(8e-3, 8),
            num_envs=_BATCH,
            action_steps=0,
        ),
    ),
}


def method_config(name: str, **changes: Any) -> TrainConfig:
    """The configuration of a method with some fields replaced.

    Raises:
        ValueError: unknown method; the message names close matches.
    """
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(METHODS)}"
        raise ValueError(f"unknown method {name!r}; {hint}")
    return dataclasses.replace(METHODS[name].config, **changes)
