"""Reads which action a language model names in its answer: NaVILA's sentences, or an action's name.

NaVILA's models answer "The next action is move forward 75 cm.", "... is turn left 30 degrees.",
"... is stop.". As there: letter case does not matter, an amount that is not said is 25 cm or 15
degrees, and other amounts become the nearest of 25, 50, 75 cm and 15, 30, 45 degrees ("100 cm" is
75 cm, "60 degrees" 45; see `quantities`). An answer that names another role's action, or none, is a
`ParseError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from mpt_envs.answers import MAX_LENGTH, read_action
from mpt_envs.navigation.views.quantities import CENTIMETRES, DEGREES, BadAmount, Unit, read_amount
from mpt_envs.navigation.world import facts
from wrappers.answer_json import Fields, read_json
from wrappers.task import ParseError

# A sentence of its own, or after "is" as NaVILA's models say it. Every repetition has a bound, so
# that no answer takes longer than its length: a model that has lost its way repeats itself.
_START: Final = r"(?:\bis ?:? ?(?:to )?|^[ \"'`*>-]{0,16}(?:action ?: ?)?)"
_FLAGS: Final = re.IGNORECASE | re.MULTILINE
_FORWARD: Final = re.compile(_START + r"move forward\b(.{0,80})", _FLAGS)
_TURN: Final = re.compile(_START + r"turn (left|right)\b(.{0,80})", _FLAGS)
_STOP: Final = re.compile(_START + r"stop\b", _FLAGS)
_ANY_STOP: Final = re.compile(r"\bstop\b", re.IGNORECASE)
_LOOK: Final = re.compile(_START + r"look around\b", _FLAGS)

_OTHERS: Final = tuple(
    {action: other for other in facts.ROLES if other != role for action in facts.ACTIONS[other]}
    for role in facts.ROLES
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
    if isinstance(text, str) and len(text) <= MAX_LENGTH and not _names_two(text):
        body = _in_lines(text.rpartition("</think>")[2])
        found = _sentence(role, body, form)
        if found is not None:
            return found
    mask = np.ones(facts.N_ACTIONS[role], np.int8)
    named = read_action(text, facts.ACTIONS[facts.ROLES[role]], mask, others=_OTHERS[role])
    if isinstance(named, ParseError):
        return named._replace(message=f"{named.message} {form}")
    return named


def _names_two(text: str) -> bool:
    """Whether an answer holds an object with two actions, of which neither is meant for sure."""
    try:
        fields = read_json(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        return False
    return isinstance(fields, Fields) and len(fields.values("action")) > 1


def _in_lines(text: str) -> str:
    """The text with single spaces and without empty lines."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _sentence(role: int, body: str, form: str) -> int | ParseError | None:
    """The action of one of NaVILA's sentences; None if there is none."""
    forward, turn = _FORWARD.search(body), _TURN.search(body)
    if role == facts.STOPPER:
        # As in NaVILA a stop is looked for first.
        if _ANY_STOP.search(body):
            return facts.STOP
        if _LOOK.search(body):
            return facts.LOOK_AROUND
    if role == facts.MOVER and forward:
        return _nearest(forward[1], CENTIMETRES, facts.MOVE_LENGTHS, body, form)
    if role == facts.TURNER and turn:
        index = _nearest(turn[2], DEGREES, facts.TURN_ANGLES, body, form)
        if isinstance(index, ParseError):
            return index
        return (facts.TURN_LEFT if turn[1].lower() == "left" else facts.TURN_RIGHT) + index
    for owner, there in (
        (facts.MOVER, forward),
        (facts.TURNER, turn),
        (facts.STOPPER, _STOP.search(body)),
    ):
        if there and owner != role:
            message = f"That is an action of the {facts.ROLES[owner]}. {form}"
            return ParseError("other_role", message, body[:200])
    return None


def _nearest(
    rest: str, unit: Unit, amounts: Sequence[int], body: str, form: str
) -> int | ParseError:
    """Index of the amount nearest to the one that is said; of two, the smaller; 0 if none is."""
    try:
        value = read_amount(rest, unit)
    except BadAmount as error:
        message = f"{error} is no amount from 1 to {unit.most:.0f} {unit.name}. {form}"
        return ParseError("bad_amount", message, body[:200])
    if value is None:
        return 0
    return min(range(len(amounts)), key=lambda index: abs(amounts[index] - value))
