"""The browser in words: pages as OpenResearcher's tools show them, and free tool calls.

A page is shown with its cursor (its place on the page stack), title and address, the lines in view
and how many there are, then the lines, numbered. Links are ``【id†text†domain】``, citations
``【cursor†L9-L11】``. A failed call changes nothing but the turn, and says why in words.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.data.corpus import SNIPPET
from mpt_envs.research.data.library import Library
from mpt_envs.research.data.pages import WIDTH, domain, fold, one_line
from mpt_envs.research.rules.scoring import accepts, answer_keys, normalize_answer, stands_in
from mpt_envs.research.rules.turn import finish_turn, give_answer, open_document, push
from mpt_envs.research.world import layout as at
from mpt_envs.research.world.layout import HITS, ITEM_MENTION, N_ITEMS
from mpt_envs.research.world.questions import QuestionSet

#: Lines that a free-form open shows unless told otherwise, and at most.
FREE_WINDOW: Final = 40
MAX_WINDOW: Final = 200
MAX_QUERY: Final = 2000
_CITATION: Final = re.compile(r"【(\d{1,4})†L(\d{1,7})(?:-L?(\d{1,7}))?】")
_ENDS: Final = r"""[)>\]}.,;:!?"'`*]*(?!\S)"""  # what stands behind an address in a text

Call = dict[str, Any]


class Desk(NamedTuple):
    """An episode as the browser works on it.

    Attributes:
        record, rows, texts: see `state.State`; all are changed in place.
        questions: the questions, with the library.
    """

    record: NDArray[np.int32]
    rows: NDArray[np.int32]
    texts: list[str]
    questions: QuestionSet


class _CallError(Exception):
    """A tool call that cannot be made; its message is for the agent."""


# -- showing ---------------------------------------------------------------------------------


def query_of(desk: Desk, cursor: int) -> str:
    """What was searched for on a page of results."""
    ref = int(desk.record[at.REF + cursor])
    if ref >= 0:
        return desk.questions.shelf.names[ref]
    if ref > at.FREE:
        return desk.questions.query_text(int(desk.record[at.QUESTION]), at.QUERY - ref)
    return desk.texts[at.FREE - ref]


def pattern_of(desk: Desk, cursor: int) -> str:
    """What was looked for on a page of a find."""
    ref = int(desk.record[at.REF + cursor])
    if ref >= 0:
        return desk.questions.ready(int(desk.record[at.QUESTION])).patterns[ref]
    return desk.texts[at.FREE - ref]


def _document_of(desk: Desk, cursor: int) -> int:
    """The document of a page that is one, or of the page in which a find looked."""
    if desk.record[at.KIND + cursor] == at.PAGE_FIND:
        cursor = int(desk.record[at.PARENT + cursor])
    return int(desk.record[at.REF + cursor])


def heading(desk: Desk, cursor: int) -> tuple[str, str]:
    """Title and address of a page of the stack."""
    kind = desk.record[at.KIND + cursor]
    if kind == at.PAGE_SEARCH:
        query = query_of(desk, cursor)
        short = _short(query)
        return f"Search results for: {short}", f"search://?q={quote(short)}"
    document = desk.questions.shelf.corpus.documents[_document_of(desk, cursor)]
    if kind == at.PAGE_DOCUMENT:
        return document.title, document.url
    pattern = _short(pattern_of(desk, cursor))
    return (
        f"Find results for `{pattern}` in {document.title}",
        f"{document.url}/find?pattern={quote(pattern)}",
    )


def _short(text: str) -> str:
    return one_line(text)[:200]


def page_lines(desk: Desk, cursor: int) -> list[str]:
    """All lines of a page of the stack."""
    kind = desk.record[at.KIND + cursor]
    library = desk.questions.shelf
    if kind == at.PAGE_DOCUMENT:
        return library.lines(int(desk.record[at.REF + cursor]))
    if kind == at.PAGE_SEARCH:
        return _result_lines(desk, cursor)
    document = _document_of(desk, cursor)
    pattern = pattern_of(desk, cursor)
    hits = library.hit_lines(document, pattern)[: at.MAX_HITS]
    if not hits:
        return [f"No `find` results for pattern: `{_short(pattern)}`"]
    text = library.lines(document)
    lines: list[str] = []
    for number, hit in enumerate(hits):
        lines += [f"# 【{number}†match at L{hit}】", *text[hit : hit + at.HIT_LINES], ""]
    return lines[:-1]


def _result_lines(desk: Desk, cursor: int) -> list[str]:
    library = desk.questions.shelf
    found = _found(desk, cursor)
    if not found:
        return [f"No results for: {_short(query_of(desk, cursor))}"]
    lines = ["# Search Results", ""]
    for number, index in enumerate(found):
        document = library.corpus.documents[index]
        lines.append(f"  * 【{number}†{document.title}†{domain(document.url)}】")
        lines += textwrap.wrap(library.snippet(index)[:SNIPPET], WIDTH) or [""]
    return lines


def _topn(desk: Desk, cursor: int) -> int:
    """How many results are shown: a free call may ask for fewer than there are."""
    lines = int(desk.record[at.LINES + cursor])
    return lines if lines > 0 else at.RESULTS


def show(desk: Desk, cursor: int | None = None, *, whole: bool = False) -> str:
    """A page of the stack in words.

    Args:
        desk: the episode.
        cursor: of the page; None: the one on top.
        whole: show all hits of a find, not only those that count as in view.
    """
    if cursor is None:
        cursor = int(desk.record[at.TOP])
    if cursor < 0:
        return "No page is open yet. Search first."
    title, url = heading(desk, cursor)
    lines = page_lines(desk, cursor)
    kind = desk.record[at.KIND + cursor]
    first, last = 0, len(lines)
    if kind == at.PAGE_DOCUMENT:
        first = int(desk.record[at.LOC + cursor])
        last = min(last, first + int(desk.record[at.LINES + cursor]))
    elif kind == at.PAGE_FIND and not whole:
        last = min(last, at.WINDOW // at.HIT_LINES * (at.HIT_LINES + 2) - 1)
    shown = [f"L{number}: {lines[number]}" for number in range(first, last)]
    return "\n".join(
        [
            f"[{cursor}] {title} ({url})",
            f"**viewing lines [{first} - {max(first, last - 1)}] of {max(0, len(lines) - 1)}**",
            "",
            *(shown or ["L0: (this page is empty)"]),
        ]
    )


# -- calling ---------------------------------------------------------------------------------


def execute(desk: Desk, role: int, call: Call) -> int:
    """Make a free tool call for a role and end the turn; returns the reward.

    Args:
        desk: the episode; it must not be over.
        role: index into ``layout.ROLES``.
        call: ``{"tool": ..., arguments}`` as `calls.read_call` gives it.
    """
    record = desk.record
    record[at.LAST_ROLE] = role
    record[at.LAST_ERROR] = 0
    reward = 0
    try:
        reward = _TOOLS[call["tool"]](desk, call)
        record[at.LAST_OUTCOME] = at.OUTCOME_ACTED
    except _CallError as error:
        fail(desk, role, str(error))
    finish_turn(record, desk.rows, desk.questions.tables, reward)
    return reward


def fail(desk: Desk, role: int, message: str) -> None:
    """Note why a call failed, for whoever acts next to read."""
    desk.record[at.LAST_ROLE] = role
    desk.record[at.LAST_OUTCOME] = at.OUTCOME_ERROR
    desk.record[at.LAST_ERROR] = 1 + _keep(desk, message)


def _room(desk: Desk) -> None:
    if int(desk.record[at.TOP]) + 1 >= at.STACK:
        raise _CallError("The page stack is full: answer now.")


def _keep(desk: Desk, text: str) -> int:
    """Keep a text of the episode; returns its place.

    The same text is kept once. Where all places are taken, it takes that of a text that nothing
    refers to any more, such as the message of an earlier turn. There are more places than pages, so
    there always is one: no query, message or answer is turned away for want of room.
    """
    texts = desk.texts
    if text in texts:
        return texts.index(text)
    if len(texts) < at.MAX_TEXTS:
        texts.append(text)
        return len(texts) - 1
    needed = {
        at.FREE - int(ref) for ref in desk.record[at.REF : at.REF + int(desk.record[at.TOP]) + 1]
    }
    place = next(place for place in reversed(range(len(texts))) if place not in needed)
    texts[place] = text
    return place


def _cursor(desk: Desk, call: Call) -> int:
    """The cursor of a call; -1 means the page on top."""
    top = int(desk.record[at.TOP])
    cursor = int(call.get("cursor", -1))
    if top < 0:
        raise _CallError("No page is open yet: search first.")
    if cursor == -1:
        return top
    if not 0 <= cursor <= top:
        raise _CallError(f"There is no page with cursor {cursor}: cursors go from 0 to {top}.")
    return cursor


def _search(desk: Desk, call: Call) -> int:
    _room(desk)
    query = call["query"][:MAX_QUERY]
    topn = max(1, min(at.RESULTS, int(call.get("topn", at.RESULTS))))
    desk.record[at.SEARCHES] += 1
    ref = at.FREE - _keep(desk, query)
    row = desk.questions.shelf.query_row(query)
    top = int(desk.record[at.TOP])
    push(desk.record, desk.rows, desk.questions.tables, at.PAGE_SEARCH, ref, 0, topn, top, -1, row)
    return 0


def _open(desk: Desk, call: Call) -> int:
    _room(desk)
    target, loc = call.get("id", -1), int(call.get("loc", -1))
    lines = int(call.get("num_lines", -1))
    lines = FREE_WINDOW if lines <= 0 else min(lines, MAX_WINDOW)
    record = desk.record
    if isinstance(target, str):
        document = _addressed(desk, one_line(target))
        return _open_at(desk, document, loc, lines, int(record[at.TOP]))
    cursor = _cursor(desk, call)
    kind = int(record[at.KIND + cursor])
    if target < 0:
        if kind == at.PAGE_SEARCH:
            raise _CallError("A list of results is shown as a whole: open a result by its id.")
        parent = cursor if kind == at.PAGE_DOCUMENT else int(record[at.PARENT + cursor])
        page = int(record[at.REF + parent])
        return _open_at(desk, page, loc, lines, int(record[at.PARENT + parent]))
    document, line = _follow(desk, cursor, int(target))
    return _open_at(desk, document, line if loc < 0 else loc, lines, cursor)


def _addressed(desk: Desk, url: str) -> int:
    """The document at an address that a page of this episode shows.

    A guessed address opens nothing, as it would make the Searcher superfluous; nor is it told
    whether there is such a page.
    """
    record, library = desk.record, desk.questions.shelf
    document = library.corpus.by_url.get(url, -1)
    for page in range(int(record[at.TOP]) + 1):
        if record[at.KIND + page] == at.PAGE_SEARCH:
            shown = document >= 0 and document in _found(desk, page)
        else:
            here = _document_of(desk, page)
            shown = document == here or url in library.urls(here)
            shown = shown or (document >= 0 and _written(library, here, url))
        if shown and document < 0:
            raise _CallError(f"{_short(url)!r} leads out of the corpus.")
        if shown:
            return document
    raise _CallError(
        f"No page so far shows the address {_short(url)!r}: open a result or a link by its id."
    )


def _written(library: Library, document: int, url: str) -> bool:
    """Whether an address stands in the text of a page, not as a link."""
    text = library.corpus.documents[document].text
    return url in text and re.search(rf"(?<!\w){re.escape(url)}{_ENDS}", text) is not None


def _found(desk: Desk, cursor: int) -> list[int]:
    """The documents on a list of results."""
    found = desk.questions.shelf.arrays["results"][int(desk.rows[cursor])]
    return found[found >= 0][: _topn(desk, cursor)].tolist()


def _follow(desk: Desk, cursor: int, number: int) -> tuple[int, int]:
    """The document that link ``number`` of a page leads to, and the line to begin with."""
    record, library = desk.record, desk.questions.shelf
    kind = int(record[at.KIND + cursor])
    if kind == at.PAGE_SEARCH:
        found = _found(desk, cursor)
        if number >= len(found):
            raise _CallError(f"Page {cursor} has no link {number}.")
        return found[number], 0
    document = _document_of(desk, cursor)
    if kind == at.PAGE_FIND:
        hits = library.hit_lines(document, pattern_of(desk, cursor))[: at.MAX_HITS]
        if number >= len(hits):
            raise _CallError(f"Page {cursor} has no match {number}.")
        return document, hits[number]
    urls = library.urls(document)
    if number >= len(urls):
        raise _CallError(f"Page {cursor} has no link {number}.")
    target = library.corpus.by_url.get(urls[number], -1)
    if target < 0:
        raise _CallError(f"Link {number} leads out of the corpus, to {_short(urls[number])}.")
    return target, 0


def _open_at(desk: Desk, document: int, loc: int, lines: int, parent: int) -> int:
    first, end = desk.questions.shelf.arrays["line_start"][document : document + 2].tolist()
    if loc >= max(1, end - first):
        raise _CallError(
            f"Line {loc} is beyond the end of the page, whose last line is "
            f"{max(0, end - first - 1)}."
        )
    desk.record[at.OPENS] += 1
    tables = desk.questions.tables
    return int(
        open_document(desk.record, desk.rows, tables, document, max(0, loc), lines, parent, -1)
    )


def _find(desk: Desk, call: Call) -> int:
    _room(desk)
    cursor = _cursor(desk, call)
    record, library = desk.record, desk.questions.shelf
    if record[at.KIND + cursor] == at.PAGE_FIND and int(call.get("cursor", -1)) == -1:
        cursor = int(record[at.PARENT + cursor])
    if record[at.KIND + cursor] != at.PAGE_DOCUMENT:
        raise _CallError("`find` works on a document, not on a list of results: open one first.")
    pattern = call["pattern"][:MAX_QUERY]
    record[at.FINDS] += 1
    known = desk.questions.ready(int(record[at.QUESTION])).patterns
    if pattern.lower() in known:
        ref = known.index(pattern.lower())
        row = int(desk.questions.arrays["q_pattern_rows"][record[at.QUESTION], ref])
    else:
        ref, row = at.FREE - _keep(desk, pattern), library.pattern_row(pattern)
    push(record, desk.rows, desk.questions.tables, at.PAGE_FIND, ref, 0, 0, cursor, -1, row)
    return 0


def _answer(desk: Desk, call: Call) -> int:
    record = desk.record
    cited = _CITATION.search(call["answer"] + " " + str(call.get("citations", "")))
    answer = one_line(_CITATION.sub(" ", call["answer"]))[:MAX_QUERY]
    if not answer:
        raise _CallError("The answer is empty.")
    cursor, line = -1, -1
    if cited is not None and int(cited[1]) <= int(record[at.TOP]):
        cursor, line = int(cited[1]), int(cited[2])
        if record[at.KIND + cursor] == at.PAGE_FIND:
            cursor = int(record[at.PARENT + cursor])
    question = desk.questions.questions[int(record[at.QUESTION])]
    right = accepts(answer, question.answers)
    ref = at.FREE - _keep(desk, answer)
    return int(give_answer(record, ref, cursor, line, right, right and grounded(desk, answer)))


def grounded(desk: Desk, answer: str) -> bool:
    """Whether an answer stands on a page that was opened; yes and no need not."""
    if normalize_answer(answer) in ("yes", "no"):
        return True
    record, library, wanted = desk.record, desk.questions.shelf, answer_keys(answer)
    opened = {
        int(record[at.REF + page])
        for page in range(int(record[at.TOP]) + 1)
        if record[at.KIND + page] == at.PAGE_DOCUMENT
    }
    for document in opened:
        first, last = library.arrays["men_start"][document : document + 2].tolist()
        names = library.arrays["men_name"][first:last].tolist()
        if any(not wanted.isdisjoint(answer_keys(library.names[name])) for name in set(names)):
            return True
        if stands_in(answer, library.corpus.documents[document].text):
            return True
    return False


_TOOLS: Final[dict[str, Callable[[Desk, Call], int]]] = {
    "search": _search,
    "open": _open,
    "find": _find,
    "answer": _answer,
}

__all__ = ["HITS", "ITEM_MENTION", "N_ITEMS", "Call", "Desk", "execute", "fold", "show"]
