"""A learned central router: one network sees everything and names the agent that acts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train import flops
from mpt_train.config import TrainConfig
from mpt_train.coordination.base import (
    Coordination,
    Shape,
    central,
    central_rows,
    central_size,
    one_hot_bids,
    register,
)
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy, TurnContext
from mpt_train.policies.distributions import masked_log_softmax, sample_rows
from mpt_train.policies.networks import StackedMLP
from mpt_train.records import Batch, take
from wrappers.rng import STREAM_COORDINATION


class Router(Coordination):
    """Samples the acting agent from a softmax over agents; learned by REINFORCE.

    Args:
        inputs: width of the central observation.
        hidden: hidden layers.
        num_agents: A.
        seed: of the initial weights.
    """

    name = "router"

    def __init__(self, inputs: int, hidden: tuple[int, ...], num_agents: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.network = StackedMLP(1, (inputs, *hidden, num_agents), generator)
        self.module = self.network
        self._flop = flops.layers(self.network.sizes)

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """The highest bid for the sampled agent."""
        logits = self.network.one(0, central(context.observations)).numpy()
        anyone = context.present.any(axis=1)
        winners = sample_rows(
            logits, context.present, context.keys, context.turns, STREAM_COORDINATION, 0
        )
        context.counter.add(context.part + "_bid", self._flop * len(winners))
        context.choice_logits = torch.from_numpy(logits)
        return one_hot_bids(
            np.where(anyone, winners, -1), context.present.shape[1], context.num_levels
        )

    def choice_logits(
        self, policy: Policy, batch: Batch, where: NDArray[np.bool_], counter: FlopCounter
    ) -> Tensor:
        """Logits ``(n, A)`` of the agents."""
        logits = self.network.one(0, central_rows(batch, where))
        counter.add("update_bid", (1 + flops.BACKWARD) * self._flop * len(logits))
        return logits

    def choice_log_prob(
        self, logits: Tensor, batch: Batch, where: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Of the agent that acted, among those present."""
        log_probs = masked_log_softmax(logits, take(batch.present, where))
        chosen = log_probs.gather(1, take(batch.winners, where)[:, None])[:, 0]
        return chosen, -(log_probs.exp() * log_probs).sum(-1).mean()

    def cold_start_loss(
        self, policy_rows: Tensor, winners: Tensor, counter: FlopCounter
    ) -> Tensor | None:
        """Cross-entropy to the demonstrated winner."""
        counter.add("cold_start", (1 + flops.BACKWARD) * self._flop * len(winners))
        return torch.nn.functional.cross_entropy(self.network.one(0, policy_rows), winners)


def _build(config: TrainConfig, shape: Shape) -> Coordination:
    inputs = central_size(shape.shared, shape.observation_size, shape.num_agents)
    hidden = config.network.bid_hidden or config.network.hidden
    return Router(inputs, hidden, shape.num_agents, config.seed * 7919 + 1)


register("router", _build)
