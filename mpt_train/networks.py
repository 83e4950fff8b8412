"""Stacked networks: A independent multi-layer perceptrons, evaluated together or one by one.

Parameters carry the agent as their first dimension, so that one batched matrix product serves all
agents; no weight is shared, and an agent's gradient touches its own slice only.
"""

from __future__ import annotations

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
            agents, inputs, outputs = self.weight.shape
            flat = self.weight.permute(1, 0, 2).reshape(inputs, agents * outputs)
            out = (x @ flat).view(x.shape[0], agents, outputs).permute(1, 0, 2)
            return out + self.bias
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
        last = len(sizes) - 2
        self.layers = nn.ModuleList(
            StackedLinear(
                agents,
                sizes[i],
                sizes[i + 1],
                output_gain if i == last else math.sqrt(2.0),
                generator,
            )
            for i in range(last + 1)
        )

    def features(self, x: Tensor) -> Tensor:
        """Last hidden layer of every agent, ``(A, N, hidden)``."""
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of every agent, ``(A, N, out)``."""
        out: Tensor = self.layers[-1](self.features(x))
        return out

    def features_one(self, agent: int, x: Tensor) -> Tensor:
        """Last hidden layer of one agent, ``(N, hidden)``."""
        for layer in self.layers[:-1]:
            assert isinstance(layer, StackedLinear)
            x = torch.relu(layer.one(agent, x))
        return x

    def one(self, agent: int, x: Tensor) -> Tensor:
        """Outputs of one agent, ``(N, out)``."""
        layer = self.layers[-1]
        assert isinstance(layer, StackedLinear)
        return layer.one(agent, self.features_one(agent, x))
