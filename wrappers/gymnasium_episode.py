"""A Gymnasium environment and the episode that runs in it: steps, luck, and the state as bytes.

It knows neither roles nor agents. `wrappers.gymnasium_task` says what luck and snapshots mean here.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wrappers.errors import MissingCapabilityError, PhaseError, SnapshotError
from wrappers.flatten import FlatObservation
from wrappers.gymnasium_state import (
    BUILT_IN,
    StateAdapter,
    set_generator,
    set_wrapper_state,
    wrapper_state,
)
from wrappers.packing import PackError, pack, unpack
from wrappers.rng import STREAM_DOMAIN, as_key, hash4
from wrappers.task import Fidelity, TurnResult

_SEED_BITS = 0x7FFFFFFF
_PROBE_SEED = 12345
_SKIPPED = -1

Env = gymnasium.Env[Any, Any]
SuccessRule = Callable[[Mapping[str, Any], bool, float], bool]

# What a payload holds, and of which kind each part is.
_EXACT_PARTS: dict[str, type | tuple[type, ...]] = {
    "env": bytes,
    "wrappers": list,
    "observation": object,
    "legal": (np.ndarray, type(None)),
    "terminated": bool,
    "solved": bool,
    "steps": int,
    "turn": int,
    "key": int,
    "return": float,
}
_REPLAY_PARTS: dict[str, type | tuple[type, ...]] = {
    "start": (tuple, list),
    "events": list,
    "digest": str,
}


class GymnasiumEpisode:
    """The running episode of an environment with discrete actions.

    Args:
        env: the environment.
        name: of the task, for messages.
        actions: names of the environment's actions, in their order.
        first: number of the first one.
        luck, success: as in `GymnasiumTask`.

    Attributes:
        env, fidelity, note: what snapshots promise, and why; see `choose_snapshots`.
        flat: how an observation becomes a vector.
        observation, vector: the last one, as it came and flat.
        legal: ``bool (actions,)`` from the environment's own mask, or None.
        started, terminated, solved: of the episode.
        steps, turn, total: steps of the environment, turns with skipped ones, sum of rewards.
    """

    fidelity: Fidelity = "replay"
    note: str = ""

    def __init__(
        self,
        env: Env,
        name: str,
        actions: Sequence[str],
        first: int,
        luck: Literal["turn", "stream"],
        success: SuccessRule | None,
    ) -> None:
        self.env = env
        self.name = name
        self.actions = tuple(actions)
        self.first = first
        self.luck = luck
        self.success = success
        self.flat = FlatObservation(env.observation_space)
        self.adapter: StateAdapter | None = None
        self.clear()

    def clear(self) -> None:
        """No episode is running."""
        self.observation: Any = None
        self.vector = np.zeros(self.flat.size, np.float32)
        self.legal: NDArray[np.bool_] | None = None
        self.started = self.terminated = self.solved = False
        self.steps = self.turn = self.key = 0
        self.total = 0.0
        # The episode so far, for replays: the key and options of its reset, then the environment's
        # actions, skipped turns (`_SKIPPED`) and changes of the key (lists of one number).
        self.start: tuple[int, dict[str, Any] | None] = (0, None)
        self.events: list[int | list[int]] = []

    # -- dynamics ----------------------------------------------------------------------------

    def begin(self, key: int, options: dict[str, Any] | None) -> None:
        observation, info = self.env.reset(seed=key & _SEED_BITS, options=options)
        self.clear()
        self.started = True
        self.start = (key, options)
        self.key = key
        self._take(observation, info)

    def skip(self) -> TurnResult:
        """A turn without a step of the environment."""
        self.events.append(_SKIPPED)
        self.turn += 1
        return TurnResult(0.0, False, {})

    def step(self, action: int) -> TurnResult:
        """One step of the environment."""
        if self.luck == "turn":
            set_generator(self.env.unwrapped, self.turn_key())
        observation, reward, terminated, truncated, info = self.env.step(self.first + action)
        self._take(observation, info)
        self.events.append(action)
        self.turn += 1
        self.steps += 1
        value = float(reward)
        self.total += value
        facts: dict[str, Any] = {"env_action": self.actions[action], "env_info": info}
        if terminated or truncated:
            self.terminated = True
            self.solved = self._succeeded(info, bool(terminated), value)
            if not terminated:
                facts["time_limit"] = True
        return TurnResult(value, self.terminated, facts)

    def turn_key(self) -> int:
        """What is drawn in the running turn follows from this word."""
        return int(hash4(as_key(self.key), self.turn, STREAM_DOMAIN, 0))

    def _take(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what the environment shows; a copy, since some environments reuse their arrays."""
        self.observation = copy.deepcopy(observation)
        self.vector = self.flat(observation)
        mask = info.get("action_mask")
        if mask is not None and np.shape(mask) == (len(self.actions),):
            self.legal = np.array(mask, np.bool_)
        else:
            self.legal = None

    def _succeeded(self, info: Mapping[str, Any], terminated: bool, reward: float) -> bool:
        if self.success is not None:
            return bool(self.success(info, terminated, reward))
        for key in ("is_success", "success"):
            if key in info:
                return bool(info[key])
        return terminated and reward > 0.0

    def check_started(self) -> None:
        """Raise unless there is an episode."""
        if not self.started:
            raise PhaseError(f"call reset() of {self.name} first")

    def reseed(self, key: int) -> None:
        """Draw what is yet to be drawn from another key (nothing changes for the present one).

        Raises:
            MissingCapabilityError: the environment does not use Gymnasium's generator.
        """
        self.check_started()
        word = int(as_key(key))
        if word == self.key:
            return
        # With luck by turns this only finds out whether there is a generator: it is set again
        # before each step.
        if not set_generator(self.env.unwrapped, word):
            raise MissingCapabilityError(
                f"{self.name} does not draw from Gymnasium's np_random, so its luck cannot be "
                "changed"
            )
        self.key = word
        self.events.append([word])

    def copy_with(self, env: Env) -> GymnasiumEpisode:
        """The same episode around another environment, which is in the same state or will be."""
        twin = copy.copy(self)
        # Nothing of the shared attributes is ever changed in place, except for the events.
        twin.events = list(self.events)
        twin.env = env
        return twin

    # -- the state as bytes --------------------------------------------------------------------

    def write(self) -> bytes:
        """The whole state, or the episode so far where the state cannot be read.

        Raises:
            PackError: the state holds something that cannot be written.
        """
        return self._write_replay() if self.adapter is None else self._write_exact()

    def read(self, content: dict[str, Any]) -> None:
        """Take over what `snapshot` wrote."""
        if self.adapter is None:
            self._read_replay(content)
        else:
            self._read_exact(content)

    def is_valid(self, content: Any) -> bool:
        """Whether a payload has the parts that `snapshot` writes, each of its own kind."""
        parts = _REPLAY_PARTS if self.adapter is None else _EXACT_PARTS
        if not isinstance(content, dict) or set(content) != set(parts):
            return False
        if not all(isinstance(content[name], kind) for name, kind in parts.items()):
            return False
        if self.adapter is not None:
            legal = content["legal"]
            return (
                (legal is None or legal.shape == (len(self.actions),))
                and 0 <= content["key"] < 1 << 64
                and 0 <= content["steps"] < 1 << 62
                and 0 <= content["turn"] < 1 << 62
            )
        start, events = content["start"], content["events"]
        return (
            len(start) == 2
            and type(start[0]) is int
            and isinstance(start[1], (dict, type(None)))
            and all(
                type(event) is int and _SKIPPED <= event < len(self.actions)
                if not isinstance(event, list)
                else len(event) == 1 and type(event[0]) is int
                for event in events
            )
        )

    def _write_exact(self) -> bytes:
        assert self.adapter is not None
        return pack(
            {
                "env": self.adapter.read(self.env.unwrapped),
                "wrappers": wrapper_state(self.env),
                "observation": self.observation,
                "legal": self.legal,
                "terminated": self.terminated,
                "solved": self.solved,
                "steps": self.steps,
                "turn": self.turn,
                "key": self.key,
                "return": self.total,
            }
        )

    def _read_exact(self, content: dict[str, Any]) -> None:
        assert self.adapter is not None
        if not self.started:
            # Some environments have their attributes only after a reset.
            self.env.reset(seed=_PROBE_SEED)
        if len(content["wrappers"]) != len(wrapper_state(self.env)):
            raise SnapshotError(
                f"this snapshot of {self.name} was taken with other wrappers around the "
                f"environment than {self.env}; make both alike"
            )
        try:
            self.adapter.write(self.env.unwrapped, content["env"])
        except PackError as error:
            raise SnapshotError(
                f"this snapshot of {self.name} does not fit here ({error}); restore it in a "
                "process that has made the same environment"
            ) from error
        set_wrapper_state(self.env, content["wrappers"])
        self.observation = content["observation"]
        self.vector = self.flat(self.observation)
        self.legal = content["legal"]
        self.terminated, self.solved = content["terminated"], content["solved"]
        self.steps, self.total = content["steps"], content["return"]
        self.turn, self.key = content["turn"], content["key"]
        self.started = True

    def _write_replay(self) -> bytes:
        return pack(
            {
                "start": self.start,
                "events": self.events,
                "digest": self._digest(),
            }
        )

    def _read_replay(self, content: dict[str, Any]) -> None:
        before = (self.started, self.start, self.events)
        self._replay(content["start"], content["events"])
        if self._digest() == content["digest"]:
            return
        if before[0]:
            self._replay(before[1], before[2])
        else:
            self.clear()
        raise SnapshotError(
            f"playing the {len(content['events'])} steps of this snapshot of {self.name} again "
            "led to another state: the environment is not determined by its seed and actions (or "
            "is another version), so its episodes cannot be restored"
        )

    def _replay(
        self, start: tuple[int, dict[str, Any] | None], events: Sequence[int | list[int]]
    ) -> None:
        """Play an episode from its reset."""
        self.begin(*start)
        for event in events:
            if isinstance(event, list):
                self.reseed(event[0])
            elif self.terminated:
                return
            elif event == _SKIPPED:
                self.turn += 1
                self.events.append(event)
            else:
                self.step(event)

    def _digest(self) -> str:
        """What is known of the state from the outside, for comparing a replay with its original."""
        hasher = hashlib.blake2b(self.vector.tobytes(), digest_size=16)
        legal = b"" if self.legal is None else self.legal.tobytes()
        hasher.update(legal)
        hasher.update(
            repr((self.terminated, self.solved, self.steps, self.turn, self.total)).encode()
        )
        return hasher.hexdigest()

    def choose_snapshots(
        self, how: str, adapters: Sequence[StateAdapter], probe_steps: int
    ) -> None:
        """Find an adapter and try it out; without one that works, replay.

        Args:
            how, adapters, probe_steps: as in `GymnasiumTask`.
        """
        self.fidelity = "replay"
        self.adapter = None
        env = self.env.unwrapped
        adapter = next((a for a in (*adapters, *BUILT_IN) if a.accepts(env)), None)
        if how == "replay":
            self.note = "replay, as asked for"
        elif adapter is None:
            self.note = f"replay: no way to read the state of {type(env).__name__} is known"
        else:
            kind = type(adapter).__name__
            self.adapter = adapter
            try:
                if self._probe(probe_steps):
                    self.fidelity = "exact"
                    self.note = f"exact: state by {kind}"
                else:
                    self.note = f"replay: the state read by {kind} does not determine what follows"
            except PackError as error:
                self.note = f"replay: {error}"
        if self.fidelity == "replay":
            self.adapter = None
        self.clear()

    def _probe(self, steps: int) -> bool:
        """Whether a restored state gives the same random continuation."""
        generator = np.random.default_rng(_PROBE_SEED)
        self.begin(_PROBE_SEED, None)
        before = self._write_exact()
        if not steps:
            return True
        for _ in range(3):
            actions = generator.integers(0, len(self.actions), steps).tolist()
            first = self._play(actions)
            self._read_exact(unpack(before))
            if self._write_exact() != before or self._play(actions) != first:
                return False
            self._read_exact(unpack(before))
            # The next round starts a step further on.
            self._play(actions[:1])
            before = self._write_exact()
        return True

    def _play(self, actions: Sequence[int]) -> list[Any]:
        """Rewards, ends and outside views of a few steps."""
        trace: list[Any] = []
        for action in actions:
            if self.terminated:
                break
            result = self.step(action)
            trace.append((result.reward, result.terminated, self._digest()))
        return trace
