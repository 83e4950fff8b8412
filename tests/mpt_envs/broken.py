"""Tasks and games that each break one rule of the contract, for the tests of the testing kit.

Each class of the second half is what a user would write: a subclass of the kit. They are not named
``Test...``, so that pytest does not collect them.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.testing import EnvContractTests, TaskContractTests
from tests.toys import RelayTask
from wrappers.bid_then_act import BidThenActEnv
from wrappers.game_snapshot import GameSnapshot
from wrappers.rng import as_key
from wrappers.task import ParseError, Phase, Snapshot, TurnResult, TurnTask

# -- tasks ------------------------------------------------------------------------------------


class ForgetfulSnapshot(RelayTask):
    """One field is missing in the snapshot."""

    def restore(self, snapshot: Snapshot) -> None:
        spilled = self._spilled
        super().restore(snapshot)
        self._spilled = spilled


class HiddenGenerator(RelayTask):
    """Luck comes from a generator whose position no snapshot holds."""

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        super().reset(seed, episode, options)
        self._rng = np.random.default_rng([seed & 0xFFFF, episode])

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self._rng = getattr(self, "_rng", np.random.default_rng(12345))

    def act(self, agent: str, action: int) -> TurnResult:
        self._key = as_key(self._key_of_now())
        return super().act(agent, action)

    def _key_of_now(self) -> int:
        return int(self._rng.integers(1 << 40))


class GlobalGenerator(HiddenGenerator):
    """Luck comes from NumPy's global generator."""

    def _key_of_now(self) -> int:
        return int(np.random.randint(1 << 30))  # noqa: NPY002


class PythonGenerator(HiddenGenerator):
    """Luck comes from Python's global generator."""

    def _key_of_now(self) -> int:
        return random.getrandbits(40)


class SharedCounter(HiddenGenerator):
    """Luck depends on what other instances of the class did."""

    count = 0

    def _key_of_now(self) -> int:
        SharedCounter.count += 1
        return SharedCounter.count


class HashOrder(HiddenGenerator):
    """Luck depends on the hash of a string, which differs from process to process."""

    def _key_of_now(self) -> int:
        return hash(f"luck of {self._time}") & 0xFFFFFFFF


class InMemorySnapshot(RelayTask):
    """The snapshot is a handle of something that only this process has."""

    store: dict[bytes, bytes] = {}  # noqa: RUF012

    def snapshot(self) -> Snapshot:
        payload = super().snapshot().payload
        handle = struct.pack("<Q", hash(payload) & 0xFFFFFFFFFFFFFFFF)
        self.store[handle] = payload
        return Snapshot(self.task_id, 1, handle)

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.check(self.task_id, 1, 8)
        super().restore(Snapshot(self.task_id, 1, self.store[snapshot.payload]))


class TrustingRestore(RelayTask):
    """Restores whatever it is given."""

    def restore(self, snapshot: Snapshot) -> None:
        size = struct.calcsize("<Qqqqq")
        payload = snapshot.payload[:size].ljust(size, b"\0")
        super().restore(Snapshot(self.task_id, 1, payload))


class HalfRestore(RelayTask):
    """Refuses a foreign snapshot after it has already changed something."""

    def restore(self, snapshot: Snapshot) -> None:
        self._bucket = 0
        self._tank += 1
        super().restore(snapshot)


class StickyReset(RelayTask):
    """An episode starts with what the last one spilled."""

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        spilled = self._spilled
        super().reset(seed, episode, options)
        self._spilled = spilled


class AliasedObservation(RelayTask):
    """Every observation is the same array."""

    def observe(self, agent: str) -> NDArray[np.float32]:
        if not hasattr(self, "_buffers"):
            self._buffers = {a: super(AliasedObservation, self).observe(a) for a in ("filler_0",)}
        if agent not in self._buffers:
            return super().observe(agent)
        self._buffers[agent][:] = super().observe(agent)
        return self._buffers[agent]


class CuriousObservation(RelayTask):
    """Looking changes the state."""

    def observe(self, agent: str) -> NDArray[np.float32]:
        self._spilled += 1
        return super().observe(agent)


class WideObservation(RelayTask):
    """float64 instead of float32."""

    def observe(self, agent: str) -> Any:
        return super().observe(agent).astype(np.float64)


class NotANumber(RelayTask):
    """Observes nan once the bucket is full."""

    def observe(self, agent: str) -> NDArray[np.float32]:
        values = super().observe(agent)
        return values * np.float32("nan") if self._bucket == 3 else values


class OutOfBounds(RelayTask):
    """Declares bounds and leaves them."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_low, self.observation_high = 0.0, 0.5


class EmptyMask(RelayTask):
    """The carrier has nothing to do while the bucket is empty."""

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        mask = super().action_mask(agent)
        mask[0] = agent.startswith("filler")
        return mask


class BooleanMask(RelayTask):
    """The mask has the wrong dtype."""

    def action_mask(self, agent: str) -> Any:
        return super().action_mask(agent).astype(bool)


class StrongIllegal(RelayTask):
    """A masked action does something."""

    def act(self, agent: str, action: int) -> TurnResult:
        result = super().act(agent, action)
        if result.info.get("illegal"):
            self._spilled += 1
        return result


class SilentIllegal(RelayTask):
    """A masked action is not reported."""

    def act(self, agent: str, action: int) -> TurnResult:
        return super().act(agent, action)._replace(info={})


class BadNames(RelayTask):
    """Agents are not called role_i."""

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ("filler", "carrier")


class TwinActions(RelayTask):
    """Two actions of one name."""

    def action_names(self, agent: str) -> tuple[str, ...]:
        return tuple("rest" if n == "shake" else n for n in super().action_names(agent))


class Illiterate(RelayTask):
    """Raises on text that it does not know."""

    def parse(self, agent: str, text: str) -> int | ParseError:
        return self.action_names(agent).index(text)


class Gullible(RelayTask):
    """Reads anything as an action."""

    def parse(self, agent: str, text: str) -> int | ParseError:
        read = super().parse(agent, text)
        return 0 if isinstance(read, ParseError) else read


class Mute(RelayTask):
    """An empty prompt."""

    def prompt(self, agent: str, phase: Phase) -> str:
        return "" if phase == "bid" else super().prompt(agent, phase)


class Painter(RelayTask):
    """Drawing changes the state."""

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        self._tank += mode == "rgb_array"
        return super().render(mode, overlay)


class Blank(RelayTask):
    """Draws an empty picture."""

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        picture = super().render(mode, overlay)
        return np.zeros_like(picture) if mode == "rgb_array" else picture


class FloatPicture(RelayTask):
    """Draws in floats."""

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        picture = super().render(mode, overlay)
        return picture / 255 if mode == "rgb_array" else picture


class NoSuccess(RelayTask):
    """Reports no success."""

    def metrics(self) -> dict[str, float]:
        return {"tank": float(self._tank)}


class NanMetric(RelayTask):
    """Reports a value that is not finite."""

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "ratio": float("nan") if self._tank == 0 else 1.0}


class LateMetric(RelayTask):
    """Reports a metric only later on."""

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), **({"spilled": 1.0} if self._spilled else {})}


class BlindExpert(RelayTask):
    """The expert proposes what is masked."""

    def expert_action(self, agent: str) -> int:
        return 1


class GreedyExpert(RelayTask):
    """The expert bids more than 1."""

    def expert_bid(self, agent: str) -> float:
        return 2 * super().expert_bid(agent)


class InfiniteReward(RelayTask):
    """Pays infinitely much."""

    def act(self, agent: str, action: int) -> TurnResult:
        result = super().act(agent, action)
        return result._replace(reward=float("inf")) if result.reward else result


class SharingClone(RelayTask):
    """A clone is the original."""

    def clone(self) -> TurnTask:
        return self


class StaleClone(RelayTask):
    """A clone is a task at its start."""

    def clone(self) -> TurnTask:
        twin = copy.copy(self)
        twin.reset(0)
        # The game restores its own snapshot into the clone, which this one does not let happen.
        twin.restore = lambda snapshot: None  # type: ignore[method-assign]
        return twin


class ViolentReseed(RelayTask):
    """Another key also empties the bucket."""

    def reseed(self, key: int) -> None:
        super().reseed(key)
        self._bucket = 0
        self._spilled += 1


# -- games ------------------------------------------------------------------------------------


class OpenBids(BidThenActEnv):
    """Later bidders see what was bid before."""

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        observation = super().observe(agent)
        if self.phase == "bid":
            observation["observation"][0] = self._bids.sum()
        return observation


class BidsInInfos(BidThenActEnv):
    """The running bids are in infos."""

    def step(self, action: int | None) -> None:
        super().step(action)
        for info in self.infos.values():
            info["bids"] = self._bids.copy()


class FirstComeFirstServed(BidThenActEnv):
    """Ties go to whoever comes first."""

    def _resolve(self) -> None:
        top = self._bids.max()
        self._bids[int(self._bids.argmax()) + 1 :][
            self._bids[int(self._bids.argmax()) + 1 :] == top
        ] = max(0, top - 1)
        super()._resolve()


class LowestWins(BidThenActEnv):
    """The lowest bid wins."""

    def _resolve(self) -> None:
        super()._resolve()
        auction = self.last_auction
        if auction is not None and auction.winner is not None and auction.runner_up is not None:
            self.last_auction = auction._replace(winner=auction.runner_up, runner_up=auction.winner)
            self._winner = self._index[auction.runner_up]
            self._open_act_phase()


class PaidWinner(BidThenActEnv):
    """Only the first agent is paid."""

    def _finish_turn(self, result: TurnResult) -> None:
        super()._finish_turn(result)
        if result.reward:
            self.rewards[self._names[-1]] = 0.0


class StaggeredEnd(BidThenActEnv):
    """One agent ends alone."""

    def _finish_turn(self, result: TurnResult) -> None:
        super()._finish_turn(result)
        if self._over:
            self.truncations[self._names[-1]] = not self.truncations[self._names[-1]]


class SharedMask(BidThenActEnv):
    """The mask in infos is the one that the observation holds."""

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        observation = super().observe(agent)
        if agent in self.infos:
            observation["action_mask"] = self.infos[agent]["action_mask"]
        return observation


class Uncounted(BidThenActEnv):
    """An illegal action is not counted."""

    def step(self, action: int | None) -> None:
        super().step(action)
        self.counts["illegal"] = 0


class LostTurn(BidThenActEnv):
    """A skipped turn does not count."""

    def _finish_turn(self, result: TurnResult) -> None:
        skipped = self.last_auction is not None and self.last_auction.skipped
        super()._finish_turn(result)
        if skipped and self.turn % 2:
            self.turn -= 1


class ForgetfulGame(BidThenActEnv):
    """The game's snapshot misses the running bids."""

    def snapshot(self) -> GameSnapshot:
        taken = super().snapshot()
        game = list(taken.game)
        game[7] = (0,) * len(self._names)
        return GameSnapshot(taken.task, tuple(game))


class SameEpisode(BidThenActEnv):
    """reset() without a seed repeats the first episode."""

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        super().reset(self.seed if seed is None else seed, options)


class LooseActions(BidThenActEnv):
    """Rounds whatever it is given to an action."""

    def step(self, action: Any) -> None:
        super().step(int(action) if isinstance(action, float) else action)


# -- what users write -------------------------------------------------------------------------


class SoundTask(TaskContractTests):
    """The task that all the others are made of."""

    task: type[RelayTask] = RelayTask

    def make_task(self) -> TurnTask:
        return self.task()


class SoundEnv(EnvContractTests):
    """The game that all the others are made of."""

    game: type[BidThenActEnv] = BidThenActEnv

    def make_env(self) -> BidThenActEnv:
        return self.game(RelayTask())


def _kits() -> dict[str, type[EnvContractTests]]:
    """A subclass of the kit for each broken task and game: ``Kit<name of the class>``."""
    made: dict[str, type[EnvContractTests]] = {}
    for name, value in list(globals().items()):
        if not isinstance(value, type) or value.__module__ != __name__:
            continue
        base, attribute = (
            (SoundTask, "task") if issubclass(value, RelayTask) else (SoundEnv, "game")
        )
        if issubclass(value, (RelayTask, BidThenActEnv)):
            kit = type(f"Kit{name}", (base,), {attribute: value, "__module__": __name__})
            made[kit.__name__] = kit
    return made


# A fresh process finds them by name in this module.
globals().update(_kits())
