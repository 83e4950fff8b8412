"""The observation vector: what can be seen in the question and on the page in view, as features.

Nothing in it comes from the answer or from the pages that lead to it. A reader gets the same from
the text: which words of the question stand where, what a result's snippet shares with the question
and with the sentence whose name was searched, what was tried before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.research.kernel import kernel
from mpt_envs.research.rules.turn import document_in_view, first_hit, stands_in
from mpt_envs.research.world import layout as at

_VIEW: Final = (
    "korean", "asks_number", "number_of_patterns", "number_of_names",
    "view_search", "view_document", "view_find", "more_above", "more_below", "position",
    "hits", "number_of_items", "can_go_back", "searches", "documents_opened", "finds",
    "last_searcher", "last_opener", "last_finder", "last_acted", "question_searched",
    "page_is_new", "patterns_passed", "next_is_last", "none_is_next", "next_stands_here",
    "next_stands_here_with_link",
)  # fmt: skip
_PER_NAME: Final = ("there", "searched", "genitive", "first", "last")
_PER_PATTERN: Final = (
    "there", "chained", "next", "passed", "in_view", "tried_here", "found_in_view",
)  # fmt: skip
_PER_ITEM: Final = (
    "there", "link", "number", "doubt", "visited", "searched", "in_question", "shares_question",
    "title_is_query", "has_query", "shares_context", "with_next", "with_find",
)  # fmt: skip
N_VIEW: Final = len(_VIEW)
PER_NAME: Final = len(_PER_NAME)
PER_PATTERN: Final = len(_PER_PATTERN)
PER_ITEM: Final = len(_PER_ITEM)
NAME_AT: Final = N_VIEW
PATTERN_AT: Final = NAME_AT + at.NAMES * PER_NAME
ITEM_AT: Final = PATTERN_AT + at.PATTERNS * PER_PATTERN
OBSERVATION_SIZE: Final = ITEM_AT + at.ITEMS * PER_ITEM

#: Name of each entry, for people.
FEATURE_NAMES: Final = (
    *_VIEW,
    *(f"name_{k}_{name}" for k in range(at.NAMES) for name in _PER_NAME),
    *(f"pattern_{k}_{name}" for k in range(at.PATTERNS) for name in _PER_PATTERN),
    *(f"item_{k}_{name}" for k in range(at.ITEMS) for name in _PER_ITEM),
)


@kernel
def _shared(first, low, high, second, begin, end):
    """How many numbers two sorted runs share; -1 ends the second."""
    count = 0
    i, j = low, begin
    while i < high and j < end:
        if second[j] < 0:
            break
        if first[i] == second[j]:
            count += 1
            i += 1
            j += 1
        elif first[i] < second[j]:
            i += 1
        else:
            j += 1
    return count


@kernel
def _was_searched(s, t, name):
    """Whether a name was searched, be it as an item or as a name of the question."""
    question = s[at.QUESTION]
    for page in range(s[at.TOP] + 1):
        if s[at.KIND + page] == at.PAGE_SEARCH:
            ref = s[at.REF + page]
            k = at.QUERY - ref - 1
            if ref == name or (0 <= k < at.NAMES and t.q_name_id[question, k] == name):
                return True
    return False


@kernel
def _name_was_searched(s, t, k):
    """Whether a name of the question was searched."""
    name = t.q_name_id[s[at.QUESTION], k]
    if name >= 0:
        return _was_searched(s, t, name)
    for page in range(s[at.TOP] + 1):
        if s[at.KIND + page] == at.PAGE_SEARCH and s[at.REF + page] == at.QUERY - 1 - k:
            return True
    return False


@kernel
def _was_opened(s, document):
    for page in range(s[at.TOP] + 1):
        if s[at.KIND + page] == at.PAGE_DOCUMENT and s[at.REF + page] == document:
            return True
    return False


@kernel
def write_observation(s, t, out):
    """Write the observation: float32 (OBSERVATION_SIZE,), every entry in [0, 1].

    Args:
        s, t: as in `rules`.
        out: overwritten up to OBSERVATION_SIZE.
    """
    one, zero = np.float32(1), np.float32(0)
    for k in range(OBSERVATION_SIZE):
        out[k] = zero
    question = s[at.QUESTION]
    top = s[at.TOP]
    kind = s[at.KIND + top] if top >= 0 else 0
    patterns = t.q_patterns[question]
    names = t.q_names[question]
    out[0] = np.float32(t.q_flags[question, 0])
    out[1] = np.float32(t.q_flags[question, 1])
    out[2] = np.float32(patterns) / np.float32(at.PATTERNS)
    out[3] = np.float32(names) / np.float32(at.NAMES)
    if kind > 0:
        out[3 + kind] = one
    if kind == at.PAGE_DOCUMENT:
        out[7] = one if s[at.LOC + top] > 0 else zero
        out[8] = one if s[at.LOC + top] + s[at.LINES + top] < s[at.PAGE_LINES] else zero
        out[9] = min(one, np.float32(s[at.LOC + top]) / np.float32(max(1, s[at.PAGE_LINES])))
    out[10] = min(one, np.float32(s[at.HITS]) / np.float32(4))
    out[11] = np.float32(s[at.N_ITEMS]) / np.float32(at.ITEMS)
    out[12] = one if top >= 0 and s[at.PARENT + top] >= 0 else zero
    out[13] = min(one, np.float32(s[at.SEARCHES]) / np.float32(8))
    out[14] = min(one, np.float32(s[at.OPENS]) / np.float32(8))
    out[15] = min(one, np.float32(s[at.FINDS]) / np.float32(8))
    if s[at.LAST_ROLE] >= 0:
        out[16 + s[at.LAST_ROLE]] = one
    out[19] = one if s[at.LAST_OUTCOME] == at.OUTCOME_ACTED else zero
    document = document_in_view(s)
    if document >= 0:
        seen = 0
        for page in range(top + 1):
            if s[at.KIND + page] == at.PAGE_DOCUMENT and s[at.REF + page] == document:
                seen += 1
        out[21] = one if seen == 1 else zero
    for page in range(top + 1):
        if s[at.KIND + page] == at.PAGE_SEARCH and s[at.REF + page] == at.QUERY:
            out[20] = one
    for k in range(names):
        offset = NAME_AT + k * PER_NAME
        out[offset] = one
        out[offset + 1] = one if _name_was_searched(s, t, k) else zero
        out[offset + 2] = np.float32(t.q_flags[question, 3 + k])
        out[offset + 3] = one if k == 0 else zero
        out[offset + 4] = one if k == names - 1 else zero
    chained = t.q_flags[question, 2]
    following = s[at.NEXT]
    out[23] = one if following >= 0 and following == chained - 1 else zero
    out[24] = one if following < 0 else zero
    passed = 0
    finding = s[at.REF + top] if kind == at.PAGE_FIND else -1
    for k in range(patterns):
        offset = PATTERN_AT + k * PER_PATTERN
        out[offset] = one
        out[offset + 1] = one if k < chained else zero
        out[offset + 2] = one if k == following else zero
        if top >= 0 and (s[at.PASSED + top] >> k & 1):
            out[offset + 3] = one
            passed += 1
        row = t.q_pattern_rows[question, k]
        if kind == at.PAGE_DOCUMENT:
            first, last = first_hit(t, row, document)
            for hit in range(first, last):
                line = t.pat_hits[hit] - t.line_start[document]
                if s[at.LOC + top] <= line < s[at.LOC + top] + s[at.LINES + top]:
                    out[offset + 4] = one
        if document >= 0:
            # A find since this document came into view.
            page = top
            while page >= 0 and s[at.KIND + page] != at.PAGE_SEARCH:
                if (
                    s[at.KIND + page] == at.PAGE_FIND
                    and s[at.REF + page] == k
                    and (s[at.REF + s[at.PARENT + page]] == document)
                ):
                    out[offset + 5] = one
                page -= 1
        out[offset + 6] = one if k == finding else zero
    out[22] = np.float32(passed) / np.float32(at.PATTERNS)
    _write_items(s, t, out, question, finding)


@kernel
def _write_items(s, t, out, question, finding):
    """The features of the items in view."""
    one, zero = np.float32(1), np.float32(0)
    following = s[at.NEXT]
    tokens = t.q_tokens[question]
    for k in range(s[at.N_ITEMS]):
        offset = ITEM_AT + k * PER_ITEM
        name = s[at.ITEM_NAME + k]
        target = s[at.ITEM_TARGET + k]
        mention = s[at.ITEM_MENTION + k]
        low, high = t.name_start[name], t.name_start[name + 1]
        size = high - low
        out[offset] = one
        out[offset + 1] = one if target >= 0 else zero
        if target >= 0 and _was_opened(s, target):
            out[offset + 4] = one
        if _was_searched(s, t, name):
            out[offset + 5] = one
        if size > 0:
            shared = _shared(t.name_tok, low, high, tokens, 0, tokens.shape[0])
            out[offset + 6] = np.float32(shared) / np.float32(size)
        if mention < 0:
            lead, lead_end = t.lead_start[target], t.lead_start[target + 1]
            shared = _shared(t.lead_tok, lead, lead_end, tokens, 0, tokens.shape[0])
            out[offset + 7] = min(one, np.float32(shared) / np.float32(6))
            _write_result(s, t, out, offset, question, name, lead, lead_end)
            continue
        out[offset + 2] = np.float32(t.men_number[mention])
        out[offset + 3] = np.float32(t.men_doubt[mention])
        sentence = t.men_sent[mention]
        begin, end = t.sent_start[sentence], t.sent_start[sentence + 1]
        shared = _shared(t.sent_tok, begin, end, tokens, 0, tokens.shape[0])
        out[offset + 7] = min(one, np.float32(shared) / np.float32(4))
        if following >= 0 and stands_in(t, t.q_pattern_rows[question, following], sentence):
            out[offset + 11] = one
            if out[offset + 3] == zero:
                out[25] = one
                if target >= 0:
                    out[26] = one
        if finding >= 0 and stands_in(t, t.q_pattern_rows[question, finding], sentence):
            out[offset + 12] = one


@kernel
def _write_result(s, t, out, offset, question, name, lead, lead_end):
    """Features of a result: how its title and snippet fit the query and where it came from."""
    one = np.float32(1)
    top = s[at.TOP]
    ref = s[at.REF + top]
    context = s[at.CONTEXT + top]
    if ref >= 0:
        low, high = t.name_start[ref], t.name_start[ref + 1]
        if t.name_fold[ref] == t.name_fold[name]:
            out[offset + 8] = one
        if high > low:
            shared = _shared(t.name_tok, low, high, t.lead_tok, lead, lead_end)
            out[offset + 9] = np.float32(shared) / np.float32(high - low)
        if context >= 0:
            sentence = t.men_sent[context]
            begin, end = t.sent_start[sentence], t.sent_start[sentence + 1]
            shared = _shared(t.sent_tok, begin, end, t.lead_tok, lead, lead_end)
            out[offset + 10] = min(one, np.float32(shared) / np.float32(5))
        return
    k = at.QUERY - ref - 1
    if 0 <= k < at.NAMES:
        size = 0
        while size < t.q_name_tok.shape[2] and t.q_name_tok[question, k, size] >= 0:
            size += 1
        if size > 0:
            found = _shared(
                t.lead_tok, lead, lead_end, t.q_name_tok[question, k], 0, t.q_name_tok.shape[2]
            )
            out[offset + 9] = np.float32(found) / np.float32(size)
            low, high = t.name_start[name], t.name_start[name + 1]
            same = _shared(t.name_tok, low, high, t.q_name_tok[question, k], 0, size)
            if same == size and same == high - low:
                out[offset + 8] = one


assert at.WINDOW > 0 and at.EVIDENCE > 0
