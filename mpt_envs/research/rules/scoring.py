"""How an answer is judged: normalised exact match and token F1, as SQuAD defines them, in Unicode.

Normalising: NFKC, case folding, no punctuation, no English articles, single spaces (Rajpurkar et
al., 2016, with Unicode's idea of punctuation instead of ASCII's). Of an answer that is nothing but
articles ("A", "The The") they stay: it could not be told from any other otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mpt_envs.research.data.tokenizer import tokenize

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
MAX_ANSWER: Final = 2000  # characters that are read


@lru_cache(maxsize=200_000)
def normalize_answer(text: str) -> str:
    """An answer as it is compared; "" if it holds neither a letter nor a digit."""
    words = _words(text[:MAX_ANSWER])
    return _without_articles(words) or words


def stands_in(answer: str, text: str) -> bool:
    """Whether an answer stands in a text, both normalised, as whole words; an empty one never."""
    wanted, words = normalize_answer(answer), _words(text)
    if _without_articles(wanted):
        words = _without_articles(words)
    return bool(wanted) and f" {wanted} " in f" {words} "


def _words(text: str) -> str:
    """The words of a text: folded, without punctuation, with single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(" " if unicodedata.category(c)[0] in "PZCS" else c for c in folded)
    return " ".join(kept.split())


def _without_articles(words: str) -> str:
    return " ".join(_ARTICLES.sub(" ", words).split())


def exact_match(answer: str, accepted: Iterable[str]) -> bool:
    """Whether an answer equals an accepted one after normalising; an empty one never does."""
    given = normalize_answer(answer)
    return bool(given) and any(given == normalize_answer(a) for a in accepted)


def f1(answer: str, accepted: Iterable[str]) -> float:
    """The best token F1 with an accepted answer, in [0, 1]; Hangul and CJK count by pairs."""
    return max((_f1(answer, a) for a in accepted), default=0.0)


def _f1(answer: str, accepted: str) -> float:
    given = Counter(tokenize(normalize_answer(answer)))
    wanted = Counter(tokenize(normalize_answer(accepted)))
    common = sum((given & wanted).values())
    if not common:
        return 0.0
    precision, recall = common / sum(given.values()), common / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)
