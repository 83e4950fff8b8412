"""Answers of models that have lost their way: whatever is repeated, reading takes no time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from mpt_envs import make
from mpt_envs.answers import MAX_LENGTH
from wrappers.bid_text import read_bid

#: What models repeat, and what patterns in answers begin and end with.
REPEATED = (
    *("\n", " ", "\t", "\u3000\n", "\r", "\x0b", "\u2028", "\u200b", '"\n', "> ", "- ", "* ", "# "),
    *(
        "`",
        "```\n",
        "~~~",
        "{",
        "}",
        '{"action":',
        '{"bid": ',
        "[",
        "(",
        "<a>",
        "<think>",
        "</think>",
    ),
    *("is ", "is to ", "is:", "action:", "action is ", "the ", "my ", "I will ", "choose "),
    *(
        "stop ",
        "move ",
        "turn left ",
        "move forward 1",
        "search",
        'search("a") ',
        "answer ",
        "look ",
    ),
    *("a", "0", "0.", "1,", "e9", "-", "_", ".,", "7/10 ", "bid: ", "0.5 ", "%"),
    *("0.5 or ", "bid 0.5 or ", "or ", "0.2-", "minus ", "\u2212 ", "\u20130.5", "..", "0.5, "),
    *('{"bid": 1, ', '{"action": 1, ', '{"bid": 0.5} ', '"a": 1, ', '"bid": 0.5, ', "search(a=1, "),
)
#: What stands before and after, so that patterns begin to match, and fail at the end.
AROUND = (("", ""), ("x", "x"), ("is", "x"), ("```", "x"), ("action", "x"), ("bid", "x"))
#: Objects whose keys have many values.
MANY = tuple(
    "{" + ", ".join(f'"{key}": {i}' for i in range(MAX_LENGTH // 20)) + "}"
    for key in ("bid", "action", "tool", "x")
)


def seconds(call: Callable[[], object]) -> float:
    """What a call takes; the least of three where it seems long: it may have met a collection."""
    least = math.inf
    for _ in range(3):
        start = time.thread_time()
        call()
        least = min(least, time.thread_time() - start)
        if least < 0.1:
            break
    return least


@pytest.mark.parametrize(
    "task", ["crafting/iron-pickaxe-v0", "navigation/floorplan-v0", "research/multihop-v0"]
)
def test_an_answer_is_read_in_no_time(task: str) -> None:
    env = make(task, observation="text", action="text")
    env.reset(seed=0)
    levels = np.arange(11) / 10
    slow = []
    texts = [
        before + piece * ((MAX_LENGTH - len(before) - len(after)) // len(piece)) + after
        for piece in REPEATED
        for before, after in AROUND
    ]
    for text in (*texts, *MANY):
        for agent in env.possible_agents:
            slow.append((seconds(partial(env.task.parse, agent, text)), agent, text[:30]))
        slow.append((seconds(partial(read_bid, text, levels)), "bid", text[:30]))
    # What is quadratic in 20,000 characters takes half a second and more; the rest a few
    # milliseconds.
    assert max(slow)[0] < 0.2, sorted(slow)[-5:]
