"""A corpus of documents, and questions about it: what they are, and how files of them are read.

The format is OpenResearcher's: documents with ``docid``, ``url`` and ``text``, whose text may open
with a block ``---`` / ``title: ...`` / ``---`` (a field ``title`` is taken, too); questions with
``qid``, ``question`` and ``answer``. Ours may have further fields: ``answers`` (a list of accepted
answers) and ``supporting_titles`` (the evidence), or HotpotQA's ``supporting_facts``. Files are
JSON lines, or parquet where pyarrow is installed.

Titles and addresses stand in prompts, on lines of their own: they are cleaned when they are read,
so that none can pass for a line of a page or steer a terminal. Texts are when pages are laid out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mpt_envs.files import is_file, user_path
from mpt_envs.research.data.pages import one_line
from mpt_envs.research.rules.scoring import fold_answer
from mpt_envs.research.world.layout import MAX_HOPS
from wrappers.errors import MissingCapabilityError, how_to_install

#: A document longer than this, in characters, is cut: no page needs more.
MAX_TEXT: Final = 2_000_000
#: Characters of a snippet in a list of results.
SNIPPET: Final = 180


class CorpusError(ValueError):
    """A corpus or a file of questions cannot be used; the message says where and what to do."""


class Document(NamedTuple):
    """One page: its id, address, title and text (the text without its title block)."""

    docid: str
    url: str
    title: str
    text: str


class Question(NamedTuple):
    """One question.

    Attributes:
        qid: unique.
        question: the text.
        answers: accepted answers, the first of them the usual one.
        evidence: docids of the pages that lead to the answer, in order if ``ordered``.
        ordered: whether each page of the evidence leads to the next.
    """

    qid: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    ordered: bool = False


class Corpus:
    """Documents in the order of their docids.

    Args:
        documents: in any order.
        name: for messages.

    Raises:
        CorpusError: there is none, or a docid or url appears twice.

    Attributes:
        documents: sorted by docid.
        digest: BLAKE2b of everything, 32 hexadecimal digits.
        by_docid, by_url, by_title: index of a document; of several with a title the first.
    """

    def __init__(self, documents: Iterable[Document], name: str = "the corpus") -> None:
        self.documents = tuple(sorted(documents, key=lambda d: d.docid))
        self.name = name
        if not self.documents:
            raise CorpusError(f"{name} holds no documents; give at least one")
        self.by_docid: dict[str, int] = {}
        self.by_url: dict[str, int] = {}
        self.by_title: dict[str, int] = {}
        hasher = hashlib.blake2b(digest_size=16)
        for index, document in enumerate(self.documents):
            if document.docid in self.by_docid:
                raise CorpusError(
                    f"{name} has the docid {document.docid!r} twice; make docids unique"
                )
            if document.url in self.by_url:
                other = self.documents[self.by_url[document.url]].docid
                raise CorpusError(
                    f"{name} has the url {document.url!r} twice ({other!r} and "
                    f"{document.docid!r}); make urls unique"
                )
            self.by_docid[document.docid] = index
            self.by_url[document.url] = index
            self.by_title.setdefault(document.title, index)
            for part in document:
                data = part.encode("utf-8", "surrogatepass")
                hasher.update(len(data).to_bytes(8, "little"))
                hasher.update(data)
        self.digest = hasher.hexdigest()

    def __len__(self) -> int:
        return len(self.documents)

    def address(self, target: str) -> str:
        """The address that the target of a link stands for; the target itself if it is no page's.

        A target is the address, the docid or the title of a page, in this order, as it stands or
        else with ``%20`` and the like decoded.
        """
        for name in (target, unquote(target)):
            for pages in (self.by_url, self.by_docid, self.by_title):
                if name in pages:
                    return self.documents[pages[name]].url
        return target


def read_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Read a corpus from a JSON-lines or parquet file.

    Raises:
        CorpusError: the file is missing, cannot be read, or is malformed.
        MissingCapabilityError: it is parquet and pyarrow is not installed.
    """
    path = user_path("path", path, CorpusError)
    documents: list[Document] = []
    docids: dict[str, str] = {}
    urls: dict[str, str] = {}
    for where, row in _rows(path):
        document = _document(row, where)
        _unique(docids, "docid", document.docid, where)
        _unique(urls, "url", document.url, where)
        documents.append(document)
    return Corpus(documents, str(path))


def read_questions(path: str | os.PathLike[str], corpus: Corpus) -> tuple[Question, ...]:
    """Read questions about a corpus from a JSON-lines or parquet file; errors as `read_corpus`.

    Supporting titles that the corpus does not have are left out of the evidence.
    """
    path = user_path("path", path, CorpusError)
    questions: list[Question] = []
    qids: dict[str, str] = {}
    for where, row in _rows(path):
        question = _question(row, where, corpus)
        _unique(qids, "qid", question.qid, where)
        questions.append(question)
    if not questions:
        raise CorpusError(f"{path} holds no questions; give at least one")
    return tuple(questions)


def _unique(seen: dict[str, str], name: str, value: str, where: str) -> None:
    """Raise if an earlier row has the same value."""
    if value in seen:
        raise CorpusError(
            f"{where}: the {name} {value!r} stands twice, first at {seen[value]}; make {name}s "
            "unique"
        )
    seen[value] = where


def _document(row: Mapping[str, Any], where: str) -> Document:
    docid = one_line(_field(row, "docid", where))
    url = one_line(_field(row, "url", where, needed=False))
    title, text = _split_title(_field(row, "text", where, empty=True))
    given = _field(row, "title", where, needed=False)
    titles = (one_line(title) for title in (given, title, _title_of(url), docid))
    address = url or f"https://corpus.invalid/{docid}"
    return Document(docid, address, next(filter(None, titles)), text[:MAX_TEXT])


def _title_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2].replace("_", " ")[:200]


def _split_title(text: str) -> tuple[str, str]:
    """The title of a ``---`` block at the top of a text, and the text below the block."""
    if not text.startswith("---\n"):
        return "", text
    block, mark, rest = text[4:].partition("\n---")
    if not mark or len(block) > 2000:
        return "", text
    for line in block.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip().lower() == "title":
            return value.strip().strip("\"'"), rest.lstrip("-").lstrip("\n")
    return "", text


def _question(row: Mapping[str, Any], where: str, corpus: Corpus) -> Question:
    qid, text = one_line(_field(row, "qid", where)), _field(row, "question", where)
    usual = _field(row, "answer", where, needed=False)
    others = _list(row, "answers", where)
    answers = [usual] if usual.strip() else []
    answers += [_text(other, "'answers'", where) for other in others]
    if not answers:
        raise CorpusError(
            f"{where}: the question {qid!r} has no answer; give it one in 'answer' or leave it out"
        )
    for answer in answers:
        if not fold_answer(answer):
            raise CorpusError(
                f"{where}: nothing can equal the answer {answer!r} of the question {qid!r}, for "
                "punctuation does not count; give answers with a letter or a digit"
            )
    titles = _titles(row, "supporting_titles", where) or _titles(row, "supporting_facts", where)
    evidence = [
        corpus.documents[corpus.by_title[title]].docid
        for title in dict.fromkeys(titles)
        if title in corpus.by_title
    ]
    if len(evidence) > MAX_HOPS:
        raise CorpusError(
            f"{where}: the question {qid!r} has {len(evidence)} pages of evidence; give at most "
            f"{MAX_HOPS}"
        )
    return Question(qid, text, tuple(dict.fromkeys(answers)), tuple(evidence))


def _titles(row: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Titles of the evidence: a list of titles, or what HotpotQA has.

    That is a list of pairs of a title and the number of a sentence, and in its parquet files an
    object with a list of titles and one of numbers.
    """
    if isinstance(row.get(name), dict):
        row, name = row[name], "title"
        if row.get(name) is None:
            raise CorpusError(f"{where}: the evidence is an object without a list 'title'")
    titles = []
    for entry in _list(row, name, where):
        pair = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int)
        titles.append(one_line(_text(entry[0] if pair else entry, repr(name), where)))
    return titles


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = row.get(name)
    if value is not None and not isinstance(value, list):
        raise CorpusError(f"{where}: expected a list in {name!r}, got {_shown(value)}")
    return value or []


def _field(
    row: Mapping[str, Any], name: str, where: str, empty: bool = False, needed: bool = True
) -> str:
    """The text of a field; "" where it is not ``needed`` and missing.

    Args:
        empty: whether a field that is needed may be blank.
    """
    value = row.get(name)
    if value is None and not needed:
        return ""
    if value is None:
        raise CorpusError(
            f"{where}: the field {name!r} is missing; it has: {', '.join(row) or '-'}"
        )
    text = _text(value, f"the field {name!r}", where)
    if needed and not empty and not one_line(text):
        raise CorpusError(f"{where}: the field {name!r} is empty")
    return text


def _text(value: Any, what: str, where: str) -> str:
    """A text, or a whole number as its text: what else there is has no one way to be written."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise CorpusError(
            f"{where}: expected text (or a whole number) in {what}, got {_shown(value)}"
        )
    return str(value)


def _shown(value: Any) -> str:
    """A value of the wrong type, in a message: it may be of any size."""
    scalar = value is None or isinstance(value, (bool, int, float, str))
    return ascii(value)[:80] if scalar else f"a value of the type {type(value).__name__}"


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of a file, each with where it stands, for messages."""
    if not is_file(path, CorpusError):
        raise CorpusError(f"there is no file {path}; give the path of a .jsonl or .parquet file")
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    try:
        yield from _json_lines(path)
    except OSError as error:
        raise CorpusError(
            f"{path} cannot be read ({error}); give a .jsonl or .parquet file that may be read"
        ) from error


def _json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise CorpusError(f"{where}: this is no JSON ({error}); mend the line") from error
            if not isinstance(row, dict):
                raise CorpusError(f"{where}: expected a JSON object, got {type(row).__name__}")
            yield where, row


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingCapabilityError(
            f"reading {path} needs pyarrow; convert the file to JSON lines, or "
            f"{how_to_install('research')}"
        ) from error
    try:
        file = parquet.ParquetFile(path)
        number = 0
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    except CorpusError:
        raise
    except Exception as error:
        raise CorpusError(f"{path} cannot be read as parquet: {error}") from error
