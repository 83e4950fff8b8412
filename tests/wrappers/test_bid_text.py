"""Bids from text: what is understood, what is refused, and that nothing breaks it."""

from __future__ import annotations

import random
import time

import pytest

from wrappers.auction import CROWDED, TENTHS
from wrappers.bid_text import MAX_ANSWER, read_bid
from wrappers.task import ParseError


@pytest.mark.parametrize(
    "text",
    [
        "0.7",
        ".7",
        "0.70",
        " 0.7\n",
        "+0.7",
        "7e-1",
        "70%",
        "70 %",
        "7/10",
        "7 / 10",
        "7 out of 10",
        '{"bid": 0.7}',
        '{"Bid": "0.7", "why": "3 logs are near"}',
        '{"bid": "70%"}',
        '```json\n{"bid": 0.7}\n```',
        'I have 3 logs, so {"bid": 0.7} it is.',
        "Bid: 0.7",
        "**Bid:** 0.7",
        "bid = 0.7",
        "My bid is 0.7.",
        "I bid 0.7 because 2 of 3 ores are mine.",
        "bid 7/10",
        "I would start with a bid of 0.3, but my final bid: 0.7",
        "0.7 please",
        "I am quite sure: 0.7!",
        "<think>0.1 or 0.2? bid 0.3</think>\n0.7",
        "0.71",
        "0.68",
        "bidding 0.7",
    ],
)
def test_seven_tenths_in_many_manners(text: str) -> None:
    assert read_bid(text, TENTHS) == 7


@pytest.mark.parametrize(
    ("text", "level"),
    [("0", 0), ("-0.0", 0), ("1", 10), ("1.", 10), ("100%", 10), ("0.04", 0), ("0.96", 10)],
)
def test_the_ends(text: str, level: int) -> None:
    assert read_bid(text, TENTHS) == level


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>0.5</think>", "empty"),
        ("high", "no_bid"),
        ("I want to act!", "no_bid"),
        ("bid: high", "no_bid"),
        ("x0.7y", "no_bid"),
        ("1.2.3", "no_bid"),
        ("0.3 or 0.7", "ambiguous_bid"),
        ('{"bid": 0.1} or {"bid": 0.2}', "ambiguous_bid"),
        ("nan", "bid_not_finite"),
        ("inf", "bid_not_finite"),
        ("-Infinity", "bid_not_finite"),
        ("1/0", "bid_not_finite"),
        ("1e9999", "bid_not_finite"),
        ('{"bid": NaN}', "bid_not_finite"),
        ('{"bid": Infinity}', "bid_not_finite"),
        ('{"bid": 1' + "0" * 390 + "}", "bid_not_finite"),
        ("7", "bid_out_of_range"),
        ("70", "bid_out_of_range"),
        ("-0.1", "bid_out_of_range"),
        ("1.01", "bid_out_of_range"),
        ("110%", "bid_out_of_range"),
        ('{"bid": 5}', "bid_out_of_range"),
        ('{"bid": true}', "bad_json"),
        ('{"bid": null}', "bad_json"),
        ('{"bid": [0.7]}', "bad_json"),
        ('{"bid": "high"}', "bad_json"),
        ("0.7" + " " * MAX_ANSWER, "too_long"),
        ("__import__('os').getcwd()", "no_bid"),
        ("\uff10.\uff17", "no_bid"),  # digits that only look like ASCII
    ],
)
def test_what_leaves_a_doubt_is_refused(text: str, kind: str) -> None:
    error = read_bid(text, TENTHS)
    assert isinstance(error, ParseError)
    assert error.kind == kind
    assert error.message
    assert len(error.text) <= 200


def test_the_nearest_level_and_of_two_the_lower() -> None:
    assert read_bid("0.2", CROWDED) == 0
    assert read_bid("0.3", CROWDED) == 1
    assert read_bid("0.25", CROWDED) == 0
    assert read_bid("1", CROWDED) == len(CROWDED) - 1
    assert read_bid("0.945", CROWDED) in (7, 8)


@pytest.mark.parametrize("levels", [TENTHS, CROWDED, (0.0, 1 / 3, 2 / 3)])
def test_every_level_is_read_back(levels: tuple[float, ...]) -> None:
    for index, level in enumerate(levels):
        for text in (f"{level}", f"{level:g}", f'{{"bid": {level}}}', f"{100 * level:.6f}%"):
            assert read_bid(text, levels) == index


def test_only_legal_levels_are_chosen() -> None:
    assert read_bid("0.9", TENTHS, [True] + [False] * 10) == 0
    assert read_bid("0.9", TENTHS, [True, False, True] + [False] * 8) == 2


def test_any_text_gives_a_level_or_an_error() -> None:
    generator = random.Random(0)
    alphabet = '0123456789.%/-+eE{}":, \n\tbidofnaint<>\\é한\0'
    for _ in range(20_000):
        text = "".join(generator.choices(alphabet, k=generator.randrange(40)))
        result = read_bid(text, TENTHS)
        assert isinstance(result, ParseError) or 0 <= result < 11


@pytest.mark.parametrize(
    "unit",
    ["{", "}", '{"bid":', "bid ", "bid:" + " " * 9, "1", "1 ", "1/", ".", "-", "e1", "1e1 of "],
)
def test_hostile_texts_cost_little(unit: str) -> None:
    text = (unit * MAX_ANSWER)[:MAX_ANSWER]
    start = time.process_time()
    read_bid(text, TENTHS)
    assert time.process_time() - start < 0.5
