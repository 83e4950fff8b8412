"""Values as plain JSON: NumPy and torch numbers become Python's, and nothing is lost on the way.

JSON has no NaN and no infinity, and Python writes words that other readers refuse. Here they are
the strings "NaN", "Infinity" and "-Infinity" (as in the JSON form of protocol buffers), so that
every file is valid JSON and a diverged run can still be logged; `from_plain` turns them back.
Finite floats are written with all digits: they come back as the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_plain(value: Any) -> Any:
    """A value as what `json.dumps` writes the same way everywhere.

    Takes None, strings, numbers, sequences and mappings of these, NumPy and torch scalars and
    arrays (anything with ``tolist``). Tuples become lists, keys become strings.

    Raises:
        TypeError: a value of any other type.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    raise TypeError(f"{value!r} ({type(value).__name__}) cannot be written as JSON")


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain`, up to tuples and keys: the three strings become floats again."""
    if isinstance(value, str):
        return _NAMES.get(value, value)
    if isinstance(value, dict):
        return {key: from_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return value
