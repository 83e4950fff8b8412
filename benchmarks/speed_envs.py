"""Speed of the environments: AEC stepping, vector stepping, snapshots.

The AEC environments are driven by scripts: actions are drawn beforehand, and what is timed is the
loop ``last(); step(action)`` over them, with the time of an empty loop taken off. So no policy is
in the numbers. Resets are timed apart. All times are processor time of this thread, so that other
programs on the machine disturb less.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.noop import NoopAEC
from benchmarks.timing import Measure, clock
from wrappers.compiled import kernel
from wrappers.vector import VectorGame

Script = list[tuple[int, list[int]]]
"""Episodes: seed, and the actions of every step until the environment ends the episode."""


# -- AEC -------------------------------------------------------------------------------------


def random_script(env: Any, episodes: int, seed: int = 0, max_steps: int = 100_000) -> Script:
    """Random legal play, recorded."""
    rng = np.random.default_rng(seed)
    script: Script = []
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        actions: list[int] = []
        while len(actions) < max_steps:
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                break
            mask = info.get("action_mask")
            if mask is None and isinstance(observation, dict):
                mask = observation["action_mask"]
            if mask is None:
                actions.append(int(rng.integers(env.action_space(env.agent_selection).n)))
            else:
                actions.append(int(rng.choice(np.flatnonzero(mask))))
            env.step(actions[-1])
        script.append((seed + episode, actions))
    return script


def aec_rate(env: Any, script: Script) -> Measure:
    """Steps a second of ``last(); step(action)``, resets left out."""
    steps = sum(len(actions) for _, actions in script)

    def measure() -> float:
        seconds = 0.0
        for seed, actions in script:
            env.reset(seed=seed)
            last, step = env.last, env.step
            start = clock()
            for action in actions:
                last()
                step(action)
            seconds += clock() - start
            start = clock()
            for _ in actions:
                pass
            seconds -= clock() - start
        return steps / seconds

    return measure


def reset_time(env: Any, script: Script) -> Measure:
    """Microseconds of a reset with a new seed."""
    seeds = [seed for seed, _ in script]

    def measure() -> float:
        start = clock()
        for seed in seeds:
            env.reset(seed=seed)
        return 1e6 * (clock() - start) / len(seeds)

    return measure


def noop_like(env: Any) -> NoopAEC:
    """The environment that does nothing, with the agents and sizes of another one."""
    agent = env.possible_agents[0]
    size = env.observation_space(agent)["observation"].shape[0]
    return NoopAEC(len(env.possible_agents), size, int(env.action_space(agent).n))


def connect_four() -> Any | None:
    """PettingZoo's raw connect_four; None where what it needs is not installed."""
    try:
        from pettingzoo.classic.connect_four import connect_four as module
    except ImportError:
        return None
    return module.raw_env()


# -- vector ----------------------------------------------------------------------------------


@kernel
def pick_legal(
    mask: NDArray[np.bool_],
    winners: NDArray[np.int64],
    agent: int,
    words: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """A random legal action in the rows that ``agent`` has won."""
    for row in range(mask.shape[0]):
        if winners[row] != agent:
            continue
        legal = 0
        for action in range(mask.shape[1]):
            legal += mask[row, action]
        left = words[row] % max(legal, 1)
        for action in range(mask.shape[1]):
            if mask[row, action]:
                if left == 0:
                    out[row] = action
                    break
                left -= 1


@dataclass
class VectorPlay:
    """Random play of a vector game, finished worlds starting again with new seeds.

    Attributes:
        game: what is played.
        drawing: seconds that went into drawing bids and actions, a part of all.
        starting: seconds that went into starting episodes, a part of all.
    """

    game: VectorGame
    drawing: float = 0.0
    starting: float = 0.0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._seed = 0
        self._start(np.arange(self.game.num_envs))

    def turns(self, steps: int) -> int:
        """Play some turns in every world, observations and masks included.

        Returns:
            Turns played, over all worlds.
        """
        game, rng = self.game, self._rng
        shape = (game.num_envs, game.num_agents)
        levels = len(game.bid_levels)
        actions = np.zeros(game.num_envs, np.int64)
        for _ in range(steps):
            game.observe()
            masks = game.action_masks()
            start = clock()
            bids = rng.integers(0, levels, shape)
            words = rng.integers(0, 1 << 30, game.num_envs)
            self.drawing += clock() - start
            winners = game.auction(bids).winners
            start = clock()
            for agent, mask in enumerate(masks):
                pick_legal(mask, winners, agent, words, actions)
            self.drawing += clock() - start
            game.act(actions)
            if not game.active.all():
                start = clock()
                self._start(np.flatnonzero(~game.active))
                self.starting += clock() - start
        return steps * game.num_envs

    def _start(self, rows: NDArray[np.int64]) -> None:
        seeds = np.arange(self._seed, self._seed + len(rows))
        self._seed += len(rows)
        self.game.reset(seeds, rows=rows)


@dataclass
class VectorRates:
    """Turns a second of all worlds together, with and without the time that starting takes.

    Attributes:
        play: what is measured.
        steps: turns of every world in a measurement.
    """

    play: VectorPlay
    steps: int
    _stepping: float | None = None

    def everything(self) -> float:
        """Everything counts, also drawing and resets."""
        start, before = clock(), self.play.starting
        turns = self.play.turns(self.steps)
        whole = clock() - start
        self._stepping = turns / (whole - (self.play.starting - before))
        return turns / whole

    def stepping(self) -> float:
        """The same without the time of resets, of the turns that were measured last."""
        if self._stepping is None:
            self.everything()
        assert self._stepping is not None
        return self._stepping


# -- searches --------------------------------------------------------------------------------


def search_time(documents: int = 20_000, queries: int = 200) -> Measure:
    """Microseconds of a search of deep research for a question of ten words.

    Documents of 40 to 160 words, frequent ones and rare ones as in a language (Zipf); questions are
    words of one document.
    """
    from mpt_envs.research.data.index import SearchIndex
    from mpt_envs.research.data.tokenizer import tokenize

    rng = np.random.default_rng(0)
    lengths = rng.integers(40, 160, documents)
    words = np.minimum(rng.zipf(1.3, int(lengths.sum())), 50_000)
    texts = [
        " ".join(f"w{word}" for word in part.tolist())
        for part in np.split(words, np.cumsum(lengths)[:-1])
    ]
    index = SearchIndex.build([tokenize(text) for text in texts])
    asked = [" ".join(texts[i].split()[:10]) for i in rng.integers(0, documents, queries)]

    def measure() -> float:
        start = clock()
        for question in asked:
            assert len(index.search(question, 10))
        return 1e6 * (clock() - start) / queries

    return measure


# -- snapshots -------------------------------------------------------------------------------


def states_of(env: Any, script: Script, every: int) -> list[Any]:
    """Snapshots along the first episode of a script."""
    seed, actions = script[0]
    env.reset(seed=seed)
    states = []
    for index, action in enumerate(actions):
        if index % every == 0:
            states.append(env.snapshot())
        env.step(action)
    return states


def snapshot_time(env: Any, states: list[Any], loops: int) -> Measure:
    """Microseconds of a restore and a snapshot together, over states of a whole episode."""

    def measure() -> float:
        restore, snapshot = env.restore, env.snapshot
        start = clock()
        for _ in range(loops):
            for state in states:
                restore(state)
                snapshot()
        return 1e6 * (clock() - start) / (loops * len(states))

    return measure


def deepcopy_time(env: Any, states: list[Any]) -> Measure:
    """Microseconds of ``copy.deepcopy`` of the whole environment, over the same states."""

    def measure() -> float:
        seconds = 0.0
        for state in states:
            env.restore(state)
            start = clock()
            copy.deepcopy(env)
            seconds += clock() - start
        return 1e6 * seconds / len(states)

    return measure
