"""Rules of the future: it is fixed by seed and actions, and by a snapshot."""

from __future__ import annotations

import pickle
import random
import unittest
from functools import partial
from typing import Any

import numpy as np

from mpt_envs.testing.base import EnvTestBase, changed_snapshot
from mpt_envs.testing.process import in_fresh_process
from mpt_envs.testing.rules import check, must_raise, under
from mpt_envs.testing.trace import Step, content_digest, differences, is_over, readable
from wrappers.errors import MissingCapabilityError, SnapshotError


class DeterminismRules(EnvTestBase):
    """Seed, episode and actions fix everything."""

    def test_determinism_over_whole_episodes(self) -> None:
        for seed in self.seeds:
            traces = []
            for disturbance in (1, 2):
                # A generator that anybody may seed must not matter.
                random.seed(disturbance)
                np.random.seed(disturbance)  # noqa: NPY002
                env = self.make_env()
                traces.append(self.whole(env, seed))
                env.close()
            self.same_trace("determinism", f"seed {seed}, played twice", *traces)

    def test_environments_do_not_influence_each_other(self) -> None:
        seed = self.seeds[0]
        alone = self.whole(self.make_env(), seed)
        first, other = self.started(seed), self.started(seed + 1)
        rng, other_rng = random.Random(seed), random.Random(99)
        together: list[Step] = []
        while not is_over(first):
            together += self.play(first, rng, 1)
            if is_over(other):
                other.reset()
            self.play(other, other_rng, 1)
        self.same_trace("determinism", "beside a second environment", alone, together)

    def test_reset_forgets_everything(self) -> None:
        for seed in self.seeds:
            env = self.make_env()
            fresh = self.whole(env, seed)
            self.whole(env, seed + 1, 1, turns=5)
            again = self.whole(env, seed)
            self.same_trace("determinism", f"seed {seed} after another episode", fresh, again)

    def test_episodes_of_a_seed(self) -> None:
        traces: list[list[Step]] = []
        for _ in range(2):
            env = self.make_env()
            self.whole(env, self.seeds[0], 0, turns=2 if traces else None)
            env.reset()
            check(
                env.unwrapped.episode == 1 and env.unwrapped.seed == self.seeds[0],
                "episodes",
                f"the second reset starts episode {env.unwrapped.episode} of seed "
                f"{env.unwrapped.seed}",
            )
            traces.append(self.play(env, random.Random(1)))
        self.same_trace("episodes", "the second episode of a seed", *traces)


class SnapshotRules(EnvTestBase):
    """A restored snapshot has the same future."""

    def test_snapshot_restores_exactly(self) -> None:
        original, other = self.make_env(), self.make_env()
        self.require_exact(original)
        original.reset(seed=self.seeds[0])
        for snapshot, seed in self.pairs():
            with under("exact snapshot", "restoring into a used environment"):
                original.restore(snapshot)
            check(
                original.snapshot() == snapshot,
                "exact snapshot",
                f"a snapshot taken right after restoring {snapshot} differs from it",
            )
            before = readable(original)
            trace = self.play(original, random.Random(seed))
            end = original.snapshot().digest
            # Into an environment that has been elsewhere in between, or was never reset.
            with under("exact snapshot", "restoring into another environment"):
                other.restore(snapshot)
            changed = differences(before, readable(other))
            check(
                not changed,
                "exact snapshot",
                f"restoring {snapshot} twice gives different {', '.join(changed)}",
            )
            self.same_trace(
                "exact snapshot",
                f"{snapshot}, restored twice",
                trace,
                self.play(other, random.Random(seed)),
            )
            check(
                other.snapshot().digest == end,
                "exact snapshot",
                f"{snapshot}: the futures look alike, but end in different states",
            )

    def test_playing_on_equals_restoring(self) -> None:
        env = self.make_env()
        self.require_exact(env)
        rng = random.Random(7)
        for seed, turns in self.turn_starts(max(4, self.snapshot_pairs // 4)):
            env = self.started(seed, turns)
            # Into the middle of a turn, too.
            for _ in range(rng.randrange(1 + len(env.possible_agents))):
                if not is_over(env):
                    env.step(self.choose(env, env.agent_selection, rng))
            snapshot = env.snapshot()
            view = readable(env)
            digest, pickled = snapshot.digest, pickle.dumps(snapshot)
            trace = self.play(env, random.Random(seed))
            check(
                pickle.dumps(snapshot) == pickled and pickle.loads(pickled).digest == digest,  # noqa: S301
                "immutable snapshot",
                f"{snapshot} was changed by playing on",
            )
            with under("exact snapshot", f"seed {seed}, turn {turns}: restoring"):
                env.restore(snapshot)
            # What is only there to look at may be gone; infos of an earlier phase are.
            changed = differences(view, readable(env))
            check(
                not changed,
                "exact snapshot",
                f"seed {seed}, turn {turns}: after restoring, {', '.join(changed)} differ from "
                "what could be read when the snapshot was taken",
            )
            self.same_trace(
                "exact snapshot",
                f"seed {seed}, turn {turns}: played on and restored",
                trace,
                self.play(env, random.Random(seed)),
            )

    def test_snapshot_restores_in_a_fresh_process(self) -> None:
        env = self.make_env()
        self.require_exact(env)
        jobs = self.pairs()
        here = []
        for snapshot, seed in jobs:
            env.restore(snapshot)
            here.append((self.play(env, random.Random(seed)), env.snapshot().digest))
        there = in_fresh_process(type(self), jobs)
        for (snapshot, _), (trace, end), (other_trace, other_end) in zip(
            jobs, here, there, strict=True
        ):
            self.same_trace("exact snapshot", f"{snapshot} in another process", trace, other_trace)
            check(end == other_end, "exact snapshot", f"{snapshot} in another process: the end")

    def replay(self, jobs: list[tuple[Any, int]]) -> list[tuple[list[Step], str]]:
        """What `test_snapshot_restores_in_a_fresh_process` does in the other process."""
        results = []
        env = self.make_env()
        for snapshot, seed in jobs:
            env.restore(snapshot)
            trace = self.play(env, random.Random(seed))
            results.append((trace, env.snapshot().digest))
        return results

    def test_snapshot_is_a_value(self) -> None:
        env = self.started(self.seeds[0], 2)
        first, second = env.snapshot(), env.snapshot()
        check(
            first == second and hash(first) == hash(second) and first.digest == second.digest,
            "immutable snapshot",
            "two snapshots of one state differ",
        )
        copy = pickle.loads(pickle.dumps(first))  # noqa: S301
        check(
            copy == first and copy.digest == first.digest,
            "immutable snapshot",
            "a pickled snapshot differs from the original",
        )
        for name in ("task", "game", "digest"):
            try:
                setattr(first, name, None)
            except AttributeError:
                continue
            check(False, "immutable snapshot", f"its attribute {name!r} can be set")
        if not is_over(env):
            turn = env.unwrapped.turn
            while not is_over(env) and env.unwrapped.turn == turn:
                env.step(self.choose(env, env.agent_selection, random.Random(0)))
            check(
                env.snapshot() != first, "immutable snapshot", "a later state has an equal snapshot"
            )

    def test_foreign_snapshots_are_refused(self) -> None:
        env = self.started(self.seeds[0], 2)
        good = env.snapshot()
        task = good.task
        kind = type(good)
        payload = task.payload

        def with_task(**fields: Any) -> Any:
            return kind(changed_snapshot(task, **fields), good.game)

        foreign: list[tuple[str, Any]] = [
            ("None", None),
            ("bytes", b"snapshot"),
            ("a task's snapshot instead of the game's", task),
            ("one of another task", with_task(task_id="other/task-v0")),
            ("one of another layout", with_task(version=task.version + 1)),
            ("an empty payload", with_task(payload=b"")),
            ("a truncated payload", with_task(payload=payload[:-1])),
            ("a longer payload", with_task(payload=payload + b"x")),
            ("an empty game state", kind(task, ())),
            ("another release's game state", kind(task, (-1, *good.game[1:]))),
        ]
        for what, snapshot in foreign:
            must_raise(SnapshotError, "foreign snapshot", what, partial(env.restore, snapshot))
            check(env.snapshot() == good, "foreign snapshot", f"{what} has changed the state")

    def test_clone(self) -> None:
        for seed, turns in self.turn_starts(3):
            env = self.started(seed, turns)
            before = env.snapshot()
            twin = env.clone()
            check(type(twin) is type(env), "clone", f"a {type(env)} clones to a {type(twin)}")
            check(twin.snapshot() == before, "clone", "it has another state than the original")
            trace = self.play(twin, random.Random(seed))
            check(env.snapshot() == before, "clone", "playing the clone changes the original")
            self.same_trace("clone", f"seed {seed}", trace, self.play(env, random.Random(seed)))

    def test_reseed(self) -> None:
        for seed, turns in self.turn_starts(3):
            env = self.started(seed, turns)
            same, other = env.clone(), env.clone()
            key = env.unwrapped.random_key
            observed = [env.observe(agent) for agent in env.possible_agents]
            try:
                same.reseed(key)
                other.reseed(key ^ 0xABCDEF)
            except MissingCapabilityError as error:
                raise unittest.SkipTest(str(error)) from None
            check(
                other.unwrapped.random_key == key ^ 0xABCDEF,
                "reseed",
                "the new key is not in force",
            )
            if not env.unwrapped.dropout:
                now = [other.observe(agent) for agent in env.possible_agents]
                check(
                    content_digest(now) == content_digest(observed),
                    "reseed",
                    "another key changes what is observed now",
                )
            self.same_trace(
                "reseed",
                "with the key it already had",
                self.play(env, random.Random(seed)),
                self.play(same, random.Random(seed)),
            )
