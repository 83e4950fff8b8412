"""Names of things that do not exist, in English and Korean, made of syllables."""

from __future__ import annotations

from typing import Final

from mpt_envs.research.world.facts import ADJECTIVES, EN, KINDS, NOUNS
from wrappers.random_sequence import RandomSequence

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


def _word_en(rng: RandomSequence, syllables: int) -> str:
    parts = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(syllables)]
    return ("".join(parts) + rng.choice(_CODAS)).capitalize()


def _word_ko(rng: RandomSequence, syllables: int) -> str:
    return "".join(rng.choice(_KO_SYLLABLES) for _ in range(syllables))


def _title_case(words: str) -> str:
    return " ".join(word.capitalize() for word in words.split())


def name(rng: RandomSequence, language: int, kind: int) -> str:
    """A name for a thing of a kind; not necessarily a new one."""
    what = KINDS[kind].name
    if language == EN:
        if what == "person":
            return f"{_word_en(rng, 2)} {_word_en(rng, 2 + rng.below(2))}"
        if what in ("town", "river"):
            return _word_en(rng, 2 + rng.below(2)) + (
                rng.choice(_TOWN_ENDS) if what == "town" or rng.chance(0.3) else ""
            )
        if what == "work":
            return _title_case(
                f"{rng.choice(ADJECTIVES[0])} {rng.choice(NOUNS[0])} {_word_en(rng, 2)}"
            )
        return f"{_word_en(rng, 2)} {_title_case(rng.choice(NOUNS[0]))}"
    if what == "person":
        return f"{_word_ko(rng, 2)} {_word_ko(rng, 2 + rng.below(2))}"
    if what in ("town", "river"):
        return _word_ko(rng, 2 + rng.below(2)) + rng.choice(_KO_TOWN_ENDS)
    if what == "work":
        return f"{rng.choice(ADJECTIVES[1])} {rng.choice(NOUNS[1])} {_word_ko(rng, 2)}"
    return f"{_word_ko(rng, 3)} {rng.choice(NOUNS[1])}"


def alias(rng: RandomSequence, language: int) -> str:
    """A second name: an adjective and a noun, with an article in English."""
    words = f"{rng.choice(ADJECTIVES[language])} {rng.choice(NOUNS[language])}"
    if rng.chance(0.5):
        words = f"{rng.choice(ADJECTIVES[language])} {words}"
    return f"the {_title_case(words)}" if language == EN else words
