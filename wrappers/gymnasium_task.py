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
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from numpy.typing import NDArray

from wrappers.errors import MissingCapabilityError, SnapshotError
from wrappers.gymnasium_episode import Env, GymnasiumEpisode, SuccessRule
from wrappers.gymnasium_roles import index_of, names_of_actions, partition
from wrappers.gymnasium_state import StateAdapter
from wrappers.packing import PackError, pack, unpack
from wrappers.rng import episode_key
from wrappers.task import Phase, Snapshot, TurnResult, TurnTask, agent_roles


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
        success: SuccessRule | None = None,
        describe: Callable[[Env], str] | None = None,
        default_max_turns: int | None = None,
        probe_steps: int = 8,
    ) -> None:
        if snapshot not in ("auto", "replay"):
            raise ValueError(f'snapshot must be "auto" or "replay", got {snapshot!r}')
        if luck not in ("turn", "stream"):
            raise ValueError(f'luck must be "turn" or "stream", got {luck!r}')
        self._factory = _factory(env)
        made: Env = env if isinstance(env, gymnasium.Env) else self._factory()
        if not isinstance(made, gymnasium.Env):
            raise TypeError(f"{env!r} must return a gymnasium.Env, but returned {made!r}")
        space = made.action_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(
                f"the actions of {made} are {space}, but a turn task needs Discrete ones; "
                "wrap the environment so that each decision is one of finitely many"
            )
        first = int(space.start)
        names = names_of_actions(made, int(space.n), first, action_names)
        owned = partition(roles, names, first)
        self._skip_action = None if skip_action is None else index_of(skip_action, names, first)
        spec_id = made.spec.id if made.spec is not None else type(made.unwrapped).__name__
        self.task_id = task_id if task_id is not None else f"gymnasium/{spec_id}"
        self.possible_agents = tuple(f"{role}_0" for role in owned)
        self.roles = agent_roles(self.possible_agents)
        limit = made.spec.max_episode_steps if made.spec is not None else None
        self.default_max_turns = int(default_max_turns or limit or 100)
        self.render_modes = ("ansi",)
        if made.render_mode == "rgb_array":
            self.render_modes = ("ansi", "rgb_array")
        self._describe = describe
        self._agent_actions = {
            f"{role}_0": np.array(actions, np.int64) for role, actions in owned.items()
        }
        self._agent_names = {
            agent: tuple(names[i] for i in actions)
            for agent, actions in self._agent_actions.items()
        }
        self._episode = GymnasiumEpisode(made, self.task_id, names, first, luck, success)
        self._episode.choose_snapshots(snapshot, adapters, probe_steps)
        self.snapshot_fidelity = self._episode.fidelity
        self.snapshot_note = self._episode.note
        flat = self._episode.flat
        self.observation_low, self.observation_high = flat.low, flat.high
        self.dropped_observations = flat.dropped

    @property
    def env(self) -> Env:
        """The environment."""
        return self._episode.env

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return self._episode.flat.size

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self._agent_names[agent]

    def env_action(self, agent: str, action: int) -> int:
        """The environment's action behind an agent's action."""
        return self._episode.first + int(self._agent_actions[agent][action])

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode; ``options`` are the environment's and must be plain data."""
        if options:
            try:
                pack(dict(options))
            except PackError as error:
                raise TypeError(f"options must be plain data: {error}") from error
        self._episode.begin(
            int(episode_key(seed, episode)), copy.deepcopy(dict(options)) if options else None
        )

    def observe(self, agent: str) -> NDArray[np.float32]:
        self._episode.check_started()
        if agent not in self._agent_actions:
            raise KeyError(f"unknown agent {agent!r}; agents: {self.possible_agents}")
        return self._episode.vector.copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        mask = self._own_mask(agent)
        return mask if mask.any() else np.ones_like(mask)

    def act(self, agent: str, action: int) -> TurnResult:
        self._episode.check_started()
        if self._episode.terminated:
            return TurnResult(0.0, True, {"over": True})
        own = self._own_mask(agent)
        if not own[action]:
            result = self.skip()
            result.info["illegal" if own.any() else "no_legal_action"] = True
            return result
        return self._episode.step(int(self._agent_actions[agent][action]))

    def skip(self) -> TurnResult:
        self._episode.check_started()
        if self._episode.terminated:
            return TurnResult(0.0, True, {"over": True})
        if self._skip_action is None:
            return self._episode.skip()
        return self._episode.step(self._skip_action)

    def _own_mask(self, agent: str) -> NDArray[np.int8]:
        """The environment's mask on the role's actions; may be all zero."""
        actions = self._agent_actions[agent]
        legal = self._episode.legal
        if legal is None:
            return np.ones(len(actions), np.int8)
        return legal[actions].astype(np.int8)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The whole state, or the episode so far where the state cannot be read.

        Raises:
            SnapshotError: the state holds something new that cannot be written.
        """
        self._episode.check_started()
        try:
            payload = self._episode.write()
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
            self._episode.read(content)
            return
        before = self.snapshot() if self._episode.started else None
        try:
            if not self._episode.is_valid(content):
                raise ValueError("a part is missing or of another kind")
            self._episode.read(content)
        except Exception as error:  # whatever the environment makes of a state that cannot be
            if before is None:
                self._episode.clear()
            else:
                self._episode.read(unpack(before.payload))
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"this snapshot of {self.task_id} holds no valid state ({error}); take it again"
            ) from error
        snapshot.verify()

    def reseed(self, key: int) -> None:
        """See `GymnasiumEpisode.reseed`."""
        self._episode.reseed(key)

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
        twin = copy.copy(self)
        if isinstance(env, gymnasium.Env):
            twin._episode = self._episode.copy_with(env)
            return twin
        twin._episode = self._episode.copy_with(env())
        if self._episode.started:
            twin._episode.started = False
            twin.restore(self.snapshot())
        return twin

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
        self._episode.check_started()
        if self._describe is not None:
            return self._describe(self.env)
        return "\n".join(_observation_lines(self._episode.observation, "observation"))

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
            "success": float(self._episode.solved),
            "env_return": self._episode.total,
            "env_steps": float(self._episode.steps),
        }

    def close(self) -> None:
        self.env.close()


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
