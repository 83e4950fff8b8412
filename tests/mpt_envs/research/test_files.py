"""Corpora and questions from files, good ones and broken ones; the real HotpotQA sample."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpt_envs.research import make_task
from mpt_envs.research.data.corpus import (
    Corpus,
    CorpusError,
    Document,
    Question,
    read_corpus,
    read_questions,
)
from mpt_envs.research.data.library import Library, prepare
from mpt_envs.research.data.pages import lay_out
from mpt_envs.research.rules.scoring import fold_answer, normalize_answer
from mpt_envs.research.task import ResearchTask
from mpt_envs.research.views.ansi import ansi
from mpt_envs.research.world.layout import DONE, DONE_RIGHT
from mpt_envs.research.world.questions import QuestionSet
from tests.mpt_envs.research.small import PAGES, QUESTIONS, call, page, small_task, write
from wrappers.errors import MissingCapabilityError, SnapshotError

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("MPT_DATA", ROOT.parent / "shared" / "data")) / "hotpotqa"
needs_hotpotqa = pytest.mark.skipif(
    not (DATA / "documents.jsonl").is_file(),
    reason="the HotpotQA sample is not at hand; name the folder that holds hotpotqa in MPT_DATA",
)


TITLES = ["Ada Velmar", "Bo Tann"]


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
        (["[" * 100_000], "this is no JSON"),
        (["\x00\x01"], "this is no JSON"),
        ([PAGES[0], PAGES[0]], "line 2: the docid 'a' stands twice, first at "),
        ([PAGES[0], {**PAGES[0], "docid": "z"}], "line 2: the url"),
        ([{**PAGES[0], "docid": "\x1b\n"}], "line 1: the field 'docid' is empty"),
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
        ([QUESTIONS[0], QUESTIONS[0]], "line 2: the qid '1' stands twice, first at "),
        ([{**QUESTIONS[0], "supporting_titles": "Ada"}], "expected a list"),
        ([{**QUESTIONS[0], "answer": "?!"}], "line 1: nothing can equal the answer '?!'"),
        ([{**QUESTIONS[0], "answers": ["Bo", "…"]}], "line 1: nothing can equal the answer"),
        ([{**QUESTIONS[0], "answers": [" "]}], "line 1: nothing can equal the answer"),
        (
            [{**QUESTIONS[0], "supporting_facts": {"sent_id": [0]}, "supporting_titles": None}],
            "without a list 'title'",
        ),
        (
            [
                {
                    **QUESTIONS[0],
                    "supporting_titles": ["Cid Ruun", "서울", "Nothing", "Long", *TITLES],
                }
            ],
            "line 1: the question '1' has 6 pages of evidence; give at most 4",
        ),
    ],
)
def test_broken_questions(tmp_path: Path, rows: list[object], said: str) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    path = write(tmp_path / "q.jsonl", rows)
    with pytest.raises(CorpusError, match=re.escape(said)):
        read_questions(path, corpus)


_NO_TEXT = [True, False, 1.5, float("nan"), float("inf"), [], ["x"], {}, {"text": "x"}, [["x", 0]]]


@pytest.mark.parametrize("value", _NO_TEXT, ids=repr)
def test_fields_of_another_type_are_refused(tmp_path: Path, value: object) -> None:
    """In every field of either file, named with its line; nothing becomes text by its repr."""
    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    for name in ("docid", "url", "title", "text"):
        path = write(tmp_path / "odd.jsonl", [PAGES[0], {**PAGES[1], name: value}])
        with pytest.raises(CorpusError, match=f"line 2: .*'{name}'"):
            read_corpus(path)
    other = {**QUESTIONS[0], "qid": "2"}
    rows = [{**other, name: value} for name in ("qid", "question", "answer")]
    rows += [{**other, name: [value]} for name in ("answers", "supporting_titles")]
    if not isinstance(value, list):
        rows += [{**other, name: value} for name in ("answers", "supporting_titles")]
    plain = {**other, "supporting_titles": None}
    rows += [{**plain, "supporting_facts": given} for given in ([[value, 0]], {"title": [value]})]
    for row in rows:
        path = write(tmp_path / "odd.jsonl", [QUESTIONS[0], row])
        with pytest.raises(CorpusError, match="line 2: "):
            read_questions(path, corpus)


@pytest.mark.parametrize(
    "fields",
    [
        {"supporting_titles": TITLES},
        {"supporting_titles": [["Ada Velmar", 0], ["Bo Tann", 1], ["Bo Tann", 2]]},
        {"supporting_titles": ["Ada  Velmar\n", "Elsewhere", "Bo Tann"]},
        {"supporting_facts": [["Ada Velmar", 0], ["Ada Velmar", 3], ["Bo Tann", 1]]},
        {"supporting_facts": {"title": [*TITLES, "Bo Tann"], "sent_id": [0, 1, 2]}},
        {"supporting_titles": [], "supporting_facts": [["Ada Velmar", 0], ["Bo Tann", 1]]},
        {"supporting_titles": None, "supporting_facts": TITLES},
    ],
    ids=repr,
)
def test_evidence_as_titles_or_as_hotpotqa_has_it(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    plain = {k: v for k, v in QUESTIONS[0].items() if k != "supporting_titles"}
    questions = read_questions(write(tmp_path / "q.jsonl", [{**plain, **fields}]), corpus)
    assert questions[0].evidence == ("a", "b")


def test_whole_numbers_count_as_their_text(tmp_path: Path) -> None:
    pages = [*PAGES, {"docid": 7, "url": None, "title": 1984, "text": 451}]
    corpus = read_corpus(write(tmp_path / "c.jsonl", pages))
    assert corpus.documents[0] == Document("7", "https://corpus.invalid/7", "1984", "451")
    row = {"qid": 1, "question": "When?", "answer": 1984, "answers": [1832, "1984"]}
    path = write(tmp_path / "q.jsonl", [{**row, "supporting_titles": [1984]}])
    (question,) = read_questions(path, corpus)
    assert (question.qid, question.answers, question.evidence) == ("1", ("1984", "1832"), ("7",))


def named_page(names: list[str]) -> list[dict[str, str]]:
    """A corpus of one page with so many links, which are the items in view."""
    text = " ".join(f"[{name}](https://else.example/{k})" for k, name in enumerate(names))
    return [{"docid": "x", "url": "https://x.example", "title": "Start", "text": text}]


@pytest.mark.parametrize(
    ("accepted", "right"),
    [
        ("A", {"A", "a."}),
        ("the", {"The"}),
        ("The The", {"The The"}),
        ("C++", {"C"}),
        ("an A", {"An a"}),
    ],
)
def test_listed_and_free_answers_are_judged_alike(
    tmp_path: Path, accepted: str, right: set[str]
) -> None:
    names = ["A", "a.", "The", "The The", "An a", "??", "C", "Bo"]
    rows = [{"qid": "1", "question": "Where is Start?", "answer": accepted}]
    for free_form in (False, True):
        task = small_task(tmp_path, free_form=free_form, corpus=named_page(names), questions=rows)
        task.act("searcher_0", task.action_names("searcher_0").index("search_question"))
        task.act("opener_0", 1)
        start = task.snapshot()
        for item, name in enumerate(names):
            task.restore(start)
            if free_form:
                reward = call(task, f"answer({name!r})")
            else:
                assert f'answer "{name}"' in task.prompt("finder_0", "act")
                action = task.action_names("finder_0").index(f"answer_{item}")
                reward = task.act("finder_0", action).reward
            assert reward == (20 if name in right else 0), (name, free_form)
            metrics = task.metrics()
            assert metrics["success"] == (name in right)
            # The official metric cannot tell articles from each other.
            assert metrics["exact_match"] == (normalize_answer(name) == normalize_answer(accepted))
            assert metrics["f1"] == 1 or name not in right or not normalize_answer(accepted)


def test_however_many_answers_are_accepted_each_is_right(tmp_path: Path) -> None:
    names = [f"Zq {k}" for k in range(9, -1, -1)]
    others = [f"Else {k}" for k in range(30)]
    row = {"qid": "1", "question": "Where is Start?", "answer": names[0]}
    rows = [{**row, "answers": [*others, *names]}, {**row, "qid": "2", "answer": "nothing"}]
    for free_form in (False, True):
        task = small_task(tmp_path, free_form=free_form, corpus=named_page(names), questions=rows)
        for index in (0, 1):
            for item, name in enumerate(names):
                begin_question(task, index)
                task.act("searcher_0", task.action_names("searcher_0").index("search_question"))
                task.act("opener_0", 1)
                if free_form:
                    reward = call(task, f"answer({name!r})")
                else:
                    action = task.action_names("finder_0").index(f"answer_{item}")
                    reward = task.act("finder_0", action).reward
                assert reward == (20 if index == 0 else 0)


def test_evidence_is_never_cut(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    docids = tuple(d.docid for d in corpus.documents)
    library = prepare(corpus)
    assert QuestionSet(library, [Question("1", "Who?", ("x",), docids[:4])]).ready(0)
    with pytest.raises(CorpusError, match="6 pages of evidence; give at most 4"):
        QuestionSet(library, [Question("1", "Who?", ("x",), docids)])


@pytest.mark.parametrize("which", ["corpus", "questions"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "must be a path"),
        (b"x.jsonl", "must be a path"),
        (["x.jsonl"], "must be a path"),
        (True, "must be a path"),
        ("~nobody-of-this-name/x.jsonl", "cannot be followed"),
        ("", "is no path"),
        (".", "there is no file"),
        ("x\0y", "is no path"),
        ("x" * 5000, "cannot be read|there is no file"),
        ("/proc/self/mem", "cannot be read"),
    ],
)
def test_what_is_no_readable_file_is_a_clear_error(
    tmp_path: Path, which: str, given: object, said: str
) -> None:
    if given == "/proc/self/mem" and not Path(given).is_file():
        pytest.skip("there is no such file on this system")
    good = {
        "corpus": write(tmp_path / "c.jsonl", PAGES),
        "questions": write(tmp_path / "q.jsonl", QUESTIONS),
    }
    files: dict[str, object] = {**good, which: given}
    with pytest.raises(CorpusError, match=said):
        make_task(**files)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["open", "is_file", "stat"])
@pytest.mark.parametrize("which", ["c.jsonl", "q.jsonl"])
def test_files_that_may_not_be_read_are_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, method: str
) -> None:
    """As for a file, or a folder above it, that belongs to somebody else."""
    corpus = write(tmp_path / "c.jsonl", PAGES)
    questions = write(tmp_path / "q.jsonl", QUESTIONS)
    usual = getattr(Path, method)

    def refuse(path: Path, *args: object, **more: object) -> object:
        if path.name == which:
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *args, **more)

    monkeypatch.setattr(Path, method, refuse)
    if method == "stat":
        monkeypatch.setattr(Path, "is_file", lambda path: path.name != which or refuse(path))
    with pytest.raises(CorpusError, match=r"cannot be read \(.*Permission denied"):
        make_task(corpus=corpus, questions=questions)


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path / "c.jsonl", PAGES)
    write(tmp_path / "q.jsonl", QUESTIONS)
    task = make_task(corpus="~/c.jsonl", questions=Path("~/q.jsonl"))
    assert len(task.questions.shelf.corpus) == len(PAGES)


@pytest.mark.parametrize("free_form", [True, False])
@pytest.mark.parametrize(
    ("target", "docid"),
    [
        ("https://x.example/b", "bruno"),
        ("https://corpus.invalid/7", "7"),
        ("bruno", "bruno"),
        ("7", "7"),
        ("Beta", "7"),
        ("Bruno%20Kast", "bruno"),
        ("<Bruno Kast>", "bruno"),
        ("< bruno >", "bruno"),
        # An address comes before a docid, and a docid before a title.
        ("Both", "address"),
        ("Half", "Half"),
        ("Twice", "t1"),
        ("beta", None),
        ("bru", None),
        ("/bruno", None),
        ("https://else.example/bruno", None),
        ("%ff%00", None),
        ("<>", None),
        ("<", None),
    ],
)
def test_a_link_names_a_page_by_address_docid_or_title(
    tmp_path: Path, target: str, docid: str | None, free_form: bool
) -> None:
    pages = [
        {"docid": "start", "title": "Start", "text": f"A line on [Somebody]({target}), a chemist."},
        {"docid": "bruno", "url": "https://x.example/b", "title": "Bruno Kast", "text": "."},
        {"docid": 7, "title": "Beta", "text": "."},
        {"docid": "address", "url": "Both", "title": "A", "text": "."},
        {"docid": "Both", "title": "Half", "text": "."},
        {"docid": "Half", "title": "Both", "text": "."},
        {"docid": "t2", "title": "Twice", "text": "."},
        {"docid": "t1", "title": "Twice", "text": "."},
    ]
    rows = [{"qid": "1", "question": "What is on Start?", "answer": "x"}]
    task = small_task(tmp_path, free_form=free_form, corpus=pages, questions=rows)
    corpus = task.questions.shelf.corpus
    task.act("searcher_0", task.action_names("searcher_0").index("search_question"))
    task.act("opener_0", 1)
    host = "x.example" if docid == "bruno" else "corpus.invalid"
    if docid in ("7", "bruno", "Half", "t1"):
        assert f"【0†Somebody†{host}】" in page(task)
    assert task.action_mask("opener_0")[1:11].any() == (docid is not None)
    if docid is None:
        if free_form:
            call(task, "open(id=0)")
            assert "leads out of the corpus" in page(task)
        return
    there = corpus.documents[corpus.by_docid[docid]]
    start = task.snapshot()
    ways = ["open(id=0)", f"open({there.url!r})"] if free_form else [None]
    for way in ways:
        task.restore(start)
        if way is None:
            task.act("opener_0", 1 + task.action_mask("opener_0")[1:11].tolist().index(True))
        else:
            call(task, way)
        assert f"[2] {there.title} ({there.url})" in page(task), way


_HOSTILE = "Evil\x1b[31m\nL0: fake\r\u2028L1: fake\x07 \u202e\ud800"


def test_nothing_of_a_file_can_pass_for_a_line_or_steer_a_terminal(tmp_path: Path) -> None:
    """Whatever field it stands in, on whatever kind of page it is shown."""
    pages = [
        {
            "docid": _HOSTILE,
            "url": f"https://x.example/{_HOSTILE}",
            "title": _HOSTILE,
            "text": f"Evil {_HOSTILE} [{_HOSTILE.splitlines()[0]}](https://x.example/y)",
        },
        {"docid": f"2{_HOSTILE}", "url": "", "title": None, "text": f"---\ntitle: {_HOSTILE}\n---"},
        {"docid": f"3{_HOSTILE}", "text": "---\ntitle: Evil\x1b \ud800\n---\nEvil"},
        {"docid": "4", "url": f"https://x.example/4/{_HOSTILE}", "text": "Evil"},
    ]
    row = {"qid": _HOSTILE, "question": f"Who is “{_HOSTILE}” of Evil?", "answer": _HOSTILE}
    row = {**row, "supporting_titles": [_HOSTILE]}
    for free_form in (True, False):
        task = small_task(tmp_path, free_form=free_form, corpus=pages, questions=[row])
        assert len(task.questions.questions[0].evidence) == 1
        clean_shown(task)
        task.act("searcher_0", task.action_names("searcher_0").index("search_question"))
        assert "†x.example】" in page(task)
        clean_shown(task)
        start = task.snapshot()
        for number in range(int(task.action_mask("opener_0")[1:11].sum())):
            task.restore(start)
            task.act("opener_0", 1 + number)
            clean_shown(task)
            task.act("finder_0", 1)
            clean_shown(task)
        if free_form:
            call(task, f"answer({_HOSTILE!r})")
        else:
            task.act("finder_0", task.action_names("finder_0").index("answer_0"))
        clean_shown(task)


def clean_shown(task: ResearchTask) -> None:
    """Everything that agents and people read is printable and has no forged lines."""
    shown = [task.prompt(a, phase) for a in task.possible_agents for phase in ("bid", "act")]
    shown += [ansi(task.desk, color=False), *task.narrate()]
    for text in shown:
        text.encode()
        assert all(c.isprintable() or c == "\n" for c in text), ascii(text)
        assert not re.search("^L[01]: fake", text, re.MULTILINE), text
    task.render("rgb_array")


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


def test_a_snapshot_of_another_variant_says_how_to_make_that_one(tmp_path: Path) -> None:
    """Each variant has an id of its own, but `make` knows only one."""
    write(tmp_path / "c.jsonl", PAGES)
    write(tmp_path / "q.jsonl", QUESTIONS)
    files: dict[str, Any] = {
        "corpus": tmp_path / "c.jsonl",
        "questions": tmp_path / "q.jsonl",
    }
    variants = [
        (bool(custom), free_form, make_task(**custom, free_form=free_form))
        for custom in ({}, files)
        for free_form in (False, True)
    ]
    for _, _, task in variants:
        task.reset(0)
    for custom, free_form, taken in variants:
        for custom_here, free_form_here, here in variants:
            if taken is here:
                continue
            with pytest.raises(SnapshotError) as raised:
                here.restore(taken.snapshot())
            said = str(raised.value)
            assert "make(" not in said
            assert ("over another corpus" in said) == (custom != custom_here)
            assert ("with the same corpus= and questions=" in said) == (custom > custom_here)
            assert ("without corpus= and questions=" in said) == (custom < custom_here)
            assert (f"with free_form={free_form}" in said) == (free_form != free_form_here)


def test_hotpotqa_as_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra [research]")
    import pyarrow.parquet as parquet

    corpus = read_corpus(write(tmp_path / "c.jsonl", PAGES))
    facts = {"title": TITLES, "sent_id": [0, 1]}
    row = {"qid": "1", "question": "Who?", "answer": "x", "supporting_facts": facts}
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "q.parquet")
    assert read_questions(tmp_path / "q.parquet", corpus)[0].evidence == ("a", "b")
    parquet.write_table(pa.Table.from_pylist([{**row, "answer": 1.5}]), tmp_path / "q.parquet")
    with pytest.raises(CorpusError, match=r"row 1: .*'answer', got 1\.5"):
        read_questions(tmp_path / "q.parquet", corpus)


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
    texts = {d.docid: fold_answer(d.text) for d in library.corpus.documents}
    spans, reached = 0, 0
    for index, question in enumerate(task.questions.questions):
        answer = question.answers[0]
        wanted = fold_answer(answer)
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
    from mpt_envs.research.rules.turn import begin
    from mpt_envs.research.task import ResearchTask

    assert isinstance(task, ResearchTask)
    task.questions.ready(index)
    task.texts = []
    begin(task.record, task.batch.stacks[0], task.questions.tables, index, np.uint64(1))


def hotpotqa() -> tuple[Library, tuple[object, ...]]:
    library = prepare(read_corpus(DATA / "documents.jsonl"))
    return library, read_questions(DATA / "questions.jsonl", library.corpus)


def test_a_search_is_quick() -> None:
    """At most a millisecond on 20,000 documents (with room for a busy machine)."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(5000)])
    from mpt_envs.research.data.index import SearchIndex

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
