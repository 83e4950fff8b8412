"""Deep research: a Searcher, an Opener and a Finder answer multi-hop questions from a corpus.

`make_task` gives one episode as a turn task, `make_batch` many that compiled rules step together.
Files: `facts`, `naming`, `encyclopedia` and `questions` make the fictional encyclopaedia and its
questions; `corpus` reads files; `tokenizer`, `index`, `pages`, `library` and `cache` make a corpus
ready; `layout`, `rules`, `observation` and `expert` are the game over integers; `browser`, `calls`
and `text` are the same game in words; `ansi` and `render` draw it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpt_envs.research.batch import ResearchBatch
    from mpt_envs.research.task import ResearchTask


def make_task(
    *,
    corpus: str | Path | None = None,
    questions: str | Path | None = None,
    free_form: bool = False,
) -> ResearchTask:
    """One episode as a `TurnTask`.

    Args:
        corpus: a JSON-lines or parquet file of documents (see `corpus`); None: the generated
            encyclopaedia.
        questions: a file of questions about it; given together with ``corpus``.
        free_form: whether agents may write any tool call, with any query, pattern and answer; each
            role then has one action more. Without it a call must be one of those listed.
    """
    from mpt_envs.research.task import ResearchTask
    from mpt_envs.research.world.multihop import source

    return ResearchTask(source(corpus, questions), free_form=free_form)


def make_batch(
    num_envs: int,
    *,
    corpus: str | Path | None = None,
    questions: str | Path | None = None,
    free_form: bool = False,
) -> ResearchBatch:
    """``num_envs`` episodes as a `BatchTask`; arguments as for `make_task`."""
    from mpt_envs.research.batch import ResearchBatch
    from mpt_envs.research.world.multihop import source

    if free_form:
        raise ValueError(
            "free_form=True is for agents that write; a vector game takes numbers: leave it out, "
            'or use vectorization="lockstep"'
        )
    return ResearchBatch(source(corpus, questions), num_envs)
