"""The bids of the last turn as lines of text, for the "ansi" pictures of the domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_BAR: Final = 30  # characters of a bid of 1


def bid_bars(overlay: Mapping[str, Any], color: bool) -> list[str]:
    """A line for each agent's bid, with a bar; the winner is marked.

    Args:
        overlay: facts of the game: ``bids`` (agent -> bid in [0, 1]) and ``winner``.
        color: whether to paint the winner with escape sequences.
    """
    bids = overlay.get("bids")
    if not bids:
        return ["Bids: no auction yet"]
    winner = overlay.get("winner")
    wide = max(len(str(agent)) for agent in bids)
    rows = ["Bids of the last turn:" + ("" if winner else " nobody wanted to act")]
    for agent, bid in bids.items():
        full = "#" * round(_BAR * min(1.0, max(0.0, float(bid))))
        mark = "  <- acted" if agent == winner else ""
        row = f"  {agent:<{wide}} {float(bid):.2f} {full}{mark}".rstrip()
        rows.append(f"\x1b[33;1m{row}\x1b[0m" if color and mark else row)
    return rows
