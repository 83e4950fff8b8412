"""Stacked networks: A independent multi-layer perceptrons, evaluated together or one by one.

Parameters carry the agent as their first dimension, so that one batched matrix product serves all
agents; no weight is shared, and an agent's gradient touches its own slice only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    """A linear layer per agent: weights ``(A, in, out)``, biases ``(A, 1, out)``."""

    def __init__(
        self, agents: int, inputs: int, outputs: int, gain: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        bound = gain * math.sqrt(3.0 / inputs)
        weight = torch.empty(agents, inputs, outputs).uniform_(-bound, bound, generator=generator)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(agents, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """``(A, N, in)``, or ``(N, in)`` shown to every agent, to ``(A, N, out)``."""
        if x.dim() == 2:
            x = x.expand(self.weight.shape[0], -1, -1)
        return torch.baddbmm(self.bias, x, self.weight)

    def one(self, agent: int, x: Tensor) -> Tensor:
        """``(N, in)`` to ``(N, out)`` through one agent's layer."""
        return torch.addmm(self.bias[agent, 0], x, self.weight[agent])


class StackedMLP(nn.Module):
    """A perceptron per agent with ReLU hidden layers and linear output.

    Args:
        agents: A.
        sizes: input, hidden layers, output.
        output_gain: scale of the initial output weights; small means near-uniform softmax.
        generator: source of the initial weights.
    """

    def __init__(
        self,
        agents: int,
        sizes: Sequence[int],
        generator: torch.Generator,
        output_gain: float = 0.01,
    ) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        pairs = list(itertools.pairwise(sizes))
        self.hidden = nn.ModuleList(
            StackedLinear(agents, a, b, math.sqrt(2.0), generator) for a, b in pairs[:-1]
        )
        self.output = StackedLinear(agents, *pairs[-1], output_gain, generator)

    def features(self, x: Tensor) -> Tensor:
        """Last hidden layer of every agent, ``(A, N, hidden)``."""
        for layer in self.hidden:
            x = torch.relu_(layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of every agent, ``(A, N, out)``."""
        out: Tensor = self.output(self.features(x))
        return out

    def features_one(self, agent: int, x: Tensor) -> Tensor:
        """Last hidden layer of one agent, ``(N, hidden)``."""
        for layer in self.hidden:
            assert isinstance(layer, StackedLinear)
            x = torch.relu_(layer.one(agent, x))
        return x

    def one(self, agent: int, x: Tensor) -> Tensor:
        """Outputs of one agent, ``(N, out)``."""
        return self.output.one(agent, self.features_one(agent, x))
