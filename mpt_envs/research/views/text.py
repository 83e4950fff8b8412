"""The episode as text for language models and people.

`profile` is what an agent is told once, `prompt` what it reads in each turn: the question, what was
done so far, the page in view as the browser shows it, and what it can do now.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.research.data.pages import one_line
from mpt_envs.research.rules.metrics import answer_text
from mpt_envs.research.views.browser import Desk, heading, pattern_of, query_of, show
from mpt_envs.research.world import layout as at
from wrappers.task import Phase

_LOG: Final = 8  # pages of the log that are shown

_PART: Final = (
    (
        "You search: you alone can ask the search engine for pages. You cannot open pages, look "
        "through them or answer."
    ),
    (
        "You open: you alone can open results and links, scroll, and go back. You cannot search, "
        "look for words or answer."
    ),
    (
        "You find and answer: you alone can look for words on the open page and give the answer, "
        "which ends the episode. You cannot search or open pages."
    ),
)
_TOOL_HELP: Final = (
    'search(query: text, topn: number = 10), e.g. search("Ada Velmar")',
    (
        "open(id: number or address = -1, cursor: number = -1, loc: number = -1, num_lines: number "
        "= -1): follow link id of the page at cursor (-1: the page in view), or without an id show "
        "it from line loc, e.g. open(id=3) or open(loc=40)"
    ),
    (
        "find(pattern: text, cursor: number = -1): lines with the pattern, e.g. "
        'find("teacher"); answer(answer: text), with citations of lines, e.g. '
        'answer("1832 【3†L4-L5】")'
    ),
)
_GOAL: Final = (
    "The answer stands on a page that other pages lead to: the question names a start, each page "
    "names the next thing. Names are shared and second names are used, some sentences say what "
    "is not true, and facts may stand further down a page. The team is rewarded for every page "
    "that is needed, when it is first opened, and most for the right answer; a wrong answer ends "
    "the episode, too."
)


def profile(role: int, free_form: bool) -> str:
    """The system message of an agent: its role, the goal, its actions.

    Args:
        role: index into ``layout.ROLES``.
        free_form: whether it may write any tool call.
    """
    part = (
        f"You are the {at.ROLES[role]} of a team (searcher, opener, finder) that shares one "
        f"browser and answers a question from a corpus of pages. In each turn one agent acts. "
        f"{_PART[role]}"
    )
    how = "Answer with the name or number of one of the actions that are listed each turn."
    if free_form:
        how = f"Write one tool call: {_TOOL_HELP[role]}. You may also answer with an action."
    return "\n".join([part, _GOAL, how])


def prompt(desk: Desk, role: int, phase: Phase, free_form: bool) -> str:
    """What an agent reads in one turn.

    Args:
        desk: the episode.
        role: index into ``layout.ROLES``.
        phase: in "bid" the actions are called what the agent could do if it won.
        free_form: as for `profile`.
    """
    record = desk.record
    lines = [
        f"Question: {question_of(desk)}",
        f"Turn {int(record[at.TURN]) + 1}.{_over(desk)}",
        "Pages so far:",
        *(log_lines(desk) or ["  none"]),
    ]
    error = error_of(desk)
    if error:
        lines.append(f"Error: {error}")
    lines += ["", show(desk, whole=free_form), ""]
    lines.append("Legal actions:" if phase == "act" else "If you win this turn you can:")
    mask = int(record[at.MASKS + role])
    for index, name in enumerate(at.ACTIONS[role]):
        if mask >> index & 1:
            lines.append(f"{index}. {name}: {describe(desk, role, index)}")
    if free_form and record[at.DONE] == at.DONE_RUNNING:
        lines.append(f"Or a tool call: {_TOOL_HELP[role]}")
    return "\n".join(lines)


def question_of(desk: Desk) -> str:
    """The question on one line."""
    text = desk.questions.questions[int(desk.record[at.QUESTION])].question
    return one_line(text)


def _over(desk: Desk) -> str:
    if desk.record[at.DONE] == at.DONE_RUNNING:
        return ""
    how = "rightly" if desk.record[at.DONE] == at.DONE_RIGHT else "wrongly"
    if desk.record[at.DONE] != at.DONE_RIGHT and desk.record[at.CORRECT]:
        how = "rightly, but without having opened a page that says so"
    return f" The episode is over: answered {how}."


def error_of(desk: Desk) -> str:
    """Why the last tool call failed, "" if it did not."""
    number = int(desk.record[at.LAST_ERROR])
    return desk.texts[number - 1] if number else ""


def log_lines(desk: Desk, count: int = _LOG) -> list[str]:
    """The last pages of the stack, a line each."""
    top = int(desk.record[at.TOP])
    first = max(0, top + 1 - count)
    lines = [f"  ... {first} earlier"] if first else []
    return lines + [f"  [{cursor}] {event(desk, cursor)}" for cursor in range(first, top + 1)]


def event(desk: Desk, cursor: int) -> str:
    """What brought a page onto the stack, in words."""
    record, library = desk.record, desk.questions.shelf
    kind, ref = int(record[at.KIND + cursor]), int(record[at.REF + cursor])
    if kind == at.PAGE_SEARCH:
        found = int((library.arrays["results"][int(desk.rows[cursor])] >= 0).sum())
        query = one_line(query_of(desk, cursor))[:120]
        return f'searched "{query}": {found} result{"" if found == 1 else "s"}'
    if kind == at.PAGE_DOCUMENT:
        loc = int(record[at.LOC + cursor])
        where = f" from line {loc}" if loc else ""
        return f"opened {library.corpus.documents[ref].title}{where}"
    document = int(record[at.REF + int(record[at.PARENT + cursor])])
    pattern = one_line(pattern_of(desk, cursor))[:80]
    hits = len(library.hit_lines(document, pattern_of(desk, cursor)))
    title = library.corpus.documents[document].title
    return f'looked for "{pattern}" in {title}: {hits} match{"" if hits == 1 else "es"}'


def describe(desk: Desk, role: int, action: int) -> str:
    """What a listed action would do now, in words."""
    record, library = desk.record, desk.questions.shelf
    question = desk.questions.ready(int(record[at.QUESTION]))
    if action == 0:
        return "leave the turn to nobody"
    if role == at.SEARCHER:
        if action == at.SEARCH_QUESTION:
            return "search for the whole question"
        if action < at.SEARCH_ITEM:
            return f'search for "{question.names[action - at.SEARCH_NAME]}"'
        return f'search for "{_item(desk, action - at.SEARCH_ITEM)}"'
    if role == at.OPENER:
        if action == at.SCROLL_DOWN:
            return "go on reading" if not record[at.HITS] else "read on from the first match"
        if action == at.SCROLL_UP:
            return "read what stands before"
        if action == at.BACK:
            return f"back to {heading(desk, int(record[at.PARENT + int(record[at.TOP])]))[0]}"
        target = int(record[at.ITEM_TARGET + action - at.OPEN])
        title = library.corpus.documents[target].title
        mention = int(record[at.ITEM_MENTION + action - at.OPEN])
        link = action - at.OPEN if mention < 0 else int(library.arrays["men_link"][mention])
        return (
            f"open link {link}, {title}"
            if mention < 0
            else (f"open link {link}, {_item(desk, action - at.OPEN)}")
        )
    if action < at.ANSWER:
        return f'look for "{question.patterns[action - at.FIND]}" on this page'
    return f'answer "{_item(desk, action - at.ANSWER)}"'


def _item(desk: Desk, item: int) -> str:
    return desk.questions.shelf.names[int(desk.record[at.ITEM_NAME + item])]


def narrate(desk: Desk) -> list[str]:
    """What the last turn did, in a few words each."""
    record = desk.record
    if record[at.TURN] == 0:
        return []
    outcome = int(record[at.LAST_OUTCOME])
    if outcome == at.OUTCOME_SKIPPED:
        return ["nothing happened"]
    if outcome == at.OUTCOME_WAITED:
        return [f"the {at.ROLES[int(record[at.LAST_ROLE])]} waited"]
    if outcome == at.OUTCOME_ERROR:
        return [f"a call failed: {error_of(desk)}"]
    if record[at.ANSWERED] != at.NO_ANSWER and record[at.DONE] != at.DONE_RUNNING:
        answer = answer_text(record, desk.questions, desk.texts)
        right = "right" if record[at.DONE] == at.DONE_RIGHT else "wrong"
        return [f'answered "{answer}": {right}']
    if record[at.TOP] >= 0 and record[at.TOP_CHANGED] == record[at.TURN] - 1:
        return [event(desk, int(record[at.TOP]))]
    return []


assert at.FINDER == 2 and at.LINES > at.LOC and np.int32(0) == 0
