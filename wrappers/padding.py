"""Homogeneous spaces: every agent gets the same observation and action space, with its mask.

Many libraries train one network for all agents and ask for equal spaces. `PaddedView` fills
observations with zeros up to the longest one, and action spaces with actions that are never legal;
on request it appends the agent's role as a one-hot vector, so that one policy can tell its roles
apart. `SharedPolicyEnv` then shows the game to a single-agent library: one policy moves for all
agents, one after the other.
"""

from __future__ import annotations

import operator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, PhaseError
from wrappers.game_snapshot import GameSnapshot
from wrappers.view import GameView


class PaddedView(GameView):
    """The game with one observation space and one action space for all agents.

    Observation: ``Dict(observation: float32 (D,), action_mask: int8 (N,))``, where D is the longest
    observation of any agent (plus the number of roles with `role_one_hot`) and N the largest action
    space. Action: ``Discrete(N)``; the first entries are the agent's own actions in their order.

    Args:
        env: the game, or a view with the same kind of spaces.
        role_one_hot: append the agent's role to its observation.

    Raises:
        TypeError: the observations of `env` are no vectors or its actions not discrete.
    """

    def __init__(self, env: BidThenActEnv | GameView, *, role_one_hot: bool = False) -> None:
        super().__init__(env)
        self.role_one_hot = role_one_hot
        agents = self.game.possible_agents
        self._counts: dict[str, int] = {}
        sizes: dict[str, int] = {}
        low, high = 0.0, 1.0
        for agent in agents:
            space, actions = env.observation_space(agent), env.action_space(agent)
            box = space.get("observation") if isinstance(space, spaces.Dict) else None
            if not (
                isinstance(box, spaces.Box)
                and len(box.shape) == 1
                and isinstance(actions, spaces.Discrete)
            ):
                raise TypeError(
                    f"only vector observations and discrete actions can be padded, but {agent} has "
                    f"{space} and {actions}"
                )
            sizes[agent] = box.shape[0]
            self._counts[agent] = int(actions.n)
            low, high = min(low, float(box.low.min())), max(high, float(box.high.max()))
        roles = list(dict.fromkeys(self.task.roles))
        self._role_index = {
            agent: roles.index(role) for agent, role in zip(agents, self.task.roles, strict=True)
        }
        self._width = max(sizes.values())
        self._size = self._width + (len(roles) if role_one_hot else 0)
        self._count = max(self._counts.values())
        for agent in agents:
            self.observation_spaces[agent] = spaces.Dict(
                {
                    "observation": spaces.Box(low, high, (self._size,), np.float32),
                    "action_mask": spaces.Box(0, 1, (self._count,), np.int8),
                }
            )
            self.action_spaces[agent] = spaces.Discrete(self._count)

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """The agent's observation, filled up with zeros; fresh arrays."""
        inner: Any = self.env.observe(agent)
        observation = np.zeros(self._size, np.float32)
        observation[: inner["observation"].shape[0]] = inner["observation"]
        if self.role_one_hot:
            observation[self._width + self._role_index[agent]] = 1.0
        return {"observation": observation, "action_mask": self._pad_mask(inner["action_mask"])}

    def step(self, action: Any) -> None:
        """Step; an action beyond the agent's own is an illegal one (see ``on_illegal``)."""
        if self.game.agents and action is not None:
            agent = self.game.agent_selection
            try:
                choice = -1 if isinstance(action, (bool, np.bool_)) else operator.index(action)
            except TypeError:
                choice = -1
            if self._counts[agent] <= choice < self._count:
                # Passed on as an action that is illegal for certain: an action while bids are
                # asked for, a bid while an action is.
                action = len(self.bid_levels) if self.phase == "bid" else 0
        super().step(action)

    def _pad_mask(self, mask: NDArray[np.int8]) -> NDArray[np.int8]:
        padded = np.zeros(self._count, np.int8)
        padded[: mask.shape[0]] = mask
        return padded

    def _view_info(self, agent: str, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "action_mask": self._pad_mask(info["action_mask"])}

    def _rewrap(self, env: BidThenActEnv | GameView) -> PaddedView:
        return PaddedView(env, role_one_hot=self.role_one_hot)


class SharedPolicyEnv(gymnasium.Env[dict[str, NDArray[Any]], int]):
    """A `gymnasium.Env` in which one policy moves for whichever agent is asked.

    One step is one bid or one action of the selected agent; the observation returned is that of
    the agent who is asked next. The reward is the team's of the turn, given in the step that ends
    the turn. `action_masks` is what sb3-contrib's MaskablePPO asks for.

    Args:
        env: the game or a view of it; padded here, with the roles one-hot, unless its spaces are
            the same for all agents already.
    """

    def __init__(self, env: BidThenActEnv | GameView) -> None:
        first = env.possible_agents[0]
        same = all(
            env.observation_space(agent) == env.observation_space(first)
            and env.action_space(agent) == env.action_space(first)
            for agent in env.possible_agents
        )
        self._view: Any = env if same else PaddedView(env, role_one_hot=True)
        self.observation_space = self._view.observation_space(first)
        self.action_space = self._view.action_space(first)
        self.render_mode = self._view.render_mode
        self.metadata = dict(self._view.metadata)

    @property
    def view(self) -> Any:
        """The AEC environment inside."""
        return self._view

    @property
    def agent_selection(self) -> str:
        """The agent that the next action is for."""
        return self._view.agent_selection

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Start an episode; without a seed the next one of the last seed."""
        super().reset(seed=seed)
        self._view.reset(seed=seed, options=options)
        observation, *_, info = self._view.last()
        return observation, {**info, "agent": self.agent_selection}

    def step(
        self, action: int
    ) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """The selected agent bids or acts; ``info["agent"]`` is who is asked next.

        Raises:
            ActionFormatError, IllegalActionError: as `BidThenActEnv.step`.
            PhaseError: before a reset or after the end.
        """
        agents = self._view.agents
        if not agents or self._ended(agents[0]):
            raise PhaseError("the episode is over or has not started: call reset() before step()")
        if action is None:
            raise ActionFormatError(f"{self.agent_selection} was given no action")
        self._view.step(action)
        agent = self.agent_selection
        observation, _, terminated, truncated, info = self._view.last()
        reward = float(self._view.rewards[agent])
        return observation, reward, terminated, truncated, {**info, "agent": agent}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions of the selected agent are legal: ``bool (N,)``, never all False."""
        mask: NDArray[np.int8] = self._view.observe(self.agent_selection)["action_mask"]
        return mask.astype(np.bool_)

    def render(self) -> Any:
        """Draw the state; None without a render mode."""
        return self._view.render()

    def metrics(self) -> dict[str, float]:
        """The game's metrics of the episode so far."""
        metrics: dict[str, float] = self._view.metrics()
        return metrics

    def snapshot(self) -> GameSnapshot:
        """The game's snapshot."""
        snapshot: GameSnapshot = self._view.snapshot()
        return snapshot

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of the game or of any view of it."""
        self._view.restore(snapshot)

    def clone(self) -> SharedPolicyEnv:
        """An independent environment in the same state."""
        return SharedPolicyEnv(self._view.clone())

    def close(self) -> None:
        """Close the game."""
        self._view.close()

    def _ended(self, agent: str) -> bool:
        return bool(self._view.terminations[agent] or self._view.truncations[agent])
