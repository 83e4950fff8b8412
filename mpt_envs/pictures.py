"""What the pictures of all domains share: the game's facts, colours, letters, bids as text.

A domain's ``views.render`` draws "rgb_array" and its ``views.ansi`` "ansi"; both are handed an
``overlay`` of facts of the game, all optional: ``turn``, ``max_turns``, ``bids`` (agent -> bid of
the last auction) and ``winner`` (an agent; None: the turn was skipped).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from PIL import ImageFont

Overlay = Mapping[str, Any]
Colour = tuple[int, int, int]

BACKGROUND: Final = (20, 23, 31)
LINE: Final = (54, 60, 78)
TEXT: Final = (234, 236, 242)
MUTED: Final = (146, 155, 176)
DIM: Final = (98, 106, 126)
GOLD: Final = (250, 204, 84)
GREEN: Final = (120, 204, 112)
RED: Final = (236, 104, 88)

_BAR: Final = 30  # characters of a bid of 1


class Bid(NamedTuple):
    """An agent's bid in the last auction, its `share` of a full bar in [0, 1], and if it acted."""

    agent: str
    bid: float
    share: float
    acted: bool

    @property
    def role(self) -> str:
        """The agent's role."""
        return self.agent.rpartition("_")[0]


def bids_of(overlay: Overlay) -> list[Bid]:
    """The bids of the last auction; none before the first."""
    winner = overlay.get("winner")
    return [
        Bid(str(agent), float(bid), min(1.0, max(0.0, float(bid))), agent == winner)
        for agent, bid in (overlay.get("bids") or {}).items()
    ]


def bid_bars(overlay: Overlay, color: bool) -> list[str]:
    """A line for each agent's bid, with a bar; the winner is marked.

    Args:
        overlay: facts of the game.
        color: whether to paint the winner with escape sequences.
    """
    bids = bids_of(overlay)
    if not bids:
        return ["Bids: no auction yet"]
    wide = max(len(bid.agent) for bid in bids)
    rows = ["Bids of the last turn:" + ("" if overlay.get("winner") else " nobody wanted to act")]
    for agent, bid, share, acted in bids:
        mark = "  <- acted" if acted else ""
        row = f"  {agent:<{wide}} {bid:.2f} {'#' * round(_BAR * share)}{mark}".rstrip()
        rows.append(paint(row, "33;1", color and acted))
    return rows


def turns_of(overlay: Overlay, turn: int, limit: int) -> tuple[int, int]:
    """The turn and how many there are at most: the game's, else these of the task."""
    return int(overlay.get("turn", turn)), int(overlay.get("max_turns", limit))


def paint(words: str, codes: str, color: bool) -> str:
    """Words in a style of escape codes, e.g. ``"33;1"``; as they are without colour."""
    return f"\x1b[{codes}m{words}\x1b[0m" if color else words


def status(*parts: str) -> str:
    """The first line of a picture of characters, of those parts that are not empty."""
    return "   ".join(part for part in parts if part)


@lru_cache(maxsize=8)
def font(size: int) -> Any:
    """The font that Pillow carries, so that no file is needed."""
    return ImageFont.load_default(size=size)


def wrap(words: str, room: float, measure: Callable[[str], float]) -> list[str]:
    """Break a text at spaces so that no line of several words measures more than there is room."""
    lines: list[str] = []
    line = ""
    for word in words.split():
        longer = f"{line} {word}".strip()
        if line and measure(longer) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines
