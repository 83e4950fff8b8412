"""Reads a bid from a language model's answer.

Understood, by example for a bid of 0.7: ``0.7``, ``.7``, ``70%``, ``7/10``, ``7 out of 10``,
``{"bid": 0.7}`` alone or within prose, ``Bid: 0.7``, ``I bid 0.7 because ...``, or a sentence with
no other number in it. Reasoning up to ``</think>`` is ignored. A label decides where there are
several numbers, and of several labelled numbers the last; but "bid: 0.2 or 0.9", "bid: 0.2-0.9"
and ``{"bid": 0.2, "bid": 0.9}`` are no bid. A minus is one in whatever character, or word, it is
written: no bid is below 0. What leaves a doubt is refused with a
`ParseError`: kinds ``"empty"``, ``"too_long"``, ``"bad_json"``, ``"no_bid"``, ``"ambiguous_bid"``,
``"bid_not_finite"``, ``"bid_out_of_range"``.

Text is matched and converted, never evaluated; its length is bounded before anything looks at it.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from wrappers.answer_json import Fields, read_json
from wrappers.task import ParseError

MAX_ANSWER = 20_000
"""Longer answers, in characters, are refused unread."""

_PLAIN = r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,5})?"
# Hyphens and dashes: right before a number they are taken for a minus, elsewhere they are
# punctuation. Signs of subtraction are a minus also with a space behind.
_DASHES = dict.fromkeys(
    map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u02d7\u207b\ufe58\u2043"), "-"
)
_MINUS = "\u2212\uff0d\ufe63\u2796"
_NUMBER = (
    rf"(?P<sign>(?:[-+]|(?:[{_MINUS}]|\b(?:minus|negative)\b)[ \t-]{{0,3}})?)(?:(?P<top>{_PLAIN})"
    rf"(?:\s{{0,3}}(?:/|out\s{{1,3}}of)\s{{0,3}}(?P<bottom>{_PLAIN})|\s{{0,3}}(?P<percent>%))?"
    r"|(?P<word>nan|inf(?:inity)?))"
)
# What may not stand beside a number: more of a word or of a number, also in characters that only
# look like a dot, a slash or a per cent sign; or a hyphen that a word ends with.
_SLASHES = "/\u2044\u2215\uff0f\u00f7"
_EDGE = rf"(?![\w%{_SLASHES}\uff05\u2030\u066a])(?!\.[0-9])"
_START = rf"(?<![\w{_SLASHES}])(?<![^.]\.)(?<![A-Za-z]-)"
_ANY = re.compile(rf"{_START}{_NUMBER}{_EDGE}", re.IGNORECASE)
_WHOLE = re.compile(rf"\s*{_NUMBER}\s*", re.IGNORECASE)
_LABELLED = re.compile(
    r"\bbid(?:ding)?\b[\s*_`\"':=>-]{0,8}?(?:(?:is|of|at|to|with)\b[\s*_`\"':]{0,8}?)?"
    rf"{_START}{_NUMBER}{_EDGE}",
    re.IGNORECASE,
)
# Another number right behind a bid: one of two, a range, a sum, or a decimal comma. After `strong`
# it cannot be anything else; after the others it may begin a remark ("0.7, 3 logs are near").
_FILLER = (
    r"(?:maybe|even|perhaps|possibly|rather|else|up|to|a|my|the|bid|of|at|about|around|just|simply)"
)
_TIGHT = r"[,\uff0e\u00b7\u066b\uff0c\u3001](?=[0-9])|-(?=[0-9.])"
_WORD = (
    rf"\b(?:or|(?:up[ \t])?to|through|until|minus|plus|times)\b(?:[ \t]{{1,3}}{_FILLER}\b){{0,4}}"
)
_SIGN = rf"->|\u2192|[~\u301c\uff5e\u00b1|{_MINUS}]|\+/-"
_LOOSE = r"[-,;&+*\u00d7\u2026]|\.{2,3}|\band\b"
_MORE = re.compile(
    rf"(?:(?P<strong>{_TIGHT}|[ \t,;(*]{{0,4}}(?:{_WORD}|{_SIGN}))|[ \t*]{{0,4}}(?:{_LOOSE}))"
    rf"[ \t:=*\"'`]{{0,4}}{_NUMBER}{_EDGE}(?P<next>[ \t]{{0,3}}[A-Za-z])?",
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
    body = text.rpartition("</think>")[2].translate(_DASHES).strip()
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
    # The outermost object decides, whatever is in it.
    in_json = _json_bids(body[body.find("{") : body.rfind("}") + 1])
    in_json = in_json or [value for text in _OBJECT.findall(body) for value in _json_bids(text)]
    if in_json:
        if any(isinstance(value, tuple) for value in in_json):
            return _NOT_JSON
        return in_json[0] if len(set(in_json)) == 1 else _AMBIGUOUS
    labelled = list(_LABELLED.finditer(body))
    if labelled:
        last = labelled[-1]
        return _AMBIGUOUS if _is_one_of_several(last, body) else _value(last)
    values = {_value(match) for match in _ANY.finditer(body)}
    if not values:
        return ("no_bid", f"There is no bid in the answer. {_HOW}.")
    return values.pop() if len(values) == 1 else _AMBIGUOUS


def _json_bids(text: str) -> list[float | tuple[str, str]]:
    """The values under ``"bid"`` in a JSON object, or errors; none if it is no such object."""
    try:
        content = read_json(text)
    except ValueError:
        return []
    return [_json_bid(v) for v in content.values("bid")] if isinstance(content, Fields) else []


def _json_bid(value: Any) -> float | tuple[str, str]:
    """A number, or the text of one."""
    if isinstance(value, str):
        match = _WHOLE.fullmatch(value)
        return _NOT_JSON if match is None else _value(match)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _NOT_JSON
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_one_of_several(bid: re.Match[str], body: str) -> bool:
    """Whether a number with a label is told together with the one before or behind it."""
    before = deque(_ANY.finditer(body, 0, bid.start()), maxlen=1)
    for first in (*before, bid):
        more = _MORE.match(body, first.end())
        # What follows the number before matters only if it is the bid.
        if more is None or more.end() < bid.end():
            continue
        value = _value(more)
        # "0.7, 3 logs are near", "0.7, 1 log is near"
        remark = not 0.0 <= value <= 1.0 or (more["next"] and "." not in more["top"])
        if value != _value(first) and (more["strong"] or not remark):
            return True
    return False


def _value(match: re.Match[str]) -> float:
    """The number of a match: plain, a fraction, a percentage, or not finite."""
    sign = 1.0 if match["sign"] in ("", "+") else -1.0
    if match["word"]:
        return sign * math.inf
    value = float(match["top"])
    if match["percent"]:
        value /= 100.0
    elif match["bottom"]:
        bottom = float(match["bottom"])
        value = value / bottom if bottom else math.inf
    return sign * value
