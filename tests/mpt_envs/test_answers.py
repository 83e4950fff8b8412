"""Reading of answers: what is understood, what is refused and why, and that nothing is slow."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mpt_envs.answers import MAX_LENGTH, read_action
from wrappers.task import ParseError

NAMES = ("wait", "chop_log", "explore_north", "craft_wooden_pickaxe")
OTHERS = {"mine_stone": "miner"}
HINTS = {"craft_wooden_pickaxe": "3 planks"}
ALL = np.ones(4, np.int8)


def read(text: str, mask: np.ndarray = ALL) -> int | ParseError:
    return read_action(text, NAMES, mask, others=OTHERS, hints=HINTS)


@pytest.mark.parametrize(
    "text",
    [
        "chop_log",
        "Chop Log",
        "CHOP-LOG",
        "  chop  log \n",
        "chop_log.",
        "chop the log",
        '"chop_log"',
        "'chop_log'",
        "\u201cchop log\u201d",
        "chop\u2011log",
        "`chop_log`",
        "**chop_log**",
        "- chop_log",
        "> chop_log",
        "chop_log()",
        "[chop_log]",
        "<action>chop_log</action>",
        "```\nchop_log\n```",
        '```json\n{"action": "chop_log"}\n```',
        "```chop_log```",
        "1",
        "#1",
        "(1)",
        "1.",
        "1. chop_log",
        "1) chop_log",
        "Action: chop_log",
        "**Action:** chop_log",
        "action = chop log",
        "Action: 1",
        "My final answer is chop_log.",
        "Answer -> chop_log",
        "I will chop log",
        "I'll chop the log now.",
        "I choose to chop_log",
        "Let's chop_log!",
        "Action: I will chop_log",
        '{"action": "chop_log"}',
        '{"Action": "Chop Log", "reason": "a tree"}',
        '{"action": 1}',
        '{"action": "1"}',
        '{"action": "chop_log", "action": "chop_log"}',
        '{"action": "chop_log", "Action": 1}',
        '{"action": "chop_log", "why": "a", "why": "b"}',
        'I see a tree, so: {"action": "chop_log"}. Good.',
        "There is a tree close by.\n\nAction: chop_log",
        "chop_log\nbecause we need planks first.",
        "We have nothing, so we need wood.\nchop_log",
        "I could wait.\nAction: chop_log\n",
        "<think>Should I wait?\nwait</think>\nchop_log",
        "\ufeffchop_log",
    ],
)
def test_understood(text: str) -> None:
    assert read(text) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("<think>hm</think>", "empty"),
        ("```\n```", "empty"),
        ("fly", "unknown_action"),
        ("chop", "unknown_action"),
        ("chop_logs", "unknown_action"),
        ("do not chop_log", "unknown_action"),
        ("Do not do this: chop_log!", "unknown_action"),
        ("4", "unknown_action"),
        ("-1", "unknown_action"),
        ("1.5", "unknown_action"),
        ("99999999999999999999", "unknown_action"),
        ("2. chop_log", "unknown_action"),
        ("0x1", "unknown_action"),
        ("1e0", "unknown_action"),
        ("True", "unknown_action"),
        ("__import__('os').system('true')", "unknown_action"),
        ("I see 3 trees.\n1\n", "unknown_action"),
        ("\u0441hop_log", "unknown_action"),  # a Cyrillic letter
        ("\uff43hop_log", "unknown_action"),  # a full-width letter
        ("chop\u200b_log", "unknown_action"),  # a space of no width
        ("chop_log\u202e", "unknown_action"),  # right to left from here
        ("\u0661", "unknown_action"),  # an Arabic one
        ("\u00b9", "unknown_action"),
        ("chop_\u0301log", "unknown_action"),
        ("\u212ahop_log", "unknown_action"),  # the sign of a kelvin
        ("chop_log\x00", "unknown_action"),
        ("mine_stone", "other_role"),
        ("Action: mine stone", "other_role"),
        ("wait\nchop_log", "ambiguous"),
        ("Action: wait\nAction: chop_log", "ambiguous"),
        ('{"action": "chop_log"', "bad_json"),
        ('{"action": ["chop_log"]}', "bad_json"),
        ('{"action": null}', "bad_json"),
        ('{"action": true}', "bad_json"),
        ('{"action": 1.0}', "bad_json"),
        ('{"move": "chop_log"}', "bad_json"),
        ('{"action": "wait", "Action": "chop_log"}', "ambiguous"),
        ('{"action": "wait", "action": "chop_log"}', "ambiguous"),
        ('{"action": "wait", "action": 1}', "ambiguous"),
        ('{"action": "wait", "action": "mine_stone"}', "ambiguous"),
        ('{"action": "fly", "action": "chop_log"}', "ambiguous"),
        ('{"action": 99, "action": 1}', "ambiguous"),
        ('{"action": "wait", "why": "a", " ACTION ": "chop_log"}', "ambiguous"),
        ('so: {"action": "wait", "action": "chop_log"}.', "ambiguous"),
        ('```json\n{"action": "wait", "action": "chop_log"}\n```', "ambiguous"),
        ('{"action": "wait", "action": "chop_log", "action": 2}', "ambiguous"),
        ('{"action": "chop_log", "action": null}', "bad_json"),
        ('{"action": 1, "action": true}', "bad_json"),
        ('say {"action": "wait"} or {"action": "chop_log"}', "bad_json"),
        ('{"a":' * 3000, "bad_json"),
        ('{"action": ' + "9" * 5000 + "}", "bad_json"),
        ('{"action": 7}', "unknown_action"),
        ('{"action": -1}', "unknown_action"),
        ('{"action": "fly"}', "unknown_action"),
        ('{"action": "mine_stone"}', "other_role"),
        ("x" * (MAX_LENGTH + 1), "too_long"),
    ],
)
def test_refused(text: str, kind: str) -> None:
    error = read(text)
    assert isinstance(error, ParseError)
    assert error.kind == kind
    assert len(error.text) <= 200
    assert text.startswith(error.text)
    assert "chop_log" in error.message  # what to answer instead
    assert error.message.isprintable() or kind == "other_role"
    assert len(error.message) < 400


def test_an_illegal_action_is_told_what_it_needs() -> None:
    mask = np.array([1, 1, 1, 0], np.int8)
    error = read("craft_wooden_pickaxe", mask)
    assert isinstance(error, ParseError)
    assert error.kind == "illegal"
    assert "3 planks" in error.message
    assert error.message.endswith("Legal actions: wait, chop_log, explore_north.")
    for text in ("3", '{"action": 3}', "Action: craft wooden pickaxe"):
        again = read(text, mask)
        assert isinstance(again, ParseError) and again.kind == "illegal"


def test_another_roles_action_is_told_whose_it_is() -> None:
    error = read("mine_stone")
    assert isinstance(error, ParseError)
    assert error.message.startswith("mine_stone is an action of the miner, not yours.")


def test_a_near_miss_is_told_what_it_may_have_meant() -> None:
    error = read("craft_wood_pickaxe")
    assert isinstance(error, ParseError)
    assert "Did you mean craft_wooden_pickaxe?" in error.message


def test_what_is_no_text() -> None:
    for value in (None, 1, b"chop_log", ["chop_log"]):
        error = read(value)  # type: ignore[arg-type]
        assert isinstance(error, ParseError) and error.kind == "not_text"


def test_a_mask_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="3 entries for 4 actions"):
        read("wait", np.ones(3, np.int8))


HOSTILE = [
    "a" * 10_000_000,
    "</think>" * 1_250_000,
    "{" * MAX_LENGTH,
    '{"action"' * 2000,
    "[" * MAX_LENGTH,
    "```" * 6000,
    "`" * MAX_LENGTH,
    "<a" * 9000,
    "- " * 9000,
    "the " * 4900,
    "I will " * 2800,
    "my the final " * 1500,
    "action: " * 2400,
    "\n" * MAX_LENGTH,
    "\nwait" * 3900,
    " " * MAX_LENGTH,
    "1" * MAX_LENGTH,
    ("x" * 199 + "\n") * 99,
    "\u2018" * MAX_LENGTH,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_is_slow(text: str) -> None:
    start = time.perf_counter()
    answer = read(text)
    assert time.perf_counter() - start < 1.0
    assert isinstance(answer, ParseError) or answer == 0


def test_any_text_at_all_is_read_or_refused() -> None:
    """Random strings of awkward pieces never raise and never give an illegal action."""
    pieces = [
        *NAMES,
        "mine_stone",
        "{",
        "}",
        '"action"',
        ":",
        "```",
        "\n",
        " ",
        "Action:",
        "1",
        "9",
    ]
    pieces += ["I will", "</think>", "<a>", "\u200b", "-", ".", "\ud800", "\x1b[0m", "(", ")"]
    generator = np.random.default_rng(0)
    mask = np.array([1, 0, 1, 0], np.int8)
    outcomes = set()
    for _ in range(3000):
        text = "".join(pieces[i] for i in generator.integers(0, len(pieces), generator.integers(9)))
        answer = read(text, mask)
        if isinstance(answer, ParseError):
            outcomes.add(answer.kind)
        else:
            assert mask[answer] == 1
            outcomes.add("read")
    expected = {"read", "empty", "unknown_action", "illegal", "other_role", "ambiguous", "bad_json"}
    assert outcomes == expected
