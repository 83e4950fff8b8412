"""Reads which tool call, or which listed action, an answer in words means.

Understood, besides everything that `mpt_envs.answers` takes (names and numbers of actions):

* ``search("Ada Velmar")``, ``search(query="Ada Velmar", topn=5)``, ``find('teacher')``,
  ``browser.open(id=3, cursor=1)``, ``answer("1832 【3†L4-L5】")``;
* ``{"tool": "search", "query": "Ada Velmar"}``, ``{"name": "browser.open", "arguments":
  {"id": 3}}``, ``{"action": "answer", "answer": "1832"}``.

Text is parsed as literals and never evaluated. What cannot be read is a `ParseError`; beside the
kinds of `mpt_envs.answers` these are ``"bad_call"``, ``"missing_argument"``, ``"bad_argument"``,
``"unknown_argument"`` and ``"not_listed"`` (a fine call, but none of the listed actions, where only
these may be taken). Two calls, and a call that names two tools or gives an argument two values, are
``"ambiguous"``.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.answers import MAX_LENGTH, read_action, without_fence
from mpt_envs.research.data.pages import fold
from mpt_envs.research.rules.scoring import answer_keys
from mpt_envs.research.rules.turn import top_kind
from mpt_envs.research.views.browser import Call, Desk, query_of
from mpt_envs.research.world import layout as at
from wrappers.answer_json import Fields, read_json
from wrappers.task import ParseError

#: Role of each tool, and its arguments: (name, type, whether it must be given), in order.
TOOLS: Final[dict[str, tuple[int, tuple[tuple[str, tuple[type, ...], bool], ...]]]] = {
    "search": (at.SEARCHER, (("query", (str,), True), ("topn", (int,), False))),
    "open": (
        at.OPENER,
        (
            ("id", (int, str), False),
            ("cursor", (int,), False),
            ("loc", (int,), False),
            ("num_lines", (int,), False),
        ),
    ),
    "find": (at.FINDER, (("pattern", (str,), True), ("cursor", (int,), False))),
    "answer": (at.FINDER, (("answer", (str,), True), ("citations", (str, list), False))),
}
_MAX_CALL: Final = 4000
_LARGE: Final = 1 << 31
_TOOL_KEYS: Final = ("tool", "name", "action")
_TWICE: Final = "ambiguous|Name one tool, and give each of its arguments once."
_CALL: Final = re.compile(r"(?:browser\.)?(search|open|find|answer)\s*\(", re.IGNORECASE)
_OTHERS: Final = tuple(
    {
        name: at.ROLES[other]
        for other, names in enumerate(at.ACTIONS)
        for name in names
        if name not in at.ACTIONS[role]
    }
    for role in range(len(at.ROLES))
)


def read(
    desk: Desk, role: int, text: str, names: Sequence[str], mask: NDArray[np.int8]
) -> int | Call | ParseError:
    """What an answer of a role means now.

    Args:
        desk: the episode.
        role: index into ``layout.ROLES``.
        text: the answer.
        names: the role's actions; one more than usual where any call may be made.
        mask: which of them are legal.

    Returns:
        The index of a listed action; a call, where any may be made; or why it is neither.
    """
    free = len(names) > at.N_ACTIONS[role]
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        return read_action(text, names, mask)
    body = without_fence(text.rpartition("</think>")[2].strip())
    call = read_call(body)
    if call is None:
        return read_action(text, names, mask, others=_OTHERS[role])
    start = text[:200]
    if isinstance(call, str):
        kind, _, message = call.partition("|")
        return ParseError(kind, message, start)
    owner = TOOLS[call["tool"]][0]
    if owner != role:
        message = f"{call['tool']} is a tool of the {at.ROLES[owner]}, not yours."
        return ParseError("other_role", message, start)
    if free:
        return call
    index = _listed(desk, role, call)
    if index is None:
        legal = ", ".join(n for n, m in zip(names, mask, strict=True) if m)
        message = f"Only the listed actions can be taken: {legal}."
        return ParseError("not_listed", message, start)
    if not mask[index]:
        return ParseError("illegal", f"{names[index]} is not possible now.", start)
    return index


def read_call(body: str) -> Call | str | None:
    """A call in an answer; ``"kind|message"`` if it is malformed; None if there is none."""
    if body.startswith("{"):
        return _from_json(body)
    found = list(_CALL.finditer(body[:_MAX_CALL]))
    if not found:
        return None
    if len(body) > _MAX_CALL:
        return f"bad_call|A call has at most {_MAX_CALL} characters."
    source = body[found[0].start() :].strip().rstrip(";").strip("`")
    # A call within prose must stand alone on its line.
    before = body[: found[0].start()]
    if before.strip() and not before.endswith("\n") and not before.rstrip().endswith(":"):
        return None
    if before.endswith("\n") or before.rstrip().endswith(":"):
        lines = [line.strip().strip("`") for line in source.splitlines()]
        calls = [_from_source(line) for line in lines[1:] if _CALL.match(line)]
        source = lines[0]
        if any(isinstance(call, dict) and call != _from_source(source) for call in calls):
            return "ambiguous|Write one call, not several."
    return _from_source(source)


def _from_source(source: str) -> Call | str:
    try:
        with warnings.catch_warnings():
            # Odd escapes in a query are no business of ours.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 'bad_call|Write one call, such as search("words to look for").'
    if not isinstance(tree, ast.Call):
        return 'bad_call|Write one call, such as search("words to look for").'
    function = tree.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    tool = name.lower()
    if tool not in TOOLS:
        return f"bad_call|There is no tool {name[:40]!r}; tools: {', '.join(TOOLS)}."
    arguments = TOOLS[tool][1]
    if len(tree.args) > len(arguments):
        return f"bad_argument|{tool} takes {', '.join(a[0] for a in arguments)}."
    sources = [(a[0], value) for a, value in zip(arguments, tree.args, strict=False)]
    sources += [(str(keyword.arg), keyword.value) for keyword in tree.keywords]
    try:
        given = Fields((name, ast.literal_eval(value)) for name, value in sources).single()
    except (ValueError, TypeError, RecursionError, MemoryError):
        return f"bad_argument|Arguments of {tool} are plain texts and numbers."
    return _TWICE if given is None else _checked(tool, given)


def _from_json(body: str) -> Call | str | None:
    try:
        value = read_json(body)
    except ValueError:
        return None
    if not isinstance(value, Fields):
        return None
    tools = _tools(value)
    if not tools:
        return None
    fields = value.single()
    if len(tools) > 1 or fields is None:
        return _TWICE
    nested = fields.get("arguments", fields.get("parameters"))
    if isinstance(nested, str):
        try:
            nested = read_json(nested)
        except ValueError:
            nested = None
    if isinstance(nested, Fields):
        given = nested.single()
        if given is None:
            return _TWICE
    else:
        given = {k: v for k, v in fields.items() if k not in _TOOL_KEYS}
    return _checked(tools.pop(), given)


def _tools(value: Fields) -> set[str]:
    """The tools that an object names, under any of the keys for it."""
    named = [tool for key in _TOOL_KEYS for tool in value.values(key) if isinstance(tool, str)]
    return {tool.strip().lower().removeprefix("browser.") for tool in named} & TOOLS.keys()


def _checked(tool: str, given: dict[str, Any]) -> Call | str:
    """The call, if its arguments are complete and of the right kind."""
    arguments = TOOLS[tool][1]
    names = [name for name, _, _ in arguments]
    for name in given:
        if name not in names:
            return f"unknown_argument|{tool} takes {', '.join(names)}, not {name[:40]!r}."
    call: Call = {"tool": tool}
    for name, kinds, needed in arguments:
        if name not in given:
            if needed:
                return f"missing_argument|{tool} needs {name}."
            continue
        value = given[name]
        if kinds == (str,) and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, bool) or not isinstance(value, kinds):
            wanted = " or ".join(
                {str: "text", int: "a whole number"}.get(k, "a list") for k in kinds
            )
            return f"bad_argument|{name} of {tool} must be {wanted}."
        if isinstance(value, int) and not -_LARGE < value < _LARGE:
            return f"bad_argument|{name} of {tool} is too large a number."
        if isinstance(value, list):
            value = " ".join(str(v) for v in value[:20])
        if isinstance(value, str):
            # What is written must survive being kept as UTF-8.
            value = value.encode("utf-8", "replace").decode("utf-8")
            if needed and not value.strip():
                return f"bad_argument|{name} of {tool} is empty."
        call[name] = value
    return call


def is_call(role: int, value: Any) -> bool:
    """Whether a value, such as one from a snapshot, is a call of a role as `read` returns it."""
    if not isinstance(value, dict):
        return False
    given = dict(value)
    tool = given.pop("tool", None)
    if not isinstance(tool, str) or tool not in TOOLS or TOOLS[tool][0] != role:
        return False
    # True == 1 and 5 == 5.0, but neither gets through the check.
    return _checked(tool, given) == value


def _listed(desk: Desk, role: int, call: Call) -> int | None:
    """The listed action that does what a call says; None: there is none."""
    record = desk.record
    top, count = int(record[at.TOP]), int(record[at.N_ITEMS])
    names = desk.questions.shelf.names
    items = [names[i] for i in record[at.ITEM_NAME : at.ITEM_NAME + count].tolist()]
    index = int(record[at.QUESTION])
    if call.get("cursor", -1) not in (-1, top):
        return None
    if role == at.SEARCHER:
        wanted = fold(call["query"])
        if wanted == fold(desk.questions.questions[index].question):
            return at.SEARCH_QUESTION
        own = [fold(name) for name in desk.questions.ready(index).names]
        if wanted in own:
            return at.SEARCH_QUESTION + 1 + own.index(wanted)
        listed = [fold(item) for item in items]
        return at.SEARCH_ITEM + listed.index(wanted) if wanted in listed else None
    if role == at.OPENER:
        return _listed_open(desk, call, count)
    if call["tool"] == "find":
        patterns = desk.questions.ready(index).patterns
        wanted = call["pattern"].strip().lower()
        return at.FIND + patterns.index(wanted) if wanted in patterns else None
    keys = answer_keys(re.sub(r"【[^】]*】", " ", call["answer"]))
    same = [k for k, item in enumerate(items) if not keys.isdisjoint(answer_keys(item))]
    return at.ANSWER + same[0] if same else None


def _listed_open(desk: Desk, call: Call, count: int) -> int | None:
    record = desk.record
    top = int(record[at.TOP])
    library = desk.questions.shelf
    targets = record[at.ITEM_TARGET : at.ITEM_TARGET + count].tolist()
    wanted = call.get("id", -1)
    if isinstance(wanted, str):
        document = library.corpus.by_url.get(wanted, -1)
        return at.OPEN + targets.index(document) if document >= 0 and document in targets else None
    if wanted < 0:
        loc = int(call.get("loc", -1))
        if top < 0 or record[at.KIND + top] == at.PAGE_SEARCH:
            return None
        here, lines = int(record[at.LOC + top]), int(record[at.LINES + top])
        if loc == here + lines:
            return at.SCROLL_DOWN
        return at.SCROLL_UP if loc >= 0 and loc == max(0, here - lines) else None
    if top_kind(record) == at.PAGE_SEARCH:
        return at.OPEN + wanted if wanted < count else None
    links = library.arrays["men_link"]
    for item, mention in enumerate(record[at.ITEM_MENTION : at.ITEM_MENTION + count].tolist()):
        if int(links[mention]) == wanted:
            return at.OPEN + item
    return None


__all__ = ["TOOLS", "is_call", "query_of", "read", "read_call"]
