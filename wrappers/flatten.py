"""Any Gymnasium observation as one float32 vector.

Dict and Tuple spaces are taken apart; each part that Gymnasium can flatten to numbers
(`gymnasium.spaces.utils.flatten`: Box as it is, Discrete and MultiDiscrete one-hot, MultiBinary,
OneOf) goes into the vector, in the order of the space. What has no fixed length or no numbers
(Text, mission strings, Graph, Sequence, spaces that Gymnasium does not know) is left out and named
in `FlatObservation.dropped`. Values are not rescaled: pixels stay 0 to 255.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten, flatten_space
from numpy.typing import NDArray

_NO_NUMBERS = (spaces.Text, spaces.Graph, spaces.Sequence)


class FlatObservation:
    """Turns observations of one space into vectors.

    Attributes:
        size: length of the vectors.
        low, high: bounds of every entry.
        dropped: paths of the parts that are left out, e.g. ``("mission",)``.

    Raises:
        ValueError: nothing of the space can be flattened.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._leaves: list[tuple[tuple[Any, ...], spaces.Space[Any]]] = []
        self.dropped: tuple[str, ...] = ()
        self.size = 0
        self.low, self.high = float("inf"), -float("inf")
        for path, leaf in _leaves(space, ()):
            size = _flat_size(leaf)
            if size is None:
                self.dropped += (".".join(map(str, path)) or "observation",)
                continue
            self._leaves.append((path, leaf))
            self.size += size
            box = flatten_space(leaf)
            assert isinstance(box, spaces.Box)
            with np.errstate(over="ignore"):
                self.low = min(self.low, float(np.float32(box.low.min())))
                self.high = max(self.high, float(np.float32(box.high.max())))
        if not self.size:
            raise ValueError(
                f"no part of the observation space {space} can be flattened to numbers; wrap the "
                "environment so that it observes a Box, Discrete, MultiDiscrete or MultiBinary"
            )

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """The observation as a fresh ``float32 (size,)``."""
        out = np.empty(self.size, np.float32)
        start = 0
        for path, leaf in self._leaves:
            part = observation
            for key in path:
                part = part[key]
            values = np.asarray(flatten(leaf, part)).ravel()
            out[start : start + values.size] = values
            start += values.size
        return out


def _leaves(
    space: spaces.Space[Any], path: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], spaces.Space[Any]]]:
    """Every part of a space that is neither Dict nor Tuple, with the keys that lead to it."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _leaves(part, (*path, index))
    else:
        yield path, space


def _flat_size(space: spaces.Space[Any]) -> int | None:
    """Length of the flattened space, or None where there is none."""
    if isinstance(space, _NO_NUMBERS):
        return None
    try:
        return flatdim(space)
    except (NotImplementedError, ValueError):
        return None
