"""Drawing from masked softmax distributions, and their log-probabilities.

`sample_rows` draws with counter-based Gumbel noise, so that what an agent does is a pure function
of its logits and of (episode, turn, agent): a branch that meets the same situation does the same
thing.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrappers.compiled import kernel
from wrappers.rng import uniform4

NEGATIVE = -1e9
"""Logit of what a mask forbids."""
_INDEX_STRIDE = 4096


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
