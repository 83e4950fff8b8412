"""How the tests make environments, play them at random and compare what happened."""

from __future__ import annotations

import hashlib
import math
import random
import unittest
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mpt_envs.testing.rules import check
from mpt_envs.testing.trace import (
    Step,
    content_digest,
    feed,
    has_mask,
    is_over,
    legal_actions,
    readable,
)
from wrappers.task import Snapshot


class EnvTestBase:
    """What all tests of an environment build on: how to make it, and how to play it.

    Attributes (override in the subclass):
        seeds: seeds of the episodes that are played.
        snapshot_pairs: number of (state, random continuation) pairs per snapshot test.
        max_steps: steps after which an episode is said to be endless.
        pettingzoo_cycles: length of PettingZoo's own `api_test`; 0 leaves it out.
        ties: auctions of equal bids per agent, each in a world of its own; fewer where worlds are
            slow to make.
    """

    seeds: Sequence[int] = (0, 1, 2)
    snapshot_pairs: int = 24
    max_steps: int = 50_000
    pettingzoo_cycles: int = 120
    ties: int = 60

    def make_env(self) -> Any:
        """A new environment, not yet reset. It must be alike each time."""
        raise NotImplementedError("implement make_env() in your subclass of EnvContractTests")

    def choose(self, env: Any, agent: str, rng: random.Random) -> Any:
        """A random action for the agent to move: legal, now and then a masked one as a no-op.

        Override it for an environment that says neither by mask nor by answers what is legal.
        """
        game = env.unwrapped
        legal = legal_actions(env, agent)
        if game.phase == "bid":
            return legal[0] if rng.random() < 0.3 else rng.choice(legal)
        if game.on_illegal == "noop" and rng.random() < 0.03 and has_mask(env):
            levels = len(game.bid_levels)
            return levels + rng.randrange(len(game.task.action_names(agent)))
        return rng.choice(legal)

    def play(
        self, env: Any, rng: random.Random, turns: int | None = None, read_all: bool = False
    ) -> list[Step]:
        """Play at random to the end, or until so many turns are over; return the trace.

        ``read_all`` reads everything that can be read again and again in between.
        """
        trace: list[Step] = []
        game = env.unwrapped
        last_turn = math.inf if turns is None else game.turn + turns
        while not is_over(env) and game.turn < last_turn:
            agent, turn, phase = env.agent_selection, game.turn, game.phase
            action = self.choose(env, agent, rng)
            env.step(action)
            hasher = hashlib.blake2b(digest_size=8)
            # A turn's new observations are hashed for everyone, the others for whoever moves.
            seen = env.possible_agents if game.turn != turn else (env.agent_selection,)
            flags = (action, env.rewards, env.terminations, env.truncations)
            hasher.update(repr(flags).encode())
            infos = env.infos
            for other in seen:
                feed(hasher, env.observe(other))
                feed(hasher, infos.get(other))
            trace.append(Step(turn, phase, agent, hasher.hexdigest()))
            if read_all and len(trace) % 3 == 0:
                before = env.snapshot()
                readable(env)
                # A game asks the task once a turn; whoever has the task may ask at any time.
                for other in game.possible_agents:
                    game.task.observe(other)
                check(
                    env.snapshot() == before,
                    "observe anytime",
                    f"reading everything in turn {game.turn} changes the state",
                )
            check(
                len(trace) <= self.max_steps,
                "ends",
                f"no end after {self.max_steps} steps, in turn {game.turn} of {game.max_turns}",
            )
        if is_over(env):
            trace.append(Step(game.turn, "end", "", content_digest(game.metrics())))
        return trace

    def started(self, seed: int, turns: int = 0, play_seed: int = 0) -> Any:
        """A new environment in which so many turns were played at random."""
        env = self.make_env()
        env.reset(seed=seed)
        self.play(env, random.Random(play_seed), turns)
        return env

    def whole(self, env: Any, seed: int, play_seed: int | None = None, **how: Any) -> list[Step]:
        """The trace of the episode of a seed, played at random from its beginning."""
        env.reset(seed=seed)
        return self.play(env, random.Random(seed if play_seed is None else play_seed), **how)

    def episode_states(self, seed: int) -> Iterator[Any]:
        """An environment before each step of a random episode, and once after its end."""
        env, rng = self.started(seed), random.Random(seed)
        for _ in range(self.max_steps):
            yield env
            if is_over(env):
                return
            env.step(self.choose(env, env.agent_selection, rng))
        check(False, "ends", f"no end after {self.max_steps} steps")

    def turn_starts(self, count: int) -> Iterator[tuple[int, int]]:
        """Pairs (seed, turns) at whose state an episode still goes on."""
        rng = random.Random(17)
        for index in range(count):
            seed = self.seeds[index % len(self.seeds)]
            length = self.length(seed)
            yield seed, rng.randrange(length) if length else 0

    def length(self, seed: int) -> int:
        """Number of turns of the random episode that `started` plays."""
        lengths: dict[int, int] = self.__dict__.setdefault("_lengths", {})
        if seed not in lengths:
            env = self.make_env()
            self.whole(env, seed, 0)
            lengths[seed] = int(env.unwrapped.turn)
            env.close()
        return lengths[seed]

    def same_trace(
        self, rule: str, what: str, first: Sequence[Step], second: Sequence[Step]
    ) -> None:
        if list(first) == list(second):
            return
        at = next(
            (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
            min(len(first), len(second)),
        )
        step = first[at] if at < len(first) else None
        where = f"turn {step.turn}, {step.phase} phase" if step is not None else "the end"
        check(False, rule, f"{what}: differs from step {at} on ({where})")

    def is_vector(self, env: Any) -> bool:
        """Whether agents observe feature vectors (not texts or pictures)."""
        observation = env.observe(env.possible_agents[0])
        array = observation.get("observation") if isinstance(observation, Mapping) else None
        return isinstance(array, np.ndarray) and array.ndim == 1

    def require_mask(self, env: Any) -> None:
        """Skip the test where actions are texts."""
        if not has_mask(env):
            raise unittest.SkipTest("there are no masks where actions are texts")

    def require_exact(self, env: Any) -> None:
        if env.unwrapped.task.snapshot_fidelity == "approximate":
            raise unittest.SkipTest("this task promises approximate snapshots only")

    def pairs(self) -> list[tuple[Any, int]]:
        """(snapshot, continuation seed) at random steps of random episodes, in any phase."""
        rng = random.Random(23)
        pairs: list[tuple[Any, int]] = []
        for episode in range(self.snapshot_pairs):
            wanted = min(10, self.snapshot_pairs - len(pairs))
            if wanted <= 0:
                break
            seed = self.seeds[episode % len(self.seeds)] + episode // len(self.seeds)
            env = self.make_env()
            length = len(self.whole(env, seed, episode))
            env.reset(seed=seed)
            play = random.Random(episode)
            chosen = sorted(rng.randrange(length) for _ in range(wanted))
            for step in range(length):
                while chosen and chosen[0] == step:
                    chosen.pop(0)
                    pairs.append((env.snapshot(), rng.getrandbits(32)))
                if is_over(env):
                    break
                env.step(self.choose(env, env.agent_selection, play))
            env.close()
        return pairs

    def legal_bids(self, env: Any, agent: str) -> list[Any]:
        """The agent's legal bids in increasing order, the first of them the bid of 0.

        Override it for an environment that says neither by mask nor by answers what is legal.
        """
        return legal_actions(env, agent)


def changed_snapshot(snapshot: Snapshot, **fields: Any) -> Snapshot:
    """A copy with other fields, e.g. a truncated payload."""
    values = {
        name: getattr(snapshot, name) for name in ("task_id", "version", "payload", "fidelity")
    }
    return Snapshot(**{**values, **fields})
