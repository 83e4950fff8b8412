"""Counter-based randomness: a draw is a pure function of what it is for.

No generator with a hidden position exists anywhere in an environment. A draw is
``hash4(key, turn, stream, index)``: the episode's key, the turn, what is being drawn (a stream
constant) and a running index. Two branches of one episode that share a key therefore share their
luck turn by turn, however many draws either of them has made before.

The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), applied once per word.

All functions are compiled by numba; they are called from other kernels at no cost and from Python
at about 0.2 microseconds. 64-bit words are ``numpy.uint64``; from Python any int below 2**64 is
taken after `as_key`.
"""

from __future__ import annotations

import numpy as np

from wrappers.compiled import inlined, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MUL1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 1.0 / (1 << 53)

# Streams: what a draw is for. Domains use numbers from STREAM_DOMAIN on.
STREAM_EPISODE = np.uint64(1)
STREAM_TIE = np.uint64(2)
STREAM_DROPOUT = np.uint64(3)
STREAM_POLICY_BID = np.uint64(4)
STREAM_POLICY_ACTION = np.uint64(5)
STREAM_RESAMPLE = np.uint64(6)
STREAM_COORDINATION = np.uint64(7)
STREAM_BRANCH = np.uint64(8)
STREAM_EXPERT = np.uint64(9)
STREAM_DOMAIN = 1000


@inlined
def mix64(word):
    """Finalise one 64-bit word: a bijection whose output bits depend on all input bits."""
    word = (word ^ (word >> _S30)) * _MUL1
    word = (word ^ (word >> _S27)) * _MUL2
    return word ^ (word >> _S31)


@kernel
def hash4(key, turn, stream, index):
    """Hash four words to one ``uint64``; every argument is converted to ``uint64``."""
    word = mix64(np.uint64(key) + _GOLDEN)
    word = mix64((word ^ np.uint64(turn)) + _GOLDEN)
    word = mix64((word ^ np.uint64(stream)) + _GOLDEN)
    return mix64((word ^ np.uint64(index)) + _GOLDEN)


@kernel
def uniform4(key, turn, stream, index):
    """A float64 in [0, 1) with 53 random bits, keyed like `hash4`."""
    return np.float64(hash4(key, turn, stream, index) >> _S11) * _TO_UNIT


@kernel
def gumbel_rows(keys, turns, stream, first_index, out):
    """Fill ``out`` with standard Gumbel noise, a row per world.

    Args:
        keys: ``uint64 (N,)`` random key of each world.
        turns: ``int64 (N,)`` turn counter of each world.
        stream: what the noise is for.
        first_index: index of column 0; column k uses ``first_index + k``.
        out: ``float32 (N, K)``, overwritten.
    """
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            unit = uniform4(keys[row], turns[row], stream, first_index + column)
            # Half a step away from 0 keeps both logarithms finite.
            out[row, column] = -np.log(-np.log(unit + 0.5 * _TO_UNIT))


@kernel
def hash_rows(keys, turns, stream, out):
    """Fill ``out: uint64 (N, K)`` with ``hash4(keys[n], turns[n], stream, k)``."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = hash4(keys[row], turns[row], stream, column)


def as_key(value: int) -> np.uint64:
    """Any Python int as a ``uint64`` word (two's complement for negative ones)."""
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def episode_key(seed: int, episode: int = 0) -> np.uint64:
    """The random key of the ``episode``-th episode after ``reset(seed)``.

    Every draw of an episode, of the task, the game or a policy that wants common random numbers,
    is keyed by this word.
    """
    return np.uint64(hash4(as_key(seed), as_key(episode), STREAM_EPISODE, np.uint64(0)))
