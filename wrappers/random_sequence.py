"""A sequence of random choices as a pure function of a key: for generators of worlds.

`RandomSequence` is for Python; kernels use the state that `sequence` makes and the functions after
it, to the same choices. The words are those of `rng.hash4`: blocks are counted like turns, and each
block is used from its last word to its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from wrappers.compiled import kernel
from wrappers.rng import as_key, hash4

_T = TypeVar("_T")
_TO_UNIT: Final = 1.0 / (1 << 53)
_AT_ONCE: Final = 32  # words that `RandomSequence` takes from a kernel

# Columns of the state of a sequence in a kernel.
_KEY: Final = 0
_STREAM: Final = 1
_TURN: Final = 2
_COUNT: Final = 3  # words drawn so far
_BITS: Final = 4  # a block has 2**bits words
_N_STATE: Final = 5


class RandomSequence:
    """The choices of one stream of a key, one after the other.

    Args:
        key: any number; its lowest 64 bits count.
        stream: what the choices are for.
        attempt: counts the sequences of this stream.
        bits: 2**bits words are numbered from the last to the first.
    """

    def __init__(self, key: int, stream: int, attempt: int = 0, bits: int = 7) -> None:
        self._state = sequence(as_key(key), stream, attempt, bits)
        self._words: list[int] = []  # the next one last

    def _more(self) -> list[int]:
        self._words = _words(self._state).tolist()
        return self._words

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return ((self._words or self._more()).pop() >> 11) * _TO_UNIT < probability

    def below(self, bound: int) -> int:
        """A whole number from 0 up to, without, ``bound``."""
        return (self._words or self._more()).pop() % bound

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[_T]) -> _T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[_T]) -> list[_T]:
        """All items in another order (Fisher and Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result


# --- kernels ------------------------------------------------------------------------------------
@kernel
def sequence(key, stream, attempt, bits=7):
    """The state of a sequence, for the functions below; arguments as for `RandomSequence`."""
    state = np.empty(_N_STATE, np.uint64)
    state[_KEY] = np.uint64(key)
    state[_STREAM] = np.uint64(stream)
    state[_TURN] = np.uint64(attempt << 32)
    state[_COUNT] = np.uint64(0)
    state[_BITS] = np.uint64(bits)
    return state


@kernel
def _word(state):
    """The next 64 random bits."""
    count, bits = state[_COUNT], state[_BITS]
    state[_COUNT] = count + np.uint64(1)
    last = (np.uint64(1) << bits) - np.uint64(1)
    turn = state[_TURN] + (count >> bits)
    return hash4(state[_KEY], turn, state[_STREAM], last - (count & last))


@kernel
def _words(state):
    """Some of the next words, the first of them last."""
    words = np.empty(_AT_ONCE, np.uint64)
    for index in range(_AT_ONCE - 1, -1, -1):
        words[index] = _word(state)
    return words


@kernel
def chance(state, probability):
    """True with this probability."""
    return np.float64(_word(state) >> np.uint64(11)) * _TO_UNIT < probability


@kernel
def integer(state, low, high):
    """A whole number from low to high, both included."""
    return low + np.int64(_word(state) % np.uint64(high - low + 1))


@kernel
def shuffle(state, items):
    """Bring the items of an array ``(n,)`` into random order."""
    for index in range(len(items) - 1, 0, -1):
        other = integer(state, 0, index)
        items[index], items[other] = items[other], items[index]
