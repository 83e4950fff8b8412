"""Reads which action a language model names in its answer, for any domain with named actions.

A model answers in its own manner: quoted, in a code fence, as JSON, with a sentence in front, with
its reasoning above. `read_action` accepts what leaves no doubt and refuses everything else with a
`ParseError` that says what to answer instead. The text is compared with names, never evaluated.

What is understood, by example, for the action ``chop_log`` with index 1:

* ``chop_log``, ``Chop Log``, ``CHOP-LOG.``, ``"chop the log"``, a code fence or a ``**chop_log**``;
* ``1``, ``#1``, ``(1)``, ``1. chop_log``: the index that the prompt lists;
* ``Action: chop_log``, ``I will chop log``, ``My answer is chop_log``;
* ``{"action": "chop_log"}`` or ``{"action": 1}``, alone or once within prose;
* several lines of which one is an action and the others are prose.

Two actions are none, in lines as in one object: ``{"action": "wait", "action": "chop_log"}``.

Letters that only look like ASCII are not taken for ASCII.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.answer_json import Fields, read_json
from wrappers.task import ParseError

#: Longer answers are refused unread, in characters.
MAX_LENGTH: Final = 20_000
#: A longer line is prose, in characters.
MAX_LINE: Final = 200

_ARTICLES: Final = frozenset(("a", "an", "the", "some", "now", "please"))
# Typographic forms of quotes, dashes, spaces and bullets that models like to write.
_TYPOGRAPHY: Final = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u00a0": " ",
        "\u2022": "*",
        "\u2192": "->",
        "\ufeff": "",
    }
)
_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:```|~~~)[A-Za-z]{0,12}[ \t]*$", re.MULTILINE)
_OPENING: Final = re.compile(r"(?:```|~~~)(?:[a-z]{0,12}(?=\n)|json|text|plaintext)?")
_OBJECT: Final = re.compile(r"\{[^{}]{0,400}\}")
_LABEL: Final = re.compile(
    r"^(?:(?:my|the|final|chosen|next|best)\s+){0,3}(?:action|answer|choice|move|decision)"
    r"\s*[*_`\"']{0,3}\s*(?:is\b|:|=|->)\s*[*_`\"']{0,3}\s*:?\s*",
    re.IGNORECASE,
)
_INTENT: Final = re.compile(
    r"^(?:i\s+(?:will|would|shall|choose|pick|select|want|decide)|i'll|i'd|let\s+me|let's|let\s+us)"
    r"\s+(?:like\s+)?(?:to\s+)?",
    re.IGNORECASE,
)
_VERB: Final = re.compile(r"^(?:choose|pick|select|perform|do|take|execute)\s+", re.IGNORECASE)
_BULLET: Final = re.compile(r"^(?:[-*>]|#{1,6})\s+")
_TAG: Final = re.compile(r"</?[A-Za-z_]{1,20}>")
_NUMBER: Final = re.compile(r"^[#(\[]?([0-9]{1,3})[)\].:]?$")
_NUMBERED: Final = re.compile(r"^[#(\[]?([0-9]{1,3})[)\].:]\s*(?=[A-Za-z\"'`*])")
_DECORATION: Final = "\"'`*_ \t()[]<>"


class _Found(NamedTuple):
    """An action that a line names: its index, or a name that is no action of this agent."""

    number: int
    other: str = ""


_NOTHING: Final = _Found(-1)


def read_action(
    text: str,
    names: Sequence[str],
    mask: NDArray[np.int8],
    *,
    others: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
) -> int | ParseError:
    """The index of the action that an answer names.

    Args:
        text: the answer.
        names: the agent's actions: lower case words joined by underscores.
        mask: ``int8 (len(names),)``: which of them are legal now.
        others: actions of other roles, by name, with the role that has them: for the message.
        hints: what an action needs, by name: for the message about an illegal one.

    Returns:
        An index with ``mask[index] == 1``, or a `ParseError` of kind ``"not_text"``, ``"empty"``,
        ``"too_long"``, ``"bad_json"``, ``"unknown_action"``, ``"other_role"``, ``"ambiguous"`` or
        ``"illegal"``.

    Raises:
        ValueError: the mask does not fit the names.
    """
    if len(mask) != len(names):
        raise ValueError(f"the mask has {len(mask)} entries for {len(names)} actions")
    legal = f"Legal actions: {', '.join(n for n, m in zip(names, mask, strict=True) if m)}."
    if not isinstance(text, str):
        message = f"An answer is text, not {type(text).__name__}. {legal}"
        return ParseError("not_text", message, repr(text)[:200])
    start = text[:200]
    if len(text) > MAX_LENGTH:
        message = f"An answer has at most {MAX_LENGTH} characters; name one action only. {legal}"
        return ParseError("too_long", message, start)
    body = text.rpartition("</think>")[2].translate(_TYPOGRAPHY)
    body = without_fence(_FENCE_LINE.sub("", body).strip())
    if not body:
        return ParseError("empty", f"Answer with the name of one action. {legal}", start)

    other_names = others or {}
    found, asked = _read_json(body, names, other_names)
    if found is None and not asked:
        found = _read_lines(body, names, other_names)
        asked = body
    elif found is None:
        message = f'Write JSON as {{"action": "{names[0]}"}}, or just the name. {legal}'
        return ParseError("bad_json", message, start)
    elif len(found) > 1:
        message = f'Give one "action" in the JSON object, not several. {legal}'
        return ParseError("ambiguous", message, start)
    distinct = list(dict.fromkeys(found))
    own = [f for f in distinct if f.number >= 0]
    if len(own) > 1:
        several = ", ".join(names[f.number] for f in own[:4])
        return ParseError("ambiguous", f"Name one action, not several ({several}). {legal}", start)
    if not own:
        if distinct:
            name = distinct[0].other
            message = f"{name} is an action of the {other_names[name]}, not yours. {legal}"
            return ParseError("other_role", message, start)
        return ParseError("unknown_action", _unknown(asked, names, legal), start)
    index = own[0].number
    if not mask[index]:
        hint = (hints or {}).get(names[index], "")
        needs = f" (it needs {hint})" if hint else ""
        return ParseError("illegal", f"{names[index]} is not possible now{needs}. {legal}", start)
    return index


def without_fence(body: str) -> str:
    """A text without the marks of a code fence before and after it."""
    opening = _OPENING.match(body)
    if opening:
        body = body[opening.end() :].lstrip()
    for mark in ("```", "~~~"):
        body = body.removesuffix(mark)
    return body.strip()


def _read_json(
    body: str, names: Sequence[str], others: Mapping[str, str]
) -> tuple[list[_Found] | None, str]:
    """The action of a JSON object: ``(found, what was asked for)``.

    ``(None, "")`` if there is no object, ``(None, text)`` if there is a wrong one. More than one is
    found where the object names two things, be they actions or not.
    """
    if body.startswith("{"):
        source = body
    else:
        objects = [o for o in _OBJECT.findall(body) if '"action"' in o.lower()]
        if not objects:
            return None, ""
        if len(set(objects)) > 1:
            return None, body
        source = objects[0]
    try:
        value = read_json(source)
    except ValueError:
        return None, source
    wanted = value.values("action") if isinstance(value, Fields) else []
    if not wanted or not all(isinstance(w, (int, str)) and not isinstance(w, bool) for w in wanted):
        return None, source
    found = list(dict.fromkeys(_choice(choice, names, others) for choice in wanted))
    asked = str(wanted[0])[:MAX_LINE]
    if len(found) == 1 and found[0] == _NOTHING:
        return [], asked
    return found, asked


def _choice(choice: int | str, names: Sequence[str], others: Mapping[str, str]) -> _Found:
    """What a value under ``"action"`` names."""
    if isinstance(choice, int):
        return _Found(choice) if 0 <= choice < len(names) else _NOTHING
    return _read_line(choice[: MAX_LINE + 1], names, others, numbers=True) or _NOTHING


def _read_lines(body: str, names: Sequence[str], others: Mapping[str, str]) -> list[_Found]:
    """What the lines name. A line marked as the answer counts before all that are not."""
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    short = [line for line in lines if len(line) <= MAX_LINE]
    marked: list[_Found] = []
    plain: list[_Found] = []
    for line in short:
        label = _LABEL.match(_strip(line))
        # A bare number among several lines may be a number of anything.
        match = _read_line(line, names, others, numbers=len(lines) == 1 or label is not None)
        if match is not None:
            (marked if label else plain).append(match)
    return marked or plain


def _strip(line: str) -> str:
    """A line without tags, bullets and marks of emphasis around it."""
    return _BULLET.sub("", _TAG.sub("", line).strip()).strip(_DECORATION)


def _read_line(
    line: str, names: Sequence[str], others: Mapping[str, str], numbers: bool
) -> _Found | None:
    """The action that one line names, or None if it names none beyond doubt."""
    if len(line) > MAX_LINE or not line.isascii():
        return None
    if numbers:
        number = _NUMBER.match(line.strip().strip("\"'`* \t").rstrip("."))
        if number:
            return _numbered(number[1], names)
    # Less and less of what may stand in front: an action's own name may begin like a lead-in
    # ("pick up table", "take smelted"), so each form is tried.
    rest = _strip(line)
    forms = [rest]
    for lead_in in (_LABEL, _INTENT, _VERB):
        shorter = lead_in.sub("", rest).strip(_DECORATION)
        if shorter != rest:
            rest = shorter
            forms.append(rest)
    for form in forms:
        match = _match(form, names, others)
        if match is not None:
            return match
    if numbers and len(forms) > 1:
        number = _NUMBER.match(rest.rstrip("."))
        if number:
            return _numbered(number[1], names)
    return None


def _numbered(digits: str, names: Sequence[str]) -> _Found | None:
    """The action of a listed number, or None if there is no such number."""
    return _Found(int(digits)) if int(digits) < len(names) else None


def _match(form: str, names: Sequence[str], others: Mapping[str, str]) -> _Found | None:
    """The action whose name a text is, apart from case, separators, articles and marks."""
    listed = _NUMBERED.match(form)
    if listed:
        form = form[listed.end() :]
    form = form.rstrip("\"'`*_ \t()[]<>.,;:!").strip(_DECORATION)
    words = [w for w in re.split(r"[\s_-]+", form.lower()) if w]
    for candidate in ("_".join(words), "_".join(w for w in words if w not in _ARTICLES)):
        if candidate in names:
            index = names.index(candidate)
            # "3. chop_log" with another number than the listed one contradicts itself.
            return None if listed and int(listed[1]) != index else _Found(index)
        if candidate in others:
            return _Found(-1, candidate)
    return None


def _unknown(asked: str, names: Sequence[str], legal: str) -> str:
    """What to answer to a text that names no action."""
    shown = asked.strip().splitlines()[0][:40] if asked.strip() else ""
    near = difflib.get_close_matches("_".join(shown.lower().split()), names, 1, 0.6)
    advice = f" Did you mean {near[0]}?" if near else ""
    return f"{shown!a} names no action of yours.{advice} {legal}"
