"""What an episode is measured by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.rules.scoring import exact_match, f1
from mpt_envs.research.world import layout as at
from mpt_envs.research.world.questions import QuestionSet

#: ``success``: the rewarded answer; ``exact_match`` and ``f1`` of the answer, grounded or not, as
#: HotpotQA's official evaluation has them (`scoring`); ``answered``;
#: ``evidence_recall``: share of the evidence that was opened; ``hop_K``: whether the page of hop K
#: was (0 where there is no such hop); ``citation_correct``: whether a right answer cites a page of
#: the evidence (any page where no evidence is known); counts of tool calls; ``hops``.
METRICS: Final = (
    "success",
    "exact_match",
    "f1",
    "answered",
    "evidence_recall",
    *(f"hop_{k + 1}" for k in range(at.MAX_HOPS)),
    "citation_correct",
    "searches",
    "opens",
    "finds",
    "hops",
)

_cached_f1 = lru_cache(maxsize=100_000)(f1)


def answer_text(
    record: NDArray[np.int32], questions: QuestionSet, texts: Sequence[str]
) -> str | None:
    """The answer that was given; None: none."""
    answered = int(record[at.ANSWERED])
    if answered == at.NO_ANSWER:
        return None
    return texts[at.FREE - answered] if answered <= at.FREE else questions.shelf.names[answered]


def metrics_of(
    record: NDArray[np.int32], questions: QuestionSet, texts: Sequence[str] = ()
) -> list[float]:
    """The metrics of one episode, in the order of METRICS."""
    index = int(record[at.QUESTION])
    question = questions.questions[index]
    hops = int(questions.arrays["q_hops"][index])
    opened = [float(int(record[at.EVIDENCE]) >> k & 1) for k in range(at.MAX_HOPS)]
    answer = answer_text(record, questions, texts)
    correct = float(record[at.CORRECT])
    cited = 0.0
    cursor = int(record[at.ANSWER_CURSOR])
    if correct and cursor >= 0 and record[at.KIND + cursor] == at.PAGE_DOCUMENT:
        evidence = questions.arrays["q_evidence"][index, :hops]
        cited = float(not hops or int(record[at.REF + cursor]) in evidence.tolist())
    return [
        float(record[at.DONE] == at.DONE_RIGHT),
        float(answer is not None and exact_match(answer, question.answers)),
        0.0 if answer is None else _cached_f1(answer, question.answers),
        float(answer is not None),
        sum(opened) / hops if hops else 0.0,
        *opened,
        cited,
        float(record[at.SEARCHES]),
        float(record[at.OPENS]),
        float(record[at.FINDS]),
        float(hops),
    ]
