"""What a coordination strategy is: a source of bids.

Round-robin bids one-hot in rotation, random bids uniformly, a router bids one-hot for the agent it
selects, and the market lets agents bid for themselves. So every strategy runs through the same
environment, rollout, credit and logs, and can be swapped over the same action policies.

To bring your own: subclass `Coordination`, implement `bids`, and `register` it under a name.
"""

from __future__ import annotations

import abc
import difflib
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train.config import TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.policy import Policy
from mpt_train.rollout import Batch, TurnContext
from wrappers.user_module import import_user_module


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


Builder = Callable[[TrainConfig, "Shape"], Coordination]


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


_BUILDERS: dict[str, Builder] = {}


def register(name: str, builder: Builder) -> None:
    """Make a strategy known under ``name`` (for `TrainConfig.coordination` and `mpt eval`)."""
    if name in _BUILDERS:
        raise ValueError(f"a coordination strategy named {name!r} is registered already")
    _BUILDERS[name] = builder


def names() -> tuple[str, ...]:
    """Names of all registered strategies."""
    return tuple(_BUILDERS)


def build(name: str, config: TrainConfig, shape: Shape) -> Coordination:
    """Build a registered strategy.

    Args:
        name: of the strategy; or ``module:name``, which imports the module first, so that a module
            of your own can register its strategies.
        config, shape: what the builder is given.

    Raises:
        ValueError: unknown name, or no such module.
    """
    if ":" in name:
        module, _, name = name.partition(":")
        import_user_module(module, f"the coordination {name!r}", ValueError)
    if name not in _BUILDERS:
        close = difflib.get_close_matches(name, _BUILDERS, n=2)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        known = ", ".join(sorted(_BUILDERS))
        raise ValueError(f"unknown coordination {name!r}; {hint}known: {known}")
    return _BUILDERS[name](config, shape)
