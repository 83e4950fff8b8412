"""An episode as text for people: question, log, page in view, bids."""

from __future__ import annotations

from mpt_envs.pictures import Overlay, bid_bars, paint, status
from mpt_envs.research.rules.metrics import answer_text
from mpt_envs.research.views.browser import Desk, show
from mpt_envs.research.views.text import error_of, log_lines, question_of
from mpt_envs.research.world import layout as at


def heading(desk: Desk, overlay: Overlay) -> str:
    """The first line: turn, score, evidence, outcome."""
    record = desk.record
    turn = int(overlay.get("turn", record[at.TURN]))
    limit = f"/{overlay['max_turns']}" if "max_turns" in overlay else ""
    hops = int(desk.questions.arrays["q_hops"][int(record[at.QUESTION])])
    opened = int(record[at.EVIDENCE]).bit_count()
    answered = ""
    if record[at.DONE] != at.DONE_RUNNING:
        verdict = "right" if record[at.DONE] == at.DONE_RIGHT else "wrong"
        answered = f"answered {answer_text(record, desk.questions, desk.texts)}: {verdict}"
    score = f"score {int(record[at.SCORE])}"
    return status(f"turn {turn}{limit}", score, f"evidence {opened} of {hops}", answered)


def ansi(desk: Desk, overlay: Overlay | None = None, *, color: bool = True) -> str:
    """Draw an episode as lines of text, about 90 characters wide.

    Args:
        desk: the episode.
        overlay: facts of the game, see `mpt_envs.pictures`.
        color: whether to paint with escape sequences.
    """
    game = overlay or {}
    error = error_of(desk)
    lines = [
        heading(desk, game),
        paint(question_of(desk), "1", color),
        "",
        *(paint(line, "2", color) for line in log_lines(desk)),
        *([f"  error: {error}"] if error else []),
        "",
        show(desk),
        "",
        *bid_bars(game, color),
    ]
    return "\n".join(lines)
