"""Games and vector games that are misused: clear errors, and nothing has changed."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpt_envs import as_env, make
from tests.toys import RelayTask
from tests.wrappers.games import legal_action, relay
from tests.wrappers.task_batch import TaskBatch
from wrappers.auction import Auction
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import (
    ActionFormatError,
    MarketError,
    PhaseError,
    SnapshotError,
    TaskError,
)
from wrappers.game_snapshot import GameSnapshot
from wrappers.task import Snapshot, TurnResult
from wrappers.vector import VectorGame

NUM_ENVS = 3


def native(**options: Any) -> VectorGame:
    game = as_env(RelayTask, lambda n: TaskBatch(RelayTask, n), api="vector", num_envs=3, **options)
    assert type(game).__name__ == "NativeVectorGame"
    return game


def lockstep(**options: Any) -> VectorGame:
    game = as_env(RelayTask, api="vector", num_envs=NUM_ENVS, **options)
    assert type(game).__name__ == "LockstepVectorGame"
    return game


def crafting(**options: Any) -> VectorGame:
    game = make("crafting/torch-v0", api="vector", num_envs=NUM_ENVS, **options)
    assert type(game).__name__ == "NativeVectorGame"
    return game


def crafting_solo(**options: Any) -> VectorGame:
    return crafting(one_agent=True, **options)


BOTH = pytest.mark.parametrize("build", [native, lockstep])
ALL = pytest.mark.parametrize("build", [native, lockstep, crafting, crafting_solo])


def started(build: Callable[[], VectorGame]) -> VectorGame:
    game = build()
    game.reset(np.arange(game.num_envs))
    return game


def content(game: VectorGame) -> list[GameSnapshot]:
    return game.snapshot(np.arange(game.num_envs))


# -- a tampered game -------------------------------------------------------------------------

JUNK: tuple[Any, ...] = (None, -1, 10**30, 1.5, math.nan, "x", (), (-1,), True, [0], b"")


def game_states(seed: int) -> list[GameSnapshot]:
    """States in every phase, of running and of ended episodes."""
    env = relay(2, dropout=0.2, max_turns=9)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    found = [env.snapshot()]
    while env.agents:
        over = any(env.terminations.values()) or any(env.truncations.values())
        env.step(None if over else legal_action(env, rng))
        found.append(env.snapshot())
    return found


def unchecked(snapshot: GameSnapshot, game: Any) -> GameSnapshot:
    return pickle.loads(pickle.dumps(GameSnapshot(snapshot.task, game)))


def test_every_state_of_a_game_is_accepted_from_another_process() -> None:
    env = relay(2, dropout=0.2, max_turns=9)
    for seed in range(8):
        for snapshot in game_states(seed):
            copy = unchecked(snapshot, snapshot.game)
            assert not copy.verified
            env.restore(copy)
            assert env.snapshot() == snapshot


def test_tampered_games_are_refused_and_change_nothing() -> None:
    env = relay(2, dropout=0.2, max_turns=9)
    rng = np.random.default_rng(0)
    refused = 0
    for seed in range(4):
        for snapshot in game_states(seed):
            for position in range(1, len(snapshot.game)):
                old = snapshot.game[position]
                for junk in JUNK:
                    game = list(snapshot.game)
                    game[position] = junk
                    if isinstance(old, tuple) and old and rng.random() < 0.5:
                        inner = list(old)
                        inner[rng.integers(len(inner))] = junk
                        game[position] = tuple(inner)
                        if isinstance(old, Auction):
                            game[position] = Auction(*inner)
                    if game[position] == old or repr(game[position]) == repr(old):
                        continue
                    env.restore(snapshot)
                    try:
                        env.restore(unchecked(snapshot, tuple(game)))
                    except SnapshotError:
                        refused += 1
                        assert env.snapshot() == snapshot
                        continue
                    # What was accepted is a game that can be played.
                    while env.agents:
                        over = any(env.terminations.values()) or any(env.truncations.values())
                        env.step(None if over else legal_action(env, rng))
                    assert isinstance(env.metrics()["return"], float)
    assert refused > 5000


@pytest.mark.parametrize("foreign", [None, b"x", Snapshot("toys/relay-v0", 1, b""), (1, 2)])
@pytest.mark.parametrize("where", ["snapshot", "task", "game"])
def test_things_that_are_no_snapshots(foreign: Any, where: str) -> None:
    env = relay()
    env.reset(seed=0)
    good = env.snapshot()
    bad = foreign
    if where == "task":
        bad = GameSnapshot(foreign, good.game)
    elif where == "game":
        bad = GameSnapshot(good.task, foreign)
    with pytest.raises(SnapshotError):
        env.restore(bad)
    assert env.snapshot() == good
    for build in (native, lockstep):
        vector = started(build)
        before = content(vector)
        with pytest.raises(SnapshotError):
            vector.restore(np.arange(1), [bad])
        assert content(vector) == before


@ALL
def test_vector_games_refuse_foreign_snapshots(build: Callable[..., VectorGame]) -> None:
    game = started(build)
    rows = np.arange(2)
    before = content(game)
    good = before[0]
    others = [
        started(lambda: build(max_turns=7)),
        started(lambda: build(bid_levels="crowded")),
        started(lambda: build(dropout=0.5)),
    ]
    if game.num_agents > 1:
        others.append(started(lambda: build(agents=2 * game.num_agents)))
    for other in others:
        # The second is foreign: the first must not have been restored either.
        swapped = [before[2], content(other)[1]]
        with pytest.raises(SnapshotError):
            game.restore(rows, swapped)
        assert content(game) == before
    for position in range(3, len(good.game)):
        for junk in JUNK:
            tampered = list(good.game)
            tampered[position] = junk
            if repr(junk) == repr(good.game[position]):
                continue
            try:
                game.restore(rows, [before[2], unchecked(good, tuple(tampered))])
            except SnapshotError:
                assert content(game) == before
            game.restore(np.arange(NUM_ENVS), before)
    with pytest.raises(IndexError):
        game.restore(np.array([NUM_ENVS]), [good])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        game.restore(rows, [good])
    assert content(game) == before


# -- arrays ----------------------------------------------------------------------------------

WRONG_ACTIONS: tuple[Any, ...] = (
    np.zeros(NUM_ENVS - 1, np.int64),
    np.zeros(NUM_ENVS + 1, np.int64),
    np.zeros((NUM_ENVS, 1), np.int64),
    np.zeros(0, np.int64),
    np.int64(0),
    0,
    None,
    "abc",
    np.zeros(NUM_ENVS),
    np.full(NUM_ENVS, np.nan),
    np.zeros(NUM_ENVS, np.bool_),
    [0.5] * NUM_ENVS,
    [None] * NUM_ENVS,
    [2**70] * NUM_ENVS,
    np.full(NUM_ENVS, -1),
    np.full(NUM_ENVS, 10**6),
    np.full(NUM_ENVS, -(2**63)),
    np.full(NUM_ENVS, 2**64 - 1, np.uint64),
)


@ALL
def test_malformed_actions(build: Callable[[], VectorGame]) -> None:
    game, twin = started(build), started(build)
    top = np.full((NUM_ENVS, game.num_agents), len(game.bid_levels) - 1)
    game.auction(top)
    for wrong in WRONG_ACTIONS:
        with pytest.raises(ActionFormatError, match=r"must be integers|its actions are"):
            game.act(wrong)
    # It is still the same turn, and the same as if nothing had been tried.
    twin.auction(top)
    for name, ours, theirs in zip(
        ("rewards", "terminated", "truncated", "illegal"),
        game.act(np.zeros(NUM_ENVS, np.int8)),
        twin.act(np.zeros(NUM_ENVS, np.int64)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert content(game) == content(twin)


@ALL
def test_malformed_bids(build: Callable[[], VectorGame]) -> None:
    game = started(build)
    before = content(game)
    shape, levels = (NUM_ENVS, game.num_agents), len(game.bid_levels)
    for wrong in (
        np.zeros((NUM_ENVS, game.num_agents + 1), np.int64),
        np.zeros((NUM_ENVS + 1, game.num_agents), np.int64),
        np.zeros(NUM_ENVS * game.num_agents + 1, np.int64),
        None,
        0.5,
        np.zeros(shape),
        np.full(shape, np.nan),
        np.zeros(shape, np.bool_),
        np.full(shape, -1),
        np.full(shape, levels),
        np.full(shape, 2**64 - 1, np.uint64),
    ):
        with pytest.raises(ActionFormatError, match="bids must be"):
            game.auction(wrong)  # type: ignore[arg-type]
        assert content(game) == before


@ALL
def test_calls_in_the_wrong_order(build: Callable[[], VectorGame]) -> None:
    game = build()
    actions = np.zeros(NUM_ENVS, np.int64)
    bids = np.ones((NUM_ENVS, game.num_agents), np.int64)
    with pytest.raises(PhaseError, match="call auction"):
        game.act(actions)
    game.reset(np.arange(NUM_ENVS))
    with pytest.raises(PhaseError, match="call auction"):
        game.act(actions)
    for each in (bids, 0 * bids):
        game.auction(each)
        with pytest.raises(PhaseError, match="call act"):
            game.auction(each)
        with pytest.raises(PhaseError, match="call act"):
            game.snapshot(np.arange(NUM_ENVS))
        game.act(actions)
        with pytest.raises(PhaseError, match="call auction"):
            game.act(actions)
    # A reset or a restore in the middle of a turn starts it again.
    before = content(game)
    game.auction(bids)
    game.restore(np.arange(NUM_ENVS), before)
    game.auction(bids)
    game.reset(np.arange(NUM_ENVS))
    game.auction(bids)
    game.act(actions)


@ALL
def test_writing_into_what_an_auction_returned_changes_nothing(
    build: Callable[[], VectorGame],
) -> None:
    game, twin = started(build), started(build)
    bids = np.ones((NUM_ENVS, game.num_agents), np.int64)
    for each in (game, twin):
        result = each.auction(bids)
        if each is game:
            result.winners[:] = 10**6
            result.runners_up[:] = 10**6
        each.act(np.zeros(NUM_ENVS, np.int64))
    assert content(game) == content(twin)


@ALL
def test_malformed_resets(build: Callable[[], VectorGame]) -> None:
    game = started(build)
    before = content(game)
    for seeds, episodes, rows in (
        ([0], None, None),
        (0, None, None),
        ([0.5] * NUM_ENVS, None, None),
        ([math.nan] * NUM_ENVS, None, None),
        (["a"] * NUM_ENVS, None, None),
        (range(NUM_ENVS), [0], None),
        (range(NUM_ENVS), [0.5] * NUM_ENVS, None),
        ([1, 2], None, [0]),
    ):
        with pytest.raises(ValueError, match="must be integers"):
            game.reset(seeds, episodes, rows)  # type: ignore[arg-type]
    for rows in ([NUM_ENVS], [-1], [0.5], [[0]]):
        with pytest.raises(IndexError, match="rows must be"):
            game.reset([1], None, rows)  # type: ignore[arg-type]
        with pytest.raises(IndexError, match="rows must be"):
            game.snapshot(rows)  # type: ignore[arg-type]
        with pytest.raises(IndexError, match="rows must be"):
            game.reseed(rows, np.array([1], np.uint64))  # type: ignore[arg-type]
    assert content(game) == before
    game.reset([], [], np.zeros(0, np.int64))
    assert game.snapshot(np.zeros(0, np.int64)) == []
    assert content(game) == before


@pytest.mark.parametrize("options", [5, "fast", ["a"], b"x", True])
def test_options_that_are_no_mapping(options: Any) -> None:
    env = relay()
    env.reset(seed=4)
    before = env.snapshot()
    with pytest.raises(TypeError, match="options must be a mapping"):
        env.reset(seed=0, options=options)
    assert env.snapshot() == before


def test_worlds_that_do_not_fit_into_memory() -> None:
    for task in ("crafting/iron-pickaxe-v0", "navigation/floorplan-v0", "research/multihop-v0"):
        with pytest.raises(MemoryError, match="num_envs=1000000000000 worlds do not fit"):
            make(task, api="vector", num_envs=10**12)


def test_a_turn_budget_below_one_is_refused() -> None:
    for build in (native, lockstep):
        with pytest.raises(ValueError, match="max_turns"):
            build(max_turns=0)


# -- tasks that break their contract -----------------------------------------------------------


class BadReward(RelayTask):
    """Gives something strange instead of a reward from its third turn on."""

    value: Any = math.nan

    def act(self, agent: str, action: int) -> TurnResult:
        result = super().act(agent, action)
        return result._replace(reward=self.value) if self._time > 2 else result

    def skip(self) -> TurnResult:
        result = super().skip()
        return result._replace(reward=self.value) if self._time > 2 else result


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_an_error(value: float) -> None:
    kind = type("Kind", (BadReward,), {"value": value})
    games = [
        as_env(kind, api="vector", num_envs=2),
        as_env(kind, lambda n: TaskBatch(kind, n), api="vector", num_envs=2),
    ]
    bids, actions = np.ones((2, 2), np.int64), np.zeros(2, np.int64)
    for game in games:
        game.reset([4, 5])
        for _ in range(2):
            game.auction(bids)
            game.act(actions)
        game.auction(bids)
        with pytest.raises(TaskError, match=r"reward .* in turn 2 \(seed 4, episode 0\)"):
            game.act(actions)
    env = BidThenActEnv(kind())
    env.reset(seed=9)
    for _ in range(5):
        env.step(0)
    with pytest.raises(TaskError, match="a reward must be a finite number"):
        env.step(0)
    assert issubclass(TaskError, MarketError)
