"""`BidThenActEnv`: the market game around a turn task, as a PettingZoo AEC environment.

A turn has two phases. In the *bid* phase every agent, in the order of ``possible_agents``, submits
a sealed bid. The auction (`wrappers.auction`) picks the winner, who alone moves in the *act* phase.
If every bid is 0 the turn is skipped. The reward of a turn is the team's: every agent receives it.

Action space of an agent: ``Discrete(L + A)``, first the L bid levels, then the A actions of its
role. Observation: ``Dict(observation: float32 (D + 1,), action_mask: int8 (L + A,))``: what the
task shows, then the fraction of the turn budget that is left. The observation is the same in both
phases of a turn; the mask says which phase it is.

Sealed bids: nothing that this class lets anyone read before the auction resolves depends on the
bids of the running turn. (A `snapshot` taken in the middle of a bid phase has to hold them.)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from wrappers.auction import Auction, check_levels, resolve
from wrappers.dropout import check_probability, is_present
from wrappers.errors import (
    ActionFormatError,
    IllegalActionError,
    PhaseError,
    TaskError,
)
from wrappers.game_snapshot import GAME_VERSION, GameSnapshot, check_game
from wrappers.rng import as_key, episode_key
from wrappers.task import Phase, TurnResult, TurnTask


class BidThenActEnv(AECEnv[str, dict[str, NDArray[Any]], int]):
    """The bid-then-act game over a `TurnTask` (see the top of this file).

    Args:
        task: the task; the game owns it from now on.
        bid_levels: what can be bid: a name ("tenths", "crowded"), or numbers from 0 up to at most
            1; None means the tenths.
        max_turns: turn budget; None takes the task's default. Used up: ``truncated``.
        dropout: probability that an agent is absent in a turn (`wrappers.dropout`).
        on_illegal: what a masked action does: "noop" counts it and wastes the turn (a masked bid
            counts as 0), "raise" raises `IllegalActionError` and changes nothing.
        render_mode: None, or one of the task's render modes.

    Attributes:
        task, bid_levels, max_turns, dropout, on_illegal: as given.
        phase: "bid" or "act".
        turn: index of the running turn, from 0.
        last_auction: the last auction that is resolved, or None before the first.
        last_result: the task's `TurnResult` of the last finished turn, or None.
        counts: ``{"illegal": ..., "skipped": ...}`` of the episode so far.
        seed, episode: what the running episode was reset with.
    """

    def __init__(
        self,
        task: TurnTask,
        *,
        bid_levels: str | Sequence[float] | None = None,
        max_turns: int | None = None,
        dropout: float = 0.0,
        on_illegal: Literal["noop", "raise"] = "noop",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if max_turns is not None and (isinstance(max_turns, bool) or int(max_turns) < 1):
            raise ValueError(f"max_turns must be at least 1, got {max_turns!r}")
        if on_illegal not in ("noop", "raise"):
            raise ValueError(f'on_illegal must be "noop" or "raise", got {on_illegal!r}')
        if render_mode is not None and render_mode not in task.render_modes:
            raise ValueError(
                f"render_mode must be None or one of {task.render_modes}, got {render_mode!r}"
            )
        self.task = task
        self.bid_levels: tuple[float, ...] = check_levels(bid_levels)
        self.max_turns = int(task.default_max_turns if max_turns is None else max_turns)
        self.dropout = check_probability(dropout)
        self.on_illegal = on_illegal
        self.render_mode = render_mode
        self.metadata = {
            "name": task.task_id,
            "render_modes": list(task.render_modes),
            "is_parallelizable": False,
            "render_fps": 4,
        }
        self.possible_agents = list(task.possible_agents)
        self.agents: list[str] = []
        self._names = tuple(task.possible_agents)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._num_levels = len(self.bid_levels)
        self._action_counts = tuple(len(task.action_names(a)) for a in self._names)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(
                        min(task.observation_low, 0.0),
                        max(task.observation_high, 1.0),
                        (task.observation_size(agent) + 1,),
                        np.float32,
                    ),
                    "action_mask": spaces.Box(
                        0, 1, (self._num_levels + self._action_counts[i],), np.int8
                    ),
                }
            )
            for i, agent in enumerate(self._names)
        }
        self.action_spaces = {
            agent: spaces.Discrete(self._num_levels + self._action_counts[i])
            for i, agent in enumerate(self._names)
        }
        self.agent_selection: str = self._names[0]
        self.infos: dict[str, dict[str, Any]] = {}
        self._bid_masks: dict[str, NDArray[np.int8]] = {}
        self._absent_masks: dict[str, NDArray[np.int8]] = {}
        # What each agent may do, kept apart from `infos`, which belong to the caller.
        self._masks: dict[str, NDArray[np.int8]] = {}
        # What agents observe in this turn, as far as somebody has asked.
        self._seen: dict[str, NDArray[np.float32]] = {}
        for i, agent in enumerate(self._names):
            mask = np.zeros(self._num_levels + self._action_counts[i], np.int8)
            mask[0] = 1
            self._absent_masks[agent] = mask
            mask = mask.copy()
            mask[: self._num_levels] = 1
            self._bid_masks[agent] = mask
        self._bids = np.zeros(len(self._names), np.int64)
        self._zero_rewards = dict.fromkeys(self._names, 0.0)
        self.seed: int | None = None
        self.episode = -1
        self.phase: Phase = "bid"
        self.turn = 0
        self.last_auction: Auction | None = None
        self.last_result: TurnResult | None = None
        self.counts = {"illegal": 0, "skipped": 0}
        self._key = as_key(0)
        self._cursor = 0
        self._winner = -1
        self._return = 0.0
        self._started = False
        self._over = False

    # -- PettingZoo --------------------------------------------------------------------------

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's Dict space (the same object each time)."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's Discrete space (the same object each time, so that its seed holds)."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: starts the 0-th episode of this seed; None continues with the next episode of the
                last seed (of a random one if none was ever given).
            options: passed to the task.

        Raises:
            TypeError: a seed that is no integer, or options that are no mapping.
        """
        if not (options is None or isinstance(options, Mapping)):
            raise TypeError(f"options must be a mapping or None, got {options!r}")
        if seed is not None:
            try:
                start, episode = operator.index(seed), 0
            except TypeError:
                raise TypeError(f"seed must be an int or None, got {seed!r}") from None
        elif self.seed is None:
            start = int(np.random.SeedSequence().entropy) & 0x7FFFFFFFFFFFFFFF  # type: ignore[arg-type]
            episode = self.episode + 1
        else:
            start, episode = self.seed, self.episode + 1
        self.task.reset(start, episode, options)
        self.seed = start
        self.episode = episode
        self._key = episode_key(start, episode)
        self.turn = 0
        self.last_auction = None
        self.last_result = None
        self.counts = {"illegal": 0, "skipped": 0}
        self._return = 0.0
        self._started = True
        self._over = False
        self.agents = list(self._names)
        self.rewards = dict.fromkeys(self._names, 0.0)
        self._cumulative_rewards = dict.fromkeys(self._names, 0.0)
        self.terminations = dict.fromkeys(self._names, False)
        self.truncations = dict.fromkeys(self._names, False)
        self._begin_turn()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """What the agent sees now; any possible agent, at any time after a reset; fresh arrays."""
        if not self._started:
            raise PhaseError("call reset() before observe()")
        # Worked out when it is first asked for in a turn, and once where all see the same.
        whose = self._names[0] if self.task.shared_observation else agent
        observation = self._seen.get(whose)
        if observation is None:
            values = self.task.observe(whose)
            observation = np.empty(values.shape[0] + 1, np.float32)
            observation[:-1] = values
            observation[-1] = 1.0 - self.turn / self.max_turns
            self._seen[whose] = observation
        return {"observation": observation.copy(), "action_mask": self._masks[agent].copy()}

    def step(self, action: int | None) -> None:
        """The selected agent bids or acts.

        Raises:
            ActionFormatError: not an integer in the agent's action space.
            IllegalActionError: masked, under ``on_illegal="raise"``; nothing has changed then.
            PhaseError: before a reset, or after everyone has left an ended episode.
        """
        if not self.agents:
            what = "the episode is over" if self._started else "the game has not started"
            raise PhaseError(f"{what}: call reset() before step()")
        agent = self.agent_selection
        if self._over:
            self._was_dead_step(action)
            return
        index = self._index[agent]
        try:
            choice = operator.index(action)  # type: ignore[arg-type]
        except TypeError:
            choice = -1
        if isinstance(action, (bool, np.bool_)) or not (
            0 <= choice < self._num_levels + self._action_counts[index]
        ):
            raise ActionFormatError(
                f"{agent} was given the action {action!r}; its actions are the integers 0 to "
                f"{self._num_levels + self._action_counts[index] - 1}: "
                f"{self._num_levels} bid levels, then {self._action_counts[index]} actions"
            )
        legal = bool(self._masks[agent][choice])
        if not legal:
            if self.on_illegal == "raise":
                raise IllegalActionError(self._illegal_message(agent, choice))
            self.counts["illegal"] += 1
        if self._reward_given:
            self.rewards = self._zero_rewards.copy()
            self._reward_given = False
        self._cumulative_rewards[agent] = 0.0
        if self.phase == "bid":
            self._bids[index] = choice if legal else 0
            self._cursor = index + 1
            if self._cursor < len(self._names):
                self.agent_selection = self._names[self._cursor]
            else:
                self._resolve()
        elif legal:
            self._finish_turn(self.task.act(agent, choice - self._num_levels))
        else:
            result = self.task.skip()
            result.info["illegal"] = True
            self._finish_turn(result)

    def render(self) -> Any:
        """Draw the state with the bids of the last auction; None without a render mode."""
        if self.render_mode is None:
            return None
        return self.render_as(self.render_mode)

    def close(self) -> None:
        """Close the task."""
        self.task.close()

    def state(self) -> NDArray[np.float32]:
        """The observations of all possible agents, one after the other: a global state."""
        return np.concatenate([self.observe(a)["observation"] for a in self._names])

    # -- the turn ----------------------------------------------------------------------------

    _reward_given = False

    def _begin_turn(self) -> None:
        """Open the bid phase of the running turn."""
        self.phase = "bid"
        self._cursor = 0
        self._winner = -1
        self._bids.fill(0)
        self._seen = {}
        self.agent_selection = self._names[0]
        self._masks = self._bid_masks.copy()
        if self.dropout:
            for index, agent in enumerate(self._names):
                if not is_present(self._key, self.turn, index, self.dropout):
                    self._masks[agent] = self._absent_masks[agent]
        self.infos = {agent: {"action_mask": mask.copy()} for agent, mask in self._masks.items()}

    def _resolve(self) -> None:
        """Run the auction and open the act phase, or skip the turn."""
        winner, runner_up = resolve(self._bids, self._key, self.turn)
        levels = self.bid_levels
        self.last_auction = Auction(
            self.turn,
            tuple([levels[b] for b in self._bids.tolist()]),
            self._names[winner] if winner >= 0 else None,
            self._names[runner_up] if runner_up >= 0 else None,
        )
        if winner < 0:
            self.counts["skipped"] += 1
            self._finish_turn(self.task.skip())
            return
        self._winner = winner
        self._open_act_phase()

    def _open_act_phase(self) -> None:
        self.phase = "act"
        agent = self._names[self._winner]
        self.agent_selection = agent
        mask = np.zeros(self._num_levels + self._action_counts[self._winner], np.int8)
        mask[self._num_levels :] = self.task.action_mask(agent)
        self._masks[agent] = mask
        self.infos[agent] = {"action_mask": mask.copy()}

    def _finish_turn(self, result: TurnResult) -> None:
        """Pay the team and open the next turn, or end the episode for everyone at once."""
        reward = float(result.reward)
        if not math.isfinite(reward):
            raise TaskError(
                f"{self.task.task_id} gave the reward {result.reward!r} in turn {self.turn} (seed "
                f"{self.seed}, episode {self.episode}); a reward must be a finite number: mend the "
                "task"
            )
        self.last_result = result
        self._return += reward
        if reward != 0.0:
            self.rewards = dict.fromkeys(self._names, reward)
            self._reward_given = True
            for agent in self._names:
                self._cumulative_rewards[agent] += reward
        self.turn += 1
        self._begin_turn()
        if result.terminated or self.turn >= self.max_turns:
            self._over = True
            flags = self.terminations if result.terminated else self.truncations
            metrics = self.metrics()
            for agent in self._names:
                flags[agent] = True
                self.infos[agent]["metrics"] = dict(metrics)

    def _illegal_message(self, agent: str, choice: int) -> str:
        if choice < self._num_levels:
            if self.phase == "act":
                return f"{agent} must act now, but action {choice} is a bid"
            return f"{agent} is absent in turn {self.turn} and can only bid 0 (action 0)"
        name = self.task.action_names(agent)[choice - self._num_levels]
        if self.phase == "bid":
            return (
                f"{agent} must bid now (actions 0 to {self._num_levels - 1}), but action {choice} "
                f"is {name!r}"
            )
        return (
            f"{agent} cannot do {name!r} now; legal: "
            f"{', '.join(self.task.legal_action_names(agent))}"
        )

    # -- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> GameSnapshot:
        """Everything that influences the future: immutable, hashable, restorable anywhere."""
        if not self._started:
            raise PhaseError("call reset() before snapshot()")
        return GameSnapshot(
            self.task.snapshot(),
            (
                GAME_VERSION,
                self.bid_levels,
                (self.max_turns, self.dropout, self._names),
                self.turn,
                self.phase,
                self._cursor,
                self._winner,
                tuple(self._bids.tolist()),
                self.last_auction,
                int(self._key),
                self.seed,
                self.episode,
                self._over,
                self._return,
                (self.counts["illegal"], self.counts["skipped"]),
                tuple(self.agents),
                tuple(self.rewards.values()),
                tuple(self._cumulative_rewards.values()),
                any(self.terminations.values()),
            ),
        ).verify()

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of a game with the same task and configuration.

        Raises:
            SnapshotError: it belongs to another task, version or configuration, or is corrupt;
                the game is then unchanged.
        """
        game = check_game(snapshot, self.bid_levels, self.max_turns, self.dropout, self._names)
        self.task.restore(snapshot.task)
        self.turn, self._key = game.turn, np.uint64(game.key)
        self.seed, self.episode = game.seed, game.episode
        self.counts = dict(zip(("illegal", "skipped"), game.counts, strict=True))
        self.last_result = None
        self._started, self._over, self._return = True, game.over, game.total
        self.agents = list(game.agents)
        remaining = game.agents if game.over else self._names
        self.rewards = dict(zip(remaining, game.rewards, strict=True))
        self._reward_given = True
        self._cumulative_rewards = dict(zip(remaining, game.cumulative, strict=True))
        self.terminations = dict.fromkeys(remaining, game.over and game.terminated)
        self.truncations = dict.fromkeys(remaining, game.over and not game.terminated)
        self._begin_turn()
        self.last_auction = game.last_auction
        self._bids[:] = game.bids
        self._cursor = game.cursor
        if game.phase == "act":
            self._winner = game.winner
            self._open_act_phase()
        elif not game.over:
            self.agent_selection = self._names[game.cursor]
        elif game.agents:
            self.agent_selection = game.agents[0]
        if game.over:
            metrics = self.metrics()
            self.infos = {
                agent: {**self.infos[agent], "metrics": dict(metrics)} for agent in remaining
            }

    def clone(self) -> BidThenActEnv:
        """An independent game in the same state."""
        twin = BidThenActEnv(
            self.task.clone(),
            bid_levels=self.bid_levels,
            max_turns=self.max_turns,
            dropout=self.dropout,
            on_illegal=self.on_illegal,
            render_mode=self.render_mode,
        )
        if self._started:
            twin.restore(self.snapshot())
        else:
            twin.seed, twin.episode = self.seed, self.episode
        return twin

    def reseed(self, key: int) -> None:
        """Draw all future random numbers (task, ties, absences) from another key.

        For branches with independent luck; only at the start of a bid phase.
        """
        if self.phase != "bid" or self._cursor:
            raise PhaseError("reseed() is possible at the start of a bid phase only")
        self.task.reseed(key)
        self._key = as_key(key)
        self._begin_turn()

    @property
    def random_key(self) -> int:
        """The 64-bit word that keys every random draw of the running episode."""
        return int(self._key)

    # -- reports -----------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """The task's metrics with the game's: return, turns, illegal and skipped turns."""
        return {
            "return": self._return,
            "turns": float(self.turn),
            "illegal": float(self.counts["illegal"]),
            "skipped": float(self.counts["skipped"]),
            **self.task.metrics(),
        }

    def render_as(self, mode: str) -> Any:
        """Draw the state in any of the task's render modes, with the last auction beside it."""
        overlay: dict[str, Any] = {
            "turn": self.turn,
            "max_turns": self.max_turns,
            "return": self._return,
        }
        if self.last_auction is not None:
            overlay["bids"] = dict(zip(self._names, self.last_auction.bids, strict=True))
            overlay["winner"] = self.last_auction.winner
        return self.task.render(mode, overlay)
