"""`SwarmPolicy`: an action head and a bid head per agent, over small independent networks.

`sample_rows` draws from masked softmax distributions with counter-based Gumbel noise, so that what
an agent does is a pure function of its logits and of (episode, turn, agent): a branch that meets
the same situation does the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train import flops
from mpt_train.config import NetworkConfig
from mpt_train.networks import StackedLinear, StackedMLP
from wrappers.compiled import kernel
from wrappers.rng import uniform4

NEGATIVE = -1e9
"""Logit of what a mask forbids."""
_INDEX_STRIDE = 4096


class Policy(nn.Module):
    """The agents of a run, of whatever kind.

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


class SwarmPolicy(Policy):
    """Independent policies of A agents: small networks over vector observations.

    Args:
        observation_size: longest observation of any agent; shorter ones are padded with zeros.
        action_counts: number of actions of each agent; logits are padded to the largest.
        num_levels: L, the number of bid levels; 0 for a policy that never bids.
        config: widths.
        seed: of the initial weights.
    """

    def __init__(
        self,
        observation_size: int,
        action_counts: Sequence[int],
        num_levels: int,
        config: NetworkConfig,
        seed: int,
    ) -> None:
        super().__init__()
        if not config.hidden:
            raise ValueError("network.hidden needs at least one hidden layer")
        generator = torch.Generator().manual_seed(seed)
        self.observation_size = observation_size
        self.action_counts = tuple(action_counts)
        self.num_agents = len(action_counts)
        self.num_levels = num_levels
        self.num_actions = max(action_counts)
        sizes = (observation_size, *config.hidden)
        self.actor = StackedMLP(self.num_agents, (*sizes, self.num_actions), generator)
        self.shares_features = num_levels > 0 and config.bid_hidden is None
        self.bid_head: StackedLinear | None = None
        self.bidder: StackedMLP | None = None
        if self.shares_features:
            self.bid_head = StackedLinear(
                self.num_agents, config.hidden[-1], num_levels, 0.01, generator
            )
        elif num_levels:
            assert config.bid_hidden is not None
            bid_sizes = (observation_size, *config.bid_hidden, num_levels)
            self.bidder = StackedMLP(self.num_agents, bid_sizes, generator)
        self.feature_flop = flops.layers(sizes)
        self.action_head_flop = flops.layers((sizes[-1], self.num_actions))
        if self.shares_features:
            self.bid_flop = self.feature_flop + flops.layers((sizes[-1], num_levels))
        else:
            self.bid_flop = flops.layers(self.bidder.sizes) if self.bidder else 0

    @property
    def act_flop(self) -> int:
        """Forward cost of one action, without features computed for a bid before."""
        return self.feature_flop + self.action_head_flop

    @property
    def act_after_bid_flop(self) -> int:
        """Forward cost of one action right after a bid on the same observation."""
        return self.action_head_flop if self.shares_features else self.act_flop

    def bid_logits(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Bid logits ``(A, N, L)``, and the action features ``(A, N, H)`` if they are shared."""
        if self.bid_head is not None:
            features = self.actor.features(x)
            return self.bid_head(features), features
        assert self.bidder is not None
        return self.bidder(x), None

    def bid_logits_one(self, agent: int, x: Tensor) -> Tensor:
        """Bid logits of one agent, ``(N, L)``."""
        if self.bid_head is not None:
            return self.bid_head.one(agent, self.actor.features_one(agent, x))
        assert self.bidder is not None
        return self.bidder.one(agent, x)

    def action_logits_one(self, agent: int, x: Tensor) -> Tensor:
        """Action logits of one agent, ``(N, K)``, padded entries included."""
        return self.actor.one(agent, x)

    def action_head_one(self, agent: int, features: Tensor) -> Tensor:
        """Action logits of one agent from its features ``(N, H)``."""
        return self.actor.output.one(agent, features)


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities over the legal entries; ``mask`` is bool and never all False."""
    return torch.log_softmax(logits.masked_fill(~mask, NEGATIVE), dim=-1)


@kernel
def _sample(  # type: ignore[no-untyped-def]
    logits, mask, keys, turns, stream, agents, attempt, out
):
    for row in range(logits.shape[0]):
        first = (attempt * 64 + agents[row]) * _INDEX_STRIDE
        best = -np.inf
        for k in range(logits.shape[1]):
            if mask[row, k]:
                unit = uniform4(keys[row], turns[row], stream, first + k)
                value = logits[row, k] - np.log(-np.log(unit + 1e-17))
                if value > best:
                    best = value
                    out[row] = k


@kernel
def _sample_all(logits, keys, turns, stream, out):  # type: ignore[no-untyped-def]
    for agent in range(logits.shape[0]):
        first = agent * _INDEX_STRIDE
        for row in range(logits.shape[1]):
            top = -np.inf
            for k in range(logits.shape[2]):
                top = max(top, logits[agent, row, k])
            total = 0.0
            for k in range(logits.shape[2]):
                total += np.exp(logits[agent, row, k] - top)
            left = uniform4(keys[row], turns[row], stream, first) * total
            for k in range(logits.shape[2]):
                left -= np.exp(logits[agent, row, k] - top)
                if left < 0.0:
                    break
            out[row, agent] = k


def sample_rows(
    logits: NDArray[np.float32],
    mask: NDArray[np.bool_],
    keys: NDArray[np.uint64],
    turns: NDArray[np.int64],
    stream: np.uint64,
    agent: int | NDArray[np.int64],
    attempt: int = 0,
) -> NDArray[np.int64]:
    """One draw a row from ``softmax(logits)`` over legal entries, by the Gumbel-max trick.

    Args:
        logits: ``float32 (N, K)``.
        mask: ``bool (N, K)``, at least one True a row.
        keys, turns: ``(N,)``, key the noise together with ``stream``, ``agent`` and ``attempt``.
        agent: whose draw it is; one for all rows, or ``(N,)``.
    """
    out = np.zeros(logits.shape[0], np.int64)
    agents = agent if isinstance(agent, np.ndarray) else np.full(len(out), agent, np.int64)
    _sample(logits, mask, keys, turns, stream, agents, attempt, out)
    return out


@kernel
def _log_prob(logits, mask, actions, out):  # type: ignore[no-untyped-def]
    for row in range(logits.shape[0]):
        if actions[row] < 0:
            continue
        top = -np.inf
        for k in range(logits.shape[1]):
            if mask[row, k] and logits[row, k] > top:
                top = logits[row, k]
        total = 0.0
        for k in range(logits.shape[1]):
            if mask[row, k]:
                total += np.exp(logits[row, k] - top)
        out[row] = logits[row, actions[row]] - top - np.log(total)


def log_prob_rows(
    logits: NDArray[np.float32], mask: NDArray[np.bool_], actions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Log-probability of ``actions: (N,)`` under ``softmax(logits)`` over legal entries.

    Rows whose action is -1 hold 0.
    """
    out = np.zeros(logits.shape[0], np.float32)
    _log_prob(logits, mask, actions, out)
    return out


def sample_all(
    logits: NDArray[np.float32],
    keys: NDArray[np.uint64],
    turns: NDArray[np.int64],
    stream: np.uint64,
) -> NDArray[np.int64]:
    """One draw for each agent and row, nothing masked: ``float32 (A, N, K)`` to ``(N, A)``.

    By the inverse of the cumulative distribution, for choices that have an order (bid levels): the
    same noise draws neighbouring levels from distributions that hardly differ.
    """
    out = np.zeros((logits.shape[1], logits.shape[0]), np.int64)
    _sample_all(logits, keys, turns, stream, out)
    return out
