"""The corpus and the questions of ``research/multihop-v0``, and those of a user's files.

The encyclopaedia follows from one key, the same for all episodes; so do the questions, of which
each is kept only if the scripted expert answers it through the tools within the turns of an
episode. All of it is made once and cached on disk.

Questions are split into three parts, for training, for demonstrations and validation, and for
evaluation; the seed says from which one an episode draws (`mpt_envs.splits`).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.files import stamp, user_path
from mpt_envs.research.data import cache
from mpt_envs.research.data.corpus import Corpus, CorpusError, Document, read_corpus, read_questions
from mpt_envs.research.data.library import Library, prepare
from mpt_envs.research.kernel import kernel
from mpt_envs.research.rules.expert import decide
from mpt_envs.research.rules.turn import act, begin, wanted
from mpt_envs.research.world.encyclopedia import SIZES, Encyclopedia, random_choices
from mpt_envs.research.world.layout import DONE, DONE_RIGHT, DONE_RUNNING, RECORD_INTS, STACK
from mpt_envs.research.world.questions import Draft, QuestionSet, as_json, draft, from_json
from mpt_envs.splits import split_of
from wrappers.rng import STREAM_DOMAIN, hash4

KEY: Final = 0x5EED_2026
QUESTIONS: Final = 9000
#: Turns of an episode, chosen once by the rule that also sets the budgets of crafting: the larger
#: of 1.3 times the scripted expert's median (7) and its 92nd percentile (11) over drawn questions,
#: so that there is no slack for idling. Questions that take the expert longer are left out.
MAX_TURNS: Final = 11
#: Shares of the questions in each of the parts.
PARTS: Final = (0.82, 0.06, 0.12)
_STREAM_QUESTION: Final = np.uint64(STREAM_DOMAIN + 201)
_STREAM_PART: Final = 202


class Source(NamedTuple):
    """Where questions come from, and which of them each range of seeds draws.

    Attributes:
        name: of the task's variant, "" for the generated one.
        questions: all of them.
        parts: indices for the three ranges of seeds.
        origin: what makes it again: "generated" or "files", and the arguments.

    It is shared, not copied; pickled, it is what it was made from.
    """

    name: str
    questions: QuestionSet
    parts: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    origin: tuple[Any, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Source:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.origin, self.questions.digest)

    def question_of(self, seed: int, key: np.uint64) -> int:
        """The question of an episode: a function of its key, from the part of its seed."""
        part = self.parts[split_of(seed)]
        draw = int(hash4(key, np.uint64(0), _STREAM_QUESTION, np.uint64(0)))
        return int(part[draw % len(part)])


def parts_of(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split question numbers; a handful of questions is not split, all ranges share them."""
    everything = np.arange(count, dtype=np.int64)
    if count < 30:
        return everything, everything, everything
    order = np.array(random_choices(_STREAM_PART).shuffled(everything.tolist()), np.int64)
    first = round(PARTS[0] * count)
    second = first + max(1, round(PARTS[1] * count))
    return np.sort(order[:first]), np.sort(order[first:second]), np.sort(order[second:])


@lru_cache(maxsize=4)
def generated(key: int = KEY, sizes: tuple[int, int] = SIZES, count: int = QUESTIONS) -> Source:
    """The generated encyclopaedia and its questions; one object for all environments.

    Args:
        key: names the encyclopaedia.
        sizes: pages in English and in Korean.
        count: questions.
    """
    name = f"multihop-{key:x}-{sizes[0]}-{sizes[1]}-{count}-{cache.code_digest()}"
    kept = cache.load(name)
    if kept is not None:
        corpus = Corpus((Document(*d) for d in kept[1]["documents"]), "the encyclopaedia")
        library = prepare(corpus)
        drafts = from_json(kept[1]["questions"])
    else:
        encyclopedia = Encyclopedia(key, sizes)
        library = prepare(encyclopedia.corpus)
        drafts = generate(encyclopedia, library, count)
        documents = [list(d) for d in encyclopedia.corpus.documents]
        cache.store(name, {}, {"documents": documents, "questions": as_json(drafts)})
    questions = QuestionSet(
        library,
        [d.question for d in drafts],
        {d.question.qid: d.chain for d in drafts},
    )
    origin = ("generated", key, sizes, count)
    return Source("", questions, parts_of(len(questions)), origin)


def generate(encyclopedia: Encyclopedia, library: Library, count: int) -> list[Draft]:
    """So many different questions that the expert can answer.

    Raises:
        CorpusError: the encyclopaedia is too small for so many.
    """
    rng = random_choices(hash_of(encyclopedia))
    kept: list[Draft] = []
    seen: set[str] = set()
    tries = 0
    while len(kept) < count:
        fresh: list[Draft] = []
        while len(fresh) < max(64, count - len(kept)):
            tries += 1
            if tries > 200 * count + 10_000:
                raise CorpusError(
                    f"only {len(kept)} of {count} questions could be made of "
                    f"{len(encyclopedia.things)} pages; ask for fewer, or make more pages"
                )
            made = draft(encyclopedia, library, rng, len(kept) + len(fresh))
            if made is not None and made.question.question not in seen:
                seen.add(made.question.question)
                fresh.append(made)
        kept += solvable(library, fresh)
    kept = kept[:count]
    return [Draft(d.question._replace(qid=f"q{i:06d}"), d.chain) for i, d in enumerate(kept)]


def hash_of(encyclopedia: Encyclopedia) -> int:
    """A key for the questions of an encyclopaedia."""
    return int(encyclopedia.corpus.digest[:15], 16)


def solvable(library: Library, drafts: list[Draft]) -> list[Draft]:
    """Those of the questions that the expert answers through the tools in time."""
    # Numbers may repeat between batches of drafts, ids within a set may not.
    numbered = [Draft(d.question._replace(qid=f"d{i}"), d.chain) for i, d in enumerate(drafts)]
    questions = QuestionSet(
        library, [d.question for d in numbered], {d.question.qid: d.chain for d in numbered}
    )
    return [d for i, d in enumerate(drafts) if expert_turns(questions, i) is not None]


def expert_turns(questions: QuestionSet, index: int) -> int | None:
    """Turns in which the expert answers a question rightly; None: it does not."""
    questions.ready(index)
    record = np.zeros(RECORD_INTS, np.int32)
    rows = np.zeros(STACK, np.int32)
    begin(record, rows, questions.tables, index, np.uint64(0))
    for turn in range(MAX_TURNS):
        name = _expert_step(record, rows, questions.tables)
        while name >= 0:
            questions.shelf.name_rows(np.array([name], np.int64))
            name = _expert_step(record, rows, questions.tables)
        if record[DONE] != DONE_RUNNING:
            return turn + 1 if record[DONE] == DONE_RIGHT else None
    return None


@kernel
def _expert_step(s, rows, t):
    """Let the expert act once; or return the name that has to be looked up before."""
    role, action = decide(s, t)
    name = wanted(s, t, role, action)
    if name >= 0:
        return name
    act(s, rows, t, role, action)
    return -1


@lru_cache(maxsize=8)
def _from_files(corpus: str, questions: str, stamps: tuple[Any, ...]) -> Source:
    library = prepare(read_corpus(corpus))
    asked = QuestionSet(library, read_questions(questions, library.corpus))
    return Source("custom", asked, parts_of(len(asked)), ("files", corpus, questions))


def from_files(corpus: str | Path, questions: str | Path) -> Source:
    """A user's corpus and questions; the same object for all environments of a process.

    Raises:
        CorpusError, MissingCapabilityError: see `corpus`.
    """
    paths = [
        user_path("corpus", corpus, CorpusError),
        user_path("questions", questions, CorpusError),
    ]
    return _from_files(str(paths[0]), str(paths[1]), tuple(map(stamp, paths)))


def source(corpus: str | Path | None, questions: str | Path | None) -> Source:
    """The questions of a task's keywords.

    Raises:
        ValueError: only one of them is given.
        CorpusError, MissingCapabilityError: the files cannot be used.
    """
    if (corpus is None) != (questions is None):
        missing = "questions" if questions is None else "corpus"
        raise ValueError(
            f"corpus= and questions= belong together: give {missing}= too, or leave both out for "
            "the generated encyclopaedia"
        )
    if corpus is None or questions is None:
        return generated()
    return from_files(corpus, questions)


def _made_again(origin: tuple[Any, ...], digest: bytes) -> Source:
    """The source that was pickled.

    Raises:
        CorpusError: its files cannot be read here, or hold something else by now.
    """
    kind, *arguments = origin
    found = from_files(*arguments) if kind == "files" else generated(*arguments)
    if found.questions.digest != digest:
        what = " and ".join(arguments) if kind == "files" else "the generated encyclopaedia"
        raise CorpusError(
            f"{what} changed since this game was pickled; make the game again from what is there"
        )
    return found
