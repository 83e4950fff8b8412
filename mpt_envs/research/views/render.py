"""An episode as a picture: question, log, the page with its window, bids.

Letters are matplotlib's DejaVu Sans Mono, the same on every machine; it has no Hangul, which is
drawn stroke by stroke (`hangul`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mpt_envs.pictures import Overlay, bids_of, wrap
from mpt_envs.research.views import ansi
from mpt_envs.research.views.browser import Desk, heading, page_lines
from mpt_envs.research.views.hangul import draw_syllable, is_syllable
from mpt_envs.research.views.text import error_of, log_lines, question_of
from mpt_envs.research.world.layout import (
    HIT_LINES,
    ITEM_NAME,
    KIND,
    LINES,
    LOC,
    N_ITEMS,
    PAGE_DOCUMENT,
    PAGE_FIND,
    ROLES,
    TOP,
    WINDOW,
)

WIDTH, HEIGHT = 960, 640
_SIZE: Final = 13
_CELL: Final = 8  # width of a character of that size
_LINE: Final = 18
_INK, _DIM, _PAPER = (28, 30, 36), (120, 124, 134), (250, 249, 246)
_LINK, _WINDOW, _EDGE = (24, 86, 170), (255, 255, 255), (205, 205, 200)
_ROLE_INK: Final = ((34, 120, 80), (170, 96, 20), (130, 50, 140))
_OVERVIEW: Final = 3  # pixels of a line in the overview of the page


@lru_cache(maxsize=4)
def _font(bold: bool = False) -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    name = "DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf"
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}", _SIZE)


def _wide(character: str) -> int:
    return 2 if is_syllable(character) else 1


def _write(
    draw: ImageDraw.ImageDraw,
    x: int,
    y: int,
    text: str,
    ink: tuple[int, int, int] = _INK,
    *,
    bold: bool = False,
    limit: int = 110,
) -> None:
    """Write one line of at most ``limit`` cells; a syllable takes two."""
    left, run, run_at = 0, "", 0
    for character in [*text, ""]:
        if character and not is_syllable(character):
            if left + 1 > limit:
                break
            if not run:
                run_at = left
            run += character
            left += 1
            continue
        if run:
            draw.text((x + run_at * _CELL, y), run, fill=ink, font=_font(bold))
            run = ""
        if not character or left + 2 > limit:
            break
        draw_syllable(draw, x + left * _CELL, y + 2, 2 * _CELL - 2, ink, character)
        left += 2
    if run:
        draw.text((x + run_at * _CELL, y), run, fill=ink, font=_font(bold))


def _cell_count(text: str) -> int:
    return sum(map(_wide, text))


def _cells(text: str, limit: int) -> list[str]:
    """Cut a line into rows of at most ``limit`` cells."""
    rows, row, used = [], "", 0
    for character in text:
        if used + _wide(character) > limit:
            rows.append(row)
            row, used = "", 0
        row += character
        used += _wide(character)
    return [*rows, row]


def rgb_array(desk: Desk, overlay: Overlay | None = None) -> NDArray[np.uint8]:
    """Draw an episode: uint8 (HEIGHT, WIDTH, 3).

    Args:
        desk: the episode.
        overlay: facts of the game, see `mpt_envs.pictures`.
    """
    game = overlay or {}
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    draw = ImageDraw.Draw(image)
    _write(draw, 16, 8, ansi.heading(desk, game), _DIM)
    y = 30
    for line in wrap(question_of(desk), 114, _cell_count)[:3]:
        _write(draw, 16, y, line, bold=True, limit=116)
        y += _LINE
    y += 6
    for line in log_lines(desk, 6) or ["  nothing was opened yet"]:
        _write(draw, 16, y, line, _DIM, limit=84)
        y += _LINE
    error = error_of(desk)
    if error:
        _write(draw, 16, y, f"error: {error}", (180, 30, 30), limit=84)
    _bids(draw, game)
    _page(draw, desk, max(y + 8, 190))
    return np.asarray(image, np.uint8).copy()


def _bids(draw: ImageDraw.ImageDraw, overlay: Overlay) -> None:
    """The bids of the last auction at the right."""
    bids = bids_of(overlay)
    x, y = 704, 92
    _write(draw, x, y - 22, "bids" if bids else "no auction yet", _DIM)
    for bid in bids[:6]:
        ink = _ROLE_INK[ROLES.index(bid.role)] if bid.role in ROLES else _DIM
        _write(draw, x, y, f"{bid.agent[:11]:<11} {bid.bid:.2f}", ink, bold=bid.acted)
        length = int(90 * bid.share)
        draw.rectangle((x + 136, y + 3, x + 136 + max(1, length), y + 13), fill=ink)
        if bid.acted:
            draw.rectangle((x + 134, y + 1, x + 230, y + 15), outline=_INK)
        y += _LINE


def _page(draw: ImageDraw.ImageDraw, desk: Desk, y: int) -> None:
    """The page in view, and beside it the whole page with the window on it."""
    record = desk.record
    top = int(record[TOP])
    draw.rectangle((12, y, 860, HEIGHT - 12), fill=_WINDOW, outline=_EDGE)
    if top < 0:
        _write(draw, 24, y + 10, "No page is open yet.", _DIM)
        return
    title, url = heading(desk, top)
    _write(draw, 24, y + 6, f"[{top}] {title}", bold=True, limit=100)
    _write(draw, 24, y + 24, url, _DIM, limit=100)
    lines = page_lines(desk, top)
    kind = int(record[KIND + top])
    first, last = 0, len(lines)
    if kind == PAGE_DOCUMENT:
        first = int(record[LOC + top])
        last = min(last, first + int(record[LINES + top]))
    elif kind == PAGE_FIND:
        last = min(last, WINDOW // HIT_LINES * (HIT_LINES + 2) - 1)
    at = y + 48
    names = [
        desk.questions.shelf.names[i]
        for i in record[ITEM_NAME : ITEM_NAME + int(record[N_ITEMS])].tolist()
    ]
    for number in range(first, last):
        if at > HEIGHT - 34:
            _write(draw, 24, at, "...", _DIM)
            break
        line = lines[number]
        named = any(name in line for name in names)
        ink = _LINK if "【" in line else _INK
        _write(draw, 24, at, f"{number:>3}", _DIM)
        if named:
            draw.rectangle((56, at + 2, 58, at + 14), fill=_ROLE_INK[0])
        # A line of 80 syllables is wider than the page: it goes on below.
        for row in _cells(line.replace("【", "[").replace("】", "]"), 98):
            _write(draw, 66, at, row, ink, limit=98)
            at += _LINE
    _overview(draw, len(lines), first, last, y)


def _overview(draw: ImageDraw.ImageDraw, count: int, first: int, last: int, y: int) -> None:
    """The whole page as a strip, with what is in view framed."""
    scale = min(float(_OVERVIEW), (HEIGHT - 24 - y) / max(1, count))
    bottom = y + max(4, int(count * scale))
    draw.rectangle((880, y, 940, bottom), fill=_WINDOW, outline=_EDGE)
    frame = (878, y + int(first * scale), 942, y + max(4, int(last * scale)))
    draw.rectangle(frame, outline=_LINK, width=2)
