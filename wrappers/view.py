"""`GameView`: the base of the views, which show one and the same game in another form.

A view is an AEC environment around a `BidThenActEnv` (or around another view). It changes what is
observed or how actions are written, never what happens: turns, auctions, rewards and snapshots are
the game's, so a snapshot of the game fits any view of it and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from pettingzoo.utils import BaseWrapper

from wrappers.auction import Auction
from wrappers.bid_then_act import BidThenActEnv
from wrappers.game_snapshot import GameSnapshot
from wrappers.task import Phase, TurnTask


class GameAccess:
    """What every view of the game shows of the game inside it."""

    env: Any

    @property
    def game(self) -> BidThenActEnv:
        """The game inside."""
        game = self.env.unwrapped
        assert isinstance(game, BidThenActEnv)
        return game

    @property
    def task(self) -> TurnTask:
        """The turn task of the game."""
        return self.game.task

    @property
    def phase(self) -> Phase:
        """Phase of the running turn: "bid" or "act"."""
        return self.game.phase

    @property
    def turn(self) -> int:
        """Index of the running turn, from 0."""
        return self.game.turn

    @property
    def max_turns(self) -> int:
        """The turn budget."""
        return self.game.max_turns

    @property
    def bid_levels(self) -> tuple[float, ...]:
        """What can be bid."""
        return self.game.bid_levels

    @property
    def last_auction(self) -> Auction | None:
        """The last auction that is resolved, or None before the first."""
        return self.game.last_auction

    def snapshot(self) -> GameSnapshot:
        """The game's snapshot."""
        return self.game.snapshot()


class GameView(GameAccess, BaseWrapper[str, Any, Any]):
    """An AEC environment that passes everything on to the game inside it.

    Args:
        env: a `BidThenActEnv` or a view of one; the view owns it from now on.

    Attributes:
        env: what it was given.
        observation_spaces, action_spaces: the spaces of this view.

    Every public attribute that a view does not have itself is the game's (``turn``, ``counts``,
    ``metrics()``, ...).
    """

    def __init__(self, env: BidThenActEnv | GameView) -> None:
        if not isinstance(getattr(env, "unwrapped", None), BidThenActEnv):
            raise TypeError(f"expected a BidThenActEnv or a view of one, got {env!r}")
        super().__init__(env)
        self.observation_spaces: dict[str, spaces.Space[Any]] = dict(env.observation_spaces)
        self.action_spaces: dict[str, spaces.Space[Any]] = dict(env.action_spaces)
        self._infos: dict[str, dict[str, Any]] | None = None

    # -- AEC ---------------------------------------------------------------------------------

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's observation space in this view (the same object each time)."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's action space in this view (the same object each time)."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode; see `BidThenActEnv.reset`."""
        self.env.reset(seed=seed, options=options)
        self._changed()

    def step(self, action: Any) -> None:
        """The selected agent bids or acts."""
        self.env.step(action)
        self._changed()

    @property
    def infos(self) -> dict[str, dict[str, Any]]:
        """The agents' infos in this view."""
        if self._infos is None:
            self._infos = {
                agent: self._view_info(agent, info) for agent, info in self.env.infos.items()
            }
        return self._infos

    # -- state -------------------------------------------------------------------------------

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of the game or of any view of it."""
        inner: Any = self.env
        inner.restore(snapshot)
        self._changed()

    def reseed(self, key: int) -> None:
        """See `BidThenActEnv.reseed`."""
        inner: Any = self.env
        inner.reseed(key)
        self._changed()

    def clone(self) -> GameView:
        """An independent view of an independent game in the same state."""
        inner: Any = self.env
        return self._rewrap(inner.clone())

    # -- what a view changes -----------------------------------------------------------------

    def _view_info(self, agent: str, info: dict[str, Any]) -> dict[str, Any]:
        """The agent's info as this view shows it; must not change ``info``."""
        return info

    def _changed(self) -> None:
        """The game has moved: forget what was derived from its state."""
        self._infos = None

    def _rewrap(self, env: BidThenActEnv | GameView) -> GameView:
        """The same view of another environment."""
        return type(self)(env)
