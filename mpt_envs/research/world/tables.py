"""`Tables`: the integer arrays that the compiled rules read, in one named tuple."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


class Tables(NamedTuple):
    """Arrays of the library (see `library.Library.arrays`) and of the questions (``q_``).

    Attributes:
        q_names, q_patterns: (questions,) how many candidates a question has.
        q_rows: (questions, 1 + NAMES) rows of ``results``: the question, its names; -1: not yet.
        q_pattern_rows: (questions, PATTERNS) rows of ``pat_start``.
        q_tokens: (questions, QUESTION_TOKENS) informative tokens, sorted, -1 at the end.
        q_flags: (questions, FLAGS) see `questions`.
        q_name_id: (questions, NAMES) the names as the corpus has them, -1: it has no such name.
        q_name_tok: (questions, NAMES, NAME_TOKENS) tokens of each name, -1 at the end.
        q_evidence, q_value: (questions, MAX_HOPS) documents, -1 for none, and their rewards.
        q_hops: (questions,) pages of evidence.
        q_gold_start: (questions + 1,) where the answers of a question begin in ``q_gold``.
        q_gold: (answers,) names' folds that are right answers, -1 for one that no page names.
        q_start: (questions,) the name to search first, -1: unknown. Only the expert reads these:
        q_slot: (questions, MAX_HOPS) pattern that finds the fact on the page of a hop, -1: none.
        q_target: (questions, MAX_HOPS) mention of the fact's object, -1: unknown.
    """

    line_start: Ints
    men_start: Ints
    men_name: Ints
    men_line: Ints
    men_sent: Ints
    men_target: Ints
    men_number: Ints
    men_doubt: Ints
    sent_start: Ints
    sent_tok: Ints
    lead_start: Ints
    lead_tok: Ints
    name_start: Ints
    name_tok: Ints
    name_fold: Ints
    doc_name: Ints
    results: Ints
    row_of_name: Ints
    pat_start: Ints
    pat_hits: Ints
    q_names: Ints
    q_patterns: Ints
    q_rows: Ints
    q_pattern_rows: Ints
    q_tokens: Ints
    q_flags: Ints
    q_name_id: Ints
    q_name_tok: Ints
    q_evidence: Ints
    q_value: Ints
    q_hops: Ints
    q_gold_start: Ints
    q_gold: Ints
    q_start: Ints
    q_slot: Ints
    q_target: Ints
