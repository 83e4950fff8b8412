"""Reads which action a language model names in its answer: NaVILA's sentences, or an action's name.

NaVILA's models answer "The next action is move forward 75 cm.", "... is turn left 30 degrees.",
"... is stop.". As there: letter case does not matter, an amount that is not said is 25 cm or 15
degrees, and other amounts become the nearest of 25, 50, 75 cm and 15, 30, 45 degrees ("100 cm" is
75 cm, "60 degrees" 45). An answer that names another role's action, or none, is a `ParseError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from mpt_envs.answers import MAX_LENGTH, read_action
from mpt_envs.navigation.facts import (
    ACTIONS,
    LOOK_AROUND,
    MOVE_LENGTHS,
    MOVER,
    N_ACTIONS,
    ROLES,
    STOP,
    STOPPER,
    TURN_ANGLES,
    TURN_LEFT,
    TURN_RIGHT,
    TURNER,
)
from wrappers.task import ParseError

#: Larger amounts are no slip but nonsense.
_MOST_CM: Final = 1000
_MOST_DEGREES: Final = 360

# A sentence of its own, or after "is" as NaVILA's models say it.
_START: Final = r"(?:\bis\s*:?\s*(?:to\s+)?|^[\s\"'`*>-]*(?:action\s*:\s*)?)"
_FORWARD: Final = re.compile(
    _START + r"move\s+forward\b(?:\s+(?:by\s+)?(-?[0-9]+(?:\.[0-9]+)?)\s*(cm|centimet\w*)?)?",
    re.IGNORECASE | re.MULTILINE,
)
_TURN: Final = re.compile(
    _START + r"turn\s+(left|right)\b(?:\s+(?:by\s+)?(-?[0-9]+(?:\.[0-9]+)?)\s*(deg\w*|\u00b0)?)?",
    re.IGNORECASE | re.MULTILINE,
)
_STOP: Final = re.compile(r"\bstop\b", re.IGNORECASE)
_LOOK: Final = re.compile(_START + r"look\s+around\b", re.IGNORECASE | re.MULTILINE)

_OTHERS: Final = tuple(
    {action: other for other in ROLES if other != role for action in ACTIONS[other]}
    for role in ROLES
)
_FORMS: Final = (
    'Answer "The next action is turn left N degrees" (or right), N one of 15, 30, 45.',
    'Answer "The next action is move forward N cm", N one of 25, 50, 75.',
    'Answer "The next action is stop" or "The next action is look around".',
)


def parse(role: int, text: str) -> int | ParseError:
    """Read an answer as one of a role's actions.

    Args:
        role: index into facts.ROLES.
        text: what the model wrote.

    Returns:
        An index into the role's actions, or a `ParseError` of kind ``"other_role"``,
        ``"bad_amount"``, or one of those of `mpt_envs.answers.read_action`.
    """
    form = _FORMS[role]
    if isinstance(text, str) and len(text) <= MAX_LENGTH:
        body = text.rpartition("</think>")[2]
        found = _sentence(role, body, form)
        if found is not None:
            return found
    mask = np.ones(N_ACTIONS[role], np.int8)
    named = read_action(text, ACTIONS[ROLES[role]], mask, others=_OTHERS[role])
    if isinstance(named, ParseError):
        return named._replace(message=f"{named.message} {form}")
    return named


def _sentence(role: int, body: str, form: str) -> int | ParseError | None:
    """The action of one of NaVILA's sentences; None if there is none."""
    forward, turn = _FORWARD.search(body), _TURN.search(body)
    if role == STOPPER:
        # As in NaVILA a stop is looked for first.
        if _STOP.search(body):
            return STOP
        if _LOOK.search(body):
            return LOOK_AROUND
    if role == MOVER and forward:
        return _amount(forward[1], forward[2], MOVE_LENGTHS, _MOST_CM, "cm", body, form)
    if role == TURNER and turn:
        index = _amount(turn[2], turn[3], TURN_ANGLES, _MOST_DEGREES, "degrees", body, form)
        if isinstance(index, ParseError):
            return index
        return (TURN_LEFT if turn[1].lower() == "left" else TURN_RIGHT) + index
    for owner, there in (
        (MOVER, forward),
        (TURNER, turn),
        (STOPPER, re.search(_START + r"stop\b", body, re.IGNORECASE | re.MULTILINE)),
    ):
        if there and owner != role:
            message = f"That is an action of the {ROLES[owner]}. {form}"
            return ParseError("other_role", message, body[:200])
    return None


def _amount(
    said: str | None,
    unit: str | None,
    amounts: Sequence[int],
    most: int,
    name: str,
    body: str,
    form: str,
) -> int | ParseError:
    """Index of the nearest amount; of two, the smaller."""
    if said is None:
        return 0
    value = float(said)
    if not 0 < value <= most:
        message = f"{said} {unit or name} is no amount from 1 to {most} {name}. {form}"
        return ParseError("bad_amount", message, body[:200])
    return min(range(len(amounts)), key=lambda index: abs(amounts[index] - value))
