"""The one-agent view: what a monolithic policy plays, the baseline of every market.

`OneAgentTask` is the same task with a single agent, ``solo_0``, whose actions are the union of all
roles' actions and who sees all that the roles see. `OneAgentBatch` is the same for a `BatchTask`.
`OneAgentEnv` is a plain `gymnasium.Env` over it: no bids, no phases, so any single-agent library
trains on it directly.

The state is the base task's alone, so snapshots fit in both directions.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, PhaseError
from wrappers.game_snapshot import GameSnapshot
from wrappers.native import BatchTask
from wrappers.task import ParseError, Phase, Snapshot, TurnResult, TurnTask
from wrappers.task_wrapper import TaskWrapper

SOLO = "solo_0"

_NUMBER = re.compile(r"\s*(\d{1,4})\s*[.):]?\s*", re.ASCII)


class OneAgentTask(TaskWrapper):
    """A `TurnTask` whose only agent has the actions of all roles.

    Args:
        task: the base task; this object owns it from now on.
        shared_observation: whether all roles observe the same vector, so that it is kept once;
            None takes what the task says.

    Attributes:
        base: the base task.
        shared_observation: True: there is one agent.

    The action names are the base task's, written ``role.action`` where two roles share a name. The
    observation is the roles' observations one after the other. Of several agents of one role
    (a population) only the first counts: the others can neither see nor do anything else.
    """

    def __init__(self, task: TurnTask, shared_observation: bool | None = None) -> None:
        super().__init__(task)
        self.possible_agents = (SOLO,)
        self.roles = ("solo",)
        if shared_observation is None:
            shared_observation = task.shared_observation
        self._asked_shared = shared_observation
        first = {role: i for i, role in reversed(list(enumerate(task.roles)))}
        self._agents = tuple(task.possible_agents[i] for i in sorted(first.values()))
        self._sizes = tuple(task.observation_size(agent) for agent in self._agents)
        if shared_observation and len(set(self._sizes)) > 1:
            raise ValueError(
                f"{task.task_id} was declared to have one shared observation, but its roles "
                f"observe vectors of different lengths {self._sizes}"
            )
        role_names = [task.roles[task.possible_agents.index(a)] for a in self._agents]
        self._names = union_names(role_names, [task.action_names(a) for a in self._agents])
        self._choices = tuple(
            (agent, action)
            for agent in self._agents
            for action in range(len(task.action_names(agent)))
        )
        self._size = self._sizes[0] if shared_observation else sum(self._sizes)
        self.shared_observation = True

    # -- spaces and dynamics -------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return self._size

    def action_names(self, agent: str) -> tuple[str, ...]:
        return self._names

    def choice(self, action: int) -> tuple[str, int]:
        """The base task's agent and action behind an action of the one agent."""
        return self._choices[action]

    def observe(self, agent: str) -> NDArray[np.float32]:
        if self._asked_shared:
            return self.base.observe(self._agents[0])
        return np.concatenate([self.base.observe(a) for a in self._agents])

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        return np.concatenate([self.base.action_mask(a) for a in self._agents])

    def act(self, agent: str, action: int) -> TurnResult:
        return self.base.act(*self._choices[action])

    def clone(self) -> OneAgentTask:
        return OneAgentTask(self.base.clone(), self._asked_shared)

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        """The roles' prompts one after the other; a line that was already said is not repeated."""
        lines: list[str] = []
        said: set[str] = set()
        for original in self._agents:
            for line in self.base.prompt(original, phase).splitlines():
                line = line.rstrip()
                if line and line in said:
                    continue
                said.add(line)
                lines.append(line)
        # The roles' lists count each role's actions from 0; an answer's number is one of these.
        legal = [f"{i} {self._names[i]}" for i in np.flatnonzero(self.action_mask(agent))]
        lines.append(
            "You play all roles at once. Legal actions of all roles, with the only numbers that "
            f"count: {', '.join(legal)}."
        )
        return "\n".join(lines)

    def profile(self, agent: str) -> str:
        parts = [self.base.profile(original) for original in self._agents]
        return "You play all of these roles at once.\n" + "\n".join(parts)

    def parse(self, agent: str, text: str) -> int | ParseError:
        """Read an action: its name or number here, else by the first role that may do it."""
        own = super().parse(agent, text)
        if not isinstance(own, ParseError):
            return own
        number = _NUMBER.fullmatch(text) if len(text) < 100 else None
        if number:
            return int(number[1]) if int(number[1]) < len(self._names) else own
        understood: list[int] = []
        offset = 0
        for original in self._agents:
            action = self.base.parse(original, text)
            if not isinstance(action, ParseError):
                understood.append(offset + action)
            offset += len(self.base.action_names(original))
        if not understood:
            return own
        mask = self.action_mask(agent)
        return next((action for action in understood if mask[action]), understood[0])

    def expert_bid(self, agent: str) -> float:
        return max(self.base.expert_bid(original) for original in self._agents)

    def expert_action(self, agent: str) -> int:
        """What the role that the expert would let act would do (of equal bids the first)."""
        bids = [self.base.expert_bid(original) for original in self._agents]
        best = int(np.argmax(bids))
        offset = sum(len(self.base.action_names(a)) for a in self._agents[:best])
        return offset + self.base.expert_action(self._agents[best])


class OneAgentBatch(BatchTask):
    """N worlds whose only role has the actions of all roles: `OneAgentTask` for a `BatchTask`.

    Args:
        batch: the base batch; this object owns it from now on.

    Attributes:
        base: the base batch.
    """

    def __init__(self, batch: BatchTask) -> None:
        self.base = batch
        self.task_id = batch.task_id
        self.snapshot_fidelity = batch.snapshot_fidelity
        self.default_max_turns = batch.default_max_turns
        self.num_envs = batch.num_envs
        self.roles = ("solo",)
        self.shared_observation = True
        self.metric_names = batch.metric_names
        self.coverage = batch.coverage
        sizes, counts = batch.observation_sizes, batch.action_counts
        self.observation_sizes = (sizes[0] if batch.shared_observation else sum(sizes),)
        self.action_counts = (sum(counts),)
        self.action_names = (union_names(batch.roles, batch.action_names),)
        self._role_of = np.repeat(np.arange(len(counts)), counts)
        self._action_of = np.concatenate([np.arange(count) for count in counts])
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        # Kernels want contiguous arrays, so each role is written apart and copied into its columns.
        self._masks = [np.zeros((batch.num_envs, count), np.bool_) for count in counts]
        self._parts = (
            []
            if batch.shared_observation
            else [np.zeros((batch.num_envs, size), np.float32) for size in sizes]
        )
        self._bids = np.zeros((batch.num_envs, len(counts)))
        self._actions = np.zeros((batch.num_envs, len(counts)), np.int64)

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        self.base.reset(rows, seeds, episodes)

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        if self.base.shared_observation:
            self.base.observe(out)
            return
        self.base.observe(self._parts)
        column = 0
        for part in self._parts:
            out[0][:, column : column + part.shape[1]] = part
            column += part.shape[1]

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        self.base.action_masks(self._masks)
        for start, mask in zip(self._starts, self._masks, strict=False):
            out[0][:, start : start + mask.shape[1]] = mask

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        acting = roles >= 0
        # A world in which nobody acts may carry any number as its action.
        chosen = np.where(acting, actions, 0)
        self.base.act(
            np.where(acting, self._role_of[chosen], roles),
            self._action_of[chosen],
            rewards,
            terminated,
            illegal,
        )

    def snapshot(self, row: int) -> Snapshot:
        return self.base.snapshot(row)

    def restore(self, row: int, snapshot: Snapshot) -> None:
        self.base.restore(row, snapshot)

    def reseed(self, row: int, key: int) -> None:
        self.base.reseed(row, key)

    def metrics(self) -> NDArray[np.float64]:
        return self.base.metrics()

    def spawn(self, num_envs: int) -> OneAgentBatch:
        return OneAgentBatch(self.base.spawn(num_envs))

    @property
    def has_expert(self) -> bool:
        return self.base.has_expert

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        self.base.expert(self._bids, self._actions)
        best = self._bids.argmax(axis=1)
        rows = np.arange(self.num_envs)
        bids[:, 0] = self._bids[rows, best]
        actions[:, 0] = self._starts[best] + self._actions[rows, best]


class OneAgentEnv(gymnasium.Env[dict[str, NDArray[Any]], int]):
    """A `gymnasium.Env` in which one agent makes every decision of a turn task.

    Observation: ``Dict(observation: float32 (D + 1,), action_mask: int8 (A,))``: as in
    `BidThenActEnv`, the last feature is the fraction of the turn budget that is left. Action:
    ``Discrete(A)``. `action_masks` is what sb3-contrib's MaskablePPO asks for.

    Args:
        task: the task (wrapped in a `OneAgentTask` unless it is one); owned from now on.
        max_turns: turn budget; None takes the task's default.
        on_illegal: what a masked action does: "noop" counts it and wastes the turn, "raise"
            raises `IllegalActionError`.
        render_mode: None, or one of the task's render modes.
    """

    def __init__(
        self,
        task: TurnTask,
        *,
        max_turns: int | None = None,
        on_illegal: Literal["noop", "raise"] = "noop",
        render_mode: str | None = None,
    ) -> None:
        solo = task if isinstance(task, OneAgentTask) else OneAgentTask(task)
        # The game with a single bidder keeps turns, budget, counters and snapshots in one place.
        self._setup(
            BidThenActEnv(
                solo,
                bid_levels=(0.0, 1.0),
                max_turns=max_turns,
                on_illegal=on_illegal,
                render_mode=render_mode,
            )
        )

    def _setup(self, game: BidThenActEnv) -> None:
        self._game = game
        self.render_mode = game.render_mode
        self.metadata = {"render_modes": list(game.task.render_modes), "render_fps": 4}
        box = game.observation_space(SOLO)["observation"]  # type: ignore[index]
        count = len(game.task.action_names(SOLO))
        self.observation_space = spaces.Dict(  # type: ignore[assignment]
            {"observation": box, "action_mask": spaces.Box(0, 1, (count,), np.int8)}
        )
        self.action_space = spaces.Discrete(count)  # type: ignore[assignment]

    @property
    def game(self) -> BidThenActEnv:
        """The game with one bidder that keeps the turns."""
        return self._game

    @property
    def task(self) -> TurnTask:
        """The `OneAgentTask`."""
        return self._game.task

    @property
    def turn(self) -> int:
        """Index of the running turn, from 0."""
        return self._game.turn

    @property
    def max_turns(self) -> int:
        """The turn budget."""
        return self._game.max_turns

    @property
    def phase(self) -> Phase:
        """Always "act": nobody bids."""
        return "act"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Start an episode; without a seed the next one of the last seed."""
        super().reset(seed=seed)
        self._game.reset(seed, options)
        self._bid()
        return self._observe(), self._info()

    def step(
        self, action: int
    ) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """Take one decision.

        Raises:
            ActionFormatError: not an integer in the action space.
            IllegalActionError: masked, under ``on_illegal="raise"``.
            PhaseError: before a reset or after the end.
        """
        try:
            choice = -1 if isinstance(action, (bool, np.bool_)) else operator.index(action)
        except TypeError:
            choice = -1
        count = self.observation_space["action_mask"].shape[0]  # type: ignore[index]
        if not 0 <= choice < count:
            raise ActionFormatError(
                f"the action must be an integer from 0 to {count - 1}, got {action!r}"
            )
        if not self._game.agents or self._is_over():
            raise PhaseError("the episode is over or has not started: call reset() before step()")
        self._game.step(len(self._game.bid_levels) + choice)
        result = self._game.last_result
        terminated, truncated = self._game.terminations[SOLO], self._game.truncations[SOLO]
        if not self._is_over():
            self._bid()
        assert result is not None
        info = self._info()
        info.update(result.info)
        return self._observe(), float(result.reward), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal: ``bool (A,)``, never all False (sb3-contrib's protocol)."""
        return self._mask().astype(np.bool_)

    def render(self) -> Any:
        """Draw the state; None without a render mode."""
        return self._game.render()

    def metrics(self) -> dict[str, float]:
        """The task's metrics with return, turns, illegal and skipped turns."""
        return self._game.metrics()

    def close(self) -> None:
        """Close the task."""
        self._game.close()

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> GameSnapshot:
        """Everything that influences the future."""
        return self._game.snapshot()

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of an environment of the same task and turn budget."""
        self._game.restore(snapshot)

    def clone(self) -> OneAgentEnv:
        """An independent environment in the same state."""
        twin = OneAgentEnv.__new__(OneAgentEnv)
        twin._setup(self._game.clone())
        return twin

    def _is_over(self) -> bool:
        return self._game.terminations[SOLO] or self._game.truncations[SOLO]

    def _bid(self) -> None:
        """The only bidder bids 1, so that it acts in every turn."""
        self._game.step(len(self._game.bid_levels) - 1)

    def _mask(self) -> NDArray[np.int8]:
        # Asked of the task: after the end the game is in no act phase, and a mask is still wanted.
        return self._game.task.action_mask(SOLO)

    def _observe(self) -> dict[str, NDArray[Any]]:
        return {
            "observation": self._game.observe(SOLO)["observation"],
            "action_mask": self._mask(),
        }

    def _info(self) -> dict[str, Any]:
        info = dict(self._game.infos[SOLO])
        info["action_mask"] = self._mask()
        return info


def union_names(roles: Sequence[str], names_of_roles: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of all roles' actions: plain where unique, ``role.action`` where roles share one."""
    uses = Counter(name for names in names_of_roles for name in names)
    return tuple(
        name if uses[name] == 1 else f"{role}.{name}"
        for role, names in zip(roles, names_of_roles, strict=True)
        for name in names
    )
