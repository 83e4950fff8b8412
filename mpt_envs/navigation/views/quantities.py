"""Reads how far to go or to turn from what follows a command: "75 cm", "by 0.5 m", "30 degrees".

A command without an amount is one thing, an amount that cannot be understood another: "turn left at
the door" has none, "turn left NaN degrees" has one that makes no sense.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_METRES: Final = ("m", "meter", "meters", "metre", "metres")
_CENTIMETRES: Final = ("cm", "cms", "centimeter", "centimeters", "centimetre", "centimetres")
_DEGREES: Final = ("deg", "degs", "degree", "degrees", "\u00b0")
#: Units that no command is given in; a number of them is an amount all the same.
_FOREIGN: Final = frozenset(
    (
        *("rad", "rads", "radian", "radians", "mm", "km", "ft", "foot", "feet", "inch", "inches"),
        *("yard", "yards", "mile", "miles", "step", "steps", "%", "percent"),
    )
)

_NUMBER: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))-?([a-z\u00b0%]*)", re.IGNORECASE
)
#: What may stand around an amount.
_MARKS: Final = ".,;:!?\"'`*_()[]<>"
_SIGNS: Final = "+-\u2212\u2013."


@dataclass(frozen=True)
class Unit:
    """A unit of amounts.

    Attributes:
        name: as messages call it.
        scale: by how it is written: how many of this unit that is.
        most: larger amounts are no slip but nonsense.
    """

    name: str
    scale: Mapping[str, float]
    most: float


CENTIMETRES: Final = Unit(
    "cm", dict.fromkeys(_CENTIMETRES, 1.0) | dict.fromkeys(_METRES, 100.0), 1000.0
)
DEGREES: Final = Unit("degrees", dict.fromkeys(_DEGREES, 1.0), 360.0)
_UNITS: Final = frozenset(CENTIMETRES.scale) | frozenset(DEGREES.scale) | _FOREIGN


class BadAmount(ValueError):
    """There is an amount, but it makes no sense; the text of the error is what was said."""


def read_amount(rest: str, unit: Unit) -> float | None:
    """The amount at the beginning of a text.

    Args:
        rest: what follows the command.
        unit: what it is counted in.

    Returns:
        The amount in this unit, above 0 and at most ``unit.most``; None if the text names none.

    Raises:
        BadAmount: it names one that cannot be read, is in another unit, or is out of range.
    """
    words = [word.strip(_MARKS.replace(".", "")).rstrip(_MARKS) for word in rest.split()[:4]]
    words = [word for word in words if word]
    if words and words[0].lower() == "by":
        words.pop(0)
    if not words:
        return None
    first, after = words[0], words[1].lower() if len(words) > 1 else ""
    said = f"{first} {after}" if after in _UNITS else first
    number = _NUMBER.fullmatch(first)
    if number is None:
        # A number in words, digits of other scripts, NaN: an amount, if nothing that can be read.
        written = any(letter.isnumeric() for letter in first)
        signed = first[0] in _SIGNS and len(first) > 1
        if written or signed or after in _UNITS:
            raise BadAmount(said[:40])
        return None
    named = number[2].lower() or (after if after in _UNITS else "")
    scale = unit.scale.get(named) if named else 1.0
    if scale is None:
        raise BadAmount(said[:40])
    value = float(number[1]) * scale
    if not 0.0 < value <= unit.most:
        raise BadAmount(said[:40])
    return value
