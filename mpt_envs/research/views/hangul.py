"""Hangul syllables drawn as strokes, for pictures: no font with Hangul need be installed.

A syllable is an initial consonant, a vowel and perhaps a final consonant (Unicode's arithmetic of
U+AC00). Each letter is a few lines in a unit square; the vowel decides where the parts stand.
"""

from __future__ import annotations

from typing import Final

from PIL import ImageDraw

_Stroke = tuple[tuple[float, float], ...]

# Letters as words are easier to check than as a list of strings.
# ruff: noqa: SIM905

# Points of lines, x to the right and y down, in a unit square; a circle is an octagon.
_RING: Final[_Stroke] = (
    (0.5, 0.0), (0.85, 0.15), (1.0, 0.5), (0.85, 0.85), (0.5, 1.0), (0.15, 0.85), (0.0, 0.5),
    (0.15, 0.15), (0.5, 0.0),
)  # fmt: skip
_CONSONANTS: Final[dict[str, tuple[_Stroke, ...]]] = {
    "ㄱ": (((0, 0), (1, 0), (0.9, 1)),),
    "ㄴ": (((0, 0), (0, 1), (1, 1)),),
    "ㄷ": (((1, 0), (0, 0), (0, 1), (1, 1)),),
    "ㄹ": (((0, 0), (1, 0), (1, 0.5), (0, 0.5), (0, 1), (1, 1)),),
    "ㅁ": (((0, 0), (1, 0), (1, 1), (0, 1), (0, 0)),),
    "ㅂ": (((0, 0), (0, 1), (1, 1), (1, 0)), ((0, 0.45), (1, 0.45))),
    "ㅅ": (((0.5, 0), (0.45, 0.4), (0, 1)), ((0.47, 0.35), (1, 1))),
    "ㅇ": (_RING,),
    "ㅈ": (((0, 0), (1, 0)), ((0.5, 0), (0, 1)), ((0.45, 0.4), (1, 1))),
    "ㅊ": (((0.3, 0), (0.7, 0)), ((0, 0.25), (1, 0.25)), ((0.5, 0.25), (0, 1)),
           ((0.45, 0.55), (1, 1))),
    "ㅋ": (((0, 0), (1, 0), (0.9, 1)), ((0, 0.45), (0.95, 0.45))),
    "ㅌ": (((1, 0), (0, 0), (0, 1), (1, 1)), ((0, 0.5), (1, 0.5))),
    "ㅍ": (((0, 0), (1, 0)), ((0.3, 0), (0.3, 1)), ((0.7, 0), (0.7, 1)), ((0, 1), (1, 1))),
    "ㅎ": (((0.3, 0), (0.7, 0)), ((0, 0.25), (1, 0.25)),
           tuple((0.15 + 0.7 * x, 0.45 + 0.55 * y) for x, y in _RING)),
}  # fmt: skip
_INITIALS: Final = tuple(
    "ㄱ ㄱㄱ ㄴ ㄷ ㄷㄷ ㄹ ㅁ ㅂ ㅂㅂ ㅅ ㅅㅅ ㅇ ㅈ ㅈㅈ ㅊ ㅋ ㅌ ㅍ ㅎ".split()
)
_FINALS: Final = (
    "",
    *"ㄱ ㄱㄱ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ".split(),
    *"ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅅㅅ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ".split(),
)
# Vowels as their vertical part (right of the initial) and their horizontal part (below it): the
# sides of the short strokes, "" for a plain bar, None for no such part; "2" doubles the bar.
_VOWELS: Final[tuple[tuple[str | None, str | None], ...]] = (
    ("r", None), ("r2", None), ("rr", None), ("rr2", None), ("l", None), ("l2", None),
    ("ll", None), ("ll2", None), (None, "u"), ("r", "u"), ("r2", "u"), ("", "u"), (None, "uu"),
    (None, "d"), ("l", "d"), ("l2", "d"), ("", "d"), (None, "dd"), (None, ""), ("", ""),
    ("", None),
)  # fmt: skip


def is_syllable(character: str) -> bool:
    """Whether it is a composed Hangul syllable."""
    return "\uac00" <= character <= "\ud7a3"


def parts(character: str) -> tuple[str, int, str]:
    """Initial, number of the vowel, and final of a syllable."""
    code = ord(character) - 0xAC00
    return _INITIALS[code // 588], code // 28 % 21, _FINALS[code % 28]


def strokes(character: str) -> list[_Stroke]:
    """The lines of a syllable in a unit square."""
    initial, vowel, final = parts(character)
    upright, flat = _VOWELS[vowel]
    bottom = 0.62 if final else 1.0
    result: list[_Stroke] = []
    right = 0.58 if upright is not None else 0.92
    low = bottom - (0.3 if flat is not None else 0.08)
    result += _letters(initial, 0.08, 0.02, right - 0.05, low)
    if flat is not None:
        y = bottom - 0.1
        result.append(((0.02, y), (right if upright is not None else 0.98, y)))
        middle = (right if upright is not None else 1.0) / 2
        offsets = (0.0,) if len(flat) == 1 else (-0.15, 0.15)
        for offset in offsets if flat else ():
            end = y - 0.14 if flat[0] == "u" else y + 0.13
            result.append(((middle + offset, y), (middle + offset, end)))
    if upright is not None:
        x = 0.76
        result.append(((x, 0.0), (x, bottom)))
        sides = upright.rstrip("2")
        heights = (0.5,) if len(sides) == 1 else (0.35, 0.65)
        for height in heights if sides else ():
            end = x + 0.2 if sides[0] == "r" else x - 0.16
            result.append(((x, bottom * height), (end, bottom * height)))
        if upright.endswith("2"):
            result.append(((0.96, 0.0), (0.96, bottom)))
    if final:
        result += _letters(final, 0.14, 0.7, 0.9, 0.98)
    return result


def _letters(letters: str, left: float, top: float, right: float, bottom: float) -> list[_Stroke]:
    """One or two consonants side by side in a box."""
    width = (right - left) / len(letters)
    result: list[_Stroke] = []
    for number, letter in enumerate(letters):
        x = left + number * width
        size = width * (0.85 if len(letters) > 1 else 1.0)
        result += [
            tuple((x + px * size, top + py * (bottom - top)) for px, py in stroke)
            for stroke in _CONSONANTS[letter]
        ]
    return result


def draw_syllable(
    draw: ImageDraw.ImageDraw, x: int, y: int, size: int, ink: tuple[int, int, int], character: str
) -> None:
    """Draw a syllable into a square of ``size`` pixels."""
    for stroke in strokes(character):
        draw.line([(x + px * (size - 1), y + py * (size - 1)) for px, py in stroke], fill=ink)
