"""A world as text for a terminal: the same content as the picture in `render`, in characters.

Every block is two characters wide, so that it is about square. With colour the blocks are painted
in the mean colours of their tiles (24-bit escape sequences); without it the characters alone tell
them apart, which is what files and comparisons want.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.views import scene, sprites, text
from mpt_envs.crafting.views.scene import OUTSIDE, PIT
from mpt_envs.crafting.world import facts, goals
from mpt_envs.crafting.world import layout as at
from mpt_envs.pictures import Colour, Overlay, bid_bars, paint, status, turns_of

RADIUS: Final = 10  # blocks to each side of the body that are shown

_BODY: Final = "@"
#: One character for each block id of `scene`.
SYMBOLS: Final = {
    facts.AIR: " ",
    facts.WATER: "~",
    facts.LEAVES: "*",
    facts.GRASS: ".",
    facts.DIRT: ":",
    facts.SAND: ",",
    facts.GRAVEL: ";",
    facts.STONE: "#",
    facts.COAL_ORE: "c",
    facts.IRON_ORE: "i",
    facts.LOG: "O",
    facts.COBBLESTONE: "%",
    facts.TABLE: "T",
    facts.FURNACE: "F",
    facts.BEDROCK: "=",
    facts.BARRIER: "X",
    OUTSIDE: "X",
    PIT: "v",
}
_NAMES: Final = {**dict(enumerate(facts.BLOCK_NAMES)), OUTSIDE: "end of the world", PIT: "drop"}


@lru_cache(maxsize=1)
def _mean_colours() -> NDArray[np.float32]:
    """Mean colour of each block's tile: float32 (PIT + 1, 3)."""
    return sprites.tiles(False).mean(axis=(1, 2, 3)).astype(np.float32)


def _cell(symbol: str, colour: NDArray[np.float32] | Colour | None, bright: bool = False) -> str:
    """One block: two characters on a ground of its colour."""
    if colour is None:
        return symbol * 2
    red, green, blue = (min(255, max(0, int(c))) for c in colour)
    if bright:
        ink = "38;2;255;255;255;1"
    else:
        ink = f"38;2;{red * 7 // 10};{green * 7 // 10};{blue * 7 // 10}"
    return paint(symbol * 2, f"{ink};48;2;{red};{green};{blue}", True)


def _map_rows(record: NDArray[np.uint8], color: bool, used: set[int]) -> list[str]:
    s = at.scalars(record)
    y = int(s[at.Y])
    view = scene.map_around(record, RADIUS)
    colours = _mean_colours()
    rows = []
    for row in range(2 * RADIUS + 1):
        cells = []
        for column in range(2 * RADIUS + 1):
            block = int(view.block[row, column])
            if view.trunk[row, column]:
                block = facts.LOG
            floor = bool(view.open[row, column]) and block not in (facts.WATER, PIT)
            ground = None
            if color:
                shade = 0.45 if floor else 1.0
                if view.level is None and block != OUTSIDE:
                    shade = 1 + 0.045 * max(-7, min(7, int(view.height[row, column]) - y + 1))
                ground = colours[block] * shade
            if row == column == RADIUS:
                cells.append(_cell(_BODY, ground, bright=True))
            elif floor:
                cells.append(_cell(" ", ground))
            else:
                used.add(block)
                important = block in (facts.COAL_ORE, facts.IRON_ORE, facts.TABLE, facts.FURNACE)
                cells.append(_cell(SYMBOLS[block], ground, bright=important))
        rows.append("".join(cells))
    return rows


def _section_rows(record: NDArray[np.uint8], color: bool, used: set[int]) -> list[str]:
    s = at.scalars(record)
    y = int(s[at.Y])
    view = scene.section_through(record, RADIUS)
    colours = _mean_colours()
    rows = []
    for row in range(view.block.shape[0]):
        height = at.HEIGHT - 1 - row
        cells = []
        for column in range(2 * RADIUS + 1):
            block = int(view.block[row, column])
            ground: NDArray[np.float32] | Colour | None = None
            if color and block == facts.AIR:
                ground = (28, 24, 30) if view.below_ground[row, column] else (150, 196, 238)
            elif color:
                ground = colours[block]
            if column == RADIUS and height in (y, y + 1):
                cells.append(_cell(_BODY, ground, bright=True))
            else:
                if block != facts.AIR:
                    used.add(block)
                important = block in (facts.COAL_ORE, facts.IRON_ORE, facts.TABLE, facts.FURNACE)
                cells.append(_cell(SYMBOLS[block], ground, bright=important))
        rows.append("".join(cells))
    return rows


def ansi(record: NDArray[np.uint8], overlay: Overlay | None = None, *, color: bool = True) -> str:
    """Draw one world as lines of text, about 90 characters wide.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        overlay: facts of the game as for `render.rgb_array`.
        color: whether to paint with escape sequences.
    """
    game = overlay or {}
    s = at.scalars(record)
    goal = goals.GOALS[int(s[at.GOAL])]
    best = int(goals.MILESTONE_VALUE[int(s[at.GOAL])].sum())
    done = int(s[at.DONE])
    turn, limit = turns_of(game, int(s[at.TURN]), goal.max_turns)
    first = status(
        goal.name.replace("-", " "),
        f"turn {turn}/{limit}",
        f"tick {int(s[at.TICK])}/{int(s[at.BUDGET])}",
        f"score {int(s[at.SCORE])} of {best}",
        text.DONE_WORDS[done] if done != at.DONE_RUNNING else "",
    )
    used: set[int] = set()
    left = _map_rows(record, color, used)
    right = _section_rows(record, color, used)
    wide = 2 * (2 * RADIUS + 1)
    level = scene.is_underground(record)
    caption = f"Map at height {int(s[at.Y])}, north up" if level else "Map, north up"
    lines = [first, f"{caption:<{wide}}   Section, west to east"]
    left += [" " * wide] * (len(right) - len(left))
    lines += [f"{a}   {b}".rstrip() for a, b in zip(left, right, strict=True)]
    legend = "  ".join(f"{SYMBOLS[b]} {_NAMES[b].replace('_', ' ')}" for b in sorted(used))
    lines += [f"{_BODY} body  {legend}", "", *text.state_lines(record), *bid_bars(game, color)]
    return "\n".join(lines)
