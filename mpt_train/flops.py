"""Counting floating-point operations, the currency in which methods are compared.

Convention (that of Kaplan et al., 2020, and the one usual for multi-layer perceptrons): a linear
layer of ``in x out`` weights costs ``2 in out`` operations a sample going forward and twice that
going backward. Biases, activations, sampling and the environment are left out for every method
alike. Adam is counted with 12 operations a parameter and step.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

BACKWARD = 2
"""Cost of a backward pass as a multiple of its forward pass."""
ADAM_PER_PARAMETER = 12


def layers(sizes: Sequence[int]) -> int:
    """Forward cost of one sample through linear layers of these sizes (input first)."""
    return sum(2 * a * b for a, b in itertools.pairwise(sizes))


@dataclass
class FlopCounter:
    """Operations so far, in total and by what they were for."""

    total: int = 0
    parts: dict[str, int] = field(default_factory=dict)

    def add(self, part: str, operations: int) -> None:
        """Count operations for a part such as "bid", "act", "branch", "update_action"."""
        self.total += operations
        self.parts[part] = self.parts.get(part, 0) + operations
