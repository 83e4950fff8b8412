"""The trainable part of a run: the swarm's policies and the coordination over them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from mpt_train import coordination as strategies
from mpt_train.config import TrainConfig
from mpt_train.coordination.base import Coordination, Shape
from mpt_train.errors import CheckpointError
from mpt_train.policies.base import Policy
from mpt_train.policies.swarm import SwarmPolicy
from wrappers.vector import VectorGame


@dataclass
class Agents:
    """Policies and coordination, with their parameters under stable names.

    Attributes:
        beside: modules that only learning needs, such as a critic, by the name of their parameters
            in checkpoints; the learner puts them here.
    """

    policy: Policy
    coordination: Coordination
    shape: Shape
    beside: dict[str, nn.Module] = field(default_factory=dict)

    def named_parameters(self) -> dict[str, nn.Parameter]:
        """All parameters: ``policy.*``, ``coordination.*``, and those beside them."""
        modules = {
            "policy": self.policy,
            "coordination": self.coordination.module,
            **self.beside,
        }
        return {
            f"{part}.{name}": parameter
            for part, module in modules.items()
            if module is not None
            for name, parameter in module.named_parameters()
        }

    def base(self) -> dict[str, Tensor]:
        """Fingerprints of the model below the agents (`Policy.base`), as ``base.*``."""
        return {f"base.{name}": mark for name, mark in self.policy.base().items()}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take parameters from a checkpoint's tensors.

        Raises:
            CheckpointError: one is missing, of another shape, or holds what is no finite number, or
                the model below them is another one; nothing was taken then.
        """
        for name, mark in self.base().items():
            # Checkpoints of earlier releases have none.
            kept = tensors.get(name, mark)
            if torch.equal(kept, mark):
                continue
            if name == "base.configuration":
                # Another release of transformers may write the same one in other words.
                warnings.warn(
                    f"the configuration of {self.policy.base_name} is not the one that this "
                    "checkpoint was learned on, or is read by another release of transformers; "
                    "results may differ",
                    stacklevel=2,
                )
            else:
                raise CheckpointError(
                    f"this checkpoint was learned on another model than {self.policy.base_name} "
                    f"is now: the fingerprint of its {name.partition('.')[2]} was {_hex(kept)} and "
                    f"is {_hex(mark)}; bring the model back that it was learned on, or start the "
                    "run again"
                )
        parameters = self.named_parameters()
        for name, parameter in parameters.items():
            if name not in tensors or tensors[name].shape != parameter.shape:
                found = tuple(tensors[name].shape) if name in tensors else "nothing"
                raise CheckpointError(
                    f"this checkpoint does not fit the run's configuration: {name} should have "
                    f"shape {tuple(parameter.shape)}, found {found}"
                )
            if not (tensors[name].is_floating_point() and torch.isfinite(tensors[name]).all()):
                raise CheckpointError(
                    f"this checkpoint cannot be used: {name} holds what is no finite number; "
                    "restore the folder from a copy, or start the run again"
                )
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])


def _hex(mark: Tensor) -> str:
    return bytes(mark.flatten().to(torch.uint8).tolist()).hex()[:16]


def build_agents(config: TrainConfig, game: VectorGame) -> Agents:
    """Freshly initialised agents for a game; the weights follow from ``config.seed``."""
    shape = Shape(
        observation_size=max(game.observation_sizes),
        num_agents=game.num_agents,
        num_actions=max(game.action_counts),
        num_levels=len(game.bid_levels),
        shared=game.shared_observation,
        roles=game.roles,
    )
    bids = config.coordination == "learned"
    policy: Policy
    if config.policy == "language":
        from mpt_train.language.policy import build_policy

        policy = build_policy(config, game)
    else:
        policy = SwarmPolicy(
            shape.observation_size,
            game.action_counts,
            shape.num_levels if bids else 0,
            config.network,
            config.seed * 7919,
        )
    strategy = strategies.build(config.coordination, config, shape)
    return Agents(policy, strategy, shape)
