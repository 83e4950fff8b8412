"""A central critic: a baseline that depends on the state. Used in training only.

It predicts two things from the central observation: the credit of whoever acts, and the team's
discounted return. Subtracting a function of the state leaves the expected gradient of REINFORCE
unchanged (Williams, 1992) and takes out the part of its variance that the state explains.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train.coordination.base import central_rows
from mpt_train.flops import BACKWARD, FlopCounter, layers
from mpt_train.policies.networks import StackedMLP
from mpt_train.records import Batch

CREDIT, TEAM = 0, 1
"""Columns of the critic's output."""


class Critic(nn.Module):
    """A perceptron from the central observation to (credit of the actor, return of the team).

    Args:
        inputs: width of the central observation.
        hidden: hidden layers.
        seed: of the initial weights.
    """

    def __init__(self, inputs: int, hidden: tuple[int, ...], seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.network = StackedMLP(1, (inputs, *hidden, 2), generator)
        self.flop = layers(self.network.sizes)

    def predict(self, batch: Batch, counter: FlopCounter) -> tuple[Tensor, NDArray[np.float64]]:
        """Predictions for every turn that was played.

        Returns:
            The predictions ``(n, 2)`` with their graph, in the order of ``batch.active``; and the
            same as plain numbers ``(T, N, 2)``, 0 where no turn was played.
        """
        output = self.network.one(0, central_rows(batch, batch.active))
        counter.add("critic", (1 + BACKWARD) * self.flop * len(output))
        values = np.zeros((*batch.active.shape, 2))
        values[batch.active] = output.detach().numpy()
        return output, values


def critic_loss(
    output: Tensor, batch: Batch, credit: NDArray[np.float64], returns: NDArray[np.float64]
) -> Tensor:
    """Mean squared error; turns without an actor have no credit to predict."""
    active = batch.active
    targets = torch.from_numpy(np.stack([credit[active], returns[active]], axis=1)).float()
    errors = (output - targets).square()
    acted = torch.from_numpy(batch.acted[active]).float()
    return (errors[:, CREDIT] * acted).mean() + errors[:, TEAM].mean()
