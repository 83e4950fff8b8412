"""`TextPolicy`: agents that read and write instead of seeing vectors.

They draw whole answers, keep them in the batch's transcript, and differentiate the answers'
log-probabilities. Two things of them are not those of networks: the distribution of a bid is not
known as a whole, so that its policy gradient is taken from the answers; and the cold start is a
fine-tuning on texts.
"""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.config import ColdStartConfig
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy
from mpt_train.records import Batch, Demonstrations
from mpt_train.runs.interrupt import StopRequest
from wrappers.vector import VectorGame


class TextPolicy(Policy, abc.ABC):
    """Agents that answer in text (see the top of this file)."""

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
    def read_demonstrations(self, game: VectorGame) -> None:
        """Read the file that the cold start learns from (`LanguageConfig.demonstrations`).

        Called before any work is done, so that a file that cannot be used is told then.

        Args:
            game: of the run, for the names of its agents.
        """

    @abc.abstractmethod
    def watch(
        self,
        demonstrations: Demonstrations,
        game: VectorGame,
        seed: int,
        stop: StopRequest | None = None,
    ) -> None:
        """Play demonstrations again and keep what agents read and should have answered.

        Args:
            demonstrations: recorded episodes.
            game: the game they were played in.
            seed: training seed of the run.
            stop: polled between answers.
        """

    @abc.abstractmethod
    def fit_flop(self, config: ColdStartConfig) -> int:
        """About how many operations `fit` will take."""

    @abc.abstractmethod
    def fit(
        self,
        config: ColdStartConfig,
        seed: int,
        counter: FlopCounter,
        stop: StopRequest | None = None,
    ) -> dict[str, float]:
        """The cold start: supervised learning on the answers that were read or watched.

        Args:
            config: epochs, batch size, learning rate.
            seed: training seed of the run.
            counter: operations.
            stop: polled between micro-batches.

        Returns:
            The losses of the last epoch.
        """
