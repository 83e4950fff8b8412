"""Instructions become clauses: sentences as annotators write them, and anything at all."""

from __future__ import annotations

import collections
import gzip
import json
import random

import numpy as np
import pytest

from mpt_envs.navigation.data.episodes import load_split
from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.clauses import MAX_CLAUSES, N_COLUMNS, Clause, as_array
from mpt_envs.navigation.world.facts import N_ROOMS, N_THINGS
from mpt_envs.navigation.world.lexicon import parse_instruction
from tests.mpt_envs.navigation.r2r_data import DATA, needs_r2r


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (
            "Exit the bedroom and turn left. Walk past the gray couch and stop near the rug.",
            ["exit bedroom", "turn left", "pass couch", "stop rug"],
        ),
        (
            "Turn around and go straight into the kitchen. Stop by the table.",
            ["turn around", "enter kitchen", "stop table"],
        ),
        (
            "Leave the laundry room, then make a right. Wait in the hall.",
            ["exit laundry room", "turn right", "stop hallway"],
        ),
        (
            "Go through the second door on your left and wait by the sink.",
            ["enter #2 (left)", "stop sink"],
        ),
        ("Walk up the stairs and wait there.", ["stairs stairs", "stop"]),
        ("Take a left into the bathroom. Stop.", ["turn left", "enter bathroom", "stop"]),
        (
            "Walk down the hallway and go through the door at the end into the office. Stop there.",
            ["straight hallway", "enter office (at the end)", "stop"],
        ),
        ("Stop once you are in the lounge.", ["stop living room"]),
        ("Walk to the fridge", ["approach refrigerator", "stop"]),
    ],
)
def test_sentences(words: str, meaning: list[str]) -> None:
    assert [str(clause) for clause in parse_instruction(words)] == meaning


@pytest.mark.parametrize(
    "words",
    [
        "",
        " \n\t ",
        "????",
        "\x00\x07",
        "stop stop stop",
        "부엌으로 가서 멈추세요.",
        "walk " * 5000,
        "turn left and " * 500,
        "(" * 3000 + "the second door" + ")" * 3000,
        "a" * 100_000,
    ],
)
def test_anything_gives_clauses_that_end_with_a_stop(words: str) -> None:
    found = parse_instruction(words)
    assert found[-1].kind == c.STOP
    array = as_array(found)
    assert array.shape[1] == N_COLUMNS and 1 <= len(array) <= MAX_CLAUSES
    assert array[-1, c.K_KIND] == c.STOP


def test_a_long_instruction_keeps_its_stop() -> None:
    clauses = [Clause(c.TURN, turn=c.LEFT)] * 40 + [Clause(c.STOP, thing=3)]
    array = as_array(clauses)
    assert len(array) == MAX_CLAUSES
    assert array[-1].tolist() == list(clauses[-1])


@needs_r2r
def test_real_instructions() -> None:
    """On the sentences of R2R: something useful of nearly all, numbers in their ranges."""
    with gzip.open(DATA / "val_unseen.json.gz", "rt", encoding="utf-8") as file:
        episodes = json.load(file)["episodes"]
    kinds: collections.Counter[int] = collections.Counter()
    counts = []
    placed = 0
    for episode in episodes:
        array = as_array(parse_instruction(episode["instruction"]["instruction_text"]))
        counts.append(len(array))
        kinds.update(array[:, c.K_KIND].tolist())
        placed += bool(array[-1, c.K_ROOM] > 0 or array[-1, c.K_THING] >= 0)
        assert (array >= (1, 0, 0, 0, 0, -1)).all()
        assert (array <= (c.STOP, c.AROUND, c.END, 3, N_ROOMS - 1, N_THINGS - 1)).all()
    assert 3.0 < np.mean(counts) < 6.0
    assert np.mean(np.array(counts) >= 2) > 0.95
    # Where to stop is said by a room or a thing, more often than not.
    assert placed > 0.6 * len(episodes)
    assert all(kinds[kind] > 100 for kind in range(c.TURN, c.STOP + 1))


def test_no_text_is_slow_to_read() -> None:
    rng = random.Random(0)
    words = ["turn", "left", "right", "around", "the", "to", "door", "hall", "past", "and", "stop"]
    for _ in range(200):
        parse_instruction(" ".join(rng.choice(words) for _ in range(200)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Walk across the room and stop.", ["straight", "stop"]),
        ("Walk past the antelope head, then wait.", ["straight", "stop"]),
        ("Go to the electrical outlet and stop.", ["straight", "stop"]),
        ("Enter the room to the right and wait.", ["enter (right)", "stop"]),
        ("Go into the room with the tile floor and wait.", ["enter", "stop"]),
    ],
)
def test_what_has_no_name_here_is_still_some_way_to_walk(text: str, wanted: list[str]) -> None:
    assert [str(clause) for clause in parse_instruction(text)] == wanted


@needs_r2r
def test_real_instructions_have_something_to_do_before_the_stop() -> None:
    read = [parse_instruction(e.instruction) for e in load_split(DATA, "val_unseen")]
    assert sum(len(clauses) > 1 for clauses in read) > 0.99 * len(read)
    assert 4 < sum(map(len, read)) / len(read) < 5.5
