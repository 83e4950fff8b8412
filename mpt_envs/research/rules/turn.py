"""The rules, compiled: what an action does to a record, what is then in view, what is legal.

Everything is integers: ``s`` is the record (`layout`), ``t`` the tables of the library and the
questions (`tables.Tables`), ``rows`` what the entries of the page stack stand for in this process
(row of the results of a search, row of the pattern of a find); it is not part of the state.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.research.kernel import kernel
from mpt_envs.research.world import layout as at

_NONE_WANTED: Final = -1000


@kernel
def top_kind(s):
    """Kind of the page on top of the stack."""
    return s[at.KIND + s[at.TOP]] if s[at.TOP] >= 0 else at.PAGE_NONE


@kernel
def _lower_bound(values, low, high, bound):
    """Index of the first of the sorted ``values[low:high]`` that is not below a bound, or high."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_hit(t, row, document):
    """Index into ``pat_hits`` of the first hit line of a page at or after its start, and the end.

    Returns:
        ``(first, end)``: the hits of the pattern of a row on the page are ``pat_hits[first:end]``.
    """
    low, high = t.pat_start[row, 0], t.pat_start[row, 1]
    begin, end = t.line_start[document], t.line_start[document + 1]
    low = _lower_bound(t.pat_hits, low, high, begin)
    last = low
    while last < t.pat_start[row, 1] and t.pat_hits[last] < end:
        last += 1
    return low, last


@kernel
def _first_mention(t, document, line):
    """The first mention of a page on or after a line."""
    return _lower_bound(t.men_line, t.men_start[document], t.men_start[document + 1], line)


@kernel
def stands_in(t, row, sentence):
    """Whether the pattern of a row stands in a sentence."""
    end = t.pat_start[row, 3]
    low = _lower_bound(t.pat_hits, t.pat_start[row, 2], end, sentence)
    return low < end and t.pat_hits[low] == sentence


@kernel
def passed_bits(s, t, parent, context):
    """The patterns in the sentences that led to a page: those of its parent and its own."""
    bits = s[at.PASSED + parent] if parent >= 0 else np.int32(0)
    if context >= 0:
        question = s[at.QUESTION]
        for k in range(t.q_patterns[question]):
            if stands_in(t, t.q_pattern_rows[question, k], t.men_sent[context]):
                bits |= np.int32(1) << k
    return bits


@kernel
def upcoming(s, t):
    """The pattern that comes next: the one nearest to the name that did not lead here yet.

    Only patterns on the side of the name where relations stand count (before it in English, after
    it in Korean); -1: none is left.
    """
    passed = s[at.PASSED + s[at.TOP]] if s[at.TOP] >= 0 else 0
    for k in range(t.q_flags[s[at.QUESTION], 2]):
        if (passed >> k & 1) == 0:
            return k
    return -1


@kernel
def _add_items(s, t, document, first, last, with_next):
    """Add the mentions of lines ``first`` up to, without, ``last`` to the items in view.

    With ``with_next`` only those in sentences with the pattern that comes next, else the others.
    """
    question, following = s[at.QUESTION], s[at.NEXT]
    count = s[at.N_ITEMS]
    mention = _first_mention(t, document, first)
    end = t.men_start[document + 1]
    while mention < end and t.men_line[mention] < last and count < at.ITEMS:
        near = following >= 0 and stands_in(
            t, t.q_pattern_rows[question, following], t.men_sent[mention]
        )
        known = near != with_next
        for k in range(count):
            if s[at.ITEM_MENTION + k] == mention or (
                s[at.ITEM_NAME + k] == t.men_name[mention]
                and s[at.ITEM_TARGET + k] == t.men_target[mention]
                and t.men_sent[s[at.ITEM_MENTION + k]] == t.men_sent[mention]
            ):
                known = True
        if not known:
            s[at.ITEM_NAME + count] = t.men_name[mention]
            s[at.ITEM_TARGET + count] = t.men_target[mention]
            s[at.ITEM_MENTION + count] = mention
            count += 1
        mention += 1
    s[at.N_ITEMS] = count


@kernel
def look(s, rows, t):
    """Work out what is in view: items, hits, the number of lines of the page."""
    s[at.N_ITEMS] = 0
    s[at.HITS] = 0
    s[at.PAGE_LINES] = 0
    s[at.NEXT] = upcoming(s, t)
    for k in range(at.ITEMS):
        s[at.ITEM_NAME + k] = -1
        s[at.ITEM_TARGET + k] = -1
        s[at.ITEM_MENTION + k] = -1
    top = s[at.TOP]
    if top < 0:
        return
    kind = s[at.KIND + top]
    if kind == at.PAGE_SEARCH:
        row = rows[top]
        count = 0
        for k in range(at.RESULTS):
            document = t.results[row, k]
            if document < 0 or (s[at.LINES + top] > 0 and count >= s[at.LINES + top]):
                break
            s[at.ITEM_NAME + count] = t.doc_name[document]
            s[at.ITEM_TARGET + count] = document
            count += 1
        s[at.N_ITEMS] = count
        return
    document = document_in_view(s)
    s[at.PAGE_LINES] = t.line_start[document + 1] - t.line_start[document]
    if kind == at.PAGE_FIND:
        first, last = first_hit(t, rows[top], document)
        s[at.HITS] = min(last - first, at.MAX_HITS)
        last = min(last, first + at.WINDOW // at.HIT_LINES)
    # What stands in sentences with the next pattern comes first.
    for near in (True, False):
        if kind == at.PAGE_DOCUMENT:
            _add_items(s, t, document, s[at.LOC + top], s[at.LOC + top] + s[at.LINES + top], near)
            continue
        for hit in range(first, last):
            line = t.pat_hits[hit] - t.line_start[document]
            _add_items(s, t, document, line, line + at.HIT_LINES, near)


@kernel
def document_in_view(s):
    """The document that is in view, or in which was found; -1: none."""
    top = s[at.TOP]
    if top < 0 or s[at.KIND + top] == at.PAGE_SEARCH:
        return -1
    if s[at.KIND + top] == at.PAGE_FIND:
        # A find stands on the page in which it looked.
        return s[at.REF + s[at.PARENT + top]]
    return s[at.REF + top]


@kernel
def write_masks(s, t):
    """Work out which actions of each role are legal."""
    searcher, opener, finder = np.int32(1), np.int32(1), np.int32(1)
    if s[at.DONE] == at.DONE_RUNNING:
        question = s[at.QUESTION]
        kind = top_kind(s)
        room = s[at.TOP] + 1 < at.STACK
        on_page = kind in (at.PAGE_DOCUMENT, at.PAGE_FIND)
        if room:
            searcher |= np.int32(1) << at.SEARCH_QUESTION
            for k in range(t.q_names[question]):
                searcher |= np.int32(1) << (at.SEARCH_NAME + k)
        for k in range(s[at.N_ITEMS]):
            mention = s[at.ITEM_MENTION + k]
            if room and on_page and t.men_number[mention] == 0:
                searcher |= np.int32(1) << (at.SEARCH_ITEM + k)
            if room and s[at.ITEM_TARGET + k] >= 0:
                opener |= np.int32(1) << (at.OPEN + k)
            if on_page:
                finder |= np.int32(1) << (at.ANSWER + k)
        if room and on_page:
            if kind == at.PAGE_DOCUMENT:
                top = s[at.TOP]
                if s[at.LOC + top] + s[at.LINES + top] < s[at.PAGE_LINES]:
                    opener |= np.int32(1) << at.SCROLL_DOWN
                if s[at.LOC + top] > 0:
                    opener |= np.int32(1) << at.SCROLL_UP
            elif s[at.HITS] > 0:
                opener |= np.int32(1) << at.SCROLL_DOWN
            for k in range(t.q_patterns[question]):
                finder |= np.int32(1) << (at.FIND + k)
        if room and s[at.TOP] >= 0 and s[at.PARENT + s[at.TOP]] >= 0:
            opener |= np.int32(1) << at.BACK
    s[at.MASKS] = searcher
    s[at.MASKS + 1] = opener
    s[at.MASKS + 2] = finder


@kernel
def refresh(s, rows, t):
    """Everything that is worked out from the rest."""
    look(s, rows, t)
    write_masks(s, t)


@kernel
def begin(s, rows, t, question, key):
    """Start an episode.

    Args:
        s, rows, t: see above.
        question: its index.
        key: uint64, the episode's random key (kept, though the rules draw nothing).
    """
    s[:] = 0
    rows[:] = -1
    s[at.QUESTION] = question
    s[at.TOP] = -1
    s[at.LAST_ROLE] = -1
    s[at.LAST_OUTCOME] = at.OUTCOME_NONE
    s[at.ANSWERED] = at.NO_ANSWER
    s[at.ANSWER_CURSOR] = -1
    s[at.ANSWER_LINE] = -1
    set_key(s, key)
    refresh(s, rows, t)


@kernel
def set_key(s, key):
    """Keep another random key."""
    s[at.KEY_LOW] = np.int32(np.int64(key & np.uint64(0xFFFFFFFF)) - np.int64(1 << 31))
    s[at.KEY_HIGH] = np.int32(np.int64(key >> np.uint64(32)) - np.int64(1 << 31))


@kernel
def push(s, rows, t, kind, ref, loc, lines, parent, context, row):
    """Put a page on the stack; there must be room."""
    passed = passed_bits(s, t, parent, context)
    top = s[at.TOP] + 1
    s[at.TOP] = top
    s[at.KIND + top] = kind
    s[at.REF + top] = ref
    s[at.LOC + top] = loc
    s[at.LINES + top] = lines
    s[at.PARENT + top] = parent
    s[at.CONTEXT + top] = context
    s[at.PASSED + top] = passed
    rows[top] = row
    s[at.TOP_CHANGED] = s[at.TURN]


@kernel
def open_document(s, rows, t, document, loc, lines, parent, context):
    """Put a document on the stack; returns the reward of a page of the evidence seen first."""
    push(s, rows, t, at.PAGE_DOCUMENT, document, loc, lines, parent, context, -1)
    question = s[at.QUESTION]
    reward = 0
    for k in range(at.MAX_HOPS):
        if t.q_evidence[question, k] == document and (s[at.EVIDENCE] >> k & 1) == 0:
            s[at.EVIDENCE] |= np.int32(1) << k
            reward += t.q_value[question, k]
    return reward


@kernel
def _page_below(s):
    """Cursor of the document in view (not of a find in it)."""
    top = s[at.TOP]
    return s[at.PARENT + top] if s[at.KIND + top] == at.PAGE_FIND else top


@kernel
def wanted(s, t, role, action):
    """What has to be looked up before an action can be taken.

    Returns:
        A name (>= 0), ``QUERY - k`` for a query of the question, or ``_NONE_WANTED``.
    """
    if role != at.SEARCHER or not at.SEARCH_QUESTION <= action < at.SEARCH_ITEM + at.ITEMS:
        return _NONE_WANTED
    if (s[at.MASKS] >> action & 1) == 0:
        return _NONE_WANTED
    if action < at.SEARCH_ITEM:
        k = action - at.SEARCH_QUESTION
        return at.QUERY - k if t.q_rows[s[at.QUESTION], k] < 0 else _NONE_WANTED
    name = s[at.ITEM_NAME + action - at.SEARCH_ITEM]
    return name if t.row_of_name[name] < 0 else _NONE_WANTED


@kernel
def act(s, rows, t, role, action):
    """One decision of a role; an illegal one (or role -1) does what `skip` does.

    Returns:
        The reward.
    """
    if s[at.DONE] != at.DONE_RUNNING:
        return 0
    legal = role >= 0 and 0 <= action < 31 and (s[at.MASKS + max(role, 0)] >> action & 1) == 1
    reward = 0
    s[at.LAST_ROLE] = role
    if role < 0:
        s[at.LAST_OUTCOME] = at.OUTCOME_SKIPPED
    elif not legal:
        s[at.LAST_ROLE] = -1
        s[at.LAST_OUTCOME] = at.OUTCOME_SKIPPED
    elif action == at.WAIT:
        s[at.LAST_OUTCOME] = at.OUTCOME_WAITED
    else:
        s[at.LAST_OUTCOME] = at.OUTCOME_ACTED
        if role == at.SEARCHER:
            _search(s, rows, t, action)
        elif role == at.OPENER:
            reward = _open(s, rows, t, action)
        else:
            reward = _find_or_answer(s, rows, t, action)
    finish_turn(s, rows, t, reward)
    return reward


@kernel
def finish_turn(s, rows, t, reward):
    """Count the turn and the reward, and look again."""
    s[at.TURN] += 1
    s[at.SCORE] += reward
    refresh(s, rows, t)


@kernel
def _search(s, rows, t, action):
    top = s[at.TOP]
    s[at.SEARCHES] += 1
    if action < at.SEARCH_ITEM:
        k = action - at.SEARCH_QUESTION
        row = t.q_rows[s[at.QUESTION], k]
        push(s, rows, t, at.PAGE_SEARCH, at.QUERY - k, 0, 0, top, -1, row)
        return
    item = action - at.SEARCH_ITEM
    name = s[at.ITEM_NAME + item]
    row = t.row_of_name[name]
    push(s, rows, t, at.PAGE_SEARCH, name, 0, 0, top, s[at.ITEM_MENTION + item], row)


@kernel
def _open(s, rows, t, action):
    top = s[at.TOP]
    if action < at.SCROLL_DOWN:
        s[at.OPENS] += 1
        item = action - at.OPEN
        document, mention = s[at.ITEM_TARGET + item], s[at.ITEM_MENTION + item]
        return open_document(s, rows, t, document, 0, at.WINDOW, top, mention)
    if action == at.BACK:
        return go_back(s, rows, t)
    if s[at.KIND + top] == at.PAGE_FIND:
        document = document_in_view(s)
        first, _ = first_hit(t, rows[top], document)
        line = t.pat_hits[first] - t.line_start[document]
        page = s[at.PARENT + top]
        return open_document(
            s, rows, t, document, line, at.WINDOW, s[at.PARENT + page], s[at.CONTEXT + page]
        )
    step = at.WINDOW if action == at.SCROLL_DOWN else -at.WINDOW
    loc = max(0, s[at.LOC + top] + step)
    return open_document(
        s, rows, t, s[at.REF + top], loc, at.WINDOW, s[at.PARENT + top], s[at.CONTEXT + top]
    )


@kernel
def go_back(s, rows, t):
    """Put the page from which the one in view was opened on the stack once more."""
    page = s[at.PARENT + s[at.TOP]]
    parent = s[at.PARENT + page]
    if s[at.KIND + page] == at.PAGE_DOCUMENT:
        return open_document(
            s,
            rows,
            t,
            s[at.REF + page],
            s[at.LOC + page],
            s[at.LINES + page],
            parent,
            s[at.CONTEXT + page],
        )
    push(
        s,
        rows,
        t,
        s[at.KIND + page],
        s[at.REF + page],
        s[at.LOC + page],
        s[at.LINES + page],
        parent,
        s[at.CONTEXT + page],
        rows[page],
    )
    return 0


@kernel
def _find_or_answer(s, rows, t, action):
    if action < at.ANSWER:
        k = action - at.FIND
        s[at.FINDS] += 1
        below = _page_below(s)
        row = t.q_pattern_rows[s[at.QUESTION], k]
        push(s, rows, t, at.PAGE_FIND, k, 0, 0, below, -1, row)
        return 0
    item = action - at.ANSWER
    mention = s[at.ITEM_MENTION + item]
    name = s[at.ITEM_NAME + item]
    fold = t.name_fold[name]
    right = False
    for k in range(t.q_gold_start[s[at.QUESTION]], t.q_gold_start[s[at.QUESTION] + 1]):
        right = right or t.q_gold[k] == fold
    # The page is open and shows the name, so an answer from here is grounded.
    return give_answer(s, name, _page_below(s), t.men_line[mention], right, True)


@kernel
def give_answer(s, name, cursor, line, right, grounded):
    """End the episode with an answer; only a grounded one is rewarded."""
    s[at.ANSWERED] = name
    s[at.ANSWER_CURSOR] = cursor
    s[at.ANSWER_LINE] = line
    s[at.CORRECT] = 1 if right else 0
    s[at.DONE] = at.DONE_RIGHT if right and grounded else at.DONE_WRONG
    return at.ANSWER_REWARD if s[at.DONE] == at.DONE_RIGHT else 0


assert at.PATTERNS + at.FIND == at.ANSWER and at.NAMES + at.SEARCH_NAME == at.SEARCH_ITEM
assert at.OUTCOME_ILLEGAL != at.OUTCOME_SKIPPED and at.FINDER == 2
