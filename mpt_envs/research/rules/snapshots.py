"""Snapshots of an episode: the record as bytes, checked before it becomes a state again.

A payload is the digest of corpus and questions (16 bytes), the record, and in free-form games the
texts that agents wrote, as JSON. The index and the pages are no part of it: a snapshot can only be
restored over the same corpus and questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.rules.turn import passed_bits, refresh
from mpt_envs.research.views.calls import is_call
from mpt_envs.research.world import layout as at
from mpt_envs.research.world.questions import QuestionSet
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

_DIGEST: Final = 16
_HEAD: Final = _DIGEST + 4 * at.RECORD_INTS


class State(NamedTuple):
    """A checked state.

    Attributes:
        record: int32 (RECORD_INTS,).
        rows: int32 (STACK,): see `rules`.
        texts: what agents wrote.
        pending: per role a tool call that was written and not yet made, as JSON values, or None.
    """

    record: NDArray[np.int32]
    rows: NDArray[np.int32]
    texts: list[str]
    pending: list[Any]


def encode(
    task_id: str,
    questions: QuestionSet,
    record: NDArray[np.int32],
    texts: Sequence[str] | None = None,
    pending: Sequence[Any] = (None, None, None),
) -> Snapshot:
    """A snapshot of a state; ``texts`` is None where there can be none."""
    payload = questions.digest + record.tobytes()
    if texts is not None:
        payload += _dump(texts, pending)
    return Snapshot(task_id, at.LAYOUT_VERSION, payload, "exact").verify()


def _dump(texts: Sequence[str], pending: Sequence[Any]) -> bytes:
    return json.dumps([list(texts), list(pending)], separators=(",", ":")).encode()


def decode(snapshot: Any, task_id: str, questions: QuestionSet, free_form: bool) -> State:
    """The state of a snapshot.

    Raises:
        SnapshotError: it is none of this task, corpus and questions, or was changed.
    """
    if not isinstance(snapshot, Snapshot):
        raise SnapshotError(
            f"expected a Snapshot of {task_id!r}, got {type(snapshot).__name__}; pass what "
            "snapshot() returned"
        )
    _check_variant(snapshot.task_id, task_id)
    snapshot.check(task_id, at.LAYOUT_VERSION)
    payload = snapshot.payload
    if len(payload) < _HEAD or (not free_form and len(payload) != _HEAD):
        raise SnapshotError(
            f"this snapshot of {task_id!r} holds {len(payload)} bytes instead of {_HEAD}: it is "
            "truncated, was changed, or comes from a game with another free_form"
        )
    if payload[:_DIGEST] != questions.digest:
        raise SnapshotError(
            "this snapshot was taken over another corpus or other questions; restore it into an "
            "environment made with the same corpus= and questions="
        )
    record = np.frombuffer(payload, np.int32, at.RECORD_INTS, _DIGEST).copy()
    texts: list[str] = []
    pending: list[Any] = [None, None, None]
    if free_form:
        texts, pending = _load(payload[_HEAD:])
    if not snapshot.verified:
        _check(record, questions, texts)
    else:
        questions.ready(int(record[at.QUESTION]))
    rows = rows_of(record, questions, texts)
    if not snapshot.verified:
        _check_derived(record, rows, questions)
        snapshot.verify()
    return State(record, rows, texts, pending)


def _check_variant(taken: str, here: str) -> None:
    """Say which keywords differ: the variants of the task are all made under one id."""
    task, *variant = here.split(":")
    other, *others = taken.split(":")
    if task != other or variant == others:
        return
    differing = set(variant) ^ set(others)
    why, how = [], []
    if "custom" in differing:
        why.append("over another corpus")
        with_files = "with the same corpus= and questions="
        how.append(with_files if "custom" in others else "without corpus= and questions=")
    if "free" in differing:
        why.append("with another free_form")
        how.append(f"with free_form={'free' in others}")
    raise SnapshotError(
        f"this snapshot was taken {' and '.join(why)}; restore it into an environment made "
        f"{' and '.join(how)}"
    )


def _load(data: bytes) -> tuple[list[str], list[Any]]:
    try:
        texts, pending = json.loads(data)
        good = (
            isinstance(texts, list)
            and all(isinstance(text, str) and _encodable(text) for text in texts)
            and len(texts) <= at.MAX_TEXTS
            and isinstance(pending, list)
            and len(pending) == len(at.ROLES)
            and all(call is None or is_call(role, call) for role, call in enumerate(pending))
            and _dump(texts, pending) == data
        )
    except (ValueError, TypeError, RecursionError):
        good = False
    if not good:
        raise _damaged("its texts and calls")
    return texts, pending


def _encodable(text: str) -> bool:
    """Whether a text can be printed: `calls` lets no other through."""
    return text.encode("utf-8", "replace").decode("utf-8") == text


def _damaged(what: str) -> SnapshotError:
    return SnapshotError(f"this snapshot is no valid state ({what}): take it again")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise _damaged(what)


def _check(record: NDArray[np.int32], questions: QuestionSet, texts: list[str]) -> None:
    """Raise unless every number may stand where it stands."""
    s: list[int] = record.tolist()
    _require(0 <= s[at.QUESTION] < len(questions), "its question")
    found = questions.ready(s[at.QUESTION])
    arrays = questions.shelf.arrays
    names, documents = len(questions.shelf.names), len(questions.shelf.corpus)
    mentions = len(arrays["men_name"])
    top = s[at.TOP]
    _require(-1 <= top < at.STACK and 0 <= s[at.DONE] <= 2 and s[at.TURN] >= 0, "its counters")
    _require(-1 <= s[at.LAST_ROLE] <= 2 and 0 <= s[at.LAST_OUTCOME] <= 5, "its last turn")
    _require(min(s[at.SEARCHES], s[at.OPENS], s[at.FINDS], s[at.TOP_CHANGED]) >= 0, "its counters")
    _require(s[at.TOP_CHANGED] <= s[at.TURN] and s[at.CORRECT] in (0, 1), "its counters")
    _require(0 <= s[at.LAST_ERROR] <= len(texts) and s[at.N_SCALARS - 1] == 0, "its last error")
    texts_at = range(at.FREE, at.FREE - len(texts), -1)
    evidence = 0
    wanted = arrays_of(questions, "q_evidence", s[at.QUESTION])
    for page in range(top + 1):
        kind, ref, parent = s[at.KIND + page], s[at.REF + page], s[at.PARENT + page]
        _require(-1 <= parent < page, f"page {page}")
        _require(-1 <= s[at.CONTEXT + page] < mentions, f"page {page}")
        _require(s[at.LOC + page] >= 0 and 0 <= s[at.LINES + page] <= 1_000_000, f"page {page}")
        if kind == at.PAGE_SEARCH:
            own = at.QUERY - len(found.names) <= ref <= at.QUERY
            _require(0 <= ref < names or own or ref in texts_at, f"page {page}")
        elif kind == at.PAGE_DOCUMENT:
            _require(0 <= ref < documents, f"page {page}")
            lines = arrays["line_start"][ref : ref + 2].tolist()
            _require(s[at.LOC + page] <= max(0, lines[1] - lines[0]), f"page {page}")
            evidence |= sum(1 << k for k in range(at.MAX_HOPS) if wanted[k] == ref)
        elif kind == at.PAGE_FIND:
            _require(parent >= 0 and s[at.KIND + parent] == at.PAGE_DOCUMENT, f"page {page}")
            _require(0 <= ref < len(found.patterns) or ref in texts_at, f"page {page}")
        else:
            raise _damaged(f"page {page}")
        passed = passed_bits(record, questions.tables, parent, s[at.CONTEXT + page])
        _require(s[at.PASSED + page] == passed, f"page {page}")
    _require(evidence == s[at.EVIDENCE], "what was seen")
    for field in (at.KIND, at.REF, at.LOC, at.LINES, at.PARENT, at.CONTEXT, at.PASSED):
        _require(not any(s[field + top + 1 : field + at.STACK]), "pages that are not there")
    answered = s[at.ANSWERED]
    _require(
        answered == at.NO_ANSWER or 0 <= answered < names or answered in texts_at, "its answer"
    )
    _require((answered == at.NO_ANSWER) == (s[at.DONE] == 0), "its answer")
    _require(-1 <= s[at.ANSWER_CURSOR] <= top and s[at.ANSWER_LINE] >= -1, "its citation")
    _require(0 <= s[at.SCORE] <= 1000, "its score")


def arrays_of(questions: QuestionSet, name: str, index: int) -> list[int]:
    """One row of an array of the questions."""
    row: list[int] = questions.arrays[name][index].tolist()
    return row


def rows_of(
    record: NDArray[np.int32], questions: QuestionSet, texts: Sequence[str]
) -> NDArray[np.int32]:
    """What the pages of the stack stand for in this process."""
    rows = np.full(at.STACK, -1, np.int32)
    library, question = questions.shelf, int(record[at.QUESTION])
    top = int(record[at.TOP])
    kinds = record[at.KIND : at.KIND + top + 1].tolist()
    refs = record[at.REF : at.REF + top + 1].tolist()
    for page, (kind, ref) in enumerate(zip(kinds, refs, strict=True)):
        if kind == at.PAGE_SEARCH:
            if ref >= 0:
                row = int(library.arrays["row_of_name"][ref])
                if row < 0:
                    library.name_rows(np.array([ref], np.int64))
                    row = int(library.arrays["row_of_name"][ref])
                rows[page] = row
            elif ref > at.FREE:
                rows[page] = questions.query_row(question, at.QUERY - ref)
            else:
                rows[page] = library.query_row(texts[at.FREE - ref])
        elif kind == at.PAGE_FIND:
            if ref >= 0:
                rows[page] = questions.arrays["q_pattern_rows"][question, ref]
            else:
                rows[page] = library.pattern_row(texts[at.FREE - ref])
    return rows


def _check_derived(
    record: NDArray[np.int32], rows: NDArray[np.int32], questions: QuestionSet
) -> None:
    """Raise unless what is worked out from the rest is what is stored."""
    again = record.copy()
    refresh(again, rows, questions.tables)
    _require(np.array_equal(again, record), "what is in view")
