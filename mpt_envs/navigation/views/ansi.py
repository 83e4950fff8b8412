"""An episode as text for a terminal: a map in characters, the instruction, the bids.

A character is 20 cm wide and 40 cm high, so that it is about square. Without colour the characters
alone tell everything apart, which is what files and comparisons want.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.views import text
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import DOOR, MAX_TURNS, ROOMS, STEP_ANGLE, THINGS
from mpt_envs.navigation.world.floorplan import House
from mpt_envs.navigation.world.layout import floats, ints
from mpt_envs.navigation.world.sources import T_KIND, T_X, T_Z
from mpt_envs.navigation.world.worlds import World
from mpt_envs.pictures import Overlay, bid_bars, paint, status, turns_of

_WIDE: Final = 2  # columns of a scene of 0.1 m that share a character
_HIGH: Final = 4
_MOST: Final = 110  # characters of a line of the map
_ARROWS: Final = "^<v>"
_COLOURS: Final = {
    "#": "38;5;240",
    "*": "38;5;33",
    "G": "32;1",
    "S": "36;1",
    "+": "38;5;250",
    **dict.fromkeys(_ARROWS, "33;1"),
}


def _map(record: NDArray[np.uint8], world: World) -> list[list[str]]:
    """The map in characters."""
    s, f = ints(record), floats(record)
    space = world.scene.space
    nz, nx = space.heights.shape[1:]
    # Larger places are shown in coarser characters.
    zoom = max(1, math.ceil(nx / (_WIDE * _MOST)))
    wide, high = _WIDE * zoom, _HIGH * zoom
    with np.errstate(invalid="ignore"):
        near = (np.abs(space.heights - np.float32(f[at.F_Y])) < 1.5).any(axis=0)
    closed = ~near if world.scene.opaque is None else world.scene.opaque != 0
    rows, columns = math.ceil(nz / high), math.ceil(nx / wide)
    share = np.zeros((rows, columns))
    iz, ix = np.nonzero(closed)
    np.add.at(share, (iz // high, ix // wide), 1.0)
    # A wall is thin: a part of it makes a character wall. Furniture is drawn from the plan.
    least = 0.24 if world.scene.opaque is not None else 0.6
    grid = [["#" if v >= least * wide * high else " " for v in row] for row in share]

    def put(x: float, z: float, mark: str) -> None:
        row = int((z - space.origin[1]) / space.cell) // high
        column = int((x - space.origin[0]) / space.cell) // wide
        if 0 <= row < rows and 0 <= column < columns:
            grid[row][column] = mark

    house = world.scene.plan
    if isinstance(house, House):
        for thing in house.things:
            if thing.solid:
                x0, z0, x1, z1 = thing.rect
                for row in range(z0 // high, (z1 - 1) // high + 1):
                    for column in range(x0 // wide, (x1 - 1) // wide + 1):
                        if grid[row][column] == " ":
                            grid[row][column] = "."
    if world.scene.things is not None:
        for thing in world.scene.things:
            kind = int(thing[T_KIND])
            put(float(thing[T_X]), float(thing[T_Z]), "+" if kind == DOOR else THINGS[kind][0])
    if isinstance(house, House):
        for room in house.rooms:
            name = ROOMS[room.kind]
            x, z = room.rect.centre
            row, column = int(z / space.cell) // high, int(x / space.cell) // wide - len(name) // 2
            for k, letter in enumerate(name.upper()):
                if 0 <= column + k < columns and grid[row][column + k] in " .":
                    grid[row][column + k] = letter
    for point in at.path(record):
        put(float(point[0]), float(point[2]), "*")
    put(float(world.episode.start[0]), float(world.episode.start[2]), "S")
    put(float(world.episode.goal[0]), float(world.episode.goal[2]), "G")
    heading = float(f[at.F_START_HEADING]) + int(s[at.HEADING]) * math.radians(STEP_ANGLE)
    put(float(f[at.F_X]), float(f[at.F_Z]), _ARROWS[round(heading / (math.pi / 2)) % 4])
    return grid


def ansi(
    record: NDArray[np.uint8],
    world: World,
    overlay: Overlay | None = None,
    *,
    color: bool = True,
) -> str:
    """Draw one episode as lines of text.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        world: of the record.
        overlay: facts of the game as for `render.rgb_array`.
        color: whether to paint with escape sequences.
    """
    game = overlay or {}
    s, f = ints(record), floats(record)
    turn, limit = turns_of(game, int(s[at.TURN]), MAX_TURNS)
    done = int(s[at.DONE])
    first = status(
        f"turn {turn}/{limit}",
        f"{float(f[at.F_DISTANCE]):.1f} m to go",
        f"walked {float(f[at.F_LENGTH]):.1f} m",
        f"score {float(f[at.F_SCORE]):.1f}",
        at.DONE_NAMES[done] if done else "",
    )
    lines = [first]
    for row in _map(record, world):
        line = "".join(paint(m, _COLOURS[m], color) if m in _COLOURS else m for m in row)
        lines.append(line.rstrip())
    lines.append("^<v> body  * way  S start  G goal  # wall  + door  . furniture")
    lines += ["", *text.state_lines(record, world), *bid_bars(game, color)]
    return "\n".join(lines)
