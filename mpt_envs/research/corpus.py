"""A corpus of documents, and questions about it: what they are, and how files of them are read.

The format is OpenResearcher's: documents with ``docid``, ``url`` and ``text``, whose text may open
with a block ``---`` / ``title: ...`` / ``---`` (a field ``title`` is taken, too); questions with
``qid``, ``question`` and ``answer``. Ours may have further fields: ``answers`` (a list of accepted
answers) and ``supporting_titles`` (the evidence, in order if it is known). Files are JSON lines, or
parquet where pyarrow is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wrappers.errors import MissingCapabilityError

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


def read_corpus(path: str | Path) -> Corpus:
    """Read a corpus from a JSON-lines or parquet file.

    Raises:
        CorpusError: the file is missing or malformed.
        MissingCapabilityError: it is parquet and pyarrow is not installed.
    """
    path = Path(path)
    return Corpus((_document(row, where) for where, row in _rows(path)), str(path))


def read_questions(path: str | Path, corpus: Corpus) -> tuple[Question, ...]:
    """Read questions about a corpus from a JSON-lines or parquet file; errors as `read_corpus`.

    Supporting titles that the corpus does not have are left out of the evidence.
    """
    path = Path(path)
    questions = tuple(_question(row, where, corpus) for where, row in _rows(path))
    if not questions:
        raise CorpusError(f"{path} holds no questions; give at least one")
    seen: set[str] = set()
    for question in questions:
        if question.qid in seen:
            raise CorpusError(f"{path} has the qid {question.qid!r} twice; make qids unique")
        seen.add(question.qid)
    return questions


def _document(row: Mapping[str, Any], where: str) -> Document:
    docid, url = _field(row, "docid", where), str(row.get("url") or "")
    text = _field(row, "text", where, empty=True)
    title, text = _split_title(text)
    title = str(row.get("title") or "") or title or _title_of(url) or docid
    return Document(docid, url or f"https://corpus.invalid/{docid}", title, text[:MAX_TEXT])


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
    qid, text = _field(row, "qid", where), _field(row, "question", where)
    given = row.get("answers")
    answers = [row.get("answer")] if given is None else [row.get("answer"), *_list(given, where)]
    accepted = tuple(dict.fromkeys(str(a) for a in answers if a is not None and str(a).strip()))
    if not accepted:
        raise CorpusError(
            f"{where}: the question {qid!r} has no answer; give it one in 'answer' or leave it out"
        )
    titles = _list(row.get("supporting_titles") or [], where)
    evidence = [
        corpus.documents[corpus.by_title[t]].docid
        for t in dict.fromkeys(map(str, titles))
        if t in corpus.by_title
    ]
    return Question(qid, text, accepted, tuple(evidence))


def _list(value: Any, where: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise CorpusError(f"{where}: expected a list, got {value!r}")
    return list(value)


def _field(row: Mapping[str, Any], name: str, where: str, empty: bool = False) -> str:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise CorpusError(
            f"{where}: the field {name!r} is missing or no text; it has: {', '.join(row) or '-'}"
        )
    text = str(value)
    if not text.strip() and not empty:
        raise CorpusError(f"{where}: the field {name!r} is empty")
    return text


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of a file, each with where it stands, for messages."""
    if not path.is_file():
        raise CorpusError(f"there is no file {path}; give the path of a .jsonl or .parquet file")
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
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
            f"reading {path} needs pyarrow: pip install 'mpt-swarm[research]', or convert the file "
            "to JSON lines"
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
