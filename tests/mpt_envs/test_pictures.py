"""What the pictures of all domains share is told in the same words."""

from __future__ import annotations

import pytest

import mpt_envs
from mpt_envs.pictures import bids_of, turns_of, wrap

TASKS = ("crafting/iron-pickaxe-v0", "navigation/floorplan-v0", "research/multihop-v0")


@pytest.mark.parametrize("task_id", TASKS)
def test_domains_tell_the_auction_in_the_same_words(task_id: str) -> None:
    task = mpt_envs.make_task(task_id)
    task.reset(0)
    agent, other = task.possible_agents[:2]
    assert task.render("ansi", {}).endswith("\nBids: no auction yet")
    bids = {agent: 0.0, other: 1.5}
    skipped = task.render("ansi", {"bids": bids}).splitlines()
    assert skipped[-3] == "Bids of the last turn: nobody wanted to act"
    assert skipped[-2].endswith(" 0.00") and skipped[-1].endswith(" 1.50 " + "#" * 30)
    won = task.render("ansi", {"bids": bids, "winner": other}).splitlines()
    assert won[-3] == "Bids of the last turn:" and won[-1].endswith("  <- acted\x1b[0m")


def test_the_game_s_facts_come_before_the_task_s() -> None:
    assert turns_of({}, 3, 9) == (3, 9) and turns_of({"turn": 1, "max_turns": 4}, 3, 9) == (1, 4)
    assert [(b.role, b.share, b.acted) for b in bids_of({"bids": {"a_0": 2}, "winner": "a_0"})] == [
        ("a", 1.0, True)
    ]


def test_lines_are_broken_at_spaces() -> None:
    assert wrap("a bb  ccc dddddd e", 4, len) == ["a bb", "ccc", "dddddd", "e"]
    assert wrap("", 4, len) == []
