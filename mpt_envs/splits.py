"""Which split of a fixed stock of episodes a seed draws from.

Worlds that are generated are new for every seed. Where there is a stock (questions, recorded
episodes), what a policy is evaluated on must not be among what it was trained on. So a stock is
split, and the range of the seed says which part is meant; `mpt_train.seeds` keeps to these ranges.
"""

from __future__ import annotations

from typing import Final

TRAINING: Final = 0
DEVELOPMENT: Final = 1
"""Demonstrations of a cold start, and validation, on which settings are chosen."""
EVALUATION: Final = 2


def split_of(seed: int) -> int:
    """`TRAINING` below 2**58, `EVALUATION` from 2**60 on, `DEVELOPMENT` in between."""
    if seed >= 1 << 60:
        return EVALUATION
    return DEVELOPMENT if seed >= 1 << 58 else TRAINING
