"""Pictures for people, words for playthroughs, and the golden playthroughs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import mpt_envs
from mpt_envs.playthroughs import FOLDER, Player, file_name, playthrough
from mpt_envs.research.views.hangul import draw_syllable, is_syllable, parts, strokes
from mpt_envs.research.views.render import HEIGHT, WIDTH
from mpt_envs.research.world.layout import QUESTION
from tests.mpt_envs.research.small import call, small_task

ROOT = Path(__file__).resolve().parents[3]
ID = "research/multihop-v0"


@pytest.mark.parametrize("player", ["expert", "random"])
def test_played_as_committed(player: Player) -> None:
    path = ROOT / FOLDER / file_name(ID, player)
    assert path.is_file(), f"{path.name} is missing: python -m mpt_envs.playthroughs --write"
    assert playthrough(ID, player) == path.read_bytes().decode("utf-8"), (
        "write it anew if a rule was meant to change: python -m mpt_envs.playthroughs --write"
    )


def test_pictures_show_question_log_page_and_bids() -> None:
    env = mpt_envs.make(ID, render_mode="ansi")
    env.reset(seed=6)
    first = env.render_as("rgb_array")
    assert first.shape == (HEIGHT, WIDTH, 3)
    seen = [first]
    while env.turn < 4 and not any(env.terminations.values()):
        agent = env.agent_selection
        if env.phase == "bid":
            env.step(9 if env.task.expert_bid(agent) > 0.5 else 1)
        else:
            env.step(len(env.bid_levels) + env.task.expert_action(agent))
        if env.phase == "bid" and env.turn == len(seen):
            seen.append(env.render_as("rgb_array"))
    assert len(seen) >= 4
    assert all(not np.array_equal(a, b) for a, b in pairwise(seen))
    text = env.render()
    question = env.task.questions.questions[int(env.task.record[QUESTION])].question
    assert question in text
    assert "searched" in text
    assert "opened" in text
    assert "**viewing lines [" in text
    assert "<- acted" in text


def test_pictures_of_odd_pages(tmp_path: Path) -> None:
    task = small_task(tmp_path)
    for text in ('search("서울")', "open(id=0)", "open(id=77)", 'search("?!")'):
        call(task, text)
        assert task.render("rgb_array").shape == (HEIGHT, WIDTH, 3)
        assert task.render("ansi")
    with pytest.raises(ValueError, match="render mode"):
        task.render("hologram")


@pytest.mark.parametrize(
    ("syllable", "letters"),
    [
        ("한", ("ㅎ", 0, "ㄴ")),
        ("쀍", ("ㅂㅂ", 15, "ㄹㄱ")),
        ("의", ("ㅇ", 19, "")),
        ("가", ("ㄱ", 0, "")),
    ],
)
def test_syllables_are_taken_apart(syllable: str, letters: tuple[str, int, str]) -> None:
    assert is_syllable(syllable)
    assert not is_syllable("a")
    assert parts(syllable) == letters


def test_every_syllable_stays_in_its_square_and_looks_different() -> None:
    seen = set()
    for code in range(0xAC00, 0xD7A4, 7):
        points = [p for stroke in strokes(chr(code)) for p in stroke]
        assert all(-0.05 <= x <= 1.05 and -0.05 <= y <= 1.05 for x, y in points), chr(code)
        image = Image.new("L", (48, 48))
        draw_syllable(ImageDraw.Draw(image), 0, 0, 48, 255, chr(code))  # type: ignore[arg-type]
        seen.add(image.tobytes())
    assert len(seen) == len(range(0xAC00, 0xD7A4, 7))
