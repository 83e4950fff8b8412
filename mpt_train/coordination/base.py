"""What a coordination strategy is: a source of bids.

Round-robin bids one-hot in rotation, random bids uniformly, a router bids one-hot for the agent it
selects, and the market lets agents bid for themselves. So every strategy runs through the same
environment, rollout, credit and logs, and can be swapped over the same action policies.

To bring your own: subclass `Coordination`, implement `bids`, and `register` it under a name.
"""

from __future__ import annotations

import abc

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train.config import TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy, TurnContext
from mpt_train.policies.surrogate import surrogate
from mpt_train.records import Batch, take
from mpt_train.registry import Registry


class Coordination(abc.ABC):
    """A source of bids. Stateless between turns, apart from the parameters of `module`."""

    name: str
    module: nn.Module | None = None
    """Parameters of the strategy's own; learned by REINFORCE on `choice_log_prob`, and saved."""

    @abc.abstractmethod
    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """Bid levels ``(n, A)`` of one turn. Count operations in ``context.counter``."""

    def refine(self, agent: int, logits: Tensor, messages: Tensor) -> Tensor:
        """The agent's action logits ``(n, K)`` in the light of ``context.messages`` rows."""
        return logits

    def chosen(self, batch: Batch) -> NDArray[np.bool_]:
        """Turns ``bool (T, N)`` in which the strategy made a choice to learn from."""
        return batch.acted

    def choice_logits(
        self, policy: Policy, batch: Batch, where: NDArray[np.bool_], counter: FlopCounter
    ) -> Tensor | None:
        """What the choices of the turns ``where`` would be drawn from under present parameters.

        Args:
            policy: the agents.
            batch: recorded episodes.
            where: n turns, ``bool (T, N)``.
            counter: operations, with those of the backward pass.

        Returns:
            ``float32 (n, ...)``, as `bids` leaves in ``context.choice_logits``; None if there is
            nothing to learn.
        """
        return None

    def choice_log_prob(
        self, logits: Tensor, batch: Batch, where: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Log-probability ``(n,)`` of what was chosen, and the mean entropy of the choices.

        Args:
            logits: of `choice_logits`, or those recorded.
            batch, where: as there.
        """
        raise NotImplementedError(f"{type(self).__name__} learns nothing")

    def choice_loss(
        self,
        policy: Policy,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None = None,
    ) -> tuple[Tensor | None, dict[str, float]]:
        """REINFORCE on who acts, with the team's advantage of the turn.

        What is learned is up to the strategy: the agents' bids in the market, a router's network,
        the judges of Graph-of-Agents.

        Args:
            policy: the agents.
            batch: recorded episodes.
            advantage: ``(T, N)`` team advantage of each turn.
            entropy_weight: of an entropy bonus.
            counter: operations of the update.
            clip: see `surrogate`.

        Returns:
            The loss, None if the strategy learns nothing; and the entropy of its choices.

        Raises:
            ValueError: the strategy does not record what it draws from, and ``clip`` needs it.
        """
        where = self.chosen(batch)
        logits = self.choice_logits(policy, batch, where, counter)
        if logits is None:
            return None, {}
        log_prob, entropy = self.choice_log_prob(logits, batch, where)
        old = None
        if clip is not None:
            if batch.choice_logits is None:
                raise ValueError(
                    f"the strategy {self.name!r} does not record what it draws from: leave it in "
                    "context.choice_logits, or use --optimizer.minibatches 1"
                )
            old, _ = self.choice_log_prob(take(batch.choice_logits, where), batch, where)
        loss = surrogate(log_prob, take(advantage, where).float(), old, clip)
        if entropy_weight:
            loss = loss - entropy_weight * entropy
        return loss, {"bid_entropy": float(entropy.detach())}

    def cold_start_loss(
        self, policy_rows: Tensor, winners: Tensor, counter: FlopCounter
    ) -> Tensor | None:
        """Supervised loss on demonstrated winners ``(n,)``, or None.

        Args:
            policy_rows: central observations ``(n, D)`` (see `central`).
            winners: who acted in the demonstration.
        """
        return None


def central(observations: Tensor) -> Tensor:
    """What a central strategy sees: the shared observation, or all of them side by side."""
    if observations.dim() == 2:
        return observations
    return torch.cat(list(observations), dim=-1)


def central_rows(batch: Batch, where: NDArray[np.bool_]) -> Tensor:
    """`central` for recorded turns, ``(n, D)``."""
    return central(batch.rows_of_all(where))


def central_size(shared: bool, observation_size: int, num_agents: int) -> int:
    """Width of `central` observations."""
    return observation_size if shared else observation_size * num_agents


def one_hot_bids(winners: NDArray[np.int64], num_agents: int, num_levels: int) -> NDArray[np.int64]:
    """The highest bid for one agent a row, 0 for the others; -1 leaves a row without bids."""
    bids = np.zeros((len(winners), num_agents), np.int64)
    rows = np.flatnonzero(winners >= 0)
    bids[rows, winners[rows]] = num_levels - 1
    return bids


class Shape:
    """Sizes that a strategy needs to build its networks.

    Attributes:
        observation_size, num_agents, num_actions, num_levels, shared, roles: of the game.
    """

    def __init__(
        self,
        observation_size: int,
        num_agents: int,
        num_actions: int,
        num_levels: int,
        shared: bool,
        roles: tuple[str, ...],
    ) -> None:
        self.observation_size = observation_size
        self.num_agents = num_agents
        self.num_actions = num_actions
        self.num_levels = num_levels
        self.shared = shared
        self.roles = roles


_REGISTRY: Registry[[TrainConfig, Shape], Coordination] = Registry("coordination")
register, names, build = _REGISTRY.register, _REGISTRY.names, _REGISTRY.build
