"""JSON objects in the answers of language models, with every value that a key is given.

`json.loads` keeps the last of two values with the same key, and so decides for a model that has
said two things. Here an object keeps all of its pairs, and who reads it sees that there are two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


class Fields:
    """A JSON object: its pairs in order. Keys are taken without regard to case and outer space.

    Args:
        pairs: keys and values.
    """

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self.pairs = [(key.strip().lower(), value) for key, value in pairs]

    def __repr__(self) -> str:
        return "{...}"

    def values(self, key: str) -> list[Any]:
        """The values of a key: none, one, or two that differ, of however many there are."""
        found: list[Any] = []
        for name, value in self.pairs:
            if name == key and not (found and _same(value, found[0])):
                found.append(value)
                if len(found) == 2:
                    break
        return found

    def single(self) -> dict[str, Any] | None:
        """The object as a dictionary; None: a key in it has two values."""
        single: dict[str, Any] = {}
        for name, value in self.pairs:
            if name in single and not _same(single[name], value):
                return None
            single[name] = value
        return single


def read_json(text: str) -> Any:
    """What a JSON text says, each object in it a `Fields`.

    Raises:
        ValueError: it is no JSON, or nested too deeply to be read.
    """
    try:
        return json.loads(text, object_pairs_hook=Fields)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _same(one: Any, other: Any) -> bool:
    """Whether two values say the same: 1 and 1.0 do, 1 and true do not, nor do two objects."""
    try:
        return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
    except RecursionError:
        return False
