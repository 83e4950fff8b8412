"""Reads a bid from a language model's answer.

Understood, by example for a bid of 0.7: ``0.7``, ``.7``, ``70%``, ``7/10``, ``7 out of 10``,
``{"bid": 0.7}`` alone or within prose, ``Bid: 0.7``, ``I bid 0.7 because ...``, or a sentence with
no other number in it. Reasoning up to ``</think>`` is ignored. A label decides where there are
several numbers, and of several labelled numbers the last. What leaves a doubt is refused with a
`ParseError`: kinds ``"empty"``, ``"too_long"``, ``"bad_json"``, ``"no_bid"``, ``"ambiguous_bid"``,
``"bid_not_finite"``, ``"bid_out_of_range"``.

Text is matched and converted, never evaluated; its length is bounded before anything looks at it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from wrappers.task import ParseError

MAX_ANSWER = 20_000
"""Longer answers, in characters, are refused unread."""

_PLAIN = r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,5})?"
_NUMBER = (
    rf"(?P<sign>[-+]?)(?:(?P<top>{_PLAIN})"
    rf"(?:\s{{0,3}}(?:/|out\s{{1,3}}of)\s{{0,3}}(?P<bottom>{_PLAIN})|\s{{0,3}}(?P<percent>%))?"
    r"|(?P<word>nan|inf(?:inity)?))"
)
_EDGE = r"(?![\w/%])(?!\.[0-9])"
_ANY = re.compile(rf"(?<![\w.]){_NUMBER}{_EDGE}", re.IGNORECASE)
_WHOLE = re.compile(rf"\s*{_NUMBER}\s*", re.IGNORECASE)
_LABELLED = re.compile(
    r"\bbid(?:ding)?\b[\s*_`\"':=>-]{0,8}?(?:(?:is|of|at|to|with)\b[\s*_`\"':]{0,8}?)?"
    rf"(?<![\w.]){_NUMBER}{_EDGE}",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\{[^{}]{0,400}\}")


def read_bid(
    text: str, levels: Sequence[float], legal: ArrayLike | None = None
) -> int | ParseError:
    """The index of the bid level that an answer means.

    Args:
        text: the answer.
        levels: the bid levels, ascending.
        legal: which levels may be bid (truth value each); None: all.

    Returns:
        The legal level nearest to the number in the answer (of two the lower), or why there is
        no such number.
    """
    start = text[:200]
    if len(text) > MAX_ANSWER:
        return ParseError("too_long", f"Answer in at most {MAX_ANSWER} characters.", start)
    body = text.rpartition("</think>")[2].strip()
    if not body:
        return ParseError("empty", f"{_HOW}.", start)
    value = _find(body)
    if isinstance(value, tuple):
        return ParseError(*value, start)
    if not math.isfinite(value):
        return ParseError("bid_not_finite", f"A bid is a finite number. {_HOW}.", start)
    if not 0.0 <= value <= 1.0:
        message = f"A bid is between 0 and 1, not {value:g}. {_HOW}."
        return ParseError("bid_out_of_range", message, start)
    allowed = [True] * len(levels) if legal is None else [bool(x) for x in legal]  # type: ignore[union-attr]
    return min(
        (i for i, may in enumerate(allowed) if may), key=lambda i: (abs(levels[i] - value), i)
    )


_HOW = 'Answer with a number from 0 to 1, such as 0.7 or {"bid": 0.7}'
_NOT_JSON = ("bad_json", f"The bid in the JSON object is no number. {_HOW}.")
_AMBIGUOUS = ("ambiguous_bid", f"Give one bid, not several numbers. {_HOW}.")


def _find(body: str) -> float | tuple[str, str]:
    """The number that is meant, or kind and message of the error."""
    whole = _WHOLE.fullmatch(body)
    if whole is not None:
        return _value(whole)
    in_json = [value for value in map(_json_bid, _OBJECT.findall(body)) if value is not None]
    if in_json:
        if any(isinstance(value, tuple) for value in in_json):
            return _NOT_JSON
        return in_json[0] if len(set(in_json)) == 1 else _AMBIGUOUS
    labelled = list(_LABELLED.finditer(body))
    if labelled:
        return _value(labelled[-1])
    values = {_value(match) for match in _ANY.finditer(body)}
    if not values:
        return ("no_bid", f"There is no bid in the answer. {_HOW}.")
    return values.pop() if len(values) == 1 else _AMBIGUOUS


def _json_bid(text: str) -> float | tuple[str, str] | None:
    """The value under ``"bid"`` in a JSON object; None if it is no such object."""
    try:
        content: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    for key, value in content.items():
        if key.strip().lower() != "bid":
            continue
        if isinstance(value, str):
            match = _WHOLE.fullmatch(value)
            return _NOT_JSON if match is None else _value(match)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _NOT_JSON
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return None


def _value(match: re.Match[str]) -> float:
    """The number of a match: plain, a fraction, a percentage, or not finite."""
    sign = -1.0 if match["sign"] == "-" else 1.0
    if match["word"]:
        return sign * math.inf
    value = float(match["top"])
    if match["percent"]:
        value /= 100.0
    elif match["bottom"]:
        bottom = float(match["bottom"])
        value = value / bottom if bottom else math.inf
    return sign * value
