"""Questions made ready, and questions generated.

What an agent may search and find is read off the question's own words: its names (quoted, or
capitalised) and its content words, those nearest to the name first, without particles and endings.
"""

# ruff: noqa: RUF001  (typographic quotes are what pages are written with)
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.research.data.corpus import CorpusError, Question
from mpt_envs.research.data.library import Library
from mpt_envs.research.data.pages import lay_out
from mpt_envs.research.rules.scoring import answer_keys
from mpt_envs.research.world.encyclopedia import Encyclopedia, Mention, Thing
from mpt_envs.research.world.facts import EN, KO, RELATIONS
from mpt_envs.research.world.layout import (
    ANSWER_REWARD,
    MAX_HOPS,
    NAMES,
    PAGE_REWARD,
    PATTERNS,
    RESULTS,
)
from mpt_envs.research.world.tables import Tables
from wrappers.random_sequence import RandomSequence

QUESTION_TOKENS: Final = 48
NAME_TOKENS: Final = 12
#: Flags: Korean; asks for a number; how many patterns stand on the side of relations; for each name
#: whether it is what an "of" refers to.
FLAGS: Final = 3 + NAMES

_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")
_WORD: Final = re.compile(r"[^\W_]+")
_STOP: Final = frozenset(
    (
        "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "is", "was", "are",
        "were", "be", "been", "the", "a", "an", "of", "in", "on", "at", "by", "for", "from", "to",
        "with", "and", "or", "did", "does", "do", "that", "this", "it", "its", "as", "has", "have",
        "had", "many", "much", "asks", "asked", "ask", "name", "named", "called", "known", "also",
        "year", "years", "년", "몇", "이", "그", "및", "에서", "에게",
    )
)  # fmt: skip
_KO_QUESTION: Final = ("누구", "무엇", "어디", "얼마", "언제", "어느", "질문", "라고", "불리")
_NOT_PLURAL: Final = ("ss", "us", "is")
_PARTICLES: Final = (
    "에서의", "으로부터", "에게서", "이라는", "에서", "에게", "으로", "까지", "부터", "처럼",
    "라는", "이다", "인가", "은", "는", "이", "가", "을", "를", "의", "에", "로", "와", "과", "도",
    "만",
)  # fmt: skip
_NUMBER: Final = re.compile(
    r"\b(year|years|length|many|when|number|workforce|long|old)\b|연도|년도|길이|몇|얼마|수는", re.I
)
_GENITIVE_EN: Final = re.compile(r"\bof\s+(?:the\s+)?(?:[a-z]+\s+){0,2}[\"“‘]?$")
_BEFORE: Final = re.compile(r"([^\W_]+)\s*[\"“‘「]?$")


class Candidates(NamedTuple):
    """What a question offers to look for.

    Attributes:
        names: at most NAMES, in order.
        genitive: for each name whether something "of" it is asked for.
        patterns: at most PATTERNS, lower-cased: first those on the side of the name where
            relations stand (before it in English, after it in Korean), the nearest first.
        chained: how many patterns are on that side.
        korean, number: the language; whether a number is asked for.
    """

    names: tuple[str, ...]
    genitive: tuple[bool, ...]
    patterns: tuple[str, ...]
    chained: int
    korean: bool
    number: bool


def stem(word: str) -> str:
    """A word of a question as it is looked for on a page."""
    if _HANGUL.search(word):
        for particle in _PARTICLES:
            if word.endswith(particle) and len(word) - len(particle) >= 2:
                return word[: -len(particle)]
        return word
    word = word.lower()
    for ending in ("ing", "ed", "s"):
        if (
            word.endswith(ending)
            and len(word) - len(ending) >= 5
            and not word.endswith(_NOT_PLURAL)
        ):
            return word[: -len(ending)]
    return word


def candidates(question: str) -> Candidates:
    """Read a question's names and content words off its text."""
    text = " ".join(question.split())[:4000]
    found = [m.name for m in lay_out(text).mentions if not m.number]
    names = list(dict.fromkeys(found))
    spans = []
    for name in names:
        at = text.find(name)
        spans.append((at, at + len(name)) if at >= 0 else (0, 0))
    genitive = []
    for begin, end in spans:
        after = text[end : end + 2]
        before = _GENITIVE_EN.search(text[max(0, begin - 60) : begin]) is not None
        genitive.append(before or after[:1] == "의" or after[1:2] == "의")
    # The names that something is asked of come first where there are too many.
    order = sorted(range(len(names)), key=lambda i: (not genitive[i], i))[:NAMES]
    chosen = sorted(order)
    focus = spans[order[0]] if order else (len(text), len(text))
    words = [(m.start(), m.end(), m[0]) for m in _WORD.finditer(text)]
    outside = [
        (a, b, word)
        for a, b, word in words
        if not any(begin < b and a < end for begin, end in spans)
    ]
    korean = bool(_HANGUL.search(text))
    # A noun right before the name that is asked about says what it is: nothing to look for.
    beside = _BEFORE.search(text[: focus[0]])
    ranked: list[tuple[bool, int, int, str]] = []
    for position, (a, b, word) in enumerate(outside):
        if order and genitive[order[0]] and beside is not None and a == beside.start(1):
            continue
        if word.lower() in _STOP or word.startswith(_KO_QUESTION) or len(stem(word)) < 2:
            continue
        ahead = b <= focus[0]
        if ahead:
            distance = sum(1 for x, _, _ in words if b <= x < focus[0])
        else:
            distance = sum(1 for _, y, _ in words if focus[1] < y <= a)
        ranked.append((ahead == korean, distance, position, stem(word).lower()))
    ranked.sort()
    patterns = list(dict.fromkeys(word for _, _, _, word in ranked))[:PATTERNS]
    side = {word for other, _, _, word in ranked if not other}
    return Candidates(
        tuple(names[i] for i in chosen),
        tuple(genitive[i] for i in chosen),
        tuple(patterns),
        sum(1 for word in patterns if word in side),
        korean,
        bool(_NUMBER.search(text)),
    )


class QuestionSet:
    """Questions about a library, with what the rules need of each; made ready one by one.

    Args:
        library: the corpus.
        questions: about it.
        chains: for generated questions, by qid: the word to find and the name of the object on
            the page of each hop.

    Raises:
        CorpusError: there are no questions, or one has more than MAX_HOPS pages of evidence.

    Attributes:
        digest: of the corpus and all questions, 16 bytes.
    """

    def __init__(
        self,
        library: Library,
        questions: Sequence[Question],
        chains: dict[str, list[list[str]]] | None = None,
    ) -> None:
        import hashlib

        if not questions:
            raise CorpusError("there are no questions; give at least one")
        self.shelf = library
        self.questions = tuple(questions)
        self.chains = chains or {}
        hasher = hashlib.blake2b(library.corpus.digest.encode(), digest_size=16)
        for question in self.questions:
            if len(question.evidence) > MAX_HOPS:
                raise CorpusError(
                    f"the question {question.qid!r} has {len(question.evidence)} pages of "
                    f"evidence; give at most {MAX_HOPS}"
                )
            hasher.update(repr(question).encode("utf-8", "surrogatepass"))
        self.digest = hasher.digest()
        n = len(self.questions)
        self.arrays: dict[str, NDArray[np.int32]] = {
            "q_names": np.zeros(n, np.int32),
            "q_patterns": np.zeros(n, np.int32),
            "q_rows": np.full((n, 1 + NAMES), -1, np.int32),
            "q_pattern_rows": np.full((n, PATTERNS), -1, np.int32),
            "q_tokens": np.full((n, QUESTION_TOKENS), -1, np.int32),
            "q_flags": np.zeros((n, FLAGS), np.int32),
            "q_name_id": np.full((n, NAMES), -1, np.int32),
            "q_name_tok": np.full((n, NAMES, NAME_TOKENS), -1, np.int32),
            "q_evidence": np.full((n, MAX_HOPS), -1, np.int32),
            "q_value": np.zeros((n, MAX_HOPS), np.int32),
            "q_hops": np.zeros(n, np.int32),
            "q_gold_start": np.zeros(n + 1, np.int32),
            "q_start": np.full(n, -1, np.int32),
            "q_slot": np.full((n, MAX_HOPS), -1, np.int32),
            "q_target": np.full((n, MAX_HOPS), -1, np.int32),
        }
        # Questions accept one answer or a hundred: a row of its own length for each.
        np.cumsum([len(q.answers) for q in self.questions], out=self.arrays["q_gold_start"][1:])
        self.arrays["q_gold"] = np.full(int(self.arrays["q_gold_start"][-1]), -1, np.int32)
        self._ready: list[Candidates | None] = [None] * n
        self._tables: Tables | None = None
        self._version = -1

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def has_chains(self) -> bool:
        """Whether the way to every answer is known."""
        return len(self.chains) == len(self.questions)

    @property
    def tables(self) -> Tables:
        """The arrays for the rules, those of the library included."""
        if self._tables is None or self._version != self.shelf.version:
            both = {**self.shelf.arrays, **self.arrays}
            self._tables = Tables(**{name: both[name] for name in Tables._fields})
            self._version = self.shelf.version
        return self._tables

    def ready(self, index: int) -> Candidates:
        """The candidates of a question, looked up on first use."""
        known = self._ready[index]
        if known is None:
            known = self._prepare(index)
            self._ready[index] = known
        return known

    def query_text(self, index: int, k: int) -> str:
        """The text of a question's query: itself (0) or one of its names (from 1)."""
        return self.questions[index].question if k == 0 else self.ready(index).names[k - 1]

    def query_row(self, index: int, k: int) -> int:
        """The row of results of a question's query, looked up on first use."""
        row = int(self.arrays["q_rows"][index, k])
        if row < 0:
            row = self.shelf.query_row(self.query_text(index, k))
            self.arrays["q_rows"][index, k] = row
        return row

    def _prepare(self, index: int) -> Candidates:
        question, library, a = self.questions[index], self.shelf, self.arrays
        found = candidates(question.question)
        a["q_names"][index] = len(found.names)
        a["q_patterns"][index] = len(found.patterns)
        for k, pattern in enumerate(found.patterns):
            a["q_pattern_rows"][index, k] = library.pattern_row(pattern)
        tokens = library.tokens(question.question, QUESTION_TOKENS)
        a["q_tokens"][index, : len(tokens)] = tokens
        flags = [found.korean, found.number, found.chained, *found.genitive]
        a["q_flags"][index, : len(flags)] = flags
        for k, name in enumerate(found.names):
            numbers = library.tokens(name, NAME_TOKENS)
            a["q_name_id"][index, k] = library.number_of.get(name, -1)
            a["q_name_tok"][index, k, : len(numbers)] = numbers
        # As `scoring.accepts` has it: an answer without a letter or digit equals nothing.
        gold = []
        for answer in question.answers:
            known = {library.folds[key] for key in answer_keys(answer) & library.folds.keys()}
            gold += sorted(known)[:1]
        start = int(a["q_gold_start"][index])
        a["q_gold"][start : start + len(gold)] = gold
        evidence = [library.corpus.by_docid[d] for d in question.evidence]
        a["q_evidence"][index, : len(evidence)] = evidence
        a["q_hops"][index] = len(evidence)
        values = [PAGE_REWARD * (k + 1) for k in range(len(evidence))]
        if not question.ordered and values:
            values = [sum(values) // len(values)] * len(values)
        a["q_value"][index, : len(values)] = values
        if question.qid in self.chains:
            self._prepare_chain(index, found, self.chains[question.qid])
        self._ready[index] = found
        # The names are needed at once by almost everyone, the question itself is not.
        for k in range(1, 1 + len(found.names)):
            self.query_row(index, k)
        return found

    def _prepare_chain(self, index: int, found: Candidates, chain: list[list[str]]) -> None:
        library, a = self.shelf, self.arrays
        start = chain[0][0]
        if start in found.names:
            a["q_start"][index] = found.names.index(start)
        for hop, (word, name) in enumerate(chain[1:]):
            if word in found.patterns:
                a["q_slot"][index, hop] = found.patterns.index(word)
            document = int(a["q_evidence"][index, hop])
            a["q_target"][index, hop] = _fact_mention(library, document, name, word)


def _fact_mention(library: Library, document: int, name: str, word: str) -> int:
    """The mention of a name in a sentence that has a word and no doubt; -1: none."""
    arrays = library.arrays
    first, last = arrays["men_start"][document : document + 2].tolist()
    row = library.pattern_row(word)
    _, _, low, high = arrays["pat_start"][row].tolist()
    hits = library.arrays["pat_hits"][low:high]
    for mention in range(first, last):
        if arrays["men_doubt"][mention] or library.names[arrays["men_name"][mention]] != name:
            continue
        sentence = int(arrays["men_sent"][mention])
        at = int(np.searchsorted(hits, sentence))
        if at < len(hits) and hits[at] == sentence:
            return mention
    return -1


# -- generating ------------------------------------------------------------------------------


class Draft(NamedTuple):
    """A generated question: the question, and the word and name of each hop (`QuestionSet`)."""

    question: Question
    chain: list[list[str]]


def draft(
    encyclopedia: Encyclopedia, library: Library, rng: RandomSequence, number: int
) -> Draft | None:
    """Draw a question; None if what was drawn has no single answer that can be reached.

    Checked here, by names alone: the thing that the question starts with and every thing that a
    page names without a link is the only one of this name (and noun, where it stands), searching
    for the name finds its page, and no page or answer comes twice.
    """
    things = encyclopedia.things
    thing = rng.choice(things)
    roll = rng.below(100)
    hops = 2 if roll < 40 else 3 if roll < 75 else 4
    name = thing.alias if thing.alias and rng.chance(0.35) else thing.name
    shared = len(encyclopedia.bearers[thing.language, name]) > 1
    start = Mention(name, shared or rng.chance(0.5), False)
    if not _reachable(encyclopedia, library, thing, start):
        return None
    path: list[tuple[Thing, int]] = []
    at: Thing = thing
    for hop in range(hops):
        last = hop == hops - 1
        choices = [r for r in at.facts if last or RELATIONS[r].object]
        if not choices:
            return None
        relation = rng.choice(choices)
        if any(RELATIONS[relation].noun == RELATIONS[r].noun for _, r in path):
            return None
        path.append((at, relation))
        if RELATIONS[relation].object:
            following = things[at.facts[relation]]
            mention = at.mentions[relation]
            if following.index == thing.index or any(following is t for t, _ in path):
                return None
            if not last and not _reachable(encyclopedia, library, following, mention):
                return None
            if last and not _single(encyclopedia, following, mention):
                return None
            at = following
    relation = path[-1][1]
    language = thing.language
    if RELATIONS[relation].object:
        answers = (path[-1][0].mentions[relation].name, *at.names, at.title)
    else:
        answers = (str(path[-1][0].facts[relation]),)
    text = _phrase(rng, encyclopedia, thing, start, [r for _, r in path])
    if any(answer in text for answer in answers):
        return None
    chain = [[start.name, ""]]
    for owner, r in path:
        word = (RELATIONS[r].noun if language == EN else RELATIONS[r].noun_ko).split()[0]
        named = owner.mentions[r].name if RELATIONS[r].object else str(owner.facts[r])
        chain.append([word, named])
    evidence = tuple(owner.docid for owner, _ in path)
    question = Question(f"q{number:06d}", text, tuple(dict.fromkeys(answers)), evidence, True)
    return Draft(question, chain)


def _single(encyclopedia: Encyclopedia, thing: Thing, mention: Mention) -> bool:
    """Whether a name, with the noun where it stands, or a link, means this thing alone."""
    if mention.linked:
        return True
    bearers = encyclopedia.bearers[thing.language, mention.name]
    if mention.noun:
        bearers = [b for b in bearers if encyclopedia.things[b].noun_word == thing.noun_word]
    return bearers == [thing.index]


def _reachable(
    encyclopedia: Encyclopedia, library: Library, thing: Thing, mention: Mention
) -> bool:
    """Whether it means this thing alone, and its page can be opened from there."""
    if mention.linked:
        return True
    if not _single(encyclopedia, thing, mention):
        return False
    row = library.query_row(mention.name)
    return encyclopedia.doc_of[thing.index] in library.arrays["results"][row, :RESULTS].tolist()


def _phrase(
    rng: RandomSequence,
    encyclopedia: Encyclopedia,
    thing: Thing,
    start: Mention,
    relations: list[int],
) -> str:
    """The question in words, sometimes with somebody who asks it: a name that leads nowhere."""
    language = thing.language
    last = RELATIONS[relations[-1]]
    other = rng.choice(encyclopedia.things)
    while other.language != language or other.name in thing.names:
        other = rng.choice(encyclopedia.things)
    aside = rng.below(4)
    if language == EN:
        quoted = start.name == thing.alias or _is_work(thing)
        name = f"“{start.name}”" if quoted else start.name
        words = f"the {thing.noun_word} {name}" if start.noun else name
        for relation in relations:
            words = f"the {RELATIONS[relation].noun} of {words}"
        who = "Who is" if last.object == "person" else "What is"
        if aside == 0:
            return f"A visitor from {other.name} asks: {who.lower()} {words}?"
        if aside == 1:
            return f"{who} {words}, as a visitor from {other.name} asked?"
        return f"{who} {words}?"
    words = f"{thing.noun_word} ‘{start.name}’" if start.noun else f"‘{start.name}’"
    for relation in relations:
        words += f"의 {RELATIONS[relation].noun_ko}"
    ending = {"person": "누구인가", "town": "어디인가", "": "얼마인가"}.get(last.object, "무엇인가")
    words = f"{words}{_topic(words)} {ending}?"
    if aside == 0:
        return f"‘{other.name}’에서 온 손님의 질문: {words}"
    if aside == 1:
        return f"{words} (‘{other.name}’에서 받은 질문)"
    return words


def _is_work(thing: Thing) -> bool:
    from mpt_envs.research.world.facts import KIND

    return thing.kind == KIND["work"]


def _topic(words: str) -> str:
    """The topic particle that fits the last syllable: 은 after a final consonant, else 는."""
    last = ord(words[-1])
    if 0xAC00 <= last <= 0xD7A3:
        return "은" if (last - 0xAC00) % 28 else "는"
    return "은"


def as_json(drafts: Sequence[Draft]) -> list[list[Any]]:
    """Drafts as plain values."""
    return [[list(d.question), d.chain] for d in drafts]


def from_json(values: Sequence[Any]) -> list[Draft]:
    """Inverse of `as_json`."""
    return [
        Draft(Question(q[0], q[1], tuple(q[2]), tuple(q[3]), bool(q[4])), chain)
        for q, chain in values
    ]


assert KO == 1 and ANSWER_REWARD > 0
