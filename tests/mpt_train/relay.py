"""Tiny training runs on the relay task, shared by the trainer's tests."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpt_envs import register, registry
from mpt_train.config import ColdStartConfig, EvalConfig, NetworkConfig, TrainConfig
from mpt_train.methods import method_config
from tests.toys import RelayTask

RELAY = "toys/relay-v0"


def register_relay() -> str:
    """Register the relay task, once; its id."""
    if RELAY not in registry:
        register(RELAY, task=RelayTask)
    return RELAY


def tiny(method: str, budget_gflop: float = 0.005, **changes: Any) -> TrainConfig:
    """A run of a method that takes about a second."""
    config = method_config(method, task=register_relay(), budget_gflop=budget_gflop, num_envs=8)
    bid_hidden = (6,) if config.network.bid_hidden else None
    small = dataclasses.replace(
        config,
        network=NetworkConfig(hidden=(8,), bid_hidden=bid_hidden, critic_hidden=(8,)),
        cold_start=ColdStartConfig(episodes=6, epochs=2, batch_size=64),
        eval=EvalConfig(worlds=6, repeats=2, curve_points=2, curve_worlds=4),
        checkpoint_every=2,
        optimizer=dataclasses.replace(
            config.optimizer, minibatches=min(2, config.optimizer.minibatches)
        ),
    )
    return dataclasses.replace(small, **changes)
