"""An episode as text for people: question, log, page in view, bids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpt_envs.research.rules.metrics import answer_text
from mpt_envs.research.views.browser import Desk, show
from mpt_envs.research.views.text import error_of, log_lines, question_of
from mpt_envs.research.world.layout import (
    DONE,
    DONE_RIGHT,
    DONE_RUNNING,
    EVIDENCE,
    QUESTION,
    SCORE,
    TURN,
)

_BAR: Final = 30


def status(desk: Desk, overlay: Mapping[str, Any] | None) -> str:
    """The first line: turn, score, evidence, outcome."""
    game = overlay or {}
    record = desk.record
    turn = int(game.get("turn", record[TURN]))
    limit = f"/{game['max_turns']}" if "max_turns" in game else ""
    hops = int(desk.questions.arrays["q_hops"][int(record[QUESTION])])
    opened = int(record[EVIDENCE]).bit_count()
    words = f"turn {turn}{limit}   score {int(record[SCORE])}   evidence {opened} of {hops}"
    if record[DONE] != DONE_RUNNING:
        answer = answer_text(record, desk.questions, desk.texts)
        words += f"   answered {answer}: {'right' if record[DONE] == DONE_RIGHT else 'wrong'}"
    return words


def bid_rows(overlay: Mapping[str, Any] | None) -> list[tuple[str, float, bool]]:
    """Agent, bid and whether it acted, of the last auction."""
    game = overlay or {}
    bids = game.get("bids") or {}
    return [(str(a), float(b), a == game.get("winner")) for a, b in bids.items()]


def ansi(desk: Desk, overlay: Mapping[str, Any] | None = None, *, color: bool = True) -> str:
    """Draw an episode as lines of text, about 90 characters wide.

    Args:
        desk: the episode.
        overlay: facts of the game: ``turn``, ``max_turns``, ``bids``, ``winner``.
        color: whether to paint with escape sequences.
    """
    bold, dim, mark, end = (
        ("\x1b[1m", "\x1b[2m", "\x1b[33;1m", "\x1b[0m") if color else ("", "", "", "")
    )
    lines = [
        status(desk, overlay),
        f"{bold}{question_of(desk)}{end}",
        "",
        *(f"{dim}{line}{end}" for line in log_lines(desk)),
    ]
    error = error_of(desk)
    if error:
        lines.append(f"  error: {error}")
    lines += ["", show(desk), ""]
    rows = bid_rows(overlay)
    if not rows:
        return "\n".join([*lines, "Bids: no auction yet"])
    lines.append("Bids of the last turn:" + ("" if any(r[2] for r in rows) else " nobody acted"))
    wide = max(len(agent) for agent, _, _ in rows)
    for agent, bid, acted in rows:
        row = f"  {agent:<{wide}} {bid:.2f} {'#' * round(_BAR * min(1.0, max(0.0, bid)))}"
        lines.append(f"{mark}{row}  <- acted{end}" if acted else row)
    return "\n".join(lines)
