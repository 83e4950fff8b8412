"""Adam, as every learner here uses it: clipped per agent, counted, and saved with the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from mpt_train.config import OptimizerConfig
from mpt_train.errors import CheckpointError, DivergedError
from mpt_train.flops import ADAM_PER_PARAMETER, FlopCounter


class Adam:
    """Adam on named parameters, whose learning rate follows the compute that is used.

    Args:
        parameters: by name; the names are those of checkpoints.
        config: learning rate, decay, clipping.
        budget: operations of the run, over which the learning rate decays.
        prefix: of the names of its state in checkpoints; a learner with several needs several.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        config: OptimizerConfig,
        budget: float,
        prefix: str = "adam",
    ) -> None:
        self._parameters = dict(parameters)
        self._config = config
        self._budget = budget
        self._prefix = prefix
        self._adam = torch.optim.Adam(
            self._parameters.values(), lr=config.learning_rate, fused=True
        )

    def step(self, losses: Sequence[Tensor], counter: FlopCounter) -> float:
        """Follow the gradient of the sum of losses; returns its norm before clipping.

        Raises:
            DivergedError: the gradient is not finite; no parameter has changed.
        """
        config = self._config
        fraction = min(1.0, counter.total / self._budget)
        scale = 1.0 - 0.9 * fraction if config.decay == "linear" else 1.0
        for group in self._adam.param_groups:
            group["lr"] = config.learning_rate * scale
        self._adam.zero_grad(set_to_none=True)
        sum(losses, torch.zeros(())).backward()
        norm = clip_per_agent(self._parameters, config.max_grad_norm)
        if not math.isfinite(norm):
            raise DivergedError(f"the gradient is {norm}")
        self._adam.step()
        touched = sum(p.numel() for p in self._parameters.values() if p.grad is not None)
        counter.add("update_adam", ADAM_PER_PARAMETER * touched)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Its state, by name."""
        return {
            f"{self._prefix}.{key}.{name}": value
            for name, parameter in self._parameters.items()
            for key, value in self._adam.state.get(parameter, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor], path: Path) -> None:
        """Take the state back from the tensors of a checkpoint.

        Args:
            tensors: those of `tensors`, and others.
            path: the checkpoint's folder, for messages.

        Raises:
            CheckpointError: a tensor does not fit.
        """
        for name, parameter in self._parameters.items():
            moments = {
                key: tensors[f"{self._prefix}.{key}.{name}"]
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{self._prefix}.{key}.{name}" in tensors
            }
            if any(m.shape != parameter.shape for key, m in moments.items() if key != "step"):
                raise CheckpointError(
                    f"the checkpoint in {path} does not fit the run's configuration: Adam's "
                    f"moments of {name} have another shape"
                )
            if moments:
                # Adam keeps its step counter on the CPU, wherever the parameter is.
                self._adam.state[parameter] = {
                    key: m if key == "step" else m.to(parameter.device)
                    for key, m in moments.items()
                }


@torch.no_grad()
def clip_per_agent(parameters: Mapping[str, torch.nn.Parameter], limit: float) -> float:
    """Scale gradients so that each network's norm is at most ``limit``.

    The first dimension of every parameter is the agent (`StackedLinear`). Parameters are grouped
    by the first part of their name; within a group, each agent is clipped on its own, as
    independent networks would be. A group with parameters of another shape (a strategy that brings
    an ordinary module) is clipped as one network. Agents with a module each (``policy.agents.0``)
    are a group each.

    Returns:
        The largest norm before clipping; NaN if one is NaN.
    """
    largest = torch.zeros(())
    groups: dict[tuple[str, ...], list[torch.Tensor]] = {}
    for name, parameter in parameters.items():
        if parameter.grad is not None:
            part, *rest = name.split(".")
            group = (part, *rest[:2]) if rest[:1] == ["agents"] else (part,)
            groups.setdefault(group, []).append(parameter.grad)
    for group, gradients in groups.items():
        stacked = len(group) == 1 and all(
            g.dim() > 1 and len(g) == len(gradients[0]) for g in gradients
        )
        if not stacked:
            gradients = [g.unsqueeze(0) if g.dim() else g.view(1, 1) for g in gradients]
        norms = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
        largest = torch.maximum(largest, norms.max().cpu())
        scale = (limit / norms.clamp_min(1e-12)).clamp_max(1.0)
        for gradient in gradients:
            gradient.mul_(scale.view(-1, *([1] * (gradient.dim() - 1))))
    return float(largest)
