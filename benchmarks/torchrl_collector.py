"""TorchRL's collector on our environments, to compare our loop's collection with.

Both collectors run on one core, on the same task, and with the same networks. Ours is
`mpt_train.rollout.rollout` on the batch of worlds that a run uses. TorchRL's `Collector` drives
the AEC environment through its `PettingZooWrapper`, with a single environment or with several in a
`SerialEnv`. Its policy evaluates only what a step needs: the bid network or the action network of
the one agent that is asked.

This module needs the extra ``interop``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torchrl import collectors
from torchrl.envs import MarlGroupMapType, PettingZooWrapper, SerialEnv

from benchmarks.timing import clock
from mpt_envs import make
from mpt_train.config import TrainConfig
from mpt_train.loop import Trainer
from mpt_train.policies.distributions import masked_log_softmax
from mpt_train.policies.swarm import SwarmPolicy


class MarketPolicy(TensorDictModuleBase):
    """Our networks for TorchRL: bids and actions of whoever is asked, in any batch of steps.

    Args:
        policy: the networks.
        agents: their names, which are TorchRL's groups.
    """

    def __init__(self, policy: SwarmPolicy, agents: tuple[str, ...]) -> None:
        super().__init__()
        self.policy = policy
        self.agents = agents
        self.in_keys = [
            key
            for name in agents
            for key in (
                (name, "observation", "observation"),
                (name, "action_mask"),
                (name, "mask"),
            )
        ]
        self.out_keys = [(name, "action") for name in agents]

    @torch.no_grad()
    def forward(self, step: TensorDictBase) -> TensorDictBase:
        """Write an action for every agent; only the one of the agent that is asked counts."""
        levels = self.policy.num_levels
        for index, name in enumerate(self.agents):
            asked = step.get((name, "mask")).reshape(-1)
            actions = torch.zeros(asked.shape[0], dtype=torch.int64)
            if asked.any():
                seen = step.get((name, "observation", "observation")).flatten(0, -2)
                legal = step.get((name, "action_mask")).flatten(0, -2)
                acting = legal[:, levels:].any(dim=-1)
                for rows, first, act in (
                    (asked & acting, levels, True),
                    (asked & ~acting, 0, False),
                ):
                    if rows.any():
                        actions[rows] = first + self._sample(index, seen[rows], legal[rows], act)
            step.set((name, "action"), actions.reshape(step.get((name, "mask")).shape))
        return step

    def _sample(
        self, agent: int, seen: torch.Tensor, legal: torch.Tensor, act: bool
    ) -> torch.Tensor:
        levels = self.policy.num_levels
        if act:
            count = self.policy.action_counts[agent]
            logits = self.policy.action_logits_one(agent, seen)[:, :count]
            legal = legal[:, levels:]
        else:
            logits = self.policy.bid_logits_one(agent, seen)
            legal = legal[:, :levels]
        return torch.multinomial(masked_log_softmax(logits, legal).exp(), 1)[:, 0]


@dataclass
class TorchRLCollection:
    """TorchRL's collector on the AEC environment of a task.

    Args:
        config: task, bid levels and networks.
        num_envs: environments in a `SerialEnv`; 1: a plain environment.
        frames: environment steps of one measurement.
    """

    config: TrainConfig
    num_envs: int
    frames: int

    def __post_init__(self) -> None:
        kind = getattr(collectors, "Collector", None) or collectors.SyncDataCollector
        trainer = Trainer(dataclasses.replace(self.config, num_envs=1))
        self._agents = trainer.game.possible_agents
        networks = trainer.agents.policy
        assert isinstance(networks, SwarmPolicy)
        policy = MarketPolicy(networks, self._agents)
        self._levels = networks.num_levels
        environment: Any = self._environment
        if self.num_envs > 1:
            environment = SerialEnv(self.num_envs, self._environment)
        self.collector = kind(
            environment, policy, frames_per_batch=self.frames, total_frames=-1, device="cpu"
        )
        self._batches = iter(self.collector)

    def _environment(self) -> Any:
        env = self.config.env
        return PettingZooWrapper(
            make(self.config.task, bid_levels=env.bid_levels, max_turns=env.max_turns),
            use_mask=True,
            categorical_actions=True,
            group_map=MarlGroupMapType.ONE_GROUP_PER_AGENT,
        )

    def measure(self) -> float:
        """Turns a second, resets included."""
        start = clock()
        batch = next(self._batches)
        seconds = clock() - start
        bids = 0
        for name in self._agents:
            asked = batch.get((name, "mask")).reshape(-1)
            legal = batch.get((name, "action_mask")).flatten(0, -2)
            bids += int((asked & ~legal[:, self._levels :].any(dim=-1)).sum())
        # Every agent is asked for a bid exactly once a turn.
        return bids / len(self._agents) / seconds

    def close(self) -> None:
        """End the collector."""
        self.collector.shutdown()


@dataclass(frozen=True)
class Fastest:
    """The faster of several collectors, measured one after the other."""

    collections: tuple[TorchRLCollection, ...]

    def measure(self) -> float:
        """Turns a second of the faster one."""
        return max(collection.measure() for collection in self.collections)

    def close(self) -> None:
        """End all."""
        for collection in self.collections:
            collection.close()
