"""Pixel art of the crafting domain, drawn by code: block tiles, item icons and the body.

Nothing is loaded from a file and nothing is random: the grain of a tile is a hash of its pixel.
Tiles are `TILE` pixels wide, icons `ICON`; all arrays are uint8, colours are RGB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.views.scene import OUTSIDE, PIT
from mpt_envs.crafting.world import facts

TILE: Final = 10
ICON: Final = 24
#: Tiles of one block that differ in their grain only, so that an area does not look printed.
VARIANTS: Final = 4

Image = NDArray[np.uint8]
_Colour = tuple[int, int, int]

_COLOURS: Final[dict[str, _Colour]] = {
    ".": (0, 0, 0),  # transparent in icons
    "k": (34, 30, 32),
    "d": (64, 60, 64),
    "g": (112, 112, 116),
    "s": (150, 150, 154),
    "l": (196, 198, 204),
    "w": (240, 240, 240),
    "b": (72, 50, 30),
    "m": (112, 82, 48),
    "n": (150, 112, 66),
    "p": (188, 148, 92),
    "q": (212, 176, 118),
    "y": (250, 206, 84),
    "o": (238, 138, 48),
    "r": (206, 66, 46),
    "t": (38, 34, 38),
    "c": (226, 198, 176),
    "e": (214, 168, 136),
    "u": (46, 160, 170),
    "v": (38, 120, 140),
    "j": (62, 70, 150),
    "h": (44, 50, 112),
    "x": (196, 150, 118),
    "z": (76, 46, 28),
}

# --- items without a block: 12 x 12, doubled ----------------------------------------------------
# "1" and "2" are the two tones of a tool's head.
_PICKAXE: Final = """
............
...11112....
..111112b...
.....2bm22..
......mb.12.
.....mb..11.
....mb...11.
...mb....12.
..mb.....2..
.mb.........
mb..........
............
"""
_HEADS: Final = {
    facts.I_WOODEN_PICKAXE: ("p", "n"),
    facts.I_STONE_PICKAXE: ("s", "g"),
    facts.I_IRON_PICKAXE: ("w", "l"),
}
_ICONS: Final = {
    facts.I_STICK: """
............
.........bm.
........bmn.
.......bmn..
......bmn...
.....bmn....
....bmn.....
...bmn......
..bmn.......
.bmn........
.mn.........
............
""",
    facts.I_COAL: """
............
....kkkk....
..kkddddkk..
..kdgddddk..
.kdgdddddkk.
.kddddddddk.
.kddddkddtk.
.kdddddddtk.
..kdddddtk..
..kktddtkk..
....kkkk....
............
""",
    facts.I_CHARCOAL: """
............
....bbbb....
..bbzzzzbb..
..bzmzzzzb..
.bzmzzzzzbb.
.bzzzzbzzkb.
.bzzbzzzzkb.
.bzzzzzzkkb.
..bzzzzkkb..
..bbkzkkbb..
....bbbb....
............
""",
    facts.I_FLINT: """
............
.......kk...
.....kkggk..
....kgggdk..
...kgsgddk..
..kgsgdddk..
..kgggddk...
.kggdddk....
.kgdddk.....
.kdddk......
..kkk.......
............
""",
    facts.I_IRON_INGOT: """
............
............
............
.....lllll..
...llwwwwws.
..lwwwwwlss.
.lwwwwwlsgg.
.sllllssgg..
.sssssggg...
.gggggg.....
............
............
""",
    facts.I_TORCH: """
............
.....yy.....
....yowy....
....oyyo....
.....rr.....
.....mn.....
.....mn.....
.....mn.....
.....mn.....
.....bm.....
.....bm.....
............
""",
}

_TABLE_SIDE: Final = """
nnnnnnnnnn
qqqqqqqqqq
pppppppppp
mppssppnpm
mpsddspnpm
mppnpppnpm
mppnppnnnm
mppnppnlnm
mppppppppm
bbbbbbbbbb
"""
_TABLE_TOP: Final = """
mmmmmmmmmm
mqqbqqbqqm
mqqbqqbqqm
mbbbbbbbbm
mqqbqqbqqm
mqqbqqbqqm
mbbbbbbbbm
mqqbqqbqqm
mqqbqqbqqm
mmmmmmmmmm
"""
_FURNACE_SIDE: Final = """
gsssssssgg
sgggggggsd
sgkkkkkkgd
sgddddddgd
sgggggggsd
gskkkkkksd
gkkooookkd
gkoyyyyokd
gkoyyyyokd
dddddddddd
"""
_FURNACE_TOP: Final = """
dddddddddd
dssssssssd
dsggggggsd
dsgddddgsd
dsgdkkdgsd
dsgdkkdgsd
dsgddddgsd
dsggggggsd
dssssssssd
dddddddddd
"""
_LOG_TOP: Final = """
bbmmmmmmbb
bqqqqqqqqb
mqnnnnnnqm
mqnqqqqnqm
mqnqnnqnqm
mqnqnnqnqm
mqnqqqqnqm
mqnnnnnnqm
bqqqqqqqqb
bbmmmmmmbb
"""
_PLANKS: Final = """
qqqqqqqqqq
pppppppppp
qppppmpppp
mmmmmmmmmm
qqqqqqqqqq
pppppppppp
ppmppppppq
mmmmmmmmmm
qqqqqqqqqq
pppppppppp
"""
_BRICKS: Final = """
gsssgdgsss
ggggsdgggg
gggggdgggg
dddddddddd
sgdgsssssg
gsdggggggg
ggdggggggg
dddddddddd
gsssgdgsss
ggggsdgggg
"""
_ORE: Final = """
..........
..21......
..112..2..
...1..211.
.......11.
.21.......
.112..21..
..1...112.
.......1..
..........
"""
_COBBLE: Final = """
gssggddgss
gssgdgsggg
dggdgssgdd
gddgsssgdg
ssgdgggdgs
sggddddgss
gggdgsggsg
ddddgssggd
gsgddggddg
sssggddgss
"""
# The body from above (a head with hair) and from the side (two blocks high).
_BODY_TOP: Final = """
..kkkkkk..
.kzzzzzzk.
kzzzzzzzzk
kzzzzzzzzk
kzccccccek
kcwjccjwek
kcccxxccek
kccceeccek
.kceeeeek.
..kkkkkk..
"""
_BODY_SIDE: Final = """
..kkkkkk..
..kzzzzk..
..kzzzzk..
..kczcck..
..kwjjwk..
..kcxxck..
..kkkkkk..
.kuuuuuuk.
kuuuuuuvuk
kuuuuuuvuk
kckuuuvkck
kckuuuvkck
.kkvvvvkk.
..kjjjjk..
..kjjjjk..
..kjhhjk..
..kjkkjk..
..kjkkjk..
..kdkkdk..
..kkkkkk..
"""


def _pixels(art: str, swap: dict[str, str] | None = None) -> tuple[Image, NDArray[np.bool_]]:
    """Colours and coverage of a picture made of letters."""
    rows = art.split()
    letters = [[(swap or {}).get(c, c) for c in row] for row in rows]
    colour = np.array([[_COLOURS[c] for c in row] for row in letters], np.uint8)
    opaque = np.array([[c != "." for c in row] for row in letters], np.bool_)
    return colour, opaque


def _grain(seed: int, amount: int, shape: tuple[int, int] = (TILE, TILE)) -> NDArray[np.int16]:
    """Noise of -amount, 0 or amount: a hash of seed and pixel (int16 of `shape`).

    Three tones only, since an animation of many would be a large file.
    """
    index = np.arange(shape[0] * shape[1], dtype=np.uint32) + np.uint32((seed * 7919) & 0xFFFFFFFF)
    index = (index ^ (index >> np.uint32(16))) * np.uint32(0x45D9F3B)
    index = (index ^ (index >> np.uint32(16))) * np.uint32(0x45D9F3B)
    index ^= index >> np.uint32(16)
    tone = np.array([-1, 0, 0, 0, 0, 0, 1, 1], np.int16)[index & np.uint32(7)]
    return (tone * amount).astype(np.int16).reshape(shape)


def _noisy(colour: _Colour, seed: int, amount: int) -> Image:
    """A tile of one colour with grain."""
    tile = np.array(colour, np.int16) + _grain(seed, amount)[:, :, None]
    return np.clip(tile, 0, 255).astype(np.uint8)


def _ore(seed: int, light: _Colour, dark: _Colour) -> Image:
    """Stone with specks of ore; the variants turn the specks."""
    tile = _noisy((126, 126, 128), seed, 9)
    marks = np.array([list(row) for row in _ORE.split()])
    marks = np.rot90(marks, seed)
    tile[marks == "1"] = light
    tile[marks == "2"] = dark
    return tile


def _block_tile(block: int, side: bool, variant: int) -> Image:
    """The tile of a block seen from above or from the side."""
    seed = 10 * block + variant
    if block == facts.WATER:
        tile = _noisy((58, 112, 200), seed, 5)
        tile[3 + variant // 2, 1 + variant : 5 + variant] = (104, 156, 228)
        tile[8 - variant // 2, 4 : 7 + variant % 2] = (92, 146, 222)
        return tile
    if block == facts.LEAVES:
        tile = _noisy((62, 122, 48), seed, 26)
        tile[_grain(seed + 3, 1) < 0] = (34, 76, 30)
        return tile
    if block == facts.GRASS:
        if not side:
            tile = _noisy((112, 168, 78), seed, 10)
            tile[(_grain(seed + 5, 1) < 0) & (_grain(seed + 6, 1) == 0)] = (96, 150, 64)
            return tile
        tile = _noisy((134, 98, 68), seed, 10)
        tile[:3] = _noisy((108, 164, 74), seed, 9)[:3]
        tile[3, (variant % 2) :: 2] = (96, 150, 66)
        return tile
    if block == facts.DIRT:
        return _noisy((134, 98, 68), seed, 12)
    if block == facts.SAND:
        return _noisy((222, 208, 160), seed, 7)
    if block == facts.GRAVEL:
        return _noisy((138, 128, 124), seed, 26)
    if block == facts.STONE:
        return _noisy((126, 126, 128), seed, 8)
    if block == facts.COAL_ORE:
        return _ore(seed, (30, 30, 34), (56, 56, 60))
    if block == facts.IRON_ORE:
        return _ore(seed, (226, 176, 138), (190, 134, 98))
    if block == facts.LOG:
        if not side:
            return _pixels(_LOG_TOP)[0]
        tile = _noisy((104, 80, 48), seed, 8)
        tile[:, 1::3] = (82, 62, 36)
        tile[2 + variant, 3] = tile[6 - variant, 6] = (62, 46, 26)
        return tile
    if block == facts.COBBLESTONE:
        return np.rot90(_pixels(_COBBLE)[0], variant)
    if block == facts.TABLE:
        return _pixels(_TABLE_SIDE if side else _TABLE_TOP)[0]
    if block == facts.FURNACE:
        return _pixels(_FURNACE_SIDE if side else _FURNACE_TOP)[0]
    if block == facts.BEDROCK:
        return _noisy((58, 58, 62), seed, 24)
    if block == PIT:
        return _noisy((14, 13, 18), seed, 3)
    if block in (facts.BARRIER, OUTSIDE):
        tile = np.full((TILE, TILE, 3), (30, 33, 42), np.uint8)
        rows, columns = np.indices((TILE, TILE))
        tile[(rows + columns) % 5 == 0] = (38, 42, 53)
        return tile
    return np.zeros((TILE, TILE, 3), np.uint8)  # air: whoever draws paints the sky


@lru_cache(maxsize=2)
def tiles(side: bool) -> Image:
    """All tiles by block id of `scene`: uint8 ``(PIT + 1, VARIANTS, TILE, TILE, 3)``."""
    atlas = np.stack(
        [
            np.stack([_block_tile(block, side, variant) for variant in range(VARIANTS)])
            for block in range(PIT + 1)
        ]
    )
    atlas.flags.writeable = False
    return atlas


_ITEM_TILES: Final = {
    facts.I_LOG: facts.LOG,
    facts.I_COBBLESTONE: facts.COBBLESTONE,
    facts.I_STONE: facts.STONE,
    facts.I_DIRT: facts.DIRT,
    facts.I_SAND: facts.SAND,
    facts.I_GRAVEL: facts.GRAVEL,
    facts.I_IRON_ORE: facts.IRON_ORE,
    facts.I_TABLE: facts.TABLE,
    facts.I_FURNACE: facts.FURNACE,
}


@lru_cache(maxsize=facts.N_ITEMS)
def icon(item: int) -> tuple[Image, NDArray[np.bool_]]:
    """Icon of an item: uint8 ``(ICON, ICON, 3)`` and bool ``(ICON, ICON)``, where it covers."""
    if item in _HEADS:
        light, dark = _HEADS[item]
        colour, opaque = _pixels(_PICKAXE, {"1": light, "2": dark})
    elif item in _ICONS:
        colour, opaque = _pixels(_ICONS[item])
    else:
        if item == facts.I_PLANKS:
            tile = _pixels(_PLANKS)[0]
        elif item == facts.I_STONE_BRICKS:
            tile = _pixels(_BRICKS)[0]
        else:
            tile = _block_tile(_ITEM_TILES[item], True, 0)
        colour = np.zeros((TILE + 2, TILE + 2, 3), np.uint8)
        colour[:] = (24, 22, 26)
        colour[1:-1, 1:-1] = tile
        opaque = np.ones(colour.shape[:2], np.bool_)
    colour = colour.repeat(2, 0).repeat(2, 1)
    opaque = opaque.repeat(2, 0).repeat(2, 1)
    colour.flags.writeable = opaque.flags.writeable = False
    return colour, opaque


@lru_cache(maxsize=2)
def body(side: bool) -> tuple[Image, NDArray[np.bool_]]:
    """The body: one tile from above, two tiles high from the side; colours and coverage."""
    colour, opaque = _pixels(_BODY_SIDE if side else _BODY_TOP)
    colour.flags.writeable = opaque.flags.writeable = False
    return colour, opaque
