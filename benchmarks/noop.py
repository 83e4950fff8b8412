"""AEC environments that do nothing: what the interface itself costs.

`NoopAEC` keeps the books as PettingZoo's documentation of custom environments shows it (dead
steps, cumulative rewards, the agent selector) and has empty rules: the fair ceiling for an
environment that keeps the API's promises. `BareAEC` leaves even the books out, and would fail the
API's own test: it only shows how much of the ceiling is bookkeeping.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import AgentSelector


class NoopAEC(AECEnv):
    """Agents take turns, nothing happens, and everyone always sees zeros.

    Args:
        agents: their number.
        observation_size: length of the vector.
        actions: number of actions.
    """

    def __init__(self, agents: int = 3, observation_size: int = 128, actions: int = 16) -> None:
        super().__init__()
        self.metadata = {"name": "noop", "render_modes": [], "is_parallelizable": False}
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.observation_spaces = dict.fromkeys(
            self.possible_agents, spaces.Box(0.0, 1.0, (observation_size,), np.float32)
        )
        self.action_spaces = dict.fromkeys(self.possible_agents, spaces.Discrete(actions))
        self._size = observation_size

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's space."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Everyone is there again."""
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._selector = AgentSelector(self.agents)
        self.agent_selection = self._selector.next()

    def observe(self, agent: str) -> NDArray[np.float32]:
        """Zeros, in a fresh array, as the API wants it."""
        return np.zeros(self._size, np.float32)

    def step(self, action: int | None) -> None:
        """The next agent's turn."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.agent_selection = self._selector.next()
        self._accumulate_rewards()


class BareAEC(NoopAEC):
    """A method that returns the same array, and one that names the next agent."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Everyone is there again."""
        super().reset(seed, options)
        following = self.agents[1:] + self.agents[:1]
        self._next = dict(zip(self.agents, following, strict=True))
        self._zeros = np.zeros(self._size, np.float32)

    def observe(self, agent: str) -> NDArray[np.float32]:
        """Always the same array."""
        return self._zeros

    def step(self, action: int | None) -> None:
        """The next agent's turn."""
        self.agent_selection = self._next[self.agent_selection]
