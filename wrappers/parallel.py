"""The parallel view: the game for libraries that step all agents at once.

The game stays turn based: in each step only the agent that the game asks really chooses. The others
wait: their mask allows exactly one action, ``wait``, which is appended as the last one of every
action space, so that the other actions keep their numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, IllegalActionError, PhaseError
from wrappers.game_snapshot import GameSnapshot
from wrappers.view import GameAccess, GameView


class ParallelView(GameAccess, ParallelEnv[str, Any, Any]):
    """A PettingZoo parallel environment over the game or a view of it.

    Observation: that of the environment inside, with a mask of one more entry. Action:
    ``Discrete(n + 1)``, the last of which is ``wait``. With actions as text (`wrappers.text`) there
    is no mask, and waiting is the empty text.

    Who is asked next is the one whose mask forbids ``wait``, and `agent_selection`.

    Args:
        env: the game or a view of it; owned from now on.
    """

    def __init__(self, env: BidThenActEnv | GameView) -> None:
        if not isinstance(getattr(env, "unwrapped", None), BidThenActEnv):
            raise TypeError(f"expected a BidThenActEnv or a view of one, got {env!r}")
        self.env = env
        self.metadata = {**env.metadata, "is_parallelizable": True}
        self.render_mode = env.render_mode
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []
        self._waits: dict[str, int | str] = {}
        self.observation_spaces: dict[str, spaces.Space[Any]] = {}
        self.action_spaces: dict[str, spaces.Space[Any]] = {}
        for agent in self.possible_agents:
            actions, observed = env.action_space(agent), env.observation_space(agent)
            if isinstance(actions, spaces.Discrete) and isinstance(observed, spaces.Dict):
                count = int(actions.n)
                self._waits[agent] = count
                self.action_spaces[agent] = spaces.Discrete(count + 1)
                self.observation_spaces[agent] = spaces.Dict(
                    {**observed.spaces, "action_mask": spaces.Box(0, 1, (count + 1,), np.int8)}
                )
            else:
                self._waits[agent] = ""
                self.action_spaces[agent], self.observation_spaces[agent] = actions, observed

    # -- the game ----------------------------------------------------------------------------

    @property
    def agent_selection(self) -> str:
        """The agent whose action counts in the next step."""
        return self.game.agent_selection

    def metrics(self) -> dict[str, float]:
        """The game's metrics of the episode so far."""
        return self.game.metrics()

    # -- PettingZoo --------------------------------------------------------------------------

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's observation space (the same object each time)."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's action space (the same object each time)."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode; see `BidThenActEnv.reset`."""
        self.env.reset(seed=seed, options=options)
        self.agents = list(self.env.agents)
        return self._observations(), self._infos()

    def observe(self, agent: str) -> Any:
        """What the agent sees now; any possible agent, at any time after a reset."""
        observation = dict(self.env.observe(agent))
        if "action_mask" in observation:
            observation["action_mask"] = self._mask(agent, observation["action_mask"])
        return observation

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """The selected agent bids or acts, the others wait.

        Args:
            actions: agent -> action. Only the selected agent's is needed; any other than ``wait``
                of a waiting agent is an illegal action: counted and without effect, or
                `IllegalActionError` under ``on_illegal="raise"``.

        Raises:
            ActionFormatError: the selected agent's action is missing, or some action is outside
                of its space.
            IllegalActionError: a masked action, under ``on_illegal="raise"``.
            PhaseError: before a reset or after the end.
        """
        if not self.agents:
            raise PhaseError("the episode is over or has not started: call reset() before step()")
        if not isinstance(actions, Mapping):
            raise ActionFormatError(f"actions must map agents to their actions, got {actions!r}")
        selected = self.agent_selection
        if selected not in actions:
            raise ActionFormatError(
                f"it is {selected}'s turn to {self.phase}, but actions has only {list(actions)}"
            )
        chosen = {agent: self._checked(agent, action) for agent, action in actions.items()}
        restless = [a for a in chosen if a != selected and chosen[a] != self._waits[a]]
        if restless and self.game.on_illegal == "raise":
            raise IllegalActionError(
                f"{', '.join(restless)} must wait: it is {selected}'s turn to {self.phase}"
            )
        action = chosen[selected]
        if isinstance(self._waits[selected], int) and action == self._waits[selected]:
            # Passed on as an action that is illegal for certain.
            action = len(self.bid_levels) if self.phase == "bid" else 0
        self.env.step(action)
        self.game.counts["illegal"] += len(restless)
        if restless:
            self._refresh_metrics()
        result = (
            self._observations(),
            dict(self.env.rewards),
            dict(self.env.terminations),
            dict(self.env.truncations),
            self._infos(),
        )
        self._leave_if_over()
        return result

    def render(self) -> Any:
        """Draw the state; None without a render mode."""
        return self.env.render()

    def state(self) -> NDArray[np.float32]:
        """The game's global state."""
        return self.game.state()

    def close(self) -> None:
        """Close the game."""
        self.env.close()

    # -- state -------------------------------------------------------------------------------

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of the game or of any view of it."""
        self.env.restore(snapshot)
        self.agents = list(self.env.agents)
        self._leave_if_over()

    def reseed(self, key: int) -> None:
        """See `BidThenActEnv.reseed`."""
        self.env.reseed(key)

    def clone(self) -> ParallelView:
        """An independent view of an independent game in the same state."""
        twin = ParallelView(self.env.clone())
        twin.agents = list(self.agents)
        return twin

    # -- parts -------------------------------------------------------------------------------

    def _checked(self, agent: str, action: Any) -> Any:
        """The action as an int or text of the agent's space."""
        if agent not in self._waits:
            raise ActionFormatError(f"unknown agent {agent!r}; agents: {self.possible_agents}")
        wait = self._waits[agent]
        if isinstance(wait, str):
            if isinstance(action, str):
                return action
        elif not isinstance(action, (bool, np.bool_)):
            try:
                choice = operator.index(action)
            except TypeError:
                choice = -1
            if 0 <= choice <= wait:
                return choice
        raise ActionFormatError(
            f"{agent} was given the action {action!r}, which is not in {self.action_spaces[agent]}"
        )

    def _mask(self, agent: str, mask: NDArray[np.int8]) -> NDArray[np.int8]:
        """The agent's mask with the entry for waiting."""
        extended = np.zeros(mask.shape[0] + 1, np.int8)
        if agent == self.agent_selection:
            extended[:-1] = mask
        else:
            extended[-1] = 1
        return extended

    def _observations(self) -> dict[str, Any]:
        return {agent: self.observe(agent) for agent in self.agents}

    def _infos(self) -> dict[str, dict[str, Any]]:
        infos = {}
        for agent, info in self.env.infos.items():
            infos[agent] = dict(info)
            if "action_mask" in info:
                infos[agent]["action_mask"] = self._mask(agent, info["action_mask"])
        return infos

    def _refresh_metrics(self) -> None:
        """Count what the waiting agents did in the metrics of an episode that has just ended."""
        for info in self.env.infos.values():
            if "metrics" in info:
                info["metrics"] = self.metrics()

    def _leave_if_over(self) -> None:
        """An ended episode has no agents: in the parallel API they leave all at once."""
        while self.env.agents and (
            self.env.terminations[self.env.agent_selection]
            or self.env.truncations[self.env.agent_selection]
        ):
            self.env.step(None)
        self.agents = list(self.env.agents)
