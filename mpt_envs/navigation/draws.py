"""Random choices of a generator, as pure functions of a key: the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from wrappers.rng import as_key, hash_rows

_T = TypeVar("_T")
_TO_UNIT = 1.0 / (1 << 53)
_BLOCK = 128  # words drawn at a time


class Draws:
    """A sequence of draws of one stream of a key.

    Args:
        key: of the episode.
        stream: what the draws are for.
        attempt: counts the sequences of this stream.
    """

    def __init__(self, key: int, stream: int, attempt: int = 0) -> None:
        self._keys = np.array([as_key(key)])
        self._stream = np.uint64(stream)
        # Blocks of a sequence are counted like turns.
        self._turns = np.array([attempt << 32], np.int64)
        self._words: list[int] = []

    def _more(self) -> list[int]:
        block = np.empty((1, _BLOCK), np.uint64)
        hash_rows(self._keys, self._turns, self._stream, block)
        self._turns += 1
        self._words = block[0].tolist()
        return self._words

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        return low + (high - low) * (((self._words or self._more()).pop() >> 11) * _TO_UNIT)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return ((self._words or self._more()).pop() >> 11) * _TO_UNIT < probability

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + (self._words or self._more()).pop() % (high - low + 1)

    def choice(self, items: Sequence[_T]) -> _T:
        """One of the items."""
        return items[(self._words or self._more()).pop() % len(items)]

    def shuffled(self, items: Sequence[_T]) -> list[_T]:
        """The items in random order."""
        found = list(items)
        for index in range(len(found) - 1, 0, -1):
            other = (self._words or self._more()).pop() % (index + 1)
            found[index], found[other] = found[other], found[index]
        return found
