"""The record of an episode: an int32 array that holds all of its state.

It begins with single numbers, then comes the page stack, then what is in view (a function of the
rest, kept so that it is worked out once a turn).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LAYOUT_VERSION: Final = 1

ROLES: Final = ("searcher", "opener", "finder")
SEARCHER, OPENER, FINDER = 0, 1, 2

#: Results of a search; items of a view; lines of a view; patterns and names of a question.
RESULTS: Final = 10
ITEMS: Final = 10
WINDOW: Final = 12
PATTERNS: Final = 8
NAMES: Final = 3
MAX_HOPS: Final = 4
#: A find shows at most so many hits of so many lines; the first ones of them are in view.
MAX_HITS: Final = 50
HIT_LINES: Final = 4
STACK: Final = 200
#: Texts that a free-form episode keeps at most: one for each page, and more for messages.
MAX_TEXTS: Final = 4 * STACK

# -- actions ---------------------------------------------------------------------------------
WAIT: Final = 0
SEARCH_QUESTION: Final = 1
SEARCH_NAME: Final = 2
SEARCH_ITEM: Final = SEARCH_NAME + NAMES
OPEN: Final = 1
SCROLL_DOWN: Final = OPEN + ITEMS
SCROLL_UP: Final = SCROLL_DOWN + 1
BACK: Final = SCROLL_UP + 1
FIND: Final = 1
ANSWER: Final = FIND + PATTERNS

ACTIONS: Final = (
    (
        "wait",
        "search_question",
        *(f"search_name_{k}" for k in range(NAMES)),
        *(f"search_item_{k}" for k in range(ITEMS)),
    ),
    ("wait", *(f"open_{k}" for k in range(ITEMS)), "scroll_down", "scroll_up", "back"),
    (
        "wait",
        *(f"find_{k}" for k in range(PATTERNS)),
        *(f"answer_{k}" for k in range(ITEMS)),
    ),
)
N_ACTIONS: Final = tuple(len(names) for names in ACTIONS)

# -- numbers ---------------------------------------------------------------------------------
QUESTION: Final = 0
DONE: Final = 1  # DONE_...
TURN: Final = 2
TOP: Final = 3  # cursor of the page on top of the stack, -1: none
KEY_LOW: Final = 4
KEY_HIGH: Final = 5
LAST_ROLE: Final = 6  # -1: nobody
LAST_OUTCOME: Final = 7  # OUTCOME_...
SEARCHES: Final = 8
OPENS: Final = 9  # openings of documents, scrolling left out
FINDS: Final = 10
EVIDENCE: Final = 11  # a bit for each page of the evidence that was opened
NEXT: Final = 12  # the pattern that comes next, see `rules.upcoming`
SCORE: Final = 13
ANSWERED: Final = 14  # name of the answer; FREE - k: text k; NO_ANSWER
ANSWER_CURSOR: Final = 15  # the page that the answer cites
ANSWER_LINE: Final = 16
CORRECT: Final = 17  # whether the answer matches exactly
MASKS: Final = 18  # one for each role: a bit for each action
TOP_CHANGED: Final = 21  # turn in which the page on top came there
LAST_ERROR: Final = 22  # 1 + the text that says why the last tool call failed, 0: it did not
N_SCALARS: Final = 24

# -- the page stack --------------------------------------------------------------------------
KIND: Final = N_SCALARS  # PAGE_...
REF: Final = KIND + STACK  # see below
LOC: Final = REF + STACK  # first line in view
LINES: Final = LOC + STACK  # number of lines in view
PARENT: Final = LINES + STACK  # cursor of the page from which it was opened, -1: none
CONTEXT: Final = PARENT + STACK  # mention from which it was searched or opened, -1: none
PASSED: Final = CONTEXT + STACK  # a bit for each pattern in the sentences that led there

# -- in view ---------------------------------------------------------------------------------
N_ITEMS: Final = PASSED + STACK
ITEM_NAME: Final = N_ITEMS + 1
ITEM_TARGET: Final = ITEM_NAME + ITEMS  # document, -1: none
ITEM_MENTION: Final = ITEM_TARGET + ITEMS  # -1: a result of a search
HITS: Final = ITEM_MENTION + ITEMS  # hits of the find in view
PAGE_LINES: Final = HITS + 1  # lines of the document in view
RECORD_INTS: Final = PAGE_LINES + 1

PAGE_NONE, PAGE_SEARCH, PAGE_DOCUMENT, PAGE_FIND = 0, 1, 2, 3
DONE_RUNNING, DONE_RIGHT, DONE_WRONG = 0, 1, 2
OUTCOME_NONE, OUTCOME_ACTED, OUTCOME_SKIPPED, OUTCOME_ILLEGAL, OUTCOME_WAITED, OUTCOME_ERROR = (
    0, 1, 2, 3, 4, 5,
)  # fmt: skip
NO_ANSWER: Final = -1

# References. A search: a name, QUERY - k for the question (k = 0) or its name k - 1, FREE - k for
# text k of the episode. A document: its index. A find: pattern k of the question, FREE - k.
QUERY: Final = -2
FREE: Final = -100

#: Reward of the page of evidence i: PAGE_REWARD * (i + 1); of the right answer.
PAGE_REWARD: Final = 4
ANSWER_REWARD: Final = 20


def new_records(count: int) -> NDArray[np.int32]:
    """Records of worlds: int32 ``(count, RECORD_INTS)``."""
    return np.zeros((count, RECORD_INTS), np.int32)
