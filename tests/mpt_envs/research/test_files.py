"""Corpora and questions from files, good ones and broken ones; the real HotpotQA sample."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mpt_envs.research import make_task
from mpt_envs.research.corpus import Corpus, CorpusError, Document, read_corpus, read_questions
from mpt_envs.research.layout import DONE, DONE_RIGHT
from mpt_envs.research.library import Library, prepare
from mpt_envs.research.pages import lay_out
from mpt_envs.research.scoring import normalize_answer
from tests.mpt_envs.research.small import PAGES, QUESTIONS, call, page, small_task, write
from wrappers.errors import MissingCapabilityError, SnapshotError

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("MPT_DATA", ROOT.parent / "shared" / "data")) / "hotpotqa"
needs_hotpotqa = pytest.mark.skipif(
    not (DATA / "documents.jsonl").is_file(),
    reason="the HotpotQA sample is not at hand; name the folder that holds hotpotqa in MPT_DATA",
)


def test_a_corpus_is_read(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", [*PAGES, ""]))
    assert [d.docid for d in corpus.documents] == ["a", "b", "c", "e", "k", "l"]
    assert corpus.documents[0].title == "Ada Velmar"
    assert corpus.documents[0].text.startswith("Ada Velmar was")
    again = Corpus(reversed(corpus.documents))
    assert again.digest == corpus.digest
    changed = [corpus.documents[0]._replace(text="else"), *corpus.documents[1:]]
    assert Corpus(changed).digest != corpus.digest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no documents"),
        (["{broken"], "line 1: this is no JSON"),
        ([PAGES[0], "[1, 2]"], "line 2: expected a JSON object"),
        ([{"docid": "x", "url": "u"}], "the field 'text' is missing"),
        ([{"docid": "", "url": "u", "text": "t"}], "the field 'docid' is empty"),
        ([{"docid": None, "url": "u", "text": "t"}], "the field 'docid' is missing"),
        ([PAGES[0], PAGES[0]], "the docid 'a' twice"),
        ([PAGES[0], {**PAGES[1], "url": PAGES[0]["url"]}], "the url"),
        (["[" * 100_000], "this is no JSON"),
        (["\x00\x01"], "this is no JSON"),
    ],
)
def test_broken_corpora(tmp_path: Path, rows: list[object], said: str) -> None:
    path = write(tmp_path / "c.jsonl", rows)
    with pytest.raises(CorpusError, match=re.escape(said)):
        read_corpus(path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no questions"),
        ([{"qid": "1", "question": "Who?"}], "has no answer"),
        ([{"qid": "1", "question": "Who?", "answer": " "}], "has no answer"),
        ([{"qid": "1", "answer": "x"}], "the field 'question' is missing"),
        ([QUESTIONS[0], QUESTIONS[0]], "the qid '1' twice"),
        ([{**QUESTIONS[0], "supporting_titles": "Ada"}], "expected a list"),
    ],
)
def test_broken_questions(tmp_path: Path, rows: list[object], said: str) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    path = write(tmp_path / "q.jsonl", rows)
    with pytest.raises(CorpusError, match=re.escape(said)):
        read_questions(path, corpus)


def test_missing_files_and_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CorpusError, match="there is no file"):
        make_task(corpus=tmp_path / "no.jsonl", questions=tmp_path / "no.jsonl")
    bad = tmp_path / "c.parquet"
    bad.write_bytes(b"PAR1 not really")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingCapabilityError, match=r"mpt-swarm\[research\]"):
        read_corpus(bad)


def test_parquet_gives_the_same_as_json_lines(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra [research]")
    import pyarrow.parquet as parquet

    pages = [p for p in PAGES if p["docid"] != "l"]
    table = pa.Table.from_pylist([{"title": "", **page} for page in pages])
    parquet.write_table(table, tmp_path / "c.parquet")
    other = read_corpus(write(tmp_path / "c.jsonl", pages))
    assert read_corpus(tmp_path / "c.parquet").digest == other.digest
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 not really")
    with pytest.raises(CorpusError, match="cannot be read as parquet"):
        read_corpus(bad)


def test_a_question_nobody_can_answer_ends_with_the_turns(tmp_path: Path) -> None:
    """Nothing in the corpus answers it; the game goes on and the answer is wrong."""
    rows = [{"qid": "1", "question": "Who painted Ghost Ship?", "answer": "Zed"}]
    task = small_task(tmp_path, free_form=False, questions=rows)
    assert not task.has_expert
    rng = np.random.default_rng(0)
    for _ in range(40):
        agent = task.possible_agents[rng.integers(3)]
        legal = np.flatnonzero(task.action_mask(agent))
        result = task.act(agent, int(rng.choice(legal)))
        assert result.reward == 0
    assert task.metrics()["success"] == 0


def test_a_snapshot_fits_its_own_corpus_only(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    task = small_task(tmp_path / "x")
    call(task, 'search("Ada")')
    other = small_task(tmp_path / "y", corpus=PAGES[:-1])
    before = other.snapshot()
    with pytest.raises(SnapshotError, match="another corpus"):
        other.restore(task.snapshot())
    assert other.snapshot() == before


def test_a_page_of_a_megabyte(tmp_path: Path) -> None:
    huge = {"docid": "z", "url": "https://z.example", "title": "Huge", "text": "Ab cd. " * 150_000}
    unbroken = {"docid": "y", "url": "https://y.example", "title": "Wall", "text": "가" * 1_000_000}
    task = small_task(tmp_path, corpus=[*PAGES, huge, unbroken])
    call(task, 'search("Huge")')
    call(task, 'open("https://z.example")')
    call(task, "find('cd')")
    assert page(task).count("†match") == 50
    call(task, "open(loc=12000, cursor=1)")
    assert "**viewing lines [12000 - 12039]" in page(task)
    call(task, 'search("Wall")')
    call(task, 'open("https://y.example")')
    assert max(map(len, page(task).splitlines())) < 100
    assert task.observe("finder_0").max() <= 1


@needs_hotpotqa
def test_the_plain_question_finds_a_supporting_page() -> None:
    library, questions = hotpotqa()
    found = 0
    for question in questions:
        results = library.index.search(question.question, 10).tolist()
        docids = {library.corpus.documents[i].docid for i in results}
        found += bool(docids & set(question.evidence))
    assert found / len(questions) > 0.95


@needs_hotpotqa
def test_an_oracle_reaches_every_answer_that_stands_in_a_page() -> None:
    """Through the tools alone: search the title, open, find, answer."""
    task = make_task(
        corpus=DATA / "documents.jsonl", questions=DATA / "questions.jsonl", free_form=True
    )
    library = task.questions.shelf
    texts = {d.docid: normalize_answer(d.text) for d in library.corpus.documents}
    spans, reached = 0, 0
    for index, question in enumerate(task.questions.questions):
        answer = question.answers[0]
        wanted = normalize_answer(answer)
        pages = [d for d in question.evidence if f" {wanted} " in f" {texts[d]} "]
        if not pages or wanted in ("yes", "no"):
            continue
        spans += 1
        begin_question(task, index)
        document = library.corpus.documents[library.corpus.by_docid[pages[0]]]
        call(task, f"search({document.title!r})")
        shown = page(task)
        number = next(
            (m[1] for m in re.finditer(r"【(\d+)†(.*?)†example.org】", shown)
             if m[2] == " ".join(document.title.split())),
            None,
        )  # fmt: skip
        assert number is not None, f"{document.title} is not among the results"
        call(task, f"open(id={number})")
        call(task, f"find({answer.split()[0]!r})")
        call(task, f"answer({answer!r})")
        reached += int(task.record[DONE] == DONE_RIGHT)
    assert spans > 180
    assert reached == spans


def begin_question(task: object, index: int) -> None:
    """Start the episode of one question, whatever its seed."""
    from mpt_envs.research.rules import begin
    from mpt_envs.research.task import ResearchTask

    assert isinstance(task, ResearchTask)
    task.questions.ready(index)
    task.texts = []
    begin(task.record, task.rows, task.questions.tables, index, np.uint64(1))


def hotpotqa() -> tuple[Library, tuple[object, ...]]:
    library = prepare(read_corpus(DATA / "documents.jsonl"))
    return library, read_questions(DATA / "questions.jsonl", library.corpus)


def test_a_search_is_quick() -> None:
    """At most a millisecond on 20,000 documents (with room for a busy machine)."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(5000)])
    from mpt_envs.research.index import SearchIndex

    documents = [words[rng.zipf(1.3, 40) % 5000].tolist() for _ in range(20_000)]
    index = SearchIndex.build(documents)
    queries = [" ".join(words[rng.integers(20, 5000, 4)]) for _ in range(200)]
    times = []
    for query in queries:
        start = time.perf_counter()
        index.search(query, 10)
        times.append(time.perf_counter() - start)
    assert np.median(times) < 2e-3


def test_mentions_of_ordinary_text() -> None:
    text = (
        "The Lewiston Maineiacs played at the Androscoggin Bank Colisée, which seats 3,677. "
        "Who knows? In 1948 Ann O'Neil of Kyoto wrote “The Long Road”, and nobody's sorry."
    )
    found = [m.name for m in lay_out(text).mentions]
    assert found == [
        "The Lewiston Maineiacs", "Androscoggin Bank Colisée", "3,677", "1948",
        "Ann O'Neil of Kyoto", "The Long Road",
    ]  # fmt: skip
    document = Document("x", "u", "Title", text)
    assert Corpus([document]).digest == Corpus([document]).digest
