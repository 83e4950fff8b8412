"""The scripted expert: it knows the evidence and goes the shortest way that it sees.

Unlike the agents it knows which pages make the chain and where on them the facts stand; it uses the
same actions as they do. Its decision depends only on the page in view and the question, so that it
finds back from wherever others have led the team. It serves cold starts and as the upper reference.
"""

from __future__ import annotations

from typing import Final

from mpt_envs.research.kernel import kernel
from mpt_envs.research.rules.turn import document_in_view, top_kind
from mpt_envs.research.world import layout as at

#: Bids of the role that should act and of the others.
BID_ACT: Final = 0.9
BID_IDLE: Final = 0.1


@kernel
def decide(s, t):
    """The role that should act, and its action; ``(FINDER, WAIT)`` if nothing can be done."""
    if s[at.DONE] != at.DONE_RUNNING:
        return at.FINDER, at.WAIT
    question = s[at.QUESTION]
    hops = t.q_hops[question]
    kind = top_kind(s)
    if kind == at.PAGE_SEARCH:
        # Of the evidence in the list, what is furthest along the chain.
        for hop in range(hops - 1, -1, -1):
            for k in range(s[at.N_ITEMS]):
                if s[at.ITEM_TARGET + k] == t.q_evidence[question, hop] and _legal(
                    s, at.OPENER, at.OPEN + k
                ):
                    return at.OPENER, at.OPEN + k
    document = document_in_view(s)
    hop = -1
    for k in range(hops):
        if t.q_evidence[question, k] == document:
            hop = k
    if document >= 0 and hop >= 0 and t.q_target[question, hop] >= 0:
        role, action = _at_evidence(s, t, question, hop, kind)
        if action != at.WAIT:
            return role, action
    if _legal(s, at.OPENER, at.BACK):
        return at.OPENER, at.BACK
    start = at.SEARCH_NAME + t.q_start[question]
    if t.q_start[question] >= 0 and _legal(s, at.SEARCHER, start):
        return at.SEARCHER, start
    return at.FINDER, at.WAIT


@kernel
def _at_evidence(s, t, question, hop, kind):
    """What to do on the page of a hop."""
    target = t.q_target[question, hop]
    last = hop == t.q_hops[question] - 1
    for k in range(s[at.N_ITEMS]):
        mention = s[at.ITEM_MENTION + k]
        if s[at.ITEM_NAME + k] != t.men_name[target] or mention < 0:
            continue
        if last:
            return at.FINDER, at.ANSWER + k
        if s[at.ITEM_TARGET + k] == t.q_evidence[question, hop + 1]:
            return at.OPENER, at.OPEN + k
        if t.men_sent[mention] == t.men_sent[target] and _legal(s, at.SEARCHER, at.SEARCH_ITEM + k):
            return at.SEARCHER, at.SEARCH_ITEM + k
    slot = t.q_slot[question, hop]
    tried = kind == at.PAGE_FIND and s[at.REF + s[at.TOP]] == slot
    if slot >= 0 and not tried and _legal(s, at.FINDER, at.FIND + slot):
        return at.FINDER, at.FIND + slot
    # Scrolling goes the way of the fact.
    if (
        kind != at.PAGE_FIND
        and s[at.N_ITEMS] > 0
        and _legal(s, at.OPENER, at.SCROLL_UP)
        and (t.men_line[target] < t.men_line[s[at.ITEM_MENTION]])
    ):
        return at.OPENER, at.SCROLL_UP
    if _legal(s, at.OPENER, at.SCROLL_DOWN):
        return at.OPENER, at.SCROLL_DOWN
    return at.FINDER, at.WAIT


@kernel
def _legal(s, role, action):
    return (s[at.MASKS + role] >> action & 1) == 1


@kernel
def expert(s, t, bids, actions):
    """Write the bid and the decision of each role.

    Args:
        s: the record.
        t: the tables.
        bids: float64 (3,).
        actions: int64 (3,).
    """
    for role in range(3):
        bids[role] = BID_IDLE
        actions[role] = at.WAIT
    role, action = decide(s, t)
    if action != at.WAIT:
        bids[role] = BID_ACT
        actions[role] = action
