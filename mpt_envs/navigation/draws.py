"""Random choices of a generator, as pure functions of a key: the same on every machine.

`Draws` is for Python; kernels use the state that `begin` makes and the functions after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from mpt_envs.navigation.kernel import kernel
from wrappers.rng import as_key, hash4

_T = TypeVar("_T")
_TO_UNIT: Final = 1.0 / (1 << 53)
_BLOCK: Final = 128  # words that are numbered from the last to the first; a power of two
_AT_ONCE: Final = 32  # words that `Draws` takes from a kernel

# Columns of the state of a sequence in a kernel.
_KEY: Final = 0
_STREAM: Final = 1
_TURN: Final = 2
_COUNT: Final = 3  # words drawn so far
_N_STATE: Final = 4


class Draws:
    """A sequence of draws of one stream of a key.

    Args:
        key: of the episode.
        stream: what the draws are for.
        attempt: counts the sequences of this stream.
    """

    def __init__(self, key: int, stream: int, attempt: int = 0) -> None:
        self._state = begin(as_key(key), stream, attempt)
        self._words: list[int] = []  # the next one last

    def _more(self) -> list[int]:
        self._words = _words(self._state).tolist()
        return self._words

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return ((self._words or self._more()).pop() >> 11) * _TO_UNIT < probability

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + (self._words or self._more()).pop() % (high - low + 1)

    def choice(self, items: Sequence[_T]) -> _T:
        """One of the items."""
        return items[(self._words or self._more()).pop() % len(items)]


# --- kernels ------------------------------------------------------------------------------------
@kernel
def begin(key, stream, attempt):
    """The state of a sequence, for the functions below.

    Args:
        key: of the episode, uint64.
        stream: what the draws are for.
        attempt: counts the sequences of this stream.
    """
    state = np.empty(_N_STATE, np.uint64)
    state[_KEY] = np.uint64(key)
    state[_STREAM] = np.uint64(stream)
    state[_TURN] = np.uint64(attempt << 32)
    state[_COUNT] = np.uint64(0)
    return state


@kernel
def _word(state):
    """The next word. Blocks are counted like turns, and each is used from its end."""
    count = np.int64(state[_COUNT])
    state[_COUNT] = np.uint64(count + 1)
    turn = state[_TURN] + np.uint64(count // _BLOCK)
    return hash4(state[_KEY], turn, state[_STREAM], np.uint64(_BLOCK - 1 - count % _BLOCK))


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
