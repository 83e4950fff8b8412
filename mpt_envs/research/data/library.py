"""A corpus made ready: pages laid out, names numbered, the search index. Cached on disk.

All that the compiled rules look at are integers: which names stand on which line, where a link
leads, in which sentence, which documents a query finds. What a query finds, and where a pattern
stands, is looked up once in a process and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.data import cache
from mpt_envs.research.data.corpus import SNIPPET, Corpus, Document
from mpt_envs.research.data.index import SearchIndex
from mpt_envs.research.data.pages import clean, fold, lay_out, plain, snippet
from mpt_envs.research.data.tokenizer import tokenize
from mpt_envs.research.rules.scoring import answer_keys
from mpt_envs.research.world.layout import RESULTS

_COMMON: Final = 0.15  # tokens in more documents than this say nothing
_FIRST_ROWS: Final = 4096

Ints = NDArray[np.int32]


class Library:
    """A corpus with its pages, names and index; the same object serves all environments.

    Args:
        corpus: the documents.
        arrays, texts: what `_prepare` makes of it, or the cache kept of it.

    Attributes:
        arrays: int32 arrays that the rules read:

            * ``line_start`` (documents + 1): lines of a document, counted over the corpus;
            * ``men_start`` (documents + 1) and ``men_name``, ``men_line`` (within the document),
              ``men_sent`` (over the corpus), ``men_target`` (document, -1), ``men_number``,
              ``men_doubt``, ``men_link`` (number on the page, -1): the mentions;
            * ``sent_start``, ``sent_tok``: informative tokens of each sentence, sorted;
            * ``lead_start``, ``lead_tok``: the same of each document's title and snippet;
            * ``name_start``, ``name_tok``: the same of each name; ``name_fold``: equal for names
              that are equal as answers;
            * ``doc_name``: name of each document's title without what stands in parentheses;
            * ``results`` (rows, RESULTS): documents that the query of a row finds, -1 for none;
            * ``row_of_name``: row of each name, -1 if it was not looked up yet;
            * ``pat_start`` (rows, 4): where in ``pat_hits`` the lines and sentences with the
              pattern of a row begin and end.
        names: text of each name.
        number_of: number of each name.
    """

    def __init__(
        self, corpus: Corpus, arrays: dict[str, NDArray[Any]], texts: dict[str, Any]
    ) -> None:
        self.corpus = corpus
        self.names: list[str] = texts["names"]
        self.number_of = {name: number for number, name in enumerate(self.names)}
        self._lines: list[str] = texts["lines"]
        self._sentences: list[str] = texts["sentences"]
        self._urls: list[list[str]] = texts["urls"]
        self.index = SearchIndex(
            {token: i for i, token in enumerate(texts["vocabulary"])},
            {name: arrays[name] for name in ("data", "indices", "indptr")},
            len(corpus),
        )
        self.arrays: dict[str, Ints] = {
            name: array
            for name, array in arrays.items()
            if name not in ("data", "indices", "indptr")
        }
        self._informative = arrays["informative"].astype(np.bool_)
        self.folds: dict[str, int] = {}
        for name, number in zip(self.names, self.arrays["name_fold"].tolist(), strict=True):
            self.folds |= dict.fromkeys(answer_keys(name), number)
        self.arrays["row_of_name"] = np.full(max(1, len(self.names)), -1, np.int32)
        self.arrays["results"] = np.full((_FIRST_ROWS, RESULTS), -1, np.int32)
        self.arrays["pat_start"] = np.zeros((256, 4), np.int32)
        self.arrays["pat_hits"] = np.zeros(1 << 16, np.int32)
        self._queries: dict[str, int] = {}
        self.query_texts: list[str] = []
        self._patterns: dict[str, int] = {}
        self._hits_used = 0
        self._snippets: dict[int, str] = {}
        self._haystacks: tuple[tuple[str, Ints], tuple[str, Ints]] | None = None
        self.version = 0  # rises whenever an array is replaced

    # -- pages -------------------------------------------------------------------------------

    def lines(self, document: int) -> list[str]:
        """The lines of a page as shown."""
        joined = self._lines[document]
        return joined.split("\n") if joined else []

    def urls(self, document: int) -> list[str]:
        """Addresses of the links of a page."""
        return self._urls[document]

    def snippet(self, document: int) -> str:
        """The beginning of a page, as lists of results show it."""
        if document not in self._snippets:
            self._snippets[document] = snippet(self.corpus.documents[document].text, SNIPPET)
        return self._snippets[document]

    # -- looking up --------------------------------------------------------------------------

    def query_row(self, text: str) -> int:
        """The row of ``results`` that holds what a query finds."""
        row = self._queries.get(text)
        if row is None:
            row = len(self._queries)
            results = self.arrays["results"]
            if row >= len(results):
                grown = np.full((2 * len(results), RESULTS), -1, np.int32)
                grown[: len(results)] = results
                self._replace("results", grown)
            found = self.index.search(text, RESULTS)
            self.arrays["results"][row, : len(found)] = found
            self._queries[text] = row
            self.query_texts.append(text)
        return row

    def name_rows(self, names: NDArray[np.int64]) -> None:
        """Look up the names (-1: none) that were not looked up before."""
        rows = self.arrays["row_of_name"]
        for name in names[names >= 0].tolist():
            if rows[name] < 0:
                rows[name] = self.query_row(self.names[name])

    def pattern_row(self, pattern: str) -> int:
        """The row of ``pat_start`` for a pattern, compared lower-cased."""
        pattern = pattern.lower()
        row = self._patterns.get(pattern)
        if row is None:
            row = len(self._patterns)
            if row >= len(self.arrays["pat_start"]):
                old = self.arrays["pat_start"]
                grown = np.zeros((2 * len(old), 4), np.int32)
                grown[: len(old)] = old
                self._replace("pat_start", grown)
            bounds = []
            for haystack in self._search_texts():
                hits = _occurrences(*haystack, pattern)
                bounds += [self._hits_used, self._hits_used + len(hits)]
                self._keep_hits(hits)
            self.arrays["pat_start"][row] = bounds
            self._patterns[pattern] = row
        return row

    def hit_lines(self, document: int, pattern: str) -> list[int]:
        """Lines of a page, from 0, in which a pattern stands."""
        start, end, _, _ = self.arrays["pat_start"][self.pattern_row(pattern)].tolist()
        hits = self.arrays["pat_hits"][start:end]
        first, last = self.arrays["line_start"][document : document + 2].tolist()
        low, high = np.searchsorted(hits, [first, last]).tolist()
        return (hits[low:high] - first).tolist()

    def tokens(self, text: str, limit: int) -> list[int]:
        """Informative tokens of a text: sorted numbers, at most so many."""
        vocabulary = self.index.vocabulary
        found = {vocabulary[t] for t in tokenize(text) if t in vocabulary}
        return sorted(t for t in found if self._informative[t])[:limit]

    def _keep_hits(self, hits: Ints) -> None:
        array = self.arrays["pat_hits"]
        needed = self._hits_used + len(hits)
        if needed > len(array):
            grown = np.zeros(max(needed, 2 * len(array)), np.int32)
            grown[: self._hits_used] = array[: self._hits_used]
            self._replace("pat_hits", grown)
        self.arrays["pat_hits"][self._hits_used : needed] = hits
        self._hits_used = needed

    def _replace(self, name: str, array: Ints) -> None:
        self.arrays[name] = array
        self.version += 1

    def _search_texts(self) -> tuple[tuple[str, Ints], tuple[str, Ints]]:
        """All lines and all sentences, lower-cased and joined, with where each begins."""
        if self._haystacks is None:
            lines = [line for d in range(len(self.corpus)) for line in self.lines(d)]
            self._haystacks = (_joined(lines), _joined(self._sentences))
        return self._haystacks


def _joined(parts: Sequence[str]) -> tuple[str, Ints]:
    # Lower-casing may change lengths, so each part is measured after it.
    lowered = [part.lower() for part in parts]
    lengths = np.array([len(part) + 1 for part in lowered], np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return "\n".join(lowered), starts


def _occurrences(text: str, starts: Ints, pattern: str) -> Ints:
    """Numbers of the parts in which a pattern stands, ascending."""
    if not pattern or "\n" in pattern:
        return np.zeros(0, np.int32)
    places = []
    at = text.find(pattern)
    while at >= 0:
        places.append(at)
        # On to the next part: one hit a part is enough.
        end = text.find("\n", at)
        at = text.find(pattern, end) if end >= 0 else -1
    return (np.searchsorted(starts, places, side="right") - 1).astype(np.int32)


def prepare(corpus: Corpus) -> Library:
    """A corpus made ready, from the cache if it is there."""
    key = f"library-{corpus.digest}-{cache.code_digest()}"
    kept = cache.load(key)
    if kept is None:
        kept = _prepare(corpus)
        cache.store(key, *kept)
    return Library(corpus, *kept)


def _equal_names(names: Sequence[str]) -> list[int]:
    """A number for each name, the same for names that the reward takes for each other."""
    first: dict[str, int] = {}  # the first name with a key
    parent = list(range(len(names)))

    def root(name: int) -> int:
        while parent[name] != name:
            name = parent[name]
        return name

    for number, name in enumerate(names):
        for key in answer_keys(name):
            one, other = sorted((root(first.setdefault(key, number)), root(number)))
            parent[other] = one
    folds: dict[int, int] = {}
    return [folds.setdefault(root(number), len(folds)) for number in range(len(names))]


def _prepare(corpus: Corpus) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Lay out all pages, number the names, index the words."""
    documents = corpus.documents
    pages = [lay_out(d.text, d.title, corpus.address) for d in documents]
    titles = [d.title.partition(" (")[0].strip() or d.title for d in documents]
    found = {m.name for page in pages for m in page.mentions}
    names = sorted(found | set(titles) | {d.title for d in documents})
    number = {name: i for i, name in enumerate(names)}
    name_fold = _equal_names(names)

    tokens = [tokenize(f"{d.title} {d.title} {plain(clean(d.text))}") for d in documents]
    index = SearchIndex.build(tokens)
    vocabulary = index.vocabulary
    frequency = np.diff(index.arrays["indptr"])[: len(vocabulary)]
    informative = frequency <= max(2.0, _COMMON * len(documents))

    def informative_tokens(text: str) -> list[int]:
        numbers = {vocabulary[t] for t in tokenize(text) if t in vocabulary}
        return sorted(t for t in numbers if informative[t])

    mentions = []
    sentence = 0
    for page in pages:
        for m in page.mentions:
            target = corpus.by_url.get(page.urls[m.link], -1) if m.link >= 0 else -1
            mentions.append(
                (
                    number[m.name],
                    m.line,
                    sentence + m.sentence,
                    target,
                    int(m.number),
                    int(page.doubtful[m.sentence]),
                    m.link,
                )
            )
        sentence += len(page.sentences)
    sentences = [s for page in pages for s in page.sentences]
    table = np.array(mentions, np.int32).reshape(-1, 7)
    columns = (
        "men_name", "men_line", "men_sent", "men_target", "men_number", "men_doubt", "men_link"
    )  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(columns)
    }
    leads = [f"{d.title} {snippet(d.text, SNIPPET)}" for d in documents]
    arrays["line_start"] = _starts([len(p.lines) for p in pages])
    arrays["men_start"] = _starts([len(p.mentions) for p in pages])
    for prefix, texts in (("sent", sentences), ("lead", leads), ("name", names)):
        lists = [informative_tokens(text) for text in texts]
        arrays[f"{prefix}_start"] = _starts([len(item) for item in lists])
        arrays[f"{prefix}_tok"] = np.array([t for item in lists for t in item], np.int32)
    arrays["name_fold"] = np.array(name_fold, np.int32)
    arrays["doc_name"] = np.array([number[title] for title in titles], np.int32)
    arrays["informative"] = informative.astype(np.int8)
    arrays.update(index.arrays)
    return arrays, {
        "names": names,
        "lines": ["\n".join(p.lines) for p in pages],
        "sentences": sentences,
        "urls": [list(p.urls) for p in pages],
        "vocabulary": list(vocabulary),
    }


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int32)


__all__ = ["Document", "Library", "fold", "prepare"]
