"""Answers of models that have lost their way: whatever is repeated, reading takes no time."""

from __future__ import annotations

import time

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
)
#: What stands before and after, so that patterns begin to match, and fail at the end.
AROUND = (("", ""), ("x", "x"), ("is", "x"), ("```", "x"), ("action", "x"), ("bid", "x"))


@pytest.mark.parametrize(
    "task", ["crafting/iron-pickaxe-v0", "navigation/floorplan-v0", "research/multihop-v0"]
)
def test_an_answer_is_read_in_no_time(task: str) -> None:
    env = make(task, observation="text", action="text")
    env.reset(seed=0)
    levels = np.arange(11) / 10
    slow = []
    for piece in REPEATED:
        for before, after in AROUND:
            room = MAX_LENGTH - len(before) - len(after)
            text = before + piece * (room // len(piece)) + after
            for agent in env.possible_agents:
                start = time.thread_time()
                env.task.parse(agent, text)
                slow.append((time.thread_time() - start, agent, before, piece))
            start = time.thread_time()
            read_bid(text, levels)
            slow.append((time.thread_time() - start, "bid", before, piece))
    # What is quadratic in 20,000 characters takes half a second and more; the rest a few
    # milliseconds.
    assert max(slow)[0] < 0.2, sorted(slow)[-5:]
