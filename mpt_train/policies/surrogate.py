"""The loss of a policy gradient: REINFORCE, or PPO's clipped surrogate."""

from __future__ import annotations

import torch
from torch import Tensor


def surrogate(
    log_prob: Tensor, weight: Tensor, old: Tensor | None = None, clip: float | None = None
) -> Tensor:
    """The loss whose gradient is that of REINFORCE; clipped where the policy has moved on.

    A batch that serves several updates is played by an older policy from the second one on. Then
    the ratio of the two probabilities takes the place of the log-probability, and what would move
    it beyond ``1 - clip`` or ``1 + clip`` does not count (PPO, Schulman et al., 2017).

    Args:
        log_prob: ``(n,)`` of what was done, under the present parameters.
        weight: ``(n,)`` advantages.
        old: ``(n,)`` log-probabilities of the policy that did it.
        clip: None: plain REINFORCE.
    """
    if clip is None:
        return -(log_prob * weight).mean()
    assert old is not None
    ratio = (log_prob - old).exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -torch.minimum(ratio * weight, clipped * weight).mean()
