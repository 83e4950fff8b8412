"""Search: BM25 (Robertson and Zaragoza, 2009) by bm25s over our own tokens.

bm25s keeps the score of every token in every document, so that a search is a sum of sparse columns
(`BM25.get_scores`); its `retrieve` is not used, which fails where fewer documents are asked for
than there are, and returns documents with a score of 0. Ties are broken by docid.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.data.tokenizer import tokenize

#: More tokens of a query are not read.
MAX_QUERY_TOKENS: Final = 400


class SearchIndex:
    """The index of a corpus.

    Args:
        vocabulary: number of each token.
        arrays: data (float32), indices (int32) and indptr (int64) of the columns.
        num_docs: number of documents.
    """

    def __init__(
        self, vocabulary: dict[str, int], arrays: Mapping[str, NDArray[Any]], num_docs: int
    ) -> None:
        import bm25s

        self.vocabulary = vocabulary
        self.num_docs = num_docs
        self._engine = bm25s.BM25(method="lucene")
        self._engine.scores = {
            "data": arrays["data"],
            "indices": arrays["indices"],
            "indptr": arrays["indptr"],
            "num_docs": num_docs,
        }
        self._engine.vocab_dict = vocabulary
        self._engine.nonoccurrence_array = None

    @classmethod
    def build(cls, documents: Sequence[Sequence[str]]) -> SearchIndex:
        """Index documents, each a sequence of tokens, in the order of their docids."""
        import bm25s

        # Numbers in order of appearance: a set's order would differ between processes.
        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(t, len(vocabulary)) for t in tokens] for tokens in documents]
        if not vocabulary:
            empty: dict[str, NDArray[Any]] = {
                "data": np.zeros(0, np.float32),
                "indices": np.zeros(0, np.int32),
                "indptr": np.zeros(1, np.int64),
            }
            return cls(vocabulary, empty, len(documents))
        engine = bm25s.BM25(method="lucene")
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        engine.index((ids, dict(vocabulary)), show_progress=False)
        return cls(vocabulary, engine.scores, len(documents))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns: data, indices, indptr."""
        return {name: np.asarray(self._engine.scores[name]) for name in _ARRAYS}

    def search(self, query: str, topn: int) -> NDArray[np.int32]:
        """Indices of the best documents, best first; at most ``topn``, none with a score of 0."""
        tokens = dict.fromkeys(tokenize(query[: 20 * MAX_QUERY_TOKENS]))
        numbers = [self.vocabulary[t] for t in tokens if t in self.vocabulary]
        if not numbers or topn < 1:
            return np.zeros(0, np.int32)
        scores = self._engine.get_scores(numbers[:MAX_QUERY_TOKENS])
        candidates = np.flatnonzero(scores > 0)
        if len(candidates) > topn:
            found = scores[candidates]
            least = np.partition(found, len(found) - topn)[len(found) - topn]
            candidates = candidates[found >= least]
        # Equal scores in the order of documents, which is that of docids.
        order = np.argsort(-scores[candidates], kind="stable")[:topn]
        return candidates[order].astype(np.int32)


_ARRAYS: Final = ("data", "indices", "indptr")
