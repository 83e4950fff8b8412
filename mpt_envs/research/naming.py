"""Names of things that do not exist, in English and Korean, made of syllables."""

from __future__ import annotations

from typing import Final

from mpt_envs.research.dice import Dice
from mpt_envs.research.facts import ADJECTIVES, EN, KINDS, NOUNS

_ONSETS: Final = ("b", "br", "c", "d", "dr", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s",
                  "st", "t", "th", "v", "w", "z")  # fmt: skip
_VOWELS: Final = ("a", "e", "i", "o", "u", "ae", "ia", "ou")
_CODAS: Final = ("l", "n", "r", "s", "m", "nd", "rk", "th", "", "")
_TOWN_ENDS: Final = ("ford", "holm", "wick", "mouth", "stead", "bury", "haven", "dale")
_KO_SYLLABLES: Final = tuple(
    "가나다라마바사아자카타파하거너더러머버서어저커터퍼허고노도로모보소오조코토포호구누두루무부수우주쿠"
    "기니디리미비시이지키티피히레네메베세테델멜벨렌넨린민빈신란만반산단손론몬본"
)
_KO_TOWN_ENDS: Final = ("골", "벌", "나루", "마루", "재", "터")


def _word_en(dice: Dice, syllables: int) -> str:
    parts = [dice.pick(_ONSETS) + dice.pick(_VOWELS) for _ in range(syllables)]
    return ("".join(parts) + dice.pick(_CODAS)).capitalize()


def _word_ko(dice: Dice, syllables: int) -> str:
    return "".join(dice.pick(_KO_SYLLABLES) for _ in range(syllables))


def _title_case(words: str) -> str:
    return " ".join(word.capitalize() for word in words.split())


def name(dice: Dice, language: int, kind: int) -> str:
    """A name for a thing of a kind; not necessarily a new one."""
    what = KINDS[kind].name
    if language == EN:
        if what == "person":
            return f"{_word_en(dice, 2)} {_word_en(dice, 2 + dice.below(2))}"
        if what in ("town", "river"):
            return _word_en(dice, 2 + dice.below(2)) + (
                dice.pick(_TOWN_ENDS) if what == "town" or dice.chance(0.3) else ""
            )
        if what == "work":
            return _title_case(
                f"{dice.pick(ADJECTIVES[0])} {dice.pick(NOUNS[0])} {_word_en(dice, 2)}"
            )
        return f"{_word_en(dice, 2)} {_title_case(dice.pick(NOUNS[0]))}"
    if what == "person":
        return f"{_word_ko(dice, 2)} {_word_ko(dice, 2 + dice.below(2))}"
    if what in ("town", "river"):
        return _word_ko(dice, 2 + dice.below(2)) + dice.pick(_KO_TOWN_ENDS)
    if what == "work":
        return f"{dice.pick(ADJECTIVES[1])} {dice.pick(NOUNS[1])} {_word_ko(dice, 2)}"
    return f"{_word_ko(dice, 3)} {dice.pick(NOUNS[1])}"


def alias(dice: Dice, language: int) -> str:
    """A second name: an adjective and a noun, with an article in English."""
    words = f"{dice.pick(ADJECTIVES[language])} {dice.pick(NOUNS[language])}"
    if dice.chance(0.5):
        words = f"{dice.pick(ADJECTIVES[language])} {words}"
    return f"the {_title_case(words)}" if language == EN else words
