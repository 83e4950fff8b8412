"""The tokenizer of the search: NFKC, case folded, words, and bigrams of Hangul and CJK runs.

Korean glues particles to words ("서울은", "서울에서"), and Chinese and Japanese put no spaces at
all, so runs of these scripts become overlapping pairs of characters: "서울" then matches "서울은".
A run of one character stays as it is. All else is split at what is neither letter nor digit.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: Hangul syllables and jamo, kana, and CJK ideographs with extension A.
_PAIRED: Final = "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_RUNS: Final = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+")
_IS_PAIRED: Final = re.compile(rf"[{_PAIRED}]")


def normalize(text: str) -> str:
    """NFKC and case folding, as documents and queries are both read."""
    return unicodedata.normalize("NFKC", text).casefold()


def tokenize(text: str) -> list[str]:
    """The tokens of a text in order; empty for a text of punctuation only.

    >>> tokenize("Ada's River-Works, 서울은")
    ['ada', 's', 'river', 'works', '서울', '울은']
    """
    tokens: list[str] = []
    for run in _RUNS.findall(normalize(text)):
        if len(run) > 1 and _IS_PAIRED.match(run):
            tokens += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            tokens.append(run)
    return tokens
