"""Deep research: a Searcher, an Opener and a Finder answer multi-hop questions from a corpus.

`make_task` gives one episode as a turn task, `make_batch` many, stepped by the same compiled rules.
The way of an action through the files:

* Pages come from the fictional encyclopaedia (`world/encyclopedia`, `naming`, `facts`) or files
  (`data/corpus`); `data/library` makes them ready once: laid out (`data/pages`), searchable
  (`data/index`), in integers. `world/questions` and `world/multihop` do the same for questions.
* The state is one flat record of integers (`world/layout`). `batch` loops over records, `task` is a
  batch of one. A decision goes to `rules/turn`, which searches, opens, finds or answers, pays for
  evidence, and writes what is then in view and what is legal. `rules/expert` knows the evidence.
* The same game in words: `views/browser` shows pages and makes free tool calls, `views/calls` reads
  them, `views/text` writes prompts. `views/observation` is the game in numbers.
* `data/tokenizer` says what a word is, for the search and for `rules/scoring`, which judges them;
  `rules/snapshots` tells which records are states; `views/render` and `views/ansi` draw.
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
