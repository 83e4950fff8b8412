"""World seeds: training, demonstrations, validation and evaluation never share a world.

A seed is a 63-bit number; its top bits say what the world is for, the rest counts. Evaluation
worlds are the same for every method and every training seed; so are validation worlds, on which
hyperparameters are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_EVALUATION = 1 << 60
_DEMONSTRATION = 1 << 59
_VALIDATION = 1 << 58
_RUN_BITS = 40


def training_seeds(run_seed: int, first_episode: int, count: int) -> NDArray[np.int64]:
    """Seeds of ``count`` training episodes of a run, from its ``first_episode``-th on."""
    return _block(run_seed, first_episode, count)


def demonstration_seeds(run_seed: int, count: int) -> NDArray[np.int64]:
    """Seeds of the demonstration episodes of a run."""
    return _block(run_seed, 0, count) + _DEMONSTRATION


def evaluation_seeds(count: int) -> NDArray[np.int64]:
    """The held-out worlds, the same for everyone."""
    return np.arange(count, dtype=np.int64) + _EVALUATION


def validation_seeds(count: int) -> NDArray[np.int64]:
    """Held-out worlds for choosing hyperparameters: no comparison ever looks at them."""
    return np.arange(count, dtype=np.int64) + _VALIDATION


def _block(run_seed: int, first: int, count: int) -> NDArray[np.int64]:
    if not 0 <= run_seed < 1 << 18:
        raise ValueError(f"a training seed must be in [0, {(1 << 18) - 1}], got {run_seed}")
    return np.arange(first, first + count, dtype=np.int64) + (run_seed << _RUN_BITS)
