"""A small corpus written by hand, and games over files of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpt_envs.research import make_task
from mpt_envs.research.task import ResearchTask

SITE = "https://small.example"
PAGES: list[dict[str, Any]] = [
    {
        "docid": "a",
        "url": f"{SITE}/ada",
        "text": "---\ntitle: Ada Velmar\n---\nAda Velmar was a painter. Her teacher was "
        f"[Bo Tann]({SITE}/bo). It was wrongly said that her teacher was Cid Ruun.\n\n"
        + "She painted boats. " * 120
        + "\n\nShe kept a cat named Mimi.",
    },
    {
        "docid": "b",
        "url": f"{SITE}/bo",
        "text": "---\ntitle: Bo Tann\n---\nBo Tann was a composer. His birth year was 1832.",
    },
    {"docid": "c", "url": f"{SITE}/cid", "text": "Cid Ruun was nobody.", "title": "Cid Ruun"},
    {
        "docid": "k",
        "url": f"{SITE}/서울",
        "text": "서울은 큰 도시이다. 강이 흐른다.",
        "title": "서울",
    },
    {"docid": "e", "url": f"{SITE}/empty", "text": "", "title": "Nothing"},
    {
        "docid": "l",
        "url": f"{SITE}/long",
        "text": f"x{'y' * 300} [away](https://else.example/x) \x07\u202e\ud800 end",
        "title": "Long",
    },
]
QUESTIONS: list[dict[str, Any]] = [
    {
        "qid": "1",
        "question": "What is the birth year of the teacher of Ada Velmar?",
        "answer": "1832",
        "supporting_titles": ["Ada Velmar", "Bo Tann"],
    }
]


def write(path: Path, rows: list[Any]) -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def small_task(folder: Path, *, free_form: bool = True, **files: list[Any]) -> ResearchTask:
    """A game over the small corpus, or over other rows."""
    corpus = write(folder / "corpus.jsonl", files.get("corpus", PAGES))
    questions = write(folder / "questions.jsonl", files.get("questions", QUESTIONS))
    task = make_task(corpus=corpus, questions=questions, free_form=free_form)
    task.reset(0)
    return task


_ROLE_OF = {"search": "searcher_0", "open": "opener_0", "find": "finder_0", "answer": "finder_0"}


def call(task: ResearchTask, text: str) -> float:
    """Make a tool call; returns the reward."""
    agent = _ROLE_OF[text.partition("(")[0]]
    index = task.parse(agent, text)
    assert isinstance(index, int), index
    return task.act(agent, index).reward


def page(task: ResearchTask) -> str:
    """The page in view and the error, as agents read them."""
    prompt = task.prompt("opener_0", "act")
    return prompt.partition("Pages so far:")[2].partition("\nLegal actions:")[0]
