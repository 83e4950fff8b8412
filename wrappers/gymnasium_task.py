"""`GymnasiumTask`: any `gymnasium.Env` with discrete actions becomes a turn task of several roles.

A partition of the action space gives every action to one role; in each turn the agent that acts
chooses among its role's actions and the environment makes one step. All agents observe the same:
the environment's observation as one vector (`wrappers.flatten`).

    task = GymnasiumTask("Taxi-v4", {"driver": [0, 1, 2, 3], "porter": [4, 5]})
    env = BidThenActEnv(task)

What the translation decides:

* *Skipped turns* make no step of the environment and give reward 0, unless ``skip_action`` names
  an action that stands for waiting. An illegal action does the same.
* *Masks* come from ``info["action_mask"]`` where the environment gives one (Taxi does), else every
  action is legal. In a state where none of a role's actions is legal, its mask is all ones and
  whatever it chooses does what a skipped turn does (``info["no_legal_action"]``).
* *Truncation* by the environment (its `TimeLimit`) ends the task: ``terminated``, with
  ``info["time_limit"] = True``. The game's own turn budget is apart from it.
* *Seeds*: the environment is reset with 31 bits of ``rng.episode_key(seed, episode)``.
* *Luck*: Gymnasium environments draw from a generator that has a position, so what is drawn in a
  turn depends on how much was drawn before. By default (``luck="turn"``) their generator is
  therefore put to a state keyed by (episode, turn) before each step: the same distribution, and two
  branches of an episode share their luck turn by turn, as in every domain of this suite.
  ``luck="stream"`` leaves the generator alone. Neither reaches an environment that has another
  source of randomness than Gymnasium's ``np_random``.
* *Snapshots* are exact where the state can be read and written (`wrappers.gymnasium_state`), which
  is tried out on a short random episode when the task is made; else they hold the episode's seed
  and actions, and `restore` plays them again and compares the end. ``snapshot_fidelity`` says which
  of the two it is and ``snapshot_note`` why.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
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
from wrappers.rng import STREAM_DOMAIN, as_key, episode_key, hash4
from wrappers.task import Phase, Snapshot, TurnResult, TurnTask, agent_roles

_SEED_BITS = 0x7FFFFFFF
_PROBE_SEED = 12345
_SKIPPED = -1

Env = gymnasium.Env[Any, Any]

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


class GymnasiumTask(TurnTask):
    """A turn task made of a Gymnasium environment (see the top of this file).

    Args:
        env: an environment, a function that makes one, or a Gymnasium id. Of an id or a function
            the task can make more copies by itself; an environment has to bear `copy.deepcopy`
            if the task is to be cloned.
        roles: the actions of each role, by number or by name: a partition of the action space.
        task_id: name in snapshots and logs; default ``"gymnasium/<id>"``.
        action_names: names of the environment's actions, in their order. Default: what the
            environment calls them (``get_action_meanings()`` or an ``actions`` enumeration), else
            ``action_0``, ``action_1``, ...
        skip_action: an action, by number or name, that a skipped turn performs.
        snapshot: "auto": exact where possible, else replay; "replay": always replay.
        adapters: state adapters that are tried before the built-in ones.
        luck: "turn": what is drawn in a turn is keyed by the episode and the turn; "stream": the
            environment draws as it does by itself.
        success: whether an ended episode counts as a success, from the last step's info, whether
            the environment terminated by itself, and the last reward. Default:
            ``info["is_success"]`` or ``info["success"]`` if given, else terminated by itself with a
            positive last reward.
        describe: the state as text for language models, from the environment; default: the
            observation written out.
        default_max_turns: turn budget; default: the environment's own time limit, else 100.
        probe_steps: length of the episode on which snapshots are tried out; 0 trusts them.

    Attributes:
        env: the environment.
        snapshot_note: how snapshots work here and why.
        dropped_observations: parts of the observation that no number can express.
        shared_observation: True.

    Raises:
        ValueError: the action space is not Discrete, or `roles` is no partition of it.
    """

    shared_observation = True

    def __init__(
        self,
        env: str | Env | Callable[[], Env],
        roles: Mapping[str, Sequence[int | str]],
        *,
        task_id: str | None = None,
        action_names: Sequence[str] | None = None,
        skip_action: int | str | None = None,
        snapshot: Literal["auto", "replay"] = "auto",
        adapters: Sequence[StateAdapter] = (),
        luck: Literal["turn", "stream"] = "turn",
        success: Callable[[Mapping[str, Any], bool, float], bool] | None = None,
        describe: Callable[[Env], str] | None = None,
        default_max_turns: int | None = None,
        probe_steps: int = 8,
    ) -> None:
        if snapshot not in ("auto", "replay"):
            raise ValueError(f'snapshot must be "auto" or "replay", got {snapshot!r}')
        if luck not in ("turn", "stream"):
            raise ValueError(f'luck must be "turn" or "stream", got {luck!r}')
        self._factory = _factory(env)
        self.env: Env = env if isinstance(env, gymnasium.Env) else self._factory()
        if not isinstance(self.env, gymnasium.Env):
            raise TypeError(f"{env!r} must return a gymnasium.Env, but returned {self.env!r}")
        space = self.env.action_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(
                f"the actions of {self.env} are {space}, but a turn task needs Discrete ones; "
                "wrap the environment so that each decision is one of finitely many"
            )
        self._first = int(space.start)
        self._all_names = _action_names(self.env, int(space.n), self._first, action_names)
        self._roles = _partition(roles, self._all_names, self._first)
        self._skip_action = (
            None if skip_action is None else _index(skip_action, self._all_names, self._first)
        )
        spec_id = (
            self.env.spec.id if self.env.spec is not None else type(self.env.unwrapped).__name__
        )
        self.task_id = task_id if task_id is not None else f"gymnasium/{spec_id}"
        self.possible_agents = tuple(f"{role}_0" for role in self._roles)
        self.roles = agent_roles(self.possible_agents)
        limit = self.env.spec.max_episode_steps if self.env.spec is not None else None
        self.default_max_turns = int(default_max_turns or limit or 100)
        self.render_modes = ("ansi",)
        if self.env.render_mode == "rgb_array":
            self.render_modes = ("ansi", "rgb_array")
        self._flat = FlatObservation(self.env.observation_space)
        self.observation_low, self.observation_high = self._flat.low, self._flat.high
        self.dropped_observations = self._flat.dropped
        self._luck = luck
        self._success_rule = success
        self._describe = describe
        self._agent_actions = {
            f"{role}_0": np.array(actions, np.int64) for role, actions in self._roles.items()
        }
        self._agent_names = {
            agent: tuple(self._all_names[i] for i in actions)
            for agent, actions in self._agent_actions.items()
        }
        self._clear()
        self._adapter: StateAdapter | None = None
        self._wanted = (snapshot, tuple(adapters))
        self._choose_snapshots(probe_steps)

    def _clear(self) -> None:
        """No episode is running."""
        self._observation: Any = None
        self._vector = np.zeros(self._flat.size, np.float32)
        self._legal: NDArray[np.bool_] | None = None
        self._started = self._terminated = self._solved = False
        self._steps = self._turn = self._key = 0
        self._return = 0.0
        # The episode so far, for replays: the key and options of its reset, then the environment's
        # actions, skipped turns (`_SKIPPED`) and changes of the key (lists of one number).
        self._start: tuple[int, dict[str, Any] | None] = (0, None)
        self._events: list[int | list[int]] = []

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return self._flat.size

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self._agent_names[agent]

    def env_action(self, agent: str, action: int) -> int:
        """The environment's action behind an agent's action."""
        return self._first + int(self._agent_actions[agent][action])

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode; ``options`` are the environment's and must be plain data."""
        if options:
            try:
                pack(dict(options))
            except PackError as error:
                raise TypeError(f"options must be plain data: {error}") from error
        self._begin(
            int(episode_key(seed, episode)), copy.deepcopy(dict(options)) if options else None
        )

    def _begin(self, key: int, options: dict[str, Any] | None) -> None:
        observation, info = self.env.reset(seed=key & _SEED_BITS, options=options)
        self._clear()
        self._started = True
        self._start = (key, options)
        self._key = key
        self._take(observation, info)

    def observe(self, agent: str) -> NDArray[np.float32]:
        self._check_started()
        if agent not in self._agent_actions:
            raise KeyError(f"unknown agent {agent!r}; agents: {self.possible_agents}")
        return self._vector.copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        mask = self._own_mask(agent)
        return mask if mask.any() else np.ones_like(mask)

    def act(self, agent: str, action: int) -> TurnResult:
        self._check_started()
        if self._terminated:
            return TurnResult(0.0, True, {"over": True})
        own = self._own_mask(agent)
        if not own[action]:
            result = self.skip()
            result.info["illegal" if own.any() else "no_legal_action"] = True
            return result
        return self._step(int(self._agent_actions[agent][action]))

    def skip(self) -> TurnResult:
        self._check_started()
        if self._terminated:
            return TurnResult(0.0, True, {"over": True})
        if self._skip_action is None:
            self._events.append(_SKIPPED)
            self._turn += 1
            return TurnResult(0.0, False, {})
        return self._step(self._skip_action)

    def _step(self, action: int) -> TurnResult:
        """One step of the environment."""
        if self._luck == "turn":
            set_generator(self.env.unwrapped, self._turn_key())
        observation, reward, terminated, truncated, info = self.env.step(self._first + action)
        self._take(observation, info)
        self._events.append(action)
        self._turn += 1
        self._steps += 1
        value = float(reward)
        self._return += value
        facts: dict[str, Any] = {"env_action": self._all_names[action], "env_info": info}
        if terminated or truncated:
            self._terminated = True
            self._solved = self._succeeded(info, bool(terminated), value)
            if not terminated:
                facts["time_limit"] = True
        return TurnResult(value, self._terminated, facts)

    def _turn_key(self) -> int:
        """What is drawn in the running turn follows from this word."""
        return int(hash4(as_key(self._key), self._turn, STREAM_DOMAIN, 0))

    def _take(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what the environment shows; a copy, since some environments reuse their arrays."""
        self._observation = copy.deepcopy(observation)
        self._vector = self._flat(observation)
        mask = info.get("action_mask")
        if mask is not None and np.shape(mask) == (len(self._all_names),):
            self._legal = np.array(mask, np.bool_)
        else:
            self._legal = None

    def _own_mask(self, agent: str) -> NDArray[np.int8]:
        """The environment's mask on the role's actions; may be all zero."""
        actions = self._agent_actions[agent]
        if self._legal is None:
            return np.ones(len(actions), np.int8)
        return self._legal[actions].astype(np.int8)

    def _succeeded(self, info: Mapping[str, Any], terminated: bool, reward: float) -> bool:
        if self._success_rule is not None:
            return bool(self._success_rule(info, terminated, reward))
        for key in ("is_success", "success"):
            if key in info:
                return bool(info[key])
        return terminated and reward > 0.0

    def _check_started(self) -> None:
        if not self._started:
            raise PhaseError(f"call reset() of {self.task_id} first")

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The whole state, or the episode so far where the state cannot be read.

        Raises:
            SnapshotError: the state holds something new that cannot be written.
        """
        self._check_started()
        try:
            payload = self._write_replay() if self._adapter is None else self._write_exact()
        except PackError as error:
            raise SnapshotError(
                f"the state of {self.task_id} can no longer be written ({error}); make the task "
                'with snapshot="replay"'
            ) from error
        taken = Snapshot(self.task_id, self.snapshot_version, payload, self.snapshot_fidelity)
        return taken.verify()

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.check(self.task_id, self.snapshot_version)
        if snapshot.fidelity != self.snapshot_fidelity:
            raise SnapshotError(
                f"this snapshot of {self.task_id} is {snapshot.fidelity!r}, but this task takes "
                f"{self.snapshot_fidelity!r} ones ({self.snapshot_note}); make both tasks alike"
            )
        try:
            content = unpack(snapshot.payload)
        except PackError as error:
            raise SnapshotError(
                f"this snapshot of {self.task_id} is corrupt ({error}); take it again"
            ) from error
        if snapshot.verified:
            self._read(content)
            return
        before = self.snapshot() if self._started else None
        try:
            if not self._is_valid(content):
                raise ValueError("a part is missing or of another kind")
            self._read(content)
        except Exception as error:  # whatever the environment makes of a state that cannot be
            if before is None:
                self._clear()
            else:
                self._read(unpack(before.payload))
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"this snapshot of {self.task_id} holds no valid state ({error}); take it again"
            ) from error
        snapshot.verify()

    def _read(self, content: dict[str, Any]) -> None:
        """Take over what `snapshot` wrote."""
        if self._adapter is None:
            self._read_replay(content)
        else:
            self._read_exact(content)

    def _is_valid(self, content: Any) -> bool:
        """Whether a payload has the parts that `snapshot` writes, each of its own kind."""
        parts = _REPLAY_PARTS if self._adapter is None else _EXACT_PARTS
        if not isinstance(content, dict) or set(content) != set(parts):
            return False
        if not all(isinstance(content[name], kind) for name, kind in parts.items()):
            return False
        if self._adapter is not None:
            legal = content["legal"]
            return (
                (legal is None or legal.shape == (len(self._all_names),))
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
                type(event) is int and _SKIPPED <= event < len(self._all_names)
                if not isinstance(event, list)
                else len(event) == 1 and type(event[0]) is int
                for event in events
            )
        )

    def _write_exact(self) -> bytes:
        assert self._adapter is not None
        return pack(
            {
                "env": self._adapter.read(self.env.unwrapped),
                "wrappers": wrapper_state(self.env),
                "observation": self._observation,
                "legal": self._legal,
                "terminated": self._terminated,
                "solved": self._solved,
                "steps": self._steps,
                "turn": self._turn,
                "key": self._key,
                "return": self._return,
            }
        )

    def _read_exact(self, content: dict[str, Any]) -> None:
        assert self._adapter is not None
        if not self._started:
            # Some environments have their attributes only after a reset.
            self.env.reset(seed=_PROBE_SEED)
        if len(content["wrappers"]) != len(wrapper_state(self.env)):
            raise SnapshotError(
                f"this snapshot of {self.task_id} was taken with other wrappers around the "
                f"environment than {self.env}; make both alike"
            )
        try:
            self._adapter.write(self.env.unwrapped, content["env"])
        except PackError as error:
            raise SnapshotError(
                f"this snapshot of {self.task_id} does not fit here ({error}); restore it in a "
                "process that has made the same environment"
            ) from error
        set_wrapper_state(self.env, content["wrappers"])
        self._observation = content["observation"]
        self._vector = self._flat(self._observation)
        self._legal = content["legal"]
        self._terminated, self._solved = content["terminated"], content["solved"]
        self._steps, self._return = content["steps"], content["return"]
        self._turn, self._key = content["turn"], content["key"]
        self._started = True

    def _write_replay(self) -> bytes:
        return pack(
            {
                "start": self._start,
                "events": self._events,
                "digest": self._digest(),
            }
        )

    def _read_replay(self, content: dict[str, Any]) -> None:
        before = (self._started, self._start, self._events)
        self._replay(content["start"], content["events"])
        if self._digest() == content["digest"]:
            return
        if before[0]:
            self._replay(before[1], before[2])
        else:
            self._clear()
        raise SnapshotError(
            f"playing the {len(content['events'])} steps of this snapshot of {self.task_id} again "
            "led to another state: the environment is not determined by its seed and actions (or "
            "is another version), so its episodes cannot be restored"
        )

    def _replay(
        self, start: tuple[int, dict[str, Any] | None], events: Sequence[int | list[int]]
    ) -> None:
        """Play an episode from its reset."""
        self._begin(*start)
        for event in events:
            if isinstance(event, list):
                self.reseed(event[0])
            elif self._terminated:
                return
            elif event == _SKIPPED:
                self._turn += 1
                self._events.append(event)
            else:
                self._step(event)

    def _digest(self) -> str:
        """What is known of the state from the outside, for comparing a replay with its original."""
        hasher = hashlib.blake2b(self._vector.tobytes(), digest_size=16)
        legal = b"" if self._legal is None else self._legal.tobytes()
        hasher.update(legal)
        hasher.update(
            repr((self._terminated, self._solved, self._steps, self._turn, self._return)).encode()
        )
        return hasher.hexdigest()

    def reseed(self, key: int) -> None:
        """Draw what is yet to be drawn from another key (nothing changes for the present one).

        Raises:
            MissingCapabilityError: the environment does not use Gymnasium's generator.
        """
        self._check_started()
        word = int(as_key(key))
        if word == self._key:
            return
        # With luck by turns this only finds out whether there is a generator: it is set again
        # before each step.
        if not set_generator(self.env.unwrapped, word):
            raise MissingCapabilityError(
                f"{self.task_id} does not draw from Gymnasium's np_random, so its luck cannot be "
                "changed"
            )
        self._key = word
        self._events.append([word])

    def clone(self) -> GymnasiumTask:
        """An independent task in the same state."""
        env: Any = self._factory
        if env is None:
            try:
                env = copy.deepcopy(self.env)
            except Exception as error:  # whatever the environment's objects raise
                raise MissingCapabilityError(
                    f"{self.env} cannot be copied ({error}); give GymnasiumTask a function that "
                    "makes the environment instead"
                ) from error
        twin = GymnasiumTask.__new__(GymnasiumTask)
        # Nothing of the shared attributes is ever changed in place, except for the events.
        twin.__dict__.update(self.__dict__)
        twin._events = list(self._events)
        if isinstance(env, gymnasium.Env):
            twin.env = env
            return twin
        twin.env = env()
        if self._started:
            twin._started = False
            twin.restore(self.snapshot())
        return twin

    def _choose_snapshots(self, probe_steps: int) -> None:
        """Find an adapter and try it out; without one that works, replay."""
        how, extra = self._wanted
        self.snapshot_fidelity = "replay"
        self._adapter = None
        env = self.env.unwrapped
        adapter = next((a for a in (*extra, *BUILT_IN) if a.accepts(env)), None)
        if how == "replay":
            self.snapshot_note = "replay, as asked for"
        elif adapter is None:
            self.snapshot_note = (
                f"replay: no way to read the state of {type(env).__name__} is known"
            )
        else:
            kind = type(adapter).__name__
            self._adapter = adapter
            try:
                if self._probe(probe_steps):
                    self.snapshot_fidelity = "exact"
                    self.snapshot_note = f"exact: state by {kind}"
                else:
                    self.snapshot_note = (
                        f"replay: the state read by {kind} does not determine what follows"
                    )
            except PackError as error:
                self.snapshot_note = f"replay: {error}"
        if self.snapshot_fidelity == "replay":
            self._adapter = None
        self._clear()

    def _probe(self, steps: int) -> bool:
        """Whether a restored state gives the same random continuation."""
        generator = np.random.default_rng(_PROBE_SEED)
        self._begin(_PROBE_SEED, None)
        before = self._write_exact()
        if not steps:
            return True
        for _ in range(3):
            actions = generator.integers(0, len(self._all_names), steps).tolist()
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
            if self._terminated:
                break
            result = self._step(action)
            trace.append((result.reward, result.terminated, self._digest()))
        return trace

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        """The state as text, then the agent's legal actions."""
        legal = ", ".join(self.legal_action_names(agent))
        return f"You are {agent}.\n{self.describe()}\nYour legal actions: {legal}."

    def profile(self, agent: str) -> str:
        role = self.roles[self.possible_agents.index(agent)]
        own = ", ".join(self.action_names(agent))
        team = ", ".join(self.roles)
        return (
            f"You are {agent}, the {role} of a team ({team}) that plays {self.task_id} together, "
            f"one decision at a time. You can: {own}."
        )

    def describe(self) -> str:
        """The state as text: by the given function, else the observation written out."""
        self._check_started()
        if self._describe is not None:
            return self._describe(self.env)
        return "\n".join(_observation_lines(self._observation, "observation"))

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        """`describe` for "ansi"; for "rgb_array" the environment's picture, without the overlay."""
        if mode == "rgb_array" and "rgb_array" in self.render_modes:
            return np.array(self.env.render(), np.uint8)
        if mode == "ansi":
            lines = [f"{key}: {value}" for key, value in (overlay or {}).items()]
            return "\n".join([*lines, self.describe()])
        raise MissingCapabilityError(
            f"{self.task_id} draws itself as {self.render_modes}, not as {mode!r}; make the "
            f"environment with render_mode={mode!r}"
        )

    def metrics(self) -> dict[str, float]:
        """``success`` (0 or 1), ``env_return`` and ``env_steps`` of the episode so far."""
        return {
            "success": float(self._solved),
            "env_return": self._return,
            "env_steps": float(self._steps),
        }

    def close(self) -> None:
        self.env.close()


def _factory(env: str | Env | Callable[[], Env]) -> Any:
    """A function that makes the environment, or None where only an environment is given."""
    if isinstance(env, str):
        return _FromId(env)
    if isinstance(env, gymnasium.Env):
        return None
    if callable(env):
        return env
    raise TypeError(
        f"env must be a gymnasium.Env, a function that makes one, or an id, got {env!r}"
    )


class _FromId:
    """Makes an environment from its Gymnasium id, able to draw itself where it can."""

    def __init__(self, env_id: str) -> None:
        self.env_id = env_id
        module, _, name = env_id.rpartition(":")
        if module:
            importlib.import_module(module)
        entry_point: Any = gymnasium.spec(name).entry_point
        if isinstance(entry_point, str):
            entry_point = load_env_creator(entry_point)
        # Asked of the class, since making an environment twice may be slow.
        modes = getattr(entry_point, "metadata", {}).get("render_modes", ())
        self.render_mode = "rgb_array" if "rgb_array" in modes else None

    def __call__(self) -> Env:
        env: Env = gymnasium.make(self.env_id, render_mode=self.render_mode)
        return env


def _action_names(env: Env, count: int, first: int, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the environment's actions in their order."""
    if given is not None:
        if len(given) != count or len(set(given)) != count:
            raise ValueError(
                f"action_names must be {count} different names, one per action; got {list(given)}"
            )
        return tuple(given)
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    if callable(meanings):
        names = tuple(str(name).lower() for name in meanings())
        if len(set(names)) == len(names) == count:
            return names
    members = getattr(getattr(env.unwrapped, "actions", None), "__members__", None)
    if members is not None:
        by_value = {int(member): name for name, member in members.items()}
        if all(first + i in by_value for i in range(count)):
            return tuple(by_value[first + i] for i in range(count))
    return tuple(f"action_{first + i}" for i in range(count))


def _index(action: int | str, names: tuple[str, ...], first: int) -> int:
    """Position of an action that is given by number or by name.

    Raises:
        ValueError: there is none.
    """
    if isinstance(action, str):
        if action in names:
            return names.index(action)
    elif (
        isinstance(action, Integral)
        and not isinstance(action, bool)
        and first <= action < first + len(names)
    ):
        return int(action) - first
    raise ValueError(
        f"unknown action {action!r}; the environment's actions are "
        f"{', '.join(f'{first + i} {name}' for i, name in enumerate(names))}"
    )


def _partition(
    roles: Mapping[str, Sequence[int | str]], names: tuple[str, ...], first: int
) -> dict[str, list[int]]:
    """Positions of the actions of each role.

    Raises:
        ValueError: an action is given to no role or to several, or a role has none.
        TypeError: the roles are no mapping from names.
    """
    if not isinstance(roles, Mapping) or not all(isinstance(role, str) for role in roles):
        raise TypeError(f"roles must map the name of each role to its actions, got {roles!r}")
    result = {role: [_index(a, names, first) for a in actions] for role, actions in roles.items()}
    owners: dict[int, list[str]] = {i: [] for i in range(len(names))}
    for role, actions in result.items():
        if not role or not actions:
            raise ValueError(f"the role {role!r} needs a name and at least one action")
        for action in actions:
            owners[action].append(role)
    missing = [names[i] for i, owner in owners.items() if not owner]
    shared = {names[i]: owner for i, owner in owners.items() if len(owner) > 1}
    if missing or shared:
        raise ValueError(
            "roles must give each action of the environment to exactly one role"
            + (f"; given to none: {', '.join(missing)}" if missing else "")
            + "".join(f"; {name} given to {' and '.join(owner)}" for name, owner in shared.items())
        )
    return result


def _observation_lines(value: Any, name: str) -> list[str]:
    """An observation as ``name: value`` lines."""
    if isinstance(value, Mapping):
        return [line for key, x in value.items() for line in _observation_lines(x, str(key))]
    if isinstance(value, tuple):
        return [line for i, x in enumerate(value) for line in _observation_lines(x, f"{name}[{i}]")]
    if isinstance(value, np.ndarray) and value.ndim:
        if value.size > 512:
            return [f"{name}: array of shape {value.shape}"]
        text = np.array2string(value, precision=4, separator=", ", threshold=513)
        return [f"{name}: {text}"]
    return [f"{name}: {value}"]
