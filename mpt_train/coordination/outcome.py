"""The probability of an auction's outcome, over all bids that could have been drawn."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor


@functools.cache
def _quadrature(agents: int) -> tuple[tuple[float, float], ...]:
    """Nodes in [0, 1] and weights that integrate polynomials of degree ``agents - 1`` exactly."""
    nodes, weights = np.polynomial.legendre.leggauss((agents + 1) // 2)
    return tuple(zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


def outcome_log_prob(log_probs: Tensor, present: Tensor, winners: Tensor) -> Tensor:
    """Log-probability of each auction's outcome, over all bids that could have been drawn.

    With independent bids, agent w wins at level l with probability p_w(l) times the integral over
    u in [0, 1] of prod_{j != w} (P_j(bid < l) + u p_j(l)), where u is w's rank among equal bids
    (ties are broken uniformly). The integrand is a polynomial in u of degree A - 1, which
    Gauss-Legendre quadrature integrates exactly. Nobody wins if all bid level 0.

    Args:
        log_probs: ``(A, n, L)`` of each agent's bid.
        present: ``bool (A, n)``; who is absent bids level 0.
        winners: ``int64 (n,)``, -1 where the turn was skipped.

    Returns:
        ``(n,)``.
    """
    agents, _, levels = log_probs.shape
    silent = torch.zeros(levels)
    silent[0] = 1.0
    probs = torch.where(present[:, :, None], log_probs.exp(), silent)
    below = probs.cumsum(-1) - probs
    skipped = torch.where(present[:, :, None], log_probs, torch.zeros(()))[:, :, 0].sum(0)
    index = winners.clamp_min(0)
    own = torch.nn.functional.one_hot(index, agents).T.bool()
    own_probs = probs[index, torch.arange(len(index)), 1:]
    win = torch.zeros_like(own_probs)
    for node, node_weight in _quadrature(agents):
        factors = below[:, :, 1:] + node * probs[:, :, 1:]
        others = torch.where(own[:, :, None], torch.ones(()), factors)
        win = win + node_weight * others.prod(0)
    won = torch.log((own_probs * win).sum(-1).clamp_min(1e-12))
    return torch.where(winners >= 0, won, skipped)
