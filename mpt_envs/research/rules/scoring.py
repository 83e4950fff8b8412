"""How an answer is judged: by the official metrics, and by what the reward accepts.

`exact_match` and `f1` are those of HotpotQA's official evaluation (Yang et al., 2018,
``hotpot_evaluate_v1.py``), which are SQuAD 1.1's (Rajpurkar et al., 2016) with a special case for
"yes", "no" and "noanswer": to the letter, so that they can be compared with published figures. They
know ASCII's punctuation only, delete it ("U.S." is "us", "3,677" is "3677"), and split at spaces.

The *reward* accepts more (`accepts`): what the official metric calls equal, and what is equal after
`fold_answer`, which knows all of Unicode (NFKC, case folding) and puts a space where punctuation
was ("river-works" is "river works").
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mpt_envs.research.data.tokenizer import is_in, words_of

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_CHOICES: Final = ("yes", "no", "noanswer")
MAX_ANSWER: Final = 2000  # characters that are read


# -- the official metrics --------------------------------------------------------------------


def normalize_answer(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces: SQuAD's ``normalize_answer``."""
    return _without_articles(text[:MAX_ANSWER].lower().translate(_PUNCTUATION))


def exact_match(answer: str, accepted: Iterable[str]) -> bool:
    """SQuAD's ``exact_match_score``, the best over the accepted answers."""
    given = normalize_answer(answer)
    return any(given == normalize_answer(a) for a in accepted)


def f1(answer: str, accepted: Iterable[str]) -> float:
    """HotpotQA's ``f1_score`` in [0, 1], the best over the accepted answers."""
    return max((_f1(normalize_answer(answer), normalize_answer(a)) for a in accepted), default=0.0)


def _f1(given: str, wanted: str) -> float:
    if given != wanted and (given in _CHOICES or wanted in _CHOICES):
        return 0.0
    own, gold = given.split(), wanted.split()
    common = sum((Counter(own) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(own), common / len(gold)
    return 2 * precision * recall / (precision + recall)


# -- the reward ------------------------------------------------------------------------------


@lru_cache(maxsize=200_000)
def fold_answer(text: str) -> str:
    """An answer's words without English articles; "" if it holds neither a letter nor a digit.

    Of an answer that is nothing but articles ("A", "The The") they stay: it could not be told from
    any other otherwise.
    """
    words = words_of(text[:MAX_ANSWER])
    return _without_articles(words) or words


def answer_keys(text: str) -> set[str]:
    """Answers that share a key are equal for the reward; none if there is nothing to compare."""
    return {fold_answer(text), normalize_answer(text)} - {""}


def accepts(answer: str, accepted: Iterable[str]) -> bool:
    """Whether the reward takes an answer for one of the accepted ones."""
    given = answer_keys(answer)
    return any(not given.isdisjoint(answer_keys(a)) for a in accepted)


def stands_in(answer: str, text: str) -> bool:
    """Whether an answer stands in a text as whole words (see `tokenizer.is_in`)."""
    wanted, words = fold_answer(answer), words_of(text)
    if _without_articles(wanted):
        words = _without_articles(words)
    return is_in(wanted, words)


def _without_articles(words: str) -> str:
    return " ".join(_ARTICLES.sub(" ", words).split())
