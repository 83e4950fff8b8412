"""Counter-based draws for the generator, as a small object: the n-th draw of a key is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from wrappers.rng import STREAM_DOMAIN, hash_rows

T = TypeVar("T")

_BLOCK: Final = 4096
_STREAM: Final = np.uint64(STREAM_DOMAIN + 200)


class Dice:
    """Draws ``hash4(key, block, stream, index)`` one after the other.

    Args:
        key: names the sequence; any int below 2**64.
    """

    def __init__(self, key: int) -> None:
        self._key = np.array([key], np.uint64)
        self._block = 0
        self._values: list[int] = []

    def word(self) -> int:
        """The next 64 random bits."""
        if not self._values:
            out = np.empty((1, _BLOCK), np.uint64)
            hash_rows(self._key, np.array([self._block], np.int64), _STREAM, out)
            self._values = out[0].tolist()
            self._block += 1
        return self._values.pop()

    def below(self, bound: int) -> int:
        """An int from 0 up to, without, ``bound``."""
        return self.word() % bound

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.word() < probability * 18446744073709551616.0

    def pick(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self.word() % len(choices)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All of them in another order (Fisher and Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.word() % (i + 1)
            result[i], result[j] = result[j], result[i]
        return result
