"""Rules of vector games: the compiled one against the plain one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.make import Vectorization, make
from mpt_envs.testing.base import changed_snapshot
from mpt_envs.testing.rules import check
from wrappers.errors import SnapshotError
from wrappers.vector import VectorGame


class VectorContractTests:
    """A native vector game against the lockstep one.

    Attributes (override in the subclass):
        id: of a registered task that has a batch; or implement both factories.
        options: keywords of `make` for both.
        num_envs: number of worlds.
        vector_turns: number of turns that are played; ended worlds start again.
    """

    id: str = ""
    options: Mapping[str, Any] = MappingProxyType({})
    num_envs: int = 6
    vector_turns: int = 150

    def make_native(self, num_envs: int) -> VectorGame:
        """The game under test."""
        return self._make(num_envs, "native")

    def make_lockstep(self, num_envs: int) -> VectorGame:
        """The same game over AEC games: ``make(..., vectorization="lockstep")``."""
        return self._make(num_envs, "lockstep")

    def _make(self, num_envs: int, vectorization: Vectorization) -> VectorGame:
        if not self.id:
            raise NotImplementedError(
                "give your subclass of VectorContractTests an id, or implement make_native() and "
                "make_lockstep() in it"
            )
        options = {"num_envs": num_envs, "vectorization": vectorization, **self.options}
        return make(self.id, api="vector", **options)

    def test_same_description(self) -> None:
        native, lockstep = self.make_native(2), self.make_lockstep(2)
        for game in (native, lockstep):
            game.reset([0, 1])
        for name in (
            "task_id",
            "snapshot_fidelity",
            "num_envs",
            "possible_agents",
            "roles",
            "bid_levels",
            "max_turns",
            "dropout",
            "observation_sizes",
            "action_counts",
            "action_names",
            "has_expert",
            "coverage",
        ):
            _same(f"the attribute {name}", getattr(native, name), getattr(lockstep, name))
        _same("metric_names", sorted(native.metric_names), sorted(lockstep.metric_names))

    def test_same_trajectories(self) -> None:
        assert_same_trajectories(
            self.make_native(self.num_envs), self.make_lockstep(self.num_envs), self.vector_turns
        )

    def test_snapshots_are_interchangeable(self) -> None:
        native, lockstep = self.make_native(self.num_envs), self.make_lockstep(self.num_envs)
        rows = np.arange(self.num_envs)
        assert_same_trajectories(native, lockstep, 7)
        ours, theirs = native.snapshot(rows), lockstep.snapshot(rows)
        # Each kind takes the other's, in another order.
        native.restore(rows, theirs[::-1])
        lockstep.restore(rows, ours[::-1])
        _same("snapshots after an exchange", native.snapshot(rows), theirs[::-1])
        _compare(native, lockstep, "after an exchange of snapshots")
        assert_same_trajectories(native, lockstep, 20, start=False)

    def test_worlds_are_independent(self) -> None:
        """A world's future does not depend on its row, nor on how many worlds there are."""
        many, one = self.make_native(self.num_envs), self.make_native(self.num_envs).spawn(1)
        seeds = np.arange(self.num_envs)
        last = self.num_envs - 1
        many.reset(seeds)
        one.reset(seeds[-1:])
        rng = np.random.default_rng(0)
        while one.active[0]:
            for ours, theirs in zip(many.observe(), one.observe(), strict=True):
                _same("an observation", ours[last:], theirs)
            bids, actions = _random_turn(many, rng)
            many.auction(bids)
            one.auction(bids[last:])
            result, alone = many.act(actions), one.act(actions[last:])
            for name, own, other in zip(result._fields, result, alone, strict=True):
                _same(f"{name} of a world alone and among others", own[last:], other)

    def test_returned_arrays_are_fresh(self) -> None:
        game = self.make_native(self.num_envs)
        game.reset(np.arange(self.num_envs))
        for what, call in (("observe", game.observe), ("action_masks", game.action_masks)):
            first, second = call(), call()
            for ours, theirs in zip(first, second, strict=True):
                check(
                    not np.shares_memory(ours, theirs),
                    "fresh arrays",
                    f"two calls of {what}() return the same memory",
                )

    def test_foreign_snapshots_are_refused(self) -> None:
        game = self.make_native(2)
        game.reset([0, 1])
        rows = np.arange(1)
        good = game.snapshot(rows)[0]
        kind = type(good)
        other_task = changed_snapshot(good.task, task_id="other/x-v0")
        truncated = changed_snapshot(good.task, payload=b"abc")
        for what, snapshot in (
            ("one of another task", kind(other_task, good.game)),
            ("a truncated payload", kind(truncated, good.game)),
            ("another release's game state", kind(good.task, (-1, *good.game[1:]))),
            ("a truncated game state", kind(good.task, good.game[:-1])),
        ):
            try:
                game.restore(rows, [snapshot])
            except SnapshotError:
                _same(f"the state after {what}", game.snapshot(rows), [good])
                continue
            check(False, "foreign snapshot", f"{what} is accepted")


def assert_same_trajectories(
    first: VectorGame, second: VectorGame, turns: int, *, seed: int = 0, start: bool = True
) -> None:
    """Play two vector games with the same random bids and actions; fail where they differ.

    Args:
        first, second: games of the same task, configuration and number of worlds.
        turns: how many turns; worlds that end start their next episode.
        seed: of the worlds and of the bids and actions.
        start: whether to reset them first, rather than to go on where they are.
    """
    rows = np.arange(first.num_envs)
    seeds = seed + rows
    episodes = np.zeros_like(rows)
    if start:
        first.reset(seeds)
        second.reset(seeds)
    rng = np.random.default_rng(seed)
    for turn in range(turns):
        where = f"in step {turn}"
        _compare(first, second, where, deep=turn % 10 == 0)
        bids, actions = _random_turn(first, rng)
        auctions = first.auction(bids), second.auction(bids)
        for name, ours, theirs in zip(auctions[0]._fields, *auctions, strict=True):
            _same(f"{name} {where}", ours[first.active], theirs[first.active])
        results = first.act(actions), second.act(actions)
        for name, own, other in zip(results[0]._fields, *results, strict=True):
            _same(f"{name} {where}", own, other)
        ended = np.flatnonzero(~first.active & ~second.active)
        _same(f"active {where}", first.active, second.active)
        # Leave ended worlds alone for a while, so that both must ignore them.
        if ended.size and turn % 5 == 4:
            episodes[ended] += 1
            for game in (first, second):
                game.reset(seeds[ended], episodes[ended], ended)
    _compare(first, second, "at the end")


def _random_turn(
    game: VectorGame, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random bids, often 0, and for each world an action that is mostly legal for its winner.

    The winner is not known yet; the actions are legal for an agent that is likely to win.
    """
    shape = (game.num_envs, game.num_agents)
    bids = rng.integers(0, len(game.bid_levels), shape)
    bids[rng.random(shape) < 0.3] = 0
    absent = ~game.present()
    likely = np.where(absent, -1, bids).argmax(axis=1)
    masks = game.action_masks()
    actions = np.zeros(game.num_envs, np.int64)
    smallest = min(game.action_counts)
    for row, agent in enumerate(likely.tolist()):
        # Ties may go to another agent, for whom the action is then perhaps masked: also a case.
        legal = np.flatnonzero(masks[agent][row])
        action = int(rng.choice(legal)) if rng.random() < 0.95 else int(rng.integers(smallest))
        actions[row] = action
    # An action must exist for whoever wins.
    tied = (bids == bids.max(axis=1, keepdims=True)).sum(axis=1) > 1
    np.copyto(actions, actions % smallest, where=tied)
    return bids, actions


def _compare(first: VectorGame, second: VectorGame, where: str, deep: bool = True) -> None:
    active = first.active
    _same(f"active {where}", active, second.active)
    _same(f"turn {where}", first.turn[active], second.turn[active])
    _same(f"keys {where}", first.keys[active], second.keys[active])
    _same(f"present {where}", first.present()[active], second.present()[active])
    pairs = (
        ("observation", first.observe(), second.observe()),
        ("action mask", first.action_masks(), second.action_masks()),
    )
    for what, ours, theirs in pairs:
        for agent, own, other in zip(first.possible_agents, ours, theirs, strict=True):
            _same(f"the {what} of {agent} {where}", own[active], other[active])
    if not deep:
        return
    rows = np.flatnonzero(active)
    _same(f"snapshots {where}", first.snapshot(rows), second.snapshot(rows))
    columns = [second.metric_names.index(name) for name in first.metric_names]
    _same(f"metrics {where}", first.metrics()[active], second.metrics()[active][:, columns])
    if first.has_expert:
        for what, own, other in zip(
            ("bids", "actions"), first.expert(), second.expert(), strict=True
        ):
            _same(f"the expert's {what} {where}", own[active], other[active])


def _same(what: str, first: Any, second: Any) -> None:
    if isinstance(first, np.ndarray):
        same = first.shape == np.shape(second) and np.array_equal(first, second)
        if not same:
            check(False, "vector", f"{what}: {first} and {second}")
    else:
        check(first == second, "vector", f"{what}: {first} and {second}")
