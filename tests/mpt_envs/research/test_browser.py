"""The tools' text, and what they answer to calls that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpt_envs.research.rules.metrics import answer_text
from mpt_envs.research.task import ResearchTask
from mpt_envs.research.views.browser import pattern_of, query_of
from mpt_envs.research.world.layout import DONE, DONE_RIGHT, DONE_WRONG
from tests.mpt_envs.research.small import PAGES, SITE, call, page, small_task
from wrappers.task import ParseError, Snapshot


@pytest.fixture
def task(tmp_path: Path) -> ResearchTask:
    return small_task(tmp_path)


def test_the_text_of_the_tools(task: ResearchTask) -> None:
    call(task, 'search("Ada Velmar", topn=2)')
    assert "\n".join(page(task).splitlines()[3:9]) == "\n".join(
        [
            "[0] Search results for: Ada Velmar (search://?q=Ada%20Velmar)",
            "**viewing lines [0 - 5] of 5**",
            "",
            "L0: # Search Results",
            "L1: ",
            "L2:   * 【0†Ada Velmar†small.example】",
        ]
    )
    assert call(task, "open(id=0, num_lines=3)") > 0
    shown = page(task)
    assert f"[1] Ada Velmar ({SITE}/ada)" in shown
    assert (
        "L0: Ada Velmar was a painter. Her teacher was 【0†Bo Tann†small.example】. It was" in shown
    )
    lines = [line for line in shown.splitlines() if line.startswith("L")]
    assert len(lines) == 3
    assert all(len(line) <= 84 for line in lines)
    call(task, "find('WAS a Painter')")
    shown = page(task)
    found = f"{SITE}/ada/find?pattern=WAS%20a%20Painter"
    assert f"[2] Find results for `WAS a Painter` in Ada Velmar ({found})" in shown
    assert "L0: # 【0†match at L0】" in shown
    call(task, "open(id=0, cursor=1)")
    assert f"[3] Bo Tann ({SITE}/bo)" in page(task)
    assert call(task, 'answer("1832 【3†L0-L1】")') == 20
    assert task.record[DONE] == DONE_RIGHT
    metrics = task.metrics()
    assert metrics["success"] == metrics["exact_match"] == metrics["citation_correct"] == 1
    assert metrics["evidence_recall"] == 1


def test_scrolling_and_addresses(task: ResearchTask) -> None:
    call(task, 'search("Ada Velmar")')
    call(task, f'open("{SITE}/ada")')
    last = int(page(task).partition("] of ")[2].partition("*")[0])
    assert last > 20
    call(task, f"open(loc={last})")
    assert f"**viewing lines [{last} - {last}] of {last}**" in page(task)
    assert "Mimi" in page(task)
    call(task, "find('mimi')")
    call(task, "open(id=0)")
    assert "Mimi" in page(task)
    call(task, 'search("서울")')
    assert "【0†서울†small.example】" in page(task)


@pytest.mark.parametrize(
    ("before", "hostile", "said"),
    [
        ([], "open(id=0)", "No page is open yet"),
        ([], "find('x')", "No page is open yet"),
        ([], 'open("https://nowhere.example")', "No page so far shows the address"),
        (['search("Ada")'], "open(id=99)", "no link 99"),
        (['search("Ada")'], "open(loc=3)", "shown as a whole"),
        (['search("Ada")'], "find('x')", "works on a document"),
        (['search("Ada")'], "open(id=0, cursor=7)", "no page with cursor 7"),
        (['search("Ada")'], "open(id=0, cursor=-5)", "no page with cursor -5"),
        (['search("Ada")', "open(id=0)"], "open(loc=2000000000)", "beyond the end"),
        (['search("Ada")', "open(id=0)"], "open(id=12345)", "no link 12345"),
        (['search("Long")', "open(id=0)"], "open(id=0)", "leads out of the corpus"),
        (
            ['search("Long")', "open(id=0)"],
            'open("https://else.example/x")',
            "leads out of the corpus",
        ),
        (['search("Ada")', "open(id=0)", "find('zz')"], "open(id=0)", "no match 0"),
    ],
)
def test_errors_come_back_as_text(
    task: ResearchTask, before: list[str], hostile: str, said: str
) -> None:
    for text in before:
        call(task, text)
    assert call(task, hostile) == 0
    assert said in page(task).partition("Error:")[2]
    # A turn has passed, and the next call works.
    call(task, 'search("Bo Tann")')
    assert "Error:" not in page(task)


@pytest.mark.parametrize("query", [" ?!", "¿…", "\u3164\u3164", "the of zzzz", "q" * 1900])
def test_queries_that_find_nothing(task: ResearchTask, query: str) -> None:
    call(task, f'search("{query}")')
    assert "No results for:" in page(task)


@pytest.mark.parametrize("pattern", [".*", "(a+)+$", "[", "\\\\", "painter.", "%s", "a" * 1900])
def test_patterns_are_plain_text(task: ResearchTask, pattern: str) -> None:
    call(task, 'search("Ada")')
    call(task, "open(id=0)")
    call(task, f'find("{pattern}")')
    hits = page(task).count("†match at L")
    assert hits == (1 if pattern == "painter." else 0)


def test_odd_pages(task: ResearchTask) -> None:
    call(task, 'search("Nothing")')
    call(task, f'open("{SITE}/empty")')
    assert "(this page is empty)" in page(task)
    call(task, 'search("Long")')
    call(task, f'open("{SITE}/long")')
    shown = page(task)
    assert shown.isprintable() or all(c.isprintable() or c == "\n" for c in shown)
    assert max(map(len, shown.splitlines())) < 120
    shown.encode()


@pytest.mark.parametrize("address", [row["url"] for row in PAGES])
def test_an_address_opens_only_when_it_was_shown(task: ResearchTask, address: str) -> None:
    """By a result, a link or the text of a page: else nobody would need the Searcher."""
    there = f"open({address!r})"
    for unseen in (there, "open('https://nowhere.example')"):
        assert call(task, unseen) == 0
        assert "No page so far shows the address" in page(task)
    call(task, 'search("Ada Velmar", topn=1)')
    if address != f"{SITE}/ada":
        assert call(task, there) == 0
        assert "No page so far shows the address" in page(task)
    title = {row["url"]: row.get("title", "Bo Tann") for row in PAGES}[address]
    call(task, f"search({title!r})")
    call(task, there)
    assert f"({address})" in page(task)


def test_addresses_of_links_and_in_the_text_of_pages_were_shown(tmp_path: Path) -> None:
    text = (
        f"See <{SITE}/a_(b)>, or {SITE}/c_(d). Not {SITE}/eff, but "
        f"[this]({SITE}/g) and [that]({SITE}/h_(i))."
    )
    shown, hidden = ("a_(b)", "c_(d)", "g"), ("e", "ef", "c_", "z")
    pages = [{"docid": "start", "url": f"{SITE}/start", "title": "Start", "text": text}]
    pages += [
        {"docid": end, "url": f"{SITE}/{end}", "title": f"Page {n}", "text": "Nothing."}
        for n, end in enumerate((*shown, *hidden))
    ]
    rows = [{"qid": "1", "question": "Where is Start?", "answer": "Nothing"}]
    task = small_task(tmp_path, corpus=pages, questions=rows)
    call(task, 'search("Start", topn=1)')
    call(task, "open(id=0)")
    call(task, "find('see')")
    for end in hidden:
        call(task, f"open('{SITE}/{end}')")
        assert "No page so far shows the address" in page(task)
    for end in (*shown, "start"):
        call(task, f"open('{SITE}/{end}')")
        assert f"({SITE}/{end})" in page(task)


def test_a_long_game_never_runs_out_of_room_for_messages_and_the_answer(tmp_path: Path) -> None:
    """A thousand and more different failures: each is told, none costs a page or the answer."""
    task, twin = small_task(tmp_path), small_task(tmp_path)
    for number in range(30):
        call(task, f'search("ada {number}")')
    assert call(task, 'open("https://small.example/ada")') > 0
    for number in range(1700):
        if number % 10 == 0:
            call(task, f"find('boats {number}')")
        call(task, f"open(id={1000 + number})")
        assert f"no match {1000 + number}." in page(task) or "stack is full" in page(task)
        if number % 200 == 0:
            twin.restore(Snapshot(task.task_id, task.snapshot_version, task.snapshot().payload))
            assert page(twin) == page(task)
    desk = task.desk
    assert [query_of(desk, n) for n in range(30)] == [f"ada {n}" for n in range(30)]
    assert pattern_of(desk, 100) == f"boats {10 * (100 - 31)}"
    call(task, "answer('Bo Tann')")
    assert task.metrics()["answered"] == 1
    assert answer_text(task.record, task.questions, task.texts) == "Bo Tann"
    twin.restore(Snapshot(task.task_id, task.snapshot_version, task.snapshot().payload))
    assert twin.metrics() == task.metrics()


def test_a_failure_that_comes_again_takes_no_more_room(task: ResearchTask) -> None:
    call(task, "open(id=0)")
    size = len(task.snapshot().payload)
    for _ in range(20):
        call(task, "open(id=0)")
        assert "No page is open yet" in page(task)
    assert len(task.snapshot().payload) == size


def test_answers_count_only_when_they_were_read(tmp_path: Path) -> None:
    task = small_task(tmp_path)
    assert call(task, 'answer("1832")') == 0
    assert task.record[DONE] == DONE_WRONG
    assert task.metrics()["exact_match"] == 1
    assert task.metrics()["success"] == 0
    assert "without having opened" in task.prompt("finder_0", "bid")


def test_the_judge_is_a_hook(task: ResearchTask) -> None:
    seen = []

    def judge(question: str, answer: str, accepted: tuple[str, ...]) -> bool:
        seen.append((question, answer, accepted))
        return True

    assert "judged" not in task.metrics()
    task.judge = judge
    assert task.metrics()["judged"] == 0
    call(task, 'answer("in the year 1832")')
    assert task.metrics()["judged"] == 1
    assert seen[-1][1:] == ("in the year 1832", ("1832",))
    assert 0 < task.metrics()["f1"] < 1


def test_the_page_stack_fills_up(task: ResearchTask) -> None:
    for number in range(205):
        call(task, f'search("ada {number % 3}")')
    assert "page stack is full" in page(task)
    assert call(task, 'answer("no idea")') == 0
    assert task.record[DONE] == DONE_WRONG


@pytest.mark.parametrize(
    ("agent", "text", "kind"),
    [
        ("searcher_0", "search()", "missing_argument"),
        ("searcher_0", 'search("")', "bad_argument"),
        ("searcher_0", "search(3.5)", "bad_argument"),
        ("searcher_0", 'search(query="a", depth=3)', "unknown_argument"),
        ("searcher_0", 'search("a", 1, 2, 3)', "bad_argument"),
        ("searcher_0", 'search("a"', "bad_call"),
        ("searcher_0", "search(__import__('os'))", "bad_argument"),
        ("searcher_0", f"search({'[' * 3000}", "bad_call"),
        ("searcher_0", "open(id=1)", "other_role"),
        ("searcher_0", "open_1", "other_role"),
        ("opener_0", "open(id=99999999999999999999)", "bad_argument"),
        ("opener_0", "open(id=True)", "bad_argument"),
        ("finder_0", '{"tool": "answer"}', "missing_argument"),
        ("finder_0", '{"tool": "answer", "answer": ["x"]}', "bad_argument"),
        ("searcher_0", '{"tool": "search", "query": "a", "query": "b"}', "ambiguous"),
        ("searcher_0", '{"tool": "search", "query": "a", "Query": "b"}', "ambiguous"),
        ("searcher_0", '{"tool": "search", "tool": "open", "query": "a"}', "ambiguous"),
        ("searcher_0", '{"tool": "search", "name": "open", "query": "a"}', "ambiguous"),
        (
            "searcher_0",
            '{"tool": "search", "arguments": {"query": "a", "query": "b"}}',
            "ambiguous",
        ),
        (
            "searcher_0",
            '{"tool": "search", "arguments": "{\\"query\\": \\"a\\", \\"query\\": \\"b\\"}"}',
            "ambiguous",
        ),
        ("searcher_0", '{"action": "wait", "action": "search_question"}', "ambiguous"),
        ("searcher_0", 'search("a", query="b")', "ambiguous"),
        ("searcher_0", 'search(query="a", query="b")', "ambiguous"),
        ("searcher_0", 'I look:\nsearch("a")\nsearch("b")', "ambiguous"),
        ("searcher_0", 'I look:\nsearch("a")\nthen\n`search("b")`', "ambiguous"),
        ("finder_0", "", "empty"),
        ("finder_0", "x" * 30_000, "too_long"),
        ("finder_0", "perhaps", "unknown_action"),
    ],
)
def test_calls_that_cannot_be_read(task: ResearchTask, agent: str, text: str, kind: str) -> None:
    before = task.snapshot()
    found = task.parse(agent, text)
    assert isinstance(found, ParseError)
    assert found.kind == kind
    assert found.message
    assert task.snapshot() == before


@pytest.mark.parametrize(
    "text",
    [
        'search("Ada Velmar")',
        "search('Ada Velmar')",
        'browser.search(query="Ada Velmar")',
        '```json\n{"tool": "search", "query": "Ada Velmar"}\n```',
        '{"name": "browser.search", "arguments": {"query": "Ada Velmar"}}',
        '{"action": "search", "query": "ada velmar"}',
        '{"action": "search", "query": "ada velmar", "query": "ada velmar"}',
        '{"action": "tool_call", "tool": "search", "query": "ada velmar"}',
        'I look:\nsearch("Ada Velmar")\nas\nsearch("Ada Velmar")',
        '<think>open("x")</think>I look for the start:\nsearch("Ada Velmar")',
        "search_name_0",
        "2",
    ],
)
def test_ways_to_say_the_same(tmp_path: Path, text: str) -> None:
    task = small_task(tmp_path, free_form=False)
    assert task.parse("searcher_0", text) == task.action_names("searcher_0").index("search_name_0")
    task.act("searcher_0", 2)
    assert task.parse("opener_0", "open(id=0)") == 1
    assert task.parse("opener_0", f'open("{SITE}/ada")') == 1
    unlisted = task.parse("searcher_0", 'search("something else")')
    assert isinstance(unlisted, ParseError)
    assert unlisted.kind == "not_listed"
