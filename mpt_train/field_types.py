"""Whether the values of a configuration are of the types that its fields name.

The command line reads values by these types; a file that somebody has edited need not follow them.
"""

from __future__ import annotations

import dataclasses
import numbers
import types
import typing
from collections.abc import Collection
from typing import Any, Literal, Union

_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    types.NoneType: "null",
}


def wrong_types(values: Any, skip: Collection[str] = (), where: str = "") -> list[str]:
    """What is wrong with the types of a dataclass's values, and of the dataclasses in it.

    Args:
        values: a dataclass of texts, numbers, truth values, tuples of these and dataclasses.
        skip: dotted names of fields that are checked elsewhere.
        where: what stands in front of the names of the fields.
    """
    problems = []
    hints = typing.get_type_hints(type(values))
    for field in dataclasses.fields(values):
        name, value, hint = where + field.name, getattr(values, field.name), hints[field.name]
        if name in skip:
            continue
        if dataclasses.is_dataclass(hint) and isinstance(value, typing.cast(type, hint)):
            problems += wrong_types(value, skip, f"{name}.")
        elif not _fits(value, hint):
            problems.append(f"{name} must be {_words(hint)}, got {value!r:.80}")
    return problems


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return any(type(value) is type(known) and value == known for known in arguments)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, (tuple, list)) and all(_fits(v, arguments[0]) for v in value)
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    """A type in words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(repr(known) for known in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(one) for one in arguments)
    if origin is tuple:
        return f"a list, each {_words(arguments[0])}"
    return _WORDS.get(hint, f"a group of fields ({getattr(hint, '__name__', hint)})")
