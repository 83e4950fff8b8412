"""Pictures of an episode for people: `rgb_array`, 960 x 600 pixels.

Left a map from above: rooms with their names, furniture, doors, the way that was gone, the body
with what it looks at, the shortest way, the goal with its radius of success. Right the instruction,
its clauses with the one that is being followed, the last action, and a bar for each agent's bid.

Pictures are for spectators: they show the goal and what the body has not seen. Nothing here is an
observation. Drawing is a function of its arguments alone.
"""

from __future__ import annotations

import math
import weakref
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from mpt_envs.navigation.views import text
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.clauses import Clause
from mpt_envs.navigation.world.facts import (
    FIELD_OF_VIEW,
    MAX_TURNS,
    ROLES,
    ROOMS,
    STEP_ANGLE,
    THINGS,
)
from mpt_envs.navigation.world.floorplan import CELL, House, Rect
from mpt_envs.navigation.world.layout import bits_of, floats, ints
from mpt_envs.navigation.world.sources import T_X, T_Z
from mpt_envs.navigation.world.worlds import World
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
    wrap,
)

WIDTH: Final = 960
HEIGHT: Final = 600
_MAP: Final = 600  # pixels, a square on the left
_MARGIN: Final = 14
_LEFT: Final = _MAP + 16  # of the panel
_ROOM: Final = WIDTH - _LEFT - 16

_GOAL: Final = (64, 160, 84)
_BUMPED: Final = (214, 72, 60)
_WALL: Final = (58, 62, 74)
_GROUND: Final = (232, 232, 228)
_WAY: Final = (36, 104, 214)
_SHORTEST: Final = (150, 168, 196)
_ROLE_COLOURS: Final[dict[str, Colour]] = {
    "turner": (186, 140, 236),
    "mover": (104, 172, 232),
    "stopper": (240, 146, 84),
}
_FLOORS: Final[dict[str, Colour]] = {
    "hallway": (238, 234, 222),
    "living room": (228, 238, 222),
    "kitchen": (250, 236, 204),
    "dining room": (246, 226, 210),
    "bedroom": (218, 228, 246),
    "bathroom": (206, 238, 240),
    "office": (232, 224, 246),
    "laundry room": (222, 234, 232),
    "closet": (230, 222, 214),
    "gym": (244, 222, 226),
    "library": (236, 226, 206),
    "playroom": (240, 238, 204),
    "entryway": (232, 232, 232),
}
_WOOD: Final = (176, 140, 104)
_FURNITURE: Final[dict[str, Colour]] = {
    "bed": (150, 170, 214),
    "couch": (146, 164, 130),
    "armchair": (146, 164, 130),
    "refrigerator": (190, 198, 206),
    "stove": (120, 124, 132),
    "sink": (176, 206, 220),
    "toilet": (240, 244, 248),
    "bathtub": (244, 248, 252),
    "shower": (196, 224, 236),
    "plant": (96, 156, 88),
    "lamp": (240, 206, 110),
    "television": (70, 74, 84),
    "fireplace": (168, 84, 64),
    "painting": (196, 92, 128),
    "mirror": (150, 200, 220),
    "clock": (90, 96, 110),
    "washing machine": (206, 212, 218),
    "pool table": (60, 132, 92),
    "treadmill": (96, 100, 112),
    "counter": (200, 180, 150),
}


class _Frame(NamedTuple):
    """How metres become pixels of the map."""

    x0: float
    z0: float
    scale: float
    left: float
    top: float

    def at(self, x: float, z: float) -> tuple[float, float]:
        """Pixel of a point."""
        return self.left + (x - self.x0) * self.scale, self.top + (z - self.z0) * self.scale

    def box(self, rect: Rect) -> tuple[float, float, float, float]:
        """Pixels of a rectangle of columns."""
        return (*self.at(rect.x0 * CELL, rect.z0 * CELL), *self.at(rect.x1 * CELL, rect.z1 * CELL))


def _frame_of(world: World) -> _Frame:
    nz, nx = world.scene.space.heights.shape[1:]
    cell = world.scene.space.cell
    width, depth = nx * cell, nz * cell
    scale = (_MAP - 2 * _MARGIN) / max(width, depth)
    left = _MARGIN + (_MAP - 2 * _MARGIN - width * scale) / 2
    top = _MARGIN + (_MAP - 2 * _MARGIN - depth * scale) / 2
    x0, z0 = world.scene.space.origin
    return _Frame(x0, z0, scale, left, top)


#: The map of each world that is drawn, without what moves.
_bases: weakref.WeakKeyDictionary[World, dict[int, Image.Image]] = weakref.WeakKeyDictionary()


def _base(world: World, height: float) -> Image.Image:
    """The map of a world without what moves; of several storeys, that at a height."""
    house = world.scene.plan
    storey = 0 if isinstance(house, House) else round(height)
    kept = _bases.setdefault(world, {})
    if storey not in kept:
        picture = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
        frame = _frame_of(world)
        if isinstance(house, House):
            _draw_house(ImageDraw.Draw(picture), frame, house)
        else:
            _draw_ground(picture, frame, world, float(storey))
        draw = ImageDraw.Draw(picture)
        way = world.episode.instruction_path
        if way is not None and len(way) > 1:
            points = [frame.at(float(p[0]), float(p[2])) for p in way]
            draw.line(points, fill=_SHORTEST, width=2)
        _draw_goal(draw, frame, world)
        kept[storey] = picture
    return kept[storey].copy()


def _draw_house(draw: ImageDraw.ImageDraw, frame: _Frame, house: House) -> None:
    draw.rectangle(frame.box(Rect(0, 0, house.width, house.depth)), fill=_WALL)
    for room in house.rooms:
        draw.rectangle(frame.box(room.rect), fill=_FLOORS.get(ROOMS[room.kind], _GROUND))
    for door in house.doors:
        draw.rectangle(frame.box(door.rect), fill=(250, 250, 246))
    for thing in house.things:
        name = THINGS[thing.kind]
        box = frame.box(thing.rect)
        draw.rectangle(box, fill=_FURNITURE.get(name, _WOOD), outline=(96, 92, 88))
    small = font(10)
    for thing in house.things:
        name = THINGS[thing.kind]
        x, y = frame.at(*thing.rect.centre)
        # Within the room, also where the thing hangs on a wall.
        left, top, right, bottom = frame.box(house.rooms[thing.room].rect)
        half = small.getlength(name) / 2 + 2
        x = min(max(x, left + half), right - half)
        y = min(max(y, top + 7), bottom - 7)
        draw.text((x, y), name, fill=(48, 44, 44), font=small, anchor="mm")
    for number, room in enumerate(house.rooms):
        words = ROOMS[room.kind].upper()
        things = [frame.box(t.rect) for t in house.things if t.room == number]
        x, y = _free_spot(frame.box(room.rect), things, font(12).getlength(words) / 2 + 4)
        draw.text((x, y), words, fill=(112, 112, 120), font=font(12), anchor="mm")


def _free_spot(
    room: tuple[float, float, float, float],
    things: list[tuple[float, float, float, float]],
    half: float,
) -> tuple[float, float]:
    """Where in a room a line of text lies on no thing; the middle if there is no such place."""
    left, top, right, bottom = room
    middle = (left + right) / 2
    for share in (0.5, 0.35, 0.65, 0.22, 0.78):
        y = top + share * (bottom - top)
        for x in (middle, max(middle - 40, left + half), min(middle + 40, right - half)):
            # Names of things stand out over their edges.
            if not any(
                x - half < t[2] + 12 and x + half > t[0] - 12 and y - 8 < t[3] and y + 8 > t[1]
                for t in things
            ):
                return x, y
    return middle, (top + bottom) / 2


def _draw_ground(picture: Image.Image, frame: _Frame, world: World, height: float) -> None:
    """The ground near a height, shaded by it; other storeys dim."""
    heights = world.scene.space.heights
    with np.errstate(invalid="ignore"):
        away = np.abs(heights - np.float32(height))
    nearest = np.where(np.isfinite(away), away, np.float32(np.inf)).min(axis=0)
    shade = np.zeros((*nearest.shape, 3), np.uint8)
    shade[:] = BACKGROUND
    shade[np.isfinite(nearest)] = (44, 49, 62)
    near = nearest < 1.5
    light = (1.0 - 0.25 * nearest[near] / 1.5)[:, None]
    shade[near] = (np.array(_GROUND) * light).astype(np.uint8)
    size = (
        max(1, round(nearest.shape[1] * world.scene.space.cell * frame.scale)),
        max(1, round(nearest.shape[0] * world.scene.space.cell * frame.scale)),
    )
    ground = Image.fromarray(shade).resize(size, Image.Resampling.NEAREST)
    picture.paste(ground, (round(frame.left), round(frame.top)))


def _draw_goal(draw: ImageDraw.ImageDraw, frame: _Frame, world: World) -> None:
    goal = world.episode.goal
    x, y = frame.at(float(goal[0]), float(goal[2]))
    radius = world.episode.radius * frame.scale
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=_GOAL, width=2)
    points = []
    for k in range(10):
        size = 9 if k % 2 == 0 else 4
        angle = math.pi * k / 5
        points.append((x + size * math.sin(angle), y - size * math.cos(angle)))
    draw.polygon(points, fill=_GOAL, outline=(255, 255, 255))
    start = world.episode.start
    x, y = frame.at(float(start[0]), float(start[2]))
    draw.ellipse((x - 5, y - 5, x + 5, y + 5), outline=_WAY, width=2)


def _draw_body(
    picture: Image.Image, frame: _Frame, record: NDArray[np.uint8], world: World
) -> None:
    s, f = ints(record), floats(record)
    x, y = frame.at(float(f[at.F_X]), float(f[at.F_Z]))
    heading = float(f[at.F_START_HEADING]) + int(s[at.HEADING]) * math.radians(STEP_ANGLE)
    # Screen angles grow clockwise from the right; heading 0 is up.
    middle = -90.0 - math.degrees(heading)
    veil = Image.new("RGBA", (_MAP, _MAP), (0, 0, 0, 0))
    reach = 2.2 * frame.scale
    ImageDraw.Draw(veil).pieslice(
        (x - reach, y - reach, x + reach, y + reach),
        middle - FIELD_OF_VIEW / 2,
        middle + FIELD_OF_VIEW / 2,
        fill=(255, 220, 90, 56),
    )
    picture.paste(Image.new("RGB", (_MAP, _MAP), (255, 214, 80)), (0, 0), veil.getchannel("A"))
    draw = ImageDraw.Draw(picture)
    way = [frame.at(float(p[0]), float(p[2])) for p in at.path(record)]
    if len(way) > 1:
        draw.line(way, fill=_WAY, width=3, joint="curve")
    things = world.scene.things
    if things is not None:
        now = bits_of(record, at.VISIBLE_LOW)
        for index, thing in enumerate(things):
            if now >> index & 1:
                px, py = frame.at(float(thing[T_X]), float(thing[T_Z]))
                draw.ellipse((px - 4, py - 4, px + 4, py + 4), outline=(220, 150, 20), width=2)
    colour = _BUMPED if int(s[at.COLLIDED]) else (20, 60, 150)
    points = []
    for turn, size in ((0.0, 13.0), (2.5, 9.0), (math.pi, 4.0), (-2.5, 9.0)):
        angle = heading + turn
        points.append((x - size * math.sin(angle), y - size * math.cos(angle)))
    draw.polygon(points, fill=colour, outline=(255, 255, 255))


def _draw_panel(
    draw: ImageDraw.ImageDraw,
    record: NDArray[np.uint8],
    world: World,
    overlay: Overlay,
) -> None:
    s, f = ints(record), floats(record)
    y = 14
    turn, limit = turns_of(overlay, int(s[at.TURN]), MAX_TURNS)
    draw.text((_LEFT, y), f"Turn {turn} of {limit}", fill=TEXT, font=font(16))
    done = int(s[at.DONE])
    reached = bool(f[at.F_DISTANCE] < f[at.F_RADIUS])
    state = f"{float(f[at.F_DISTANCE]):.1f} m to go"
    colour = MUTED
    if done == at.DONE_STOPPED:
        state = "stopped at the goal" if reached else "stopped elsewhere"
        colour = GREEN if reached else RED
    elif done:
        state = at.DONE_NAMES[done]
    draw.text((WIDTH - 16, y + 2), state, fill=colour, font=font(13), anchor="ra")
    y += 28
    draw.text((_LEFT, y), f"score {float(f[at.F_SCORE]):.1f}", fill=MUTED, font=font(13))
    draw.text(
        (WIDTH - 16, y),
        f"walked {float(f[at.F_LENGTH]):.1f} m, shortest {float(f[at.F_SHORTEST]):.1f} m",
        fill=MUTED,
        font=font(13),
        anchor="ra",
    )
    y += 26
    draw.line((_LEFT, y, WIDTH - 16, y), fill=LINE)
    y += 10
    lines = wrap(world.episode.instruction, _ROOM, font(14).getlength)
    for index, line in enumerate(lines[:10]):
        cut = index == 9 and len(lines) > 10
        draw.text((_LEFT, y), line + (" ..." if cut else ""), fill=TEXT, font=font(14))
        y += 19
    y += 6
    this = int(s[at.CLAUSE])
    first = max(0, min(this - 3, len(world.clauses) - 9))
    for number in range(first, min(len(world.clauses), first + 9)):
        clause = Clause(*(int(v) for v in world.clauses[number]))
        colour = GOLD if number == this else MUTED if number > this else DIM
        mark = ">" if number == this else " "
        draw.text((_LEFT, y), mark, fill=GOLD, font=font(13))
        draw.text((_LEFT + 14, y), str(clause), fill=colour, font=font(13))
        y += 17
    y = max(y + 8, 400)
    draw.line((_LEFT, y, WIDTH - 16, y), fill=LINE)
    y += 8
    told = "; ".join(text.narrate(record, world)) or "the beginning"
    for line in wrap(told, _ROOM, font(14).getlength)[:2]:
        draw.text((_LEFT, y), line, fill=TEXT, font=font(14))
        y += 19
    _draw_bids(draw, y + 6, overlay)


def _draw_bids(draw: ImageDraw.ImageDraw, y: int, overlay: Overlay) -> None:
    # As many as fit; the highest first if there are more.
    shown = bids_of(overlay)
    room = (HEIGHT - 10 - y) // 22
    if len(shown) > room:
        shown = sorted(shown, key=lambda bid: -bid.bid)[:room]
    for bid in shown:
        colour = _ROLE_COLOURS.get(bid.role, (120, 210, 200))
        ink = GOLD if bid.acted else MUTED
        draw.text((_LEFT, y), bid.agent, fill=ink, font=font(13))
        left, right = _LEFT + 92, WIDTH - 62
        draw.rectangle((left, y + 2, right, y + 14), outline=LINE)
        if bid.share > 0:
            draw.rectangle((left, y + 2, left + (right - left) * bid.share, y + 14), fill=colour)
        draw.text((WIDTH - 16, y), f"{bid.bid:.2f}", fill=ink, font=font(13), anchor="ra")
        y += 22


def rgb_array(
    record: NDArray[np.uint8], world: World, overlay: Overlay | None = None
) -> NDArray[np.uint8]:
    """Draw one episode: uint8 ``(HEIGHT, WIDTH, 3)``.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        world: of the record.
        overlay: facts of the game, see `mpt_envs.pictures`.
    """
    picture = _base(world, float(floats(record)[at.F_Y]))
    _draw_body(picture, _frame_of(world), record, world)
    _draw_panel(ImageDraw.Draw(picture), record, world, overlay or {})
    return np.array(picture)


assert ROLES[0] in _ROLE_COLOURS
