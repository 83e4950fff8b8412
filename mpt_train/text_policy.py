"""`TextPolicy`: what the loop asks of agents that read and write instead of seeing vectors.

The small networks (`SwarmPolicy`) give the loop distributions over bid levels and actions, from
which it draws and which it differentiates. A policy that answers in text draws whole answers
itself, keeps them in the batch's transcript, and differentiates their log-probabilities itself. So
the loop hands these parts over; everything else, the game, the auction, credit, branches,
schedule, optimizer, logs and checkpoints, is the same for both.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.policy import Policy

if TYPE_CHECKING:
    from mpt_train.branches import Pairs
    from mpt_train.cold_start import Demonstrations
    from mpt_train.config import BidLearning, ColdStartConfig
    from mpt_train.flops import FlopCounter
    from mpt_train.rollout import Batch, TurnContext
    from wrappers.vector import VectorGame


class TextPolicy(Policy, abc.ABC):
    """Agents that answer in text (see the top of this file)."""

    # -- rollouts ----------------------------------------------------------------------------

    @abc.abstractmethod
    def new_transcript(self) -> Any:
        """What a batch of episodes keeps the answers in: ``statistics() -> dict``."""

    @abc.abstractmethod
    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """Bid levels ``(n, A)`` of one turn; 0 for absent agents. Counts operations."""

    @abc.abstractmethod
    def act(self, context: TurnContext, winners: NDArray[np.int64]) -> NDArray[np.int64]:
        """Actions ``(n,)`` of the winners, after the auction; -1 where there is none."""

    # -- learning ----------------------------------------------------------------------------

    @abc.abstractmethod
    def lower_bids(
        self,
        batch: Batch,
        config: BidLearning,
        counter: FlopCounter,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Draw the winners' bids of contested turns again (see `BranchPlayer`).

        Returns:
            A level below the runner-up's, or -1, for each turn; and for each the pair of the
            winner's own answer and the new one (anything where there is none).
        """

    @abc.abstractmethod
    def action_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, float]:
        """As `losses.action_loss`: the loss, and the mean entropy."""

    @abc.abstractmethod
    def bid_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, dict[str, float]]:
        """REINFORCE on every present agent's own bid, with the team's advantage ``(T, N)``."""

    @abc.abstractmethod
    def preference_loss(
        self, pairs: Pairs, responses: Sequence[Any], counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """Bradley-Terry on pairs ``(chosen, rejected)`` of answers."""

    @abc.abstractmethod
    def fit(
        self,
        demonstrations: Demonstrations,
        game: VectorGame,
        config: ColdStartConfig,
        seed: int,
        counter: FlopCounter,
    ) -> dict[str, float]:
        """The cold start: supervised learning on demonstrated answers; returns the losses.

        Args:
            demonstrations: recorded episodes.
            game: the game they were played in, to play them again and read what agents read.
            config: epochs, batch size, learning rate.
            seed: training seed of the run.
            counter: operations.
        """

    @abc.abstractmethod
    def read_demonstrations(self, game: VectorGame) -> None:
        """Read the file that the cold start learns from (`LanguageConfig.demonstrations`).

        Called before any work is done, so that a file that cannot be used is told then.

        Args:
            game: of the run, for the names of its agents.
        """

    @abc.abstractmethod
    def fit_file(
        self, config: ColdStartConfig, seed: int, counter: FlopCounter
    ) -> dict[str, float]:
        """As `fit`, on the demonstrations of the file that was read."""
