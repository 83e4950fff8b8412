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
        "Bid - 0.7",
        "Bid \u2013 0.7",
        "Bid -> 0.7",
        "- 0.7",
        "\u2022 0.7",
        "I bid 0.7 \u2014 3 logs are near",
        "I bid 0.7, 3 logs are near",
        "I bid 0.7, 1 log is near",
        "Bid: 0.7 - 1 log is near",
        "Bid: 0.7\n- 1 log is near",
        "Bid: 0.7\n2. Nothing else.",
        "Bid: 0.7 (70%)",
        "Bid: 0.7 or 70%",
        "Bid: 0.7 = 7/10",
        "Bid: **0.7** (3 ores)",
        "Bid: 0.7, not less",
        "GPT-4 says 0.7",
        '{"bid": 0.7, "bid": 0.7}',
        '{"bid": 0.7, "Bid": "70%"}',
        '{"bid": 0.7, "why": "a", "why": "b"}',
        '{"bid": 0.7, "others": {"bid": 0.1}}',
        '{"bid": 0.7, "why": "not {\\"bid\\": 0.1}"}',
        'Here: {"bid": 0.7, "others": [{"miner": 0.9}]} so.',
        '{"answer": {"bid": 0.7}}',
        "plus or minus nothing: 0.7",
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
        ("bid-0.7", "no_bid"),
        ("bid: 0\uff0e7", "ambiguous_bid"),
        ("bid: 0,1", "ambiguous_bid"),
        ("bid: 1\uff05", "no_bid"),
        ("bid: 1\u20442", "no_bid"),
        ('{"bid": 0.9, "bid": "high"}', "bad_json"),
        ('{"bid": 0.9, "bid": {"bid": 0.9}}', "bad_json"),
    ],
)
def test_what_leaves_a_doubt_is_refused(text: str, kind: str) -> None:
    error = read_bid(text, TENTHS)
    assert isinstance(error, ParseError)
    assert error.kind == kind
    assert error.message
    assert len(error.text) <= 200


@pytest.mark.parametrize(
    "minus",
    [
        *(
            "-",
            "\u2010",
            "\u2011",
            "\u2012",
            "\u2013",
            "\u2014",
            "\u2015",
            "\u2212",
            "\uff0d",
            "\ufe63",
        ),
        *(
            "\ufe58",
            "\u2796",
            "\u02d7",
            "\u207b",
            "\u2212 ",
            "\uff0d ",
            "minus ",
            "Minus ",
            "negative ",
        ),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        *("{}0.7", " {}.7\n", "{}70%", "{}7/10", "bid: {}0.7", "Bid {}0.7", "**Bid:** {}0.7"),
        *("I bid {}0.7 because", "My bid is {}0.7.", "it is {}0.7", '{{"bid": "{}0.7"}}'),
        *("bid 0.3, no: bid {}0.7",),
    ],
)
def test_a_minus_in_whatever_character_is_no_plus(form: str, minus: str) -> None:
    error = read_bid(form.format(minus), TENTHS)
    assert isinstance(error, ParseError) and error.kind == "bid_out_of_range"


@pytest.mark.parametrize(
    "label", ["bid: {}", "Bid {}.", "**Bid:** {}", "I bid {} now", "bid of {}", "{}"]
)
@pytest.mark.parametrize(
    "two",
    [
        *(
            "0.2-0.9",
            "0.2 - 0.9",
            "0.2\u20130.9",
            "0.2 \u2013 0.9",
            "0.2\u22120.9",
            "0.2 \u2014 0.9",
        ),
        *(
            "0.2 or 0.9",
            "0.2, or 0.9",
            "0.2 (or 0.9)",
            "0.2 or maybe 0.9",
            "0.2 or even a bid of 0.9",
        ),
        *(
            "0.2 to 0.9",
            "0.2 up to 0.9",
            "0.2 through 0.9",
            "0.2..0.9",
            "0.2...0.9",
            "0.2\u20260.9",
        ),
        *("0.2, 0.9", "0.2,0.9", "0.2; 0.9", "0.2 and 0.9", "0.2 & 0.9", "0.2 | 0.9", "0.2~0.9"),
        *(
            "0.2 -> 0.9",
            "0.2 \u2192 0.9",
            "0.2 \u00b1 0.1",
            "0.2 +/- 0.1",
            "0.2 + 0.1",
            "0.2 * 0.5",
        ),
        *("1 minus 0.3", "0.2 plus 0.1", "0 or 1", "0-1", "20%-90%", "20% or 90%", "2/10 or 9/10"),
        *(
            "0.2 or 5",
            "0.2-5",
            "0.2 or -0.9",
            "0.2 or bid: 0.9",
            "0.2 or bid 0.9",
            "**0.2** or **0.9**",
        ),
    ],
)
def test_two_numbers_are_no_bid(label: str, two: str) -> None:
    error = read_bid(label.format(two), TENTHS)
    assert isinstance(error, ParseError), (label, two)
    assert error.kind == "ambiguous_bid", (label, two)


@pytest.mark.parametrize(
    "text",
    [
        '{"bid": 0.9, "bid": 0.1}',
        '{"bid": 0.9, "Bid": 0.1}',
        '{" bid ": 0.9, "BID": "0.1"}',
        '{"bid": 0.9, "why": "a", "bid": 0.1}',
        'I say {"bid": 0.9, "bid": 0.1}!',
        '```json\n{"bid": 0.9, "bid": 0.1}\n```',
        '{"bid": 0.9, "others": {"miner": 0.3}, "bid": 0.1}',
        '{"bid": 0.9, "why": "' + "long " * 200 + '", "bid": 0.1}',
        '{"bid": 0.9} {"bid": 0.9, "bid": 0.1}',
        '{"bid": 1, "bid": 0}',
    ],
)
def test_a_key_with_two_values_is_no_bid(text: str) -> None:
    error = read_bid(text, TENTHS)
    assert isinstance(error, ParseError) and error.kind == "ambiguous_bid"


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
