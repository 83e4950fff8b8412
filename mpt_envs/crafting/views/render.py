"""Pictures of a world for people: `rgb_array`, 640 x 400 pixels, and `ansi`, the same as text.

Both show the state of one record (see `layout`) and, from the game around it, the bids of the last
auction: a map from above with the body in its middle, north up (below the ground: a cut at the
height of its feet); a cut from west to east through the body; its inventory, the milestones, the
furnace, the last action, and a bar for each agent's bid with the winner marked.

Pictures are for spectators. They show blocks that the body has not seen; what it does see is
ringed: the nearest visible log, stone, coal and iron. Nothing here is an observation.

Drawing is a function of its arguments alone: the same record gives the same pixels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw

from mpt_envs.crafting.views import scene, sprites, text
from mpt_envs.crafting.views.ansi import ansi
from mpt_envs.crafting.views.scene import OUTSIDE
from mpt_envs.crafting.views.sprites import TILE
from mpt_envs.crafting.world import facts, goals
from mpt_envs.crafting.world import layout as at
from mpt_envs.pictures import (
    BACKGROUND,
    DIM,
    GOLD,
    GREEN,
    LINE,
    MUTED,
    RED,
    TEXT,
    Colour,
    Overlay,
    bids_of,
    font,
    turns_of,
)

__all__ = ["HEIGHT", "WIDTH", "ansi", "rgb_array"]

WIDTH: Final = 640
HEIGHT: Final = 400
RADIUS: Final = 12  # blocks to each side of the body that are shown
_VIEW: Final = (2 * RADIUS + 1) * TILE

_PANEL: Final = (32, 36, 48)
_BLUE: Final = (110, 180, 236)
_ROLE_COLOURS: Final[dict[str, Colour]] = {
    "logger": (122, 196, 104),
    "miner": (104, 172, 232),
    "smith": (240, 146, 84),
}
_OTHER_ROLES: Final[tuple[Colour, ...]] = (
    (186, 140, 236),
    (236, 132, 176),
    (120, 210, 200),
    (220, 200, 120),
)
#: Rings around the visible targets: log, stone, coal, iron.
_TARGET_COLOURS: Final[tuple[Colour, ...]] = (
    (255, 196, 92),
    (236, 236, 240),
    (16, 16, 20),
    (255, 140, 80),
)
_SHORT_NAMES: Final = {
    facts.I_COBBLESTONE: "cobble",
    facts.I_TABLE: "table",
    facts.I_STONE_BRICKS: "bricks",
    facts.I_WOODEN_PICKAXE: "wood pick",
    facts.I_STONE_PICKAXE: "stone pick",
    facts.I_IRON_PICKAXE: "iron pick",
}
_SKY_HIGH: Final = np.array((120, 176, 236), np.float32)
_SKY_LOW: Final = np.array((196, 222, 244), np.float32)
_CAVE: Final = np.array((26, 22, 28), np.float32)

_X_MAP: Final = 8
_X_SECTION: Final = 266
_X_SIDE: Final = 524
_Y_VIEW: Final = 54
_W_SIDE: Final = WIDTH - _X_SIDE - 8
_Y_FEET: Final = _Y_VIEW + _VIEW + 6


# --- text --------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def _label(words: str, size: int) -> NDArray[np.float32]:
    """Coverage of a line of text: float32 (height, width, 1) in [0, 1]."""
    letters = font(size)
    # Hinted at this size, the font's space is too narrow to part words.
    words = words.replace(" ", "  ")
    width = max(1, int(np.ceil(letters.getlength(words))))
    picture = PillowImage.new("L", (width, size + 4), 0)
    ImageDraw.Draw(picture).text((0, 0), words, fill=255, font=letters)
    coverage = np.asarray(picture, np.float32)[:, :, None] / 255.0
    coverage.flags.writeable = False
    return coverage


def _write(
    canvas: NDArray[np.uint8],
    x: int,
    y: int,
    words: str,
    colour: Colour = TEXT,
    size: int = 11,
    align: float = 0.0,
    room: int | None = None,
) -> int:
    """Write one line with its upper left corner at x, y; return the x after it.

    ``align`` 0.5 centres it at x, 1 ends it there. A line longer than ``room`` pixels is shortened.
    """
    coverage = _label(words, size)
    if room is not None and coverage.shape[1] > room:
        while len(words) > 1 and _label(words + "..", size).shape[1] > room:
            words = words[:-1]
        coverage = _label(words.rstrip() + "..", size)
    x -= int(align * coverage.shape[1])
    x0, x1 = max(0, x), min(canvas.shape[1], x + coverage.shape[1])
    y0, y1 = max(0, y), min(canvas.shape[0], y + coverage.shape[0])
    if x0 < x1 and y0 < y1:
        part = coverage[y0 - y : y1 - y, x0 - x : x1 - x]
        under = canvas[y0:y1, x0:x1]
        canvas[y0:y1, x0:x1] = under * (1 - part) + np.array(colour, np.float32) * part + 0.5
    return x + coverage.shape[1]


def _box(canvas: NDArray[np.uint8], x: int, y: int, w: int, h: int, colour: Colour) -> None:
    """Fill a rectangle."""
    if w > 0 and h > 0:
        canvas[y : y + h, x : x + w] = colour


def _frame(canvas: NDArray[np.uint8], x: int, y: int, w: int, h: int, colour: Colour) -> None:
    """Outline a rectangle, one pixel wide."""
    canvas[y, x : x + w] = colour
    canvas[y + h - 1, x : x + w] = colour
    canvas[y : y + h, x] = colour
    canvas[y : y + h, x + w - 1] = colour


def _paste(
    canvas: NDArray[np.uint8], x: int, y: int, sprite: tuple[NDArray[np.uint8], NDArray[np.bool_]]
) -> None:
    """Put a sprite on the canvas where it is opaque."""
    colour, opaque = sprite
    part = canvas[y : y + colour.shape[0], x : x + colour.shape[1]]
    part[opaque] = colour[opaque]


# --- views -------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def _variants() -> NDArray[np.int64]:
    """Which variant of a tile each column of the world takes: int64 (W, W)."""
    x, z = np.indices((at.WIDTH + 2 * RADIUS, at.WIDTH + 2 * RADIUS))
    return ((x * 5 + z * 3 + (x * z) % 7) % sprites.VARIANTS).astype(np.int64)


def _mosaic(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A grid of tiles, uint8 (rows, columns, TILE, TILE, 3), as one picture."""
    rows, columns = tiles.shape[:2]
    return tiles.transpose(0, 2, 1, 3, 4).reshape(rows * TILE, columns * TILE, 3)


def _draw_map(record: NDArray[np.uint8], view: scene.Map) -> NDArray[np.uint8]:
    """The map as a picture of `_VIEW` by `_VIEW` pixels."""
    s = at.scalars(record)
    x, y, z = int(s[at.X]), int(s[at.Y]), int(s[at.Z])
    variant = _variants()[x : x + 2 * RADIUS + 1, z : z + 2 * RADIUS + 1].T
    picture = sprites.tiles(False)[view.block, variant].astype(np.float32)
    shade = np.ones(view.block.shape, np.float32)
    known = view.block != OUTSIDE
    if view.level is None:
        height = view.height.astype(np.float32)
        shade += 0.045 * np.clip(height - y + 1, -7, 7)
        # Light falls in from the north-west, so that steps of the ground can be seen.
        north = np.vstack([height[:1], height[:-1]])
        west = np.hstack([height[:, :1], height[:, :-1]])
        shade += 0.05 * np.clip(2 * height - north - west, -3, 3)
        water = view.block == facts.WATER
        shade[water] = 1.0
    else:
        # The lower the floor, the darker.
        drop = y - 1 - view.height.astype(np.float32)
        shade[view.open] = 0.46 - 0.09 * np.clip(drop[view.open], 0, scene.SAFE_DROP)
        shade[view.open & (view.block == facts.WATER)] = 0.8
    shade[~known] = 1.0
    picture *= shade[:, :, None, None, None]
    canvas = _mosaic(np.minimum(picture, 255).astype(np.uint8))
    if view.level is None:
        for row, column in np.argwhere(view.trunk & (view.block == facts.LEAVES)):
            _box(canvas, column * TILE + 4, row * TILE + 4, 3, 3, (92, 66, 38))
    else:
        _edges(canvas, view.open)
    return canvas


def _edges(canvas: NDArray[np.uint8], opening: NDArray[np.bool_]) -> None:
    """Darken the rim of open floor, so that walls stand out."""
    tall = opening.repeat(TILE, 0).repeat(TILE, 1)
    wall = ~tall
    rim = np.zeros_like(tall)
    rim[1:] |= wall[:-1]
    rim[:-1] |= wall[1:]
    rim[:, 1:] |= wall[:, :-1]
    rim[:, :-1] |= wall[:, 1:]
    rim &= tall
    canvas[rim] = canvas[rim] // 3


def _draw_section(record: NDArray[np.uint8], view: scene.Section) -> NDArray[np.uint8]:
    """The section as a picture of `_VIEW` pixels width and as much height as the world has."""
    s = at.scalars(record)
    x, z = int(s[at.X]), int(s[at.Z])
    rows, columns = view.block.shape
    line = _variants()[x : x + columns, z + RADIUS]
    variant = (line[None, :] + np.arange(rows)[:, None] * 3) % sprites.VARIANTS
    atlas = sprites.tiles(True)
    picture = atlas[view.block, variant]
    # Air: the sky above the ground, the dark of a cave below it, and what lies behind.
    share = np.linspace(0, 1, rows, dtype=np.float32)[:, None, None]
    sky = np.broadcast_to(_SKY_HIGH * (1 - share) + _SKY_LOW * share, (rows, columns, 3))
    back = np.where(view.below_ground[:, :, None], _CAVE, sky)
    air = view.block == facts.AIR
    picture[air] = back[air].astype(np.uint8)[:, None, None, :]
    seen = air & (view.behind != facts.AIR)
    deep = view.below_ground[seen]
    strength = np.where(deep, 0.34, 0.62) - np.where(deep, 0.03, 0.06) * view.distance[seen]
    strength = np.maximum(strength, 0.08)[:, None, None, None].astype(np.float32)
    behind = atlas[view.behind[seen], variant[seen]]
    mixed = behind * strength + back[seen][:, None, None, :] * (1 - strength)
    picture[seen] = mixed.astype(np.uint8)
    return _mosaic(picture)


@lru_cache(maxsize=1)
def _sight_ring() -> NDArray[np.bool_]:
    """Dots of the circle within which the body sees, in pixels of the map."""
    middle = _VIEW / 2
    rows, columns = np.indices((_VIEW, _VIEW))
    distance = np.hypot(rows + 0.5 - middle, columns + 0.5 - middle)
    angle = np.arctan2(rows + 0.5 - middle, columns + 0.5 - middle)
    dotted = np.floor(angle * 48 / np.pi) % 2 == 0
    ring: NDArray[np.bool_] = (np.abs(distance - facts.SIGHT * TILE) < 0.6) & dotted
    return ring


def _views(canvas: NDArray[np.uint8], record: NDArray[np.uint8]) -> None:
    """Map and section with the body, the visible targets and a compass."""
    s = at.scalars(record)
    x, y, z = int(s[at.X]), int(s[at.Y]), int(s[at.Z])
    view = scene.map_around(record, RADIUS)
    picture = _draw_map(record, view)
    ring = _sight_ring()
    picture[ring] = picture[ring] // 2 + 110
    section = _draw_section(record, scene.section_through(record, RADIUS))

    middle = RADIUS * TILE
    for kind in range(4):
        cell = int(s[at.TARGET_CELL + kind])
        if cell == 0:
            continue
        tx, ty, tz = at.position(cell)
        column, row = RADIUS + tx - x, RADIUS + tz - z
        colour = _TARGET_COLOURS[kind]
        if 0 <= column <= 2 * RADIUS and 0 <= row <= 2 * RADIUS:
            _ring(picture, column * TILE, row * TILE, colour)
        if tz == z and 0 <= column <= 2 * RADIUS:
            _ring(section, column * TILE, (at.HEIGHT - 1 - ty) * TILE, colour)
    _frame(picture, middle - 2, middle - 2, TILE + 4, TILE + 4, (255, 255, 255))
    _frame(picture, middle - 3, middle - 3, TILE + 6, TILE + 6, (20, 20, 20))
    _paste(picture, middle, middle, sprites.body(False))
    _paste(section, middle, max(0, (at.HEIGHT - 2 - y) * TILE), sprites.body(True))
    # Where the section cuts the map.
    for step in range(6):
        picture[middle + step : middle + TILE - step, step] = GOLD
        picture[middle + step : middle + TILE - step, _VIEW - 1 - step] = GOLD
        if 2 * step >= TILE - 1:
            break

    canvas[_Y_VIEW : _Y_VIEW + _VIEW, _X_MAP : _X_MAP + _VIEW] = picture
    _box(canvas, _X_SECTION, _Y_VIEW, _VIEW, _VIEW, _PANEL)
    canvas[_Y_VIEW : _Y_VIEW + section.shape[0], _X_SECTION : _X_SECTION + _VIEW] = section
    _frame(canvas, _X_MAP - 1, _Y_VIEW - 1, _VIEW + 2, _VIEW + 2, LINE)
    _frame(canvas, _X_SECTION - 1, _Y_VIEW - 1, _VIEW + 2, _VIEW + 2, LINE)

    what = "Map, north up" if view.level is None else f"Map at height {view.level}, north up"
    _write(canvas, _X_MAP, 38, what, MUTED, 11)
    _write(canvas, _X_SECTION, 38, "Section, west to east", MUTED, 11)
    _write(canvas, _X_SECTION + _VIEW, 38, f"x {x}  y {y}  z {z}", MUTED, 11, align=1)


def _ring(picture: NDArray[np.uint8], x: int, y: int, colour: Colour) -> None:
    """Outline one tile, twice, so that it shows on any ground."""
    x0, y0 = max(0, x - 1), max(0, y - 1)
    x1, y1 = min(picture.shape[1], x + TILE + 1), min(picture.shape[0], y + TILE + 1)
    _frame(picture, x0, y0, x1 - x0, y1 - y0, colour)
    inner = (240, 240, 240) if sum(colour) < 200 else (30, 26, 30)
    _frame(picture, x, y, TILE, TILE, inner)


# --- the rest of the picture --------------------------------------------------------------------
def role_colour(role: str) -> Colour:
    """The colour of a role; roles of other domains get one by their name."""
    if role in _ROLE_COLOURS:
        return _ROLE_COLOURS[role]
    return _OTHER_ROLES[sum(map(ord, role)) % len(_OTHER_ROLES)]


def _header(canvas: NDArray[np.uint8], s: NDArray[np.int32], overlay: Overlay) -> None:
    """Goal, turn, ticks, score."""
    _box(canvas, 0, 0, WIDTH, 32, _PANEL)
    goal = goals.GOALS[int(s[at.GOAL])]
    after = _write(canvas, 8, 8, goal.name.replace("-", " "), TEXT, 14)
    done = int(s[at.DONE])
    if done != at.DONE_RUNNING:
        colour = GREEN if done == at.DONE_GOAL else RED
        _write(canvas, after + 10, 9, text.DONE_WORDS[done], colour, 12)
    turn, limit = turns_of(overlay, int(s[at.TURN]), goal.max_turns)
    _bar(canvas, 268, "turn", turn, limit, _BLUE)
    _bar(canvas, 396, "ticks", int(s[at.TICK]), int(s[at.BUDGET]), GOLD)
    best = int(goals.MILESTONE_VALUE[int(s[at.GOAL])].sum())
    _write(canvas, WIDTH - 8, 9, f"score {int(s[at.SCORE])} of {best}", TEXT, 12, align=1)


def _bar(
    canvas: NDArray[np.uint8], x: int, name: str, value: int, limit: int, colour: Colour
) -> None:
    """A quantity against its limit, as numbers over a bar."""
    width = 112
    _write(canvas, x, 4, name, MUTED, 11)
    _write(canvas, x + width, 4, f"{value} / {limit}", TEXT, 11, align=1)
    _box(canvas, x, 21, width, 5, LINE)
    _box(canvas, x, 21, round(width * min(1.0, value / max(1, limit))), 5, colour)


def _milestones(canvas: NDArray[np.uint8], s: NDArray[np.int32]) -> int:
    """The list of milestones; returns the y below it."""
    _write(canvas, _X_SIDE, 38, "Milestones", MUTED, 11)
    values = goals.MILESTONE_VALUE[int(s[at.GOAL])]
    y = _Y_VIEW
    upcoming = True
    for item in text.PATHS[int(s[at.GOAL])]:
        seen = bool(int(s[at.SEEN]) >> item & 1)
        if seen:
            _box(canvas, _X_SIDE, y + 3, 7, 7, GREEN)
        else:
            _frame(canvas, _X_SIDE, y + 3, 7, 7, GOLD if upcoming else DIM)
        colour = TEXT if seen else (GOLD if upcoming else DIM)
        upcoming = upcoming and seen
        _write(canvas, _X_SIDE + 12, y, facts.ITEM_NAMES[item].replace("_", " "), colour, 10)
        _write(canvas, _X_SIDE + _W_SIDE, y, f"+{values[item]}", colour, 10, align=1)
        y += 14
    return y


def _stations(canvas: NDArray[np.uint8], s: NDArray[np.int32], y: int) -> None:
    """The table's and the furnace's place, and what is in the furnace."""
    y = max(y + 6, _Y_VIEW + _VIEW - 76)
    _box(canvas, _X_SIDE, y - 4, _W_SIDE, 1, LINE)
    for name, where, near in (
        ("table", at.TABLE_CELL, at.TABLE_NEAR),
        ("furnace", at.FURNACE_CELL, at.FURNACE_NEAR),
    ):
        if int(s[where]) == 0:
            state, colour = "not placed", DIM
        else:
            state, colour = (("out of sight", MUTED), ("in sight", TEXT), ("in reach", GREEN))[
                int(s[near])
            ]
        _write(canvas, _X_SIDE, y, name, MUTED, 10)
        _write(canvas, _X_SIDE + _W_SIDE, y, state, colour, 10, align=1)
        y += 14
    if int(s[at.FURNACE_CELL]) == 0:
        return
    y += 4
    slots = (
        (at.FURNACE_INPUT, at.FURNACE_INPUT_COUNT),
        (at.FURNACE_FUEL, at.FURNACE_FUEL_COUNT),
        (at.FURNACE_OUTPUT, at.FURNACE_OUTPUT_COUNT),
    )
    for index, (item, count) in enumerate(slots):
        x = _X_SIDE + index * 39
        _box(canvas, x, y, 30, 30, _PANEL)
        _frame(canvas, x, y, 30, 30, LINE)
        if int(s[count]) > 0:
            _paste(canvas, x + 3, y + 3, sprites.icon(int(s[item])))
            _count(canvas, x + 29, y + 18, int(s[count]))
    for x in (_X_SIDE + 31, _X_SIDE + 70):
        _box(canvas, x + 1, y + 14, 5, 2, DIM)
    burn = min(1.0, int(s[at.FURNACE_BURN]) / 300)
    _box(canvas, _X_SIDE + 39, y + 32, round(30 * burn), 3, (240, 138, 48))
    progress = min(1.0, int(s[at.FURNACE_PROGRESS]) / facts.SMELT_TICKS)
    _box(canvas, _X_SIDE + 78, y + 32, round(30 * progress), 3, TEXT)


def _count(canvas: NDArray[np.uint8], x: int, y: int, count: int) -> None:
    """A number with a shadow, its right end at x."""
    _write(canvas, x + 1, y + 1, str(count), (0, 0, 0), 10, align=1)
    _write(canvas, x, y, str(count), (255, 255, 255), 10, align=1)


def _inventory(canvas: NDArray[np.uint8], s: NDArray[np.int32]) -> None:
    """Icons with names and counts; wear under a pickaxe."""
    columns, wide = 9, 46
    y0 = _Y_FEET + 16
    held = [item for item in range(facts.N_ITEMS) if int(s[at.INVENTORY + item]) > 0]
    # The tools, which are last in the order, are worth more than the last of the rest.
    held = held[: 2 * columns] if len(held) <= 2 * columns else held[-2 * columns :]
    for index in range(2 * columns):
        x = 8 + index % columns * wide
        y = y0 + index // columns * 37
        _box(canvas, x, y, wide - 4, 35, _PANEL)
        if index >= len(held):
            continue
        item = held[index]
        _paste(canvas, x + 2, y + 1, sprites.icon(item))
        _count(canvas, x + wide - 6, y + 10, int(s[at.INVENTORY + item]))
        name = _SHORT_NAMES.get(item, facts.ITEM_NAMES[item].replace("_", " "))
        _write(canvas, x + 2, y + 24, name, MUTED, 8, room=wide - 7)
        if item in facts.PICKAXES:
            kind = facts.PICKAXES.index(item)
            left = 1 - int(s[at.WEAR + kind]) / facts.PICKAXE_DURABILITY[kind]
            _box(canvas, x + 28, y + 4, 12, 2, LINE)
            _box(canvas, x + 28, y + 4, round(12 * left), 2, GREEN if left > 0.25 else RED)


def _last_turn(canvas: NDArray[np.uint8], record: NDArray[np.uint8], overlay: Overlay) -> None:
    """Who did what in the last turn, in words."""
    s = at.scalars(record)
    y = _Y_FEET
    if int(s[at.TURN]) == 0:
        _write(canvas, 8, y, "The first turn is about to begin.", MUTED, 11)
        return
    role = int(s[at.LAST_ROLE])
    if role < 0:
        _write(canvas, 8, y, "Nobody acted in the last turn.", MUTED, 11)
        return
    winner = str(overlay.get("winner") or facts.ROLES[role])
    x = _write(canvas, 8, y, winner, role_colour(facts.ROLES[role]), 11)
    action = facts.ACTIONS[facts.ROLES[role]][int(s[at.LAST_ACTION])]
    ticks = int(s[at.LAST_TICKS])
    x = _write(canvas, x + 6, y, f"{action.replace('_', ' ')}, {ticks} ticks", TEXT, 11)
    # Milestones have their own list.
    happened = text.turn_events(record, int(s[at.TURN]) - 1)
    words = "; ".join(h for h in happened if not h.startswith("milestone"))
    if words:
        _write(canvas, x + 8, y, words, MUTED, 11, room=410 - x)


def _bids(canvas: NDArray[np.uint8], overlay: Overlay) -> None:
    """A bar for each agent's bid in the last auction; the winner in gold."""
    x0, wide = 426, WIDTH - 426 - 8
    y0, high = _Y_FEET + 16, 44
    bids = bids_of(overlay)
    _write(canvas, x0, _Y_FEET, "Bids of the last turn", MUTED, 11)
    base = y0 + high + 13
    _box(canvas, x0, base, wide, 1, LINE)
    if not bids:
        _write(canvas, x0 + wide // 2, y0 + 26, "no auction yet", DIM, 11, align=0.5)
        return
    pitch = wide / len(bids)
    bar = max(3, min(34, int(pitch) - 4))
    many = len(bids) > 4
    for index, (agent, bid, share, won) in enumerate(bids):
        role, _, number = agent.rpartition("_")
        colour = role_colour(role)
        middle = x0 + int((index + 0.5) * pitch)
        tall = round(high * share)
        left = middle - bar // 2
        _box(canvas, left, base - max(tall, 1), bar, max(tall, 1), colour)
        if won:
            _frame(canvas, left - 2, base - max(tall, 1) - 2, bar + 4, max(tall, 1) + 3, GOLD)
        shade = GOLD if won else MUTED
        value = f"{bid:.2f}".removeprefix("0") if many else f"{bid:.2f}"
        size = 8 if many else 10
        _write(canvas, middle, base - max(tall, 1) - 15, value, shade, size, align=0.5)
        label = f"{role[:1].upper()}{number}" if many else (role if number == "0" else agent)
        _write(canvas, middle, base + 2, label, shade if won else colour, size, align=0.5)


@lru_cache(maxsize=1)
def _blank() -> NDArray[np.uint8]:
    """An empty picture."""
    canvas = np.full((HEIGHT, WIDTH, 3), BACKGROUND, np.uint8)
    canvas.flags.writeable = False
    return canvas


def rgb_array(record: NDArray[np.uint8], overlay: Overlay | None = None) -> NDArray[np.uint8]:
    """Draw one world.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        overlay: facts of the game, see `mpt_envs.pictures`.

    Returns:
        uint8 ``(HEIGHT, WIDTH, 3)``, a fresh array.
    """
    facts_of_game = overlay or {}
    s = at.scalars(record)
    canvas = _blank().copy()
    _header(canvas, s, facts_of_game)
    _views(canvas, record)
    _stations(canvas, s, _milestones(canvas, s))
    _last_turn(canvas, record, facts_of_game)
    _inventory(canvas, s)
    _bids(canvas, facts_of_game)
    return canvas
