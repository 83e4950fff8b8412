"""`Policy`: the agents of a run, of whatever kind; and `TurnContext`, what they act on in a turn.

A policy bids, acts, and turns episodes into losses. So rollouts, branches and learners are the same
for small networks over vectors and for language models over text.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train.flops import FlopCounter
from mpt_train.records import Batch, Pairs
from wrappers.vector import VectorGame

Refine = Callable[[int, Tensor, Tensor], Tensor]
"""`Coordination.refine`: action logits of an agent in the light of messages."""


@dataclass
class TurnContext:
    """What a coordination strategy and a policy may look at in one turn of n active worlds.

    Attributes:
        policy: the agents.
        observations: ``float32 (n, D)`` where all agents observe the same, else ``(A, n, D)``.
        masks: legal actions, ``bool (n, K)`` per agent, padded with False to the largest K.
        present: ``bool (n, A)``.
        keys, turns: ``(n,)`` for counter-based noise.
        num_levels: L; level L - 1 is the highest bid.
        roles: role name of each agent.
        counter: where the strategy counts its operations, under `part`.
        features: the strategy may leave the action features ``(A, n, H)`` of `bid_logits` here.
        messages: the strategy may leave what agents told each other, ``float32 (n, M)``; it is
            recorded and given back to `Coordination.refine`.
        choice_logits: a strategy that learns leaves what its choice was drawn from, ``float32
            (n, ...)``; it is recorded and given back to `Coordination.choice_log_prob`.
        game: the game, for agents that read: in the bid phase, or in the act phase once the
            auction is over.
        rows: worlds of the game that the n rows are.
        transcript: where agents that answer in text keep their answers.
    """

    policy: Policy
    observations: Tensor
    masks: list[NDArray[np.bool_]]
    present: NDArray[np.bool_]
    keys: NDArray[np.uint64]
    turns: NDArray[np.int64]
    num_levels: int
    roles: tuple[str, ...]
    counter: FlopCounter
    part: str
    features: Tensor | None = None
    messages: Tensor | None = None
    choice_logits: Tensor | None = None
    game: VectorGame | None = None
    rows: NDArray[np.int64] | None = None
    transcript: Any = None

    def observation_of(self, agent: int) -> Tensor:
        """The agent's observations, ``(n, D)``."""
        return self.observations if self.observations.dim() == 2 else self.observations[agent]


class Policy(nn.Module, abc.ABC):
    """The agents of a run (see the top of this file).

    Attributes:
        observation_size: longest observation of any agent.
        action_counts: number of actions of each agent.
        num_agents: A.
        num_actions: K, the largest number of actions of any agent.
        num_levels: L, the number of bid levels; 0 for agents that never bid.
        base_name: of the model that all of them are built on; "": none.
    """

    base_name = ""
    observation_size: int
    action_counts: tuple[int, ...]
    num_agents: int
    num_actions: int
    num_levels: int

    def base(self) -> dict[str, Tensor]:
        """Fingerprints of the parts of that model, which checkpoints keep; empty: none."""
        return {}

    # -- rollouts ----------------------------------------------------------------------------

    def new_transcript(self) -> Any:
        """What a batch of episodes keeps answers in: ``statistics() -> dict``; None: nothing."""
        return None

    @abc.abstractmethod
    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """Bid levels ``(n, A)`` of one turn; 0 for absent agents. Counts operations."""

    @abc.abstractmethod
    def act(
        self, context: TurnContext, winners: NDArray[np.int64], refine: Refine, log_probs: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """Actions ``(n,)`` of the winners, after the auction; -1 where there is none.

        Args:
            context: of the turn, as the strategy has left it.
            winners: ``(n,)``, -1 where nobody acts.
            refine: of the strategy, for the logits of agents that were sent messages.
            log_probs: whether the actions' log-probabilities ``(n,)`` are wanted; a policy that
                keeps them in the transcript returns None.
        """

    # -- learning ----------------------------------------------------------------------------

    @abc.abstractmethod
    def lower_bids(
        self,
        batch: Batch,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
        resamples: int,
        counter: FlopCounter,
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Draw the winners' bids of contested turns again (see `BranchPlayer`).

        Returns:
            A level below the runner-up's, or -1, for each turn; and, of agents that answer in text,
            for each the pair of the winner's own answer and the new one (anything where there is
            none).
        """

    @abc.abstractmethod
    def action_loss(
        self,
        batch: Batch,
        refine: Refine,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None = None,
    ) -> tuple[Tensor, float]:
        """REINFORCE on the actions of the turns that each agent acted in.

        Each agent's loss is a mean over its own turns; the agents' losses are added, which couples
        nothing where they share no parameter.

        Args:
            batch: recorded episodes.
            refine: of the strategy.
            advantage: ``(T, N)``, multiplies the log-probabilities.
            entropy_weight: of an entropy bonus.
            counter: operations of the update.
            clip: see `surrogate`; the batch must hold the actions' log-probabilities then.

        Returns:
            The loss, and the mean entropy.
        """

    @abc.abstractmethod
    def preference_loss(
        self, pairs: Pairs, counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """Bradley-Terry: ``-log sigmoid(log pi(chosen) - log pi(rejected))``, weighted mean."""
