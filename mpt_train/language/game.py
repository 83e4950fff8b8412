"""The vector game for agents that read and write: the lockstep game with a text view of each world.

It plays exactly the game that networks play, gives and takes the same snapshots, and shows the same
vectors, so critics and routers work beside language models. What it adds: prompts, pictures, a
history of past turns, reading of answers, and `UNREAD`, the action of an agent whose answer says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wrappers.answer_json import Fields, read_json
from wrappers.bid_then_act import BidThenActEnv
from wrappers.game_snapshot import GameSnapshot
from wrappers.task import ParseError
from wrappers.text import TextView
from wrappers.vector import VectorResult
from wrappers.vector_lockstep import LockstepVectorGame

_MAX_OBJECT = 400
UNREAD = -1
"""The action of a winner whose answer cannot be read: a wasted turn, counted as illegal."""


class Told(NamedTuple):
    """One past turn, as the history tells it.

    Attributes:
        turn: from 0.
        agent: who acted; "": nobody.
        action: its name; "": the answer could not be read.
        reward: the team's.
    """

    turn: int
    agent: str
    action: str
    reward: float

    def line(self) -> str:
        """As a line of a prompt."""
        if not self.agent:
            return f"Turn {self.turn + 1}: nobody acted."
        did = self.action or "gave no valid answer"
        reward = f" ({self.reward:+g})" if self.reward else ""
        return f"Turn {self.turn + 1}: {self.agent} {did}{reward}."


_EXPLAINED = re.compile(r"^(\d+\. \w+): .*$", re.MULTILINE)


class BriefView(TextView):
    """The text view in fewer words: no explanations of actions, rules and answers."""

    def _prompt(self, agent: str, mask: NDArray[np.int8]) -> str:
        return _EXPLAINED.sub(r"\1", super()._prompt(agent, mask))

    def _game_part(self, agent: str, mask: NDArray[np.int8]) -> str:
        left = f"Turns left: {self.max_turns - self.turn}."
        if self._is_over() or not mask.any():
            return left
        if self.phase == "act":
            return f"{left} Act." if agent == self.game.agent_selection else f"{left} Wait."
        return f"{left} Bid." if mask[1 : len(self.bid_levels)].any() else f"{left} Absent."


class TextVectorGame(LockstepVectorGame):
    """N games in step, in words.

    Args:
        make_env: returns a new AEC game.
        num_envs: N.
        brief: prompts in fewer words.

    Attributes:
        views: the text view of each world.
        history: what happened in each world, oldest first.
    """

    def __init__(
        self, make_env: Callable[[], BidThenActEnv], num_envs: int, brief: bool = False
    ) -> None:
        super().__init__(make_env, num_envs)
        self.brief = brief
        self.views = [BriefView(env) if brief else TextView(env) for env in self.envs]
        self.history: list[tuple[Told, ...]] = [()] * num_envs
        self._kept: dict[int, tuple[GameSnapshot, tuple[Told, ...]]] = {}
        self._origin: TextVectorGame | None = None

    # -- reading and writing -----------------------------------------------------------------

    def profile(self, agent: int) -> str:
        """The system message of an agent."""
        return self.views[0].profile(self.possible_agents[agent])

    def prompt(self, row: int, agent: int) -> str:
        """What an agent reads now in a world."""
        return self.views[row].prompt(self.possible_agents[agent])

    def picture(self, row: int) -> NDArray[np.uint8]:
        """The picture of a world, ``uint8 (H, W, 3)``; the same in both phases of a turn."""
        picture: NDArray[np.uint8] = np.asarray(self.envs[row].task.render("rgb_array"))
        return picture

    def read(self, row: int, agent: int, text: str) -> int | ParseError:
        """An answer as a bid level in the bid phase, else as one of the agent's actions."""
        choice = self.views[row].read(self.possible_agents[agent], text)
        if self.views[row].phase == "bid":
            return choice
        if isinstance(choice, ParseError):
            return self._named(row, agent, text, choice)
        return choice - self._num_levels

    def _named(self, row: int, agent: int, text: str, error: ParseError) -> int | ParseError:
        """The action that a JSON object names exactly, for tasks that read names only."""
        body = text.rpartition("</think>")[2].strip()
        if len(body) > _MAX_OBJECT or not body.startswith("{"):
            return error
        try:
            fields = read_json(body)
        except ValueError:
            return error
        wanted = fields.values("action") if isinstance(fields, Fields) else []
        names = self.action_names[agent]
        if len(wanted) != 1 or not isinstance(wanted[0], str) or wanted[0] not in names:
            return error
        index = names.index(wanted[0])
        mask = self.envs[row].task.action_mask(self.possible_agents[agent])
        return index if mask[index] else error

    # -- playing -----------------------------------------------------------------------------

    def reset(
        self,
        seeds: Sequence[int] | NDArray[np.int64],
        episodes: Sequence[int] | NDArray[np.int64] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        super().reset(seeds, episodes, rows)
        for row in range(self.num_envs) if rows is None else np.asarray(rows).tolist():
            self.history[row] = ()
        self._kept = {}

    def act(self, actions: NDArray[np.int64]) -> VectorResult:
        turns, winners = self.turn.copy(), self._winners.copy()
        played = self.active.copy()
        result = super().act(actions)
        for row in np.flatnonzero(played).tolist():
            who, what = "", ""
            if winners[row] >= 0:
                who = self.possible_agents[winners[row]]
                if actions[row] != UNREAD:
                    what = self.action_names[winners[row]][int(actions[row])]
            told = Told(int(turns[row]), who, what, float(result.rewards[row]))
            self.history[row] = (*self.history[row], told)
        return result

    def _check_actions(
        self, actions: NDArray[np.int64], winners: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        # One below the first action is the highest bid, which is illegal in the act phase: the
        # game counts it and wastes the turn.
        unread = np.asarray(actions) == UNREAD
        checked = super()._check_actions(np.where(unread, 0, actions), winners)
        return np.where(unread, UNREAD, checked)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self, rows: NDArray[np.int64]) -> list[GameSnapshot]:
        """As in `VectorGame`; the history of each is remembered until the next reset."""
        snapshots = super().snapshot(rows)
        for row, snapshot in zip(np.asarray(rows).tolist(), snapshots, strict=True):
            # The snapshot is kept beside it, so that its id stays its own.
            self._kept[id(snapshot)] = (snapshot, self.history[row])
        return snapshots

    def restore(self, rows: NDArray[np.int64], snapshots: Sequence[GameSnapshot]) -> None:
        """As in `VectorGame`; the history of a snapshot of this game or its origin comes back."""
        super().restore(rows, snapshots)
        for row, snapshot in zip(np.asarray(rows).tolist(), snapshots, strict=True):
            self.history[row] = self._history_of(snapshot)

    def _history_of(self, snapshot: GameSnapshot) -> tuple[Told, ...]:
        if id(snapshot) in self._kept:
            return self._kept[id(snapshot)][1]
        return () if self._origin is None else self._origin._history_of(snapshot)

    def spawn(self, num_envs: int) -> TextVectorGame:
        """A game of its own that knows the histories of this one's snapshots."""
        twin = TextVectorGame(self._make_env, num_envs, self.brief)
        twin._origin = self
        return twin


def as_text_game(game: Any, brief: bool = False) -> TextVectorGame:
    """The text game of a lockstep game, with worlds of its own.

    Args:
        game: a lockstep game; it is closed.
        brief: prompts in fewer words.

    Raises:
        TypeError: it is another kind of vector game.
    """
    if isinstance(game, TextVectorGame):
        return game
    if not isinstance(game, LockstepVectorGame):
        raise TypeError(
            f"language models play lockstep games, not {type(game).__name__}; make the game with "
            'vectorization="lockstep"'
        )
    return TextVectorGame(game._make_env, game.num_envs, brief)
