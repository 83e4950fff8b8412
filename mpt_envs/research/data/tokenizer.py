"""The one rule of what a word is: for the search, for answers, and for finding answers in pages.

Words are runs of letters, marks and numbers by their Unicode category, after NFKC and case folding;
marks belong to their letter ("दिल्ली" is one word). Scripts that put no spaces between words, or
glue particles to them as Korean does ("서울은", "서울에서"), are searched by overlapping pairs of
characters: "서울" then matches "서울은". A run of one character stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: Scripts without spaces: Thai, Lao, Burmese, Khmer, Hangul, kana, CJK ideographs.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
)
_RUNS: Final = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED} ]+")
_IS_UNSPACED: Final = re.compile(rf"[{_UNSPACED}]")


class _Characters(dict[int, str]):
    """What becomes of a character, for `str.translate`; filled in as characters come."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cf":  # joiners, soft hyphens and marks of direction stand within words
            kept = ""
        else:
            kept = character if category[0] in "LMN" else " "
        self[code] = kept
        return kept


_CHARACTERS: Final = _Characters()


def words_of(text: str) -> str:
    """The words of a text, folded, with single spaces between them."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(_CHARACTERS).split())


def tokenize(text: str) -> list[str]:
    """The tokens of a text in order; empty for a text of punctuation only.

    >>> tokenize("Ada's River-Works, 서울은")
    ['ada', 's', 'river', 'works', '서울', '울은']
    """
    tokens: list[str] = []
    for run in _RUNS.findall(words_of(text)):
        if len(run) > 1 and _IS_UNSPACED.match(run):
            tokens += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            tokens.append(run)
    return tokens


def is_in(wanted: str, words: str) -> bool:
    """Whether words stand in others (both of `words_of`) as whole words; none never do.

    Between two characters of which one belongs to a script without spaces a word may end anywhere.
    """
    at = words.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if _ends(words, at) and _ends(words, end):
            return True
        at = words.find(wanted, at + 1)
    return False


def _ends(words: str, at: int) -> bool:
    """Whether a word may end, and another begin, before the character at ``at``."""
    around = words[max(0, at - 1) : at + 1]
    return at in (0, len(words)) or " " in around or _IS_UNSPACED.search(around) is not None
