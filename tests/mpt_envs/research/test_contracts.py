"""Every rule of the testing kit holds for the kinds of research games that the registry has not."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mpt_envs
from mpt_envs.research import make_batch, make_task
from mpt_envs.research.batch import ResearchBatch
from mpt_envs.research.task import ResearchTask
from mpt_envs.research.views.calls import TOOLS
from mpt_envs.research.world.layout import (
    ANSWER,
    DONE,
    EVIDENCE,
    MAX_TEXTS,
    PASSED,
    QUESTION,
    REF,
    TOP,
    TURN,
)
from mpt_envs.testing import TaskContractTests
from wrappers.errors import SnapshotError
from wrappers.task import ParseError, Snapshot, TurnTask


class TestFreeForm(TaskContractTests):
    """Games in which any tool call may be written."""

    seeds = (3, 4)
    snapshot_pairs = 8
    pettingzoo_cycles = 60

    def make_task(self) -> TurnTask:
        return make_task(free_form=True)


def test_snapshots_hold_what_was_written_in_free_form() -> None:
    task, other = make_task(free_form=True), make_task(free_form=True)
    task.reset(5)
    index = task.parse("searcher_0", 'search("the quiet heron of 서울", topn=3)')
    assert index == len(task.action_names("searcher_0")) - 1
    between = task.snapshot()
    other.restore(between)
    results = [t.act("searcher_0", index) for t in (task, other)]
    assert results[0] == results[1]
    assert task.snapshot() == other.snapshot() != between
    assert task.prompt("opener_0", "act") == other.prompt("opener_0", "act")
    assert "the quiet heron of 서울" in task.prompt("opener_0", "act")


@pytest.mark.parametrize("field", [QUESTION, DONE, TURN, TOP, EVIDENCE, REF, PASSED, -1, -5])
def test_changed_snapshots_are_refused(field: int) -> None:
    task = make_task()
    task.reset(1)
    for _ in range(3):
        agent = max(task.possible_agents, key=task.expert_bid)
        task.act(agent, task.expert_action(agent))
    good = task.snapshot()
    numbers = np.frombuffer(good.payload[16:], np.int32).copy()
    for value in (-7, 1_000_000, int(numbers[field]) + 1):
        changed = numbers.copy()
        changed[field] = value
        if (field == TURN and value > 0) or (field == REF and value == int(numbers[field]) + 1):
            continue  # another state, but a possible one
        if field == QUESTION and value != -7 and value < len(task.questions):
            continue
        payload = good.payload[:16] + changed.tobytes()
        with pytest.raises(SnapshotError):
            task.restore(Snapshot(good.task_id, good.version, payload))
        assert task.snapshot() == good


def test_a_snapshot_of_another_corpus_is_refused() -> None:
    task = make_task()
    task.reset(1)
    good = task.snapshot()
    payload = bytes(16) + good.payload[16:]
    with pytest.raises(SnapshotError, match="another corpus"):
        task.restore(Snapshot(good.task_id, good.version, payload))


_VALUES = [
    None, True, 5, -1, 10**12, 1.5, float("inf"), float("nan"), "", "x", "1832 【0†L1】", "\ud800",
    [], [1], ["x", 5, None], {}, {"x": 1},
]  # fmt: skip


def with_tail(task: ResearchTask, texts: Any, pending: Any) -> Snapshot:
    """A snapshot of a free-form game with other texts and calls."""
    good = task.snapshot()
    head = len(good.payload) - len(json.dumps([[], [None] * 3], separators=(",", ":")))
    tail = json.dumps([texts, pending], separators=(",", ":")).encode()
    return Snapshot(good.task_id, good.version, good.payload[:head] + tail)


def impossible_calls() -> Iterator[Any]:
    """Values that `parse` never returns: no calls, and calls with an argument of another kind."""
    yield from ("x", 5, True, [], ["x", 5, None], {}, {"query": "x"})
    yield from ({"tool": tool} for tool in ("bogus", "", None, 5, ["search"]))
    for tool, (_, arguments) in TOOLS.items():
        needed = {name: "x" for name, _, must in arguments if must}
        for name in needed:
            yield {"tool": tool, **{k: v for k, v in needed.items() if k != name}}
            yield {"tool": tool, **needed, name: ""}
        yield {"tool": tool, **needed, "depth": 3}
        for name, kinds, _ in arguments:
            for value in _VALUES:
                # What is given as a list is kept as text.
                if type(value) not in kinds or value in (10**12, "\ud800") or value == [1]:
                    yield {"tool": tool, **needed, name: value}


def test_snapshots_with_calls_that_nobody_could_write_are_refused() -> None:
    task = make_task(free_form=True)
    task.reset(3)
    good = task.snapshot()
    for call in impossible_calls():
        for role in range(3):
            pending = [None, None, None]
            pending[role] = call
            with pytest.raises(SnapshotError):
                task.restore(with_tail(task, [], pending))
    assert task.snapshot() == good


@pytest.mark.parametrize(
    ("texts", "pending"),
    [
        ([], []),
        ([], [None] * 4),
        ([], None),
        ([], {"0": None}),
        ([5], [None] * 3),
        (["\ud800"], [None] * 3),
        (["x"] * (MAX_TEXTS + 1), [None] * 3),
        (None, [None] * 3),
    ],
)
def test_snapshots_with_texts_of_another_shape_are_refused(texts: Any, pending: Any) -> None:
    task = make_task(free_form=True)
    with pytest.raises(SnapshotError):
        task.restore(with_tail(task, texts, pending))


def test_what_a_snapshot_may_hold_can_be_played() -> None:
    """Any call that restores is made without an exception, by its own role only."""
    task = make_task(free_form=True)
    task.reset(3)
    for _ in range(3):
        agent = max(task.possible_agents, key=task.expert_bid)
        task.act(agent, task.expert_action(agent))
    start = task.snapshot()
    rng = random.Random(0)
    made = 0
    for _ in range(2500):
        tool = rng.choice(list(TOOLS))
        call: dict[str, Any] = {"tool": tool}
        for name, _, _ in TOOLS[tool][1]:
            if rng.random() < 0.6:
                call[name] = rng.choice(_VALUES)
        task.restore(start)
        for role in range(3):
            pending = [None, None, None]
            pending[role] = call
            try:
                task.restore(with_tail(task, [], pending))
            except SnapshotError:
                continue
            assert role == TOOLS[tool][0]
            agent = task.possible_agents[role]
            task.act(agent, len(task.action_names(agent)) - 1)
            task.prompt(agent, "act").encode()
            made += 1
    assert made > 60


def test_snapshots_are_small() -> None:
    task = make_task()
    task.reset(0)
    assert len(task.snapshot().payload) < 8192


def test_single_and_batch_are_the_same() -> None:
    count = 12
    rng = np.random.default_rng(1)
    tasks = [make_task() for _ in range(count)]
    batch = make_batch(count)
    rows = np.arange(count)
    batch.reset(rows, 40 + rows, rows % 3)
    for k, task in enumerate(tasks):
        task.reset(40 + k, k % 3)
    for _ in range(25):
        roles = rng.integers(-1, 3, count)
        actions = np.zeros(count, np.int64)
        outcomes = []
        for k, task in enumerate(tasks):
            if roles[k] < 0:
                outcomes.append(task.skip())
                continue
            agent = task.possible_agents[roles[k]]
            legal = np.flatnonzero(task.action_mask(agent))
            # Now and then an illegal one, and seldom an answer, which ends the episode.
            actions[k] = rng.choice(legal) if rng.random() < 0.9 else rng.integers(-1, 14)
            if roles[k] == 2 and actions[k] >= ANSWER and rng.random() < 0.9:
                actions[k] = legal[0]
            outcomes.append(task.act(agent, int(actions[k])))
        rewards, ended, illegal = step(batch, roles, actions)
        assert rewards.tolist() == [o.reward for o in outcomes]
        assert ended.tolist() == [o.terminated for o in outcomes]
        assert illegal.tolist() == [o.info.get("illegal", False) for o in outcomes]
        for k, task in enumerate(tasks):
            assert np.array_equal(batch.records[k], task.record)
            assert batch.snapshot(k) == task.snapshot()


def step(batch: ResearchBatch, roles: Any, actions: Any) -> tuple[Any, ...]:
    count = batch.num_envs
    outputs = np.full(count, 9.0), np.ones(count, np.bool_), np.ones(count, np.bool_)
    batch.act(roles, actions, *outputs)
    return outputs


def test_parts_of_the_seeds_have_different_questions() -> None:
    source = make_task().source
    seen = [set(part.tolist()) for part in source.parts]
    assert all(len(part) > 200 for part in seen)
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    texts = {q.question for q in source.questions.questions}
    assert len(texts) == len(source.questions)
    for seed, part in ((7, 0), (7 + (1 << 59), 1), (7 + (1 << 60), 2)):
        task = make_task()
        task.reset(seed)
        assert int(task.record[QUESTION]) in seen[part]


def test_make_says_what_goes_wrong() -> None:
    with pytest.raises(ValueError, match="belong together"):
        mpt_envs.make("research/multihop-v0", corpus="somewhere.jsonl")
    with pytest.raises(ValueError, match="lockstep"):
        mpt_envs.make("research/multihop-v0", api="vector", free_form=True)
    with pytest.raises(ValueError, match="free_form"):
        mpt_envs.make("research/multihop-v0", free_form="yes")
    with pytest.raises(TypeError, match="corpus"):
        mpt_envs.make("research/multihop-v0", korpus="x")
    game = mpt_envs.make(
        "research/multihop-v0", api="vector", num_envs=2, free_form=True, vectorization="lockstep"
    )
    game.reset([0, 1])
    game.close()


def test_parsing_never_raises_and_never_moves() -> None:
    task = make_task()
    task.reset(2)
    before = task.snapshot()
    rng = random.Random(0)
    pieces = [
        "search(", "open(", ")", '"', "'", "id=", "-1", "{", "}", '"tool":', "answer", "\\", "\x00",
        "서울", "】", "【1†L2】", "find", "9" * 50, ",", "null", "[", "\ud800",
        "browser.", " ", "\n",
    ]  # fmt: skip
    for _ in range(600):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12)))
        for agent in task.possible_agents:
            found = task.parse(agent, text)
            assert isinstance(found, (int, ParseError))
            if isinstance(found, int):
                assert task.action_mask(agent)[found]
    assert task.snapshot() == before
