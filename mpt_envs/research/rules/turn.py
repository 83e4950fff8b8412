"""The rules, compiled: what an action does to a record, what is then in view, what is legal.

Everything is integers: ``s`` is the record (`layout`), ``t`` the tables of the library and the
questions (`tables.Tables`), ``rows`` what the entries of the page stack stand for in this process
(row of the results of a search, row of the pattern of a find); it is not part of the state.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.research.kernel import kernel
from mpt_envs.research.world.layout import (
    ANSWER,
    ANSWER_CURSOR,
    ANSWER_LINE,
    ANSWER_REWARD,
    ANSWERED,
    BACK,
    CONTEXT,
    CORRECT,
    DONE,
    DONE_RIGHT,
    DONE_RUNNING,
    DONE_WRONG,
    EVIDENCE,
    FIND,
    FINDER,
    FINDS,
    HIT_LINES,
    HITS,
    ITEM_MENTION,
    ITEM_NAME,
    ITEM_TARGET,
    ITEMS,
    KEY_HIGH,
    KEY_LOW,
    KIND,
    LAST_OUTCOME,
    LAST_ROLE,
    LINES,
    LOC,
    MASKS,
    MAX_HITS,
    MAX_HOPS,
    N_ITEMS,
    NAMES,
    NEXT,
    NO_ANSWER,
    OPEN,
    OPENER,
    OPENS,
    OUTCOME_ACTED,
    OUTCOME_ILLEGAL,
    OUTCOME_NONE,
    OUTCOME_SKIPPED,
    OUTCOME_WAITED,
    PAGE_DOCUMENT,
    PAGE_FIND,
    PAGE_LINES,
    PAGE_NONE,
    PAGE_SEARCH,
    PARENT,
    PASSED,
    PATTERNS,
    QUERY,
    QUESTION,
    REF,
    RESULTS,
    SCORE,
    SCROLL_DOWN,
    SCROLL_UP,
    SEARCH_ITEM,
    SEARCH_NAME,
    SEARCH_QUESTION,
    SEARCHER,
    SEARCHES,
    STACK,
    TOP,
    TOP_CHANGED,
    TURN,
    WAIT,
    WINDOW,
)

_NONE_WANTED: Final = -1000


@kernel
def top_kind(s):
    """Kind of the page on top of the stack."""
    return s[KIND + s[TOP]] if s[TOP] >= 0 else PAGE_NONE


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
    bits = s[PASSED + parent] if parent >= 0 else np.int32(0)
    if context >= 0:
        question = s[QUESTION]
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
    passed = s[PASSED + s[TOP]] if s[TOP] >= 0 else 0
    for k in range(t.q_flags[s[QUESTION], 2]):
        if (passed >> k & 1) == 0:
            return k
    return -1


@kernel
def _add_items(s, t, document, first, last, with_next):
    """Add the mentions of lines ``first`` up to, without, ``last`` to the items in view.

    With ``with_next`` only those in sentences with the pattern that comes next, else the others.
    """
    question, following = s[QUESTION], s[NEXT]
    count = s[N_ITEMS]
    mention = _first_mention(t, document, first)
    end = t.men_start[document + 1]
    while mention < end and t.men_line[mention] < last and count < ITEMS:
        near = following >= 0 and stands_in(
            t, t.q_pattern_rows[question, following], t.men_sent[mention]
        )
        known = near != with_next
        for k in range(count):
            if s[ITEM_MENTION + k] == mention or (
                s[ITEM_NAME + k] == t.men_name[mention]
                and s[ITEM_TARGET + k] == t.men_target[mention]
                and t.men_sent[s[ITEM_MENTION + k]] == t.men_sent[mention]
            ):
                known = True
        if not known:
            s[ITEM_NAME + count] = t.men_name[mention]
            s[ITEM_TARGET + count] = t.men_target[mention]
            s[ITEM_MENTION + count] = mention
            count += 1
        mention += 1
    s[N_ITEMS] = count


@kernel
def look(s, rows, t):
    """Work out what is in view: items, hits, the number of lines of the page."""
    s[N_ITEMS] = 0
    s[HITS] = 0
    s[PAGE_LINES] = 0
    s[NEXT] = upcoming(s, t)
    for k in range(ITEMS):
        s[ITEM_NAME + k] = -1
        s[ITEM_TARGET + k] = -1
        s[ITEM_MENTION + k] = -1
    top = s[TOP]
    if top < 0:
        return
    kind = s[KIND + top]
    if kind == PAGE_SEARCH:
        row = rows[top]
        count = 0
        for k in range(RESULTS):
            document = t.results[row, k]
            if document < 0 or (s[LINES + top] > 0 and count >= s[LINES + top]):
                break
            s[ITEM_NAME + count] = t.doc_name[document]
            s[ITEM_TARGET + count] = document
            count += 1
        s[N_ITEMS] = count
        return
    document = document_in_view(s)
    s[PAGE_LINES] = t.line_start[document + 1] - t.line_start[document]
    if kind == PAGE_FIND:
        first, last = first_hit(t, rows[top], document)
        s[HITS] = min(last - first, MAX_HITS)
        last = min(last, first + WINDOW // HIT_LINES)
    # What stands in sentences with the next pattern comes first.
    for near in (True, False):
        if kind == PAGE_DOCUMENT:
            _add_items(s, t, document, s[LOC + top], s[LOC + top] + s[LINES + top], near)
            continue
        for hit in range(first, last):
            line = t.pat_hits[hit] - t.line_start[document]
            _add_items(s, t, document, line, line + HIT_LINES, near)


@kernel
def document_in_view(s):
    """The document that is in view, or in which was found; -1: none."""
    top = s[TOP]
    if top < 0 or s[KIND + top] == PAGE_SEARCH:
        return -1
    if s[KIND + top] == PAGE_FIND:
        # A find stands on the page in which it looked.
        return s[REF + s[PARENT + top]]
    return s[REF + top]


@kernel
def write_masks(s, t):
    """Work out which actions of each role are legal."""
    searcher, opener, finder = np.int32(1), np.int32(1), np.int32(1)
    if s[DONE] == DONE_RUNNING:
        question = s[QUESTION]
        kind = top_kind(s)
        room = s[TOP] + 1 < STACK
        on_page = kind in (PAGE_DOCUMENT, PAGE_FIND)
        if room:
            searcher |= np.int32(1) << SEARCH_QUESTION
            for k in range(t.q_names[question]):
                searcher |= np.int32(1) << (SEARCH_NAME + k)
        for k in range(s[N_ITEMS]):
            mention = s[ITEM_MENTION + k]
            if room and on_page and t.men_number[mention] == 0:
                searcher |= np.int32(1) << (SEARCH_ITEM + k)
            if room and s[ITEM_TARGET + k] >= 0:
                opener |= np.int32(1) << (OPEN + k)
            if on_page:
                finder |= np.int32(1) << (ANSWER + k)
        if room and on_page:
            if kind == PAGE_DOCUMENT:
                top = s[TOP]
                if s[LOC + top] + s[LINES + top] < s[PAGE_LINES]:
                    opener |= np.int32(1) << SCROLL_DOWN
                if s[LOC + top] > 0:
                    opener |= np.int32(1) << SCROLL_UP
            elif s[HITS] > 0:
                opener |= np.int32(1) << SCROLL_DOWN
            for k in range(t.q_patterns[question]):
                finder |= np.int32(1) << (FIND + k)
        if room and s[TOP] >= 0 and s[PARENT + s[TOP]] >= 0:
            opener |= np.int32(1) << BACK
    s[MASKS] = searcher
    s[MASKS + 1] = opener
    s[MASKS + 2] = finder


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
    s[QUESTION] = question
    s[TOP] = -1
    s[LAST_ROLE] = -1
    s[LAST_OUTCOME] = OUTCOME_NONE
    s[ANSWERED] = NO_ANSWER
    s[ANSWER_CURSOR] = -1
    s[ANSWER_LINE] = -1
    set_key(s, key)
    refresh(s, rows, t)


@kernel
def set_key(s, key):
    """Keep another random key."""
    s[KEY_LOW] = np.int32(np.int64(key & np.uint64(0xFFFFFFFF)) - np.int64(1 << 31))
    s[KEY_HIGH] = np.int32(np.int64(key >> np.uint64(32)) - np.int64(1 << 31))


@kernel
def push(s, rows, t, kind, ref, loc, lines, parent, context, row):
    """Put a page on the stack; there must be room."""
    passed = passed_bits(s, t, parent, context)
    top = s[TOP] + 1
    s[TOP] = top
    s[KIND + top] = kind
    s[REF + top] = ref
    s[LOC + top] = loc
    s[LINES + top] = lines
    s[PARENT + top] = parent
    s[CONTEXT + top] = context
    s[PASSED + top] = passed
    rows[top] = row
    s[TOP_CHANGED] = s[TURN]


@kernel
def open_document(s, rows, t, document, loc, lines, parent, context):
    """Put a document on the stack; returns the reward of a page of the evidence seen first."""
    push(s, rows, t, PAGE_DOCUMENT, document, loc, lines, parent, context, -1)
    question = s[QUESTION]
    reward = 0
    for k in range(MAX_HOPS):
        if t.q_evidence[question, k] == document and (s[EVIDENCE] >> k & 1) == 0:
            s[EVIDENCE] |= np.int32(1) << k
            reward += t.q_value[question, k]
    return reward


@kernel
def _page_below(s):
    """Cursor of the document in view (not of a find in it)."""
    top = s[TOP]
    return s[PARENT + top] if s[KIND + top] == PAGE_FIND else top


@kernel
def wanted(s, t, role, action):
    """What has to be looked up before an action can be taken.

    Returns:
        A name (>= 0), ``QUERY - k`` for a query of the question, or ``_NONE_WANTED``.
    """
    if role != SEARCHER or not SEARCH_QUESTION <= action < SEARCH_ITEM + ITEMS:
        return _NONE_WANTED
    if (s[MASKS] >> action & 1) == 0:
        return _NONE_WANTED
    if action < SEARCH_ITEM:
        k = action - SEARCH_QUESTION
        return QUERY - k if t.q_rows[s[QUESTION], k] < 0 else _NONE_WANTED
    name = s[ITEM_NAME + action - SEARCH_ITEM]
    return name if t.row_of_name[name] < 0 else _NONE_WANTED


@kernel
def act(s, rows, t, role, action):
    """One decision of a role; an illegal one (or role -1) does what `skip` does.

    Returns:
        The reward.
    """
    if s[DONE] != DONE_RUNNING:
        return 0
    legal = role >= 0 and 0 <= action < 31 and (s[MASKS + max(role, 0)] >> action & 1) == 1
    reward = 0
    s[LAST_ROLE] = role
    if role < 0:
        s[LAST_OUTCOME] = OUTCOME_SKIPPED
    elif not legal:
        s[LAST_ROLE] = -1
        s[LAST_OUTCOME] = OUTCOME_SKIPPED
    elif action == WAIT:
        s[LAST_OUTCOME] = OUTCOME_WAITED
    else:
        s[LAST_OUTCOME] = OUTCOME_ACTED
        if role == SEARCHER:
            _search(s, rows, t, action)
        elif role == OPENER:
            reward = _open(s, rows, t, action)
        else:
            reward = _find_or_answer(s, rows, t, action)
    finish_turn(s, rows, t, reward)
    return reward


@kernel
def finish_turn(s, rows, t, reward):
    """Count the turn and the reward, and look again."""
    s[TURN] += 1
    s[SCORE] += reward
    refresh(s, rows, t)


@kernel
def _search(s, rows, t, action):
    top = s[TOP]
    s[SEARCHES] += 1
    if action < SEARCH_ITEM:
        k = action - SEARCH_QUESTION
        row = t.q_rows[s[QUESTION], k]
        push(s, rows, t, PAGE_SEARCH, QUERY - k, 0, 0, top, -1, row)
        return
    item = action - SEARCH_ITEM
    name = s[ITEM_NAME + item]
    row = t.row_of_name[name]
    push(s, rows, t, PAGE_SEARCH, name, 0, 0, top, s[ITEM_MENTION + item], row)


@kernel
def _open(s, rows, t, action):
    top = s[TOP]
    if action < SCROLL_DOWN:
        s[OPENS] += 1
        item = action - OPEN
        document, mention = s[ITEM_TARGET + item], s[ITEM_MENTION + item]
        return open_document(s, rows, t, document, 0, WINDOW, top, mention)
    if action == BACK:
        return go_back(s, rows, t)
    if s[KIND + top] == PAGE_FIND:
        document = document_in_view(s)
        first, _ = first_hit(t, rows[top], document)
        line = t.pat_hits[first] - t.line_start[document]
        page = s[PARENT + top]
        return open_document(
            s, rows, t, document, line, WINDOW, s[PARENT + page], s[CONTEXT + page]
        )
    step = WINDOW if action == SCROLL_DOWN else -WINDOW
    loc = max(0, s[LOC + top] + step)
    return open_document(s, rows, t, s[REF + top], loc, WINDOW, s[PARENT + top], s[CONTEXT + top])


@kernel
def go_back(s, rows, t):
    """Put the page from which the one in view was opened on the stack once more."""
    page = s[PARENT + s[TOP]]
    parent = s[PARENT + page]
    if s[KIND + page] == PAGE_DOCUMENT:
        return open_document(
            s, rows, t, s[REF + page], s[LOC + page], s[LINES + page], parent, s[CONTEXT + page]
        )
    push(
        s,
        rows,
        t,
        s[KIND + page],
        s[REF + page],
        s[LOC + page],
        s[LINES + page],
        parent,
        s[CONTEXT + page],
        rows[page],
    )
    return 0


@kernel
def _find_or_answer(s, rows, t, action):
    if action < ANSWER:
        k = action - FIND
        s[FINDS] += 1
        below = _page_below(s)
        row = t.q_pattern_rows[s[QUESTION], k]
        push(s, rows, t, PAGE_FIND, k, 0, 0, below, -1, row)
        return 0
    item = action - ANSWER
    mention = s[ITEM_MENTION + item]
    name = s[ITEM_NAME + item]
    fold = t.name_fold[name]
    right = False
    for k in range(t.q_gold_start[s[QUESTION]], t.q_gold_start[s[QUESTION] + 1]):
        right = right or t.q_gold[k] == fold
    # The page is open and shows the name, so an answer from here is grounded.
    return give_answer(s, name, _page_below(s), t.men_line[mention], right, True)


@kernel
def give_answer(s, name, cursor, line, right, grounded):
    """End the episode with an answer; only a grounded one is rewarded."""
    s[ANSWERED] = name
    s[ANSWER_CURSOR] = cursor
    s[ANSWER_LINE] = line
    s[CORRECT] = 1 if right else 0
    s[DONE] = DONE_RIGHT if right and grounded else DONE_WRONG
    return ANSWER_REWARD if s[DONE] == DONE_RIGHT else 0


assert PATTERNS + FIND == ANSWER and NAMES + SEARCH_NAME == SEARCH_ITEM
assert OUTCOME_ILLEGAL != OUTCOME_SKIPPED and FINDER == 2
