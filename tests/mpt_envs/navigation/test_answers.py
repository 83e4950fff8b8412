"""Answers of language models: NaVILA's sentences, names, and what is refused."""

from __future__ import annotations

import pytest

from mpt_envs.navigation.views.answers import parse
from mpt_envs.navigation.world.facts import ACTIONS, MOVER, ROLES, STOPPER, TURNER
from wrappers.task import ParseError

BAD_LENGTHS = (
    *("1e9 cm", "1,000,000 cm", "75 meters", "-25 cm", "\u221225 cm", "NaN cm", "inf cm"),
    *("\u0667\u0665 cm", "seventy-five cm", "2 steps", "30 degrees", "1/2 m", "0x4b cm"),
    *("+-5 cm", "1.2.3 cm", "25cm75cm", "-5", "\u00bd m", "0.0 cm", "9" * 400),
)
BAD_ANGLES = (
    *("1,000 degrees", "1e9 degrees", "-30 degrees", "\u221230 degrees", "NaN degrees"),
    *("\u0663\u0660 degrees", "thirty degrees", "0.5 radians", "25 cm", "-30\u00b0"),
)


@pytest.mark.parametrize(
    ("role", "answer", "action"),
    [
        (MOVER, "The next action is move forward 75 cm.", "move_forward_75"),
        (MOVER, "the next action is MOVE FORWARD 50 CM", "move_forward_50"),
        (MOVER, "The next action is move forward.", "move_forward_25"),
        (MOVER, "The next action is move forward 100 cm.", "move_forward_75"),
        (MOVER, "The next action is move forward 30 cm.", "move_forward_25"),
        (MOVER, "The next action is move forward 60cm", "move_forward_50"),
        (MOVER, "move forward 50 cm", "move_forward_50"),
        (MOVER, "Action: move forward 25 centimeters", "move_forward_25"),
        (MOVER, "move_forward_75", "move_forward_75"),
        (MOVER, "1", "move_forward_50"),
        (MOVER, '{"action": "move_forward_25"}', "move_forward_25"),
        (MOVER, "We stop later. The next action is move forward 75 cm.", "move_forward_75"),
        (TURNER, "The next action is turn left 45 degrees.", "turn_left_45"),
        (TURNER, "The next action is turn right 30 degree.", "turn_right_30"),
        (TURNER, "The next action is turn right.", "turn_right_15"),
        (TURNER, "The next action is turn left 60 degrees.", "turn_left_45"),
        (TURNER, "The next action is turn left 90 degrees.", "turn_left_45"),
        (TURNER, "The next action is turn right 20\u00b0", "turn_right_15"),
        (
            TURNER,
            "<think>turn left?</think>The next action is turn right 15 degrees",
            "turn_right_15",
        ),
        (TURNER, "turn_left_30", "turn_left_30"),
        (MOVER, "move forward 0.5 m", "move_forward_50"),
        (MOVER, "move forward by 1 meter", "move_forward_75"),
        (MOVER, "move forward: **75 cm**.", "move_forward_75"),
        (MOVER, "move forward (50 centimetres), then look", "move_forward_50"),
        (MOVER, "move forward 75. We go on.", "move_forward_75"),
        (MOVER, "move forward to the door", "move_forward_25"),
        (MOVER, "The next action is:\n\n  move   forward\t75 cm", "move_forward_75"),
        (TURNER, "turn left, 30 degrees", "turn_left_30"),
        (TURNER, "turn left 45-degrees", "turn_left_45"),
        (TURNER, "turn right at the door", "turn_right_15"),
        (TURNER, "turn right - the door is there", "turn_right_15"),
        (STOPPER, "The next action is stop.", "stop"),
        (STOPPER, "STOP", "stop"),
        (STOPPER, "We are there, so I would stop here.", "stop"),
        (STOPPER, "The next action is look around.", "look_around"),
        (STOPPER, "look around", "look_around"),
        (STOPPER, "look_around", "look_around"),
    ],
)
def test_is_read(role: int, answer: str, action: str) -> None:
    found = parse(role, answer)
    assert not isinstance(found, ParseError), found
    assert ACTIONS[ROLES[role]][found] == action


@pytest.mark.parametrize(
    ("role", "answer", "kind"),
    [
        (MOVER, "", "empty"),
        (MOVER, "   \n", "empty"),
        (MOVER, "The next action is jump 75 cm.", "unknown_action"),
        (MOVER, "The next action is turn left 30 degrees.", "other_role"),
        (MOVER, "The next action is stop.", "other_role"),
        (MOVER, "turn_left_30", "other_role"),
        (MOVER, "The next action is move forward -5 cm.", "bad_amount"),
        (MOVER, "The next action is move forward 0 cm.", "bad_amount"),
        (MOVER, "The next action is move forward 99999 cm.", "bad_amount"),
        (MOVER, "move backward 25 cm", "unknown_action"),
        (TURNER, "The next action is move forward 25 cm.", "other_role"),
        (TURNER, "The next action is turn left 1000 degrees.", "bad_amount"),
        (TURNER, "The next action is turn around.", "unknown_action"),
        *((MOVER, f"The next action is move forward {a}", "bad_amount") for a in BAD_LENGTHS),
        *((TURNER, f"turn left {a}", "bad_amount") for a in BAD_ANGLES),
        (STOPPER, "The next action is turn left 15 degrees.", "other_role"),
        (STOPPER, "Keep walking.", "unknown_action"),
        (STOPPER, '{"action": "look_around", "action": "stop"}', "ambiguous"),
        (STOPPER, 'I say {"action": "look_around", "Action": "stop"}', "ambiguous"),
        (STOPPER, '{"action": "look_around", "action": "fly"}', "ambiguous"),
        (MOVER, '{"action": "move_forward_25", "action": "move_forward_75"}', "ambiguous"),
        (STOPPER, "nonstop", "unknown_action"),
        (STOPPER, "x" * 30_000, "too_long"),
    ],
)
def test_is_refused(role: int, answer: str, kind: str) -> None:
    found = parse(role, answer)
    assert isinstance(found, ParseError)
    assert found.kind == kind
    assert "The next action is" in found.message
    assert len(found.text) <= 200


def test_what_is_no_text_is_refused() -> None:
    found = parse(MOVER, None)  # type: ignore[arg-type]
    assert isinstance(found, ParseError) and found.kind == "not_text"


@pytest.mark.parametrize("role", [TURNER, MOVER, STOPPER])
def test_every_action_is_read_in_both_forms(role: int) -> None:
    for index, name in enumerate(ACTIONS[ROLES[role]]):
        assert parse(role, name) == index
        words = name.replace("_", " ")
        unit = {"move": " cm", "turn": " degrees"}.get(words.split()[0], "")
        assert parse(role, f"The next action is {words}{unit}.") == index
