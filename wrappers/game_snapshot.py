"""Snapshots of a game: the snapshot of its task, and the state of the game around it."""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

from wrappers.auction import Auction
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

GAME_VERSION = 1


class GameState(NamedTuple):
    """The state of a game around its task, as plain values; the order is part of the version.

    Attributes:
        version: `GAME_VERSION`.
        bid_levels: what can be bid.
        rules: turn budget, dropout, agents.
        turn, phase, cursor, winner: whose move it is.
        bids: levels that were bid in this turn; 0 for those to come.
        last_auction: the last one that is resolved.
        key, seed, episode: where random draws come from.
        over, terminated: whether the episode has ended, and whether by the task.
        total: sum of the rewards.
        counts: illegal and skipped turns.
        agents: those who have not left yet.
        rewards, cumulative: theirs, as PettingZoo keeps them.
    """

    version: int
    bid_levels: tuple[float, ...]
    rules: tuple[int, float, tuple[str, ...]]
    turn: int
    phase: str
    cursor: int
    winner: int
    bids: tuple[int, ...]
    last_auction: Auction | None
    key: int
    seed: Any
    episode: int
    over: bool
    total: float
    counts: tuple[int, int]
    agents: tuple[str, ...]
    rewards: tuple[float, ...]
    cumulative: tuple[float, ...]
    terminated: bool


class GameSnapshot:
    """Everything that influences the future of a `BidThenActEnv`: immutable, hashable, picklable.

    Attributes:
        task: snapshot of the turn task.
        game: state of the game around it: a plain tuple in the order of `GameState`.
        verified: as in `wrappers.task.Snapshot`, of `game`.
    """

    __slots__ = ("_digest", "_verified", "game", "task")
    task: Snapshot
    game: tuple[Any, ...]
    _digest: str | None
    _verified: bool

    def __init__(self, task: Snapshot, game: tuple[Any, ...]) -> None:
        object.__setattr__(self, "task", task)
        object.__setattr__(self, "game", game)
        object.__setattr__(self, "_digest", None)
        object.__setattr__(self, "_verified", False)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a snapshot is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a snapshot is immutable; cannot delete {name!r}")

    @property
    def digest(self) -> str:
        """Hash of task and game state, as 32 hexadecimal digits (cached)."""
        if self._digest is None:
            text = f"{self.task.digest}|{self.game!r}".encode()
            digest = hashlib.blake2b(text, digest_size=16).hexdigest()
            object.__setattr__(self, "_digest", digest)
        assert self._digest is not None
        return self._digest

    @property
    def verified(self) -> bool:
        """Whether `verify` was called; never true of a snapshot that was unpickled or copied."""
        return self._verified

    def verify(self) -> GameSnapshot:
        """Remember that `game` is a valid state; returns the snapshot itself."""
        object.__setattr__(self, "_verified", True)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GameSnapshot):
            return NotImplemented
        return self.game == other.game and self.task == other.task

    def __hash__(self) -> int:
        return hash((self.game, self.task))

    def __repr__(self) -> str:
        return f"GameSnapshot({self.task.task_id!r}, turn={self.game[3]}, digest={self.digest})"

    def __reduce__(self) -> tuple[Any, ...]:
        return GameSnapshot, (self.task, self.game)


def check_game(
    snapshot: Any,
    bid_levels: tuple[float, ...],
    max_turns: int,
    dropout: float,
    names: tuple[str, ...],
) -> GameState:
    """The state of a snapshot that may be restored into a game of this configuration.

    What it holds of the task is for the task to check.

    Raises:
        SnapshotError: it is none, or belongs to another release or configuration, or was changed.
    """
    if not isinstance(snapshot, GameSnapshot):
        raise SnapshotError(
            f"expected a GameSnapshot from BidThenActEnv.snapshot(), got {type(snapshot)}"
        )
    if not isinstance(snapshot.task, Snapshot):
        raise SnapshotError(
            f"this game snapshot holds {type(snapshot.task)} instead of the task's Snapshot; take "
            "it again"
        )
    game = snapshot.game
    if (
        not isinstance(game, tuple)
        or len(game) != len(GameState._fields)
        or game[0] != GAME_VERSION
    ):
        raise SnapshotError(
            "this game snapshot was taken by another release; take it again with this one"
        )
    if game[1] != bid_levels or game[2] != (max_turns, dropout, names):
        raise SnapshotError(
            f"this snapshot belongs to a game with bid levels {game[1]} and (max_turns, dropout, "
            f"agents) = {game[2]}; this game has {bid_levels} and "
            f"{(max_turns, dropout, names)}; make() it alike"
        )
    state = GameState(*game)
    if not snapshot.verified:
        wrong = _wrong_part(state, bid_levels, max_turns, names)
        if wrong is not None:
            raise SnapshotError(
                f"this game snapshot holds no valid state ({wrong}): it was changed after it was "
                "taken; take it again"
            )
        snapshot.verify()
    return state


def _wrong_part(
    state: GameState, bid_levels: tuple[float, ...], max_turns: int, names: tuple[str, ...]
) -> str | None:
    """Which part of a game's state cannot be, or None if all can."""
    (turn, phase, cursor, winner, bids, auction, key, seed, episode) = state[3:12]
    (over, total, counts, agents, rewards, cumulative, terminated) = state[12:]
    count = len(names)
    if not (type(over) is bool and type(terminated) is bool and (over or not terminated)):
        return "whether it is over"
    if not (_is_count(turn, max_turns) and (over or turn < max_turns)):
        return "turn"
    if phase not in ("bid", "act") or (over and phase == "act"):
        return "phase"
    if not (_is_tuple(bids, count) and all(_is_count(bid, len(bid_levels) - 1) for bid in bids)):
        return "bids"
    if phase == "bid":
        if not _is_count(cursor, count - 1) or type(winner) is not int or winner != -1:
            return "who moves"
    elif not (_is_count(cursor, count) and cursor == count and _is_count(winner, count - 1)):
        return "who moves"
    if any(bids[cursor:]) or (phase == "act" and not 0 < bids[winner] == max(bids)):
        return "bids"
    if auction is not None and not _is_auction(auction, bid_levels, turn, names):
        return "last auction"
    if (auction is None) != (turn == 0 and phase == "bid"):
        return "last auction"
    if not (_is_count(key, (1 << 64) - 1) and type(seed) is int and _is_count(episode)):
        return "seed, episode or random key"
    if not (_is_tuple(counts, 2) and all(_is_count(n, 1 << 62) for n in counts)):
        return "counts"
    if not isinstance(agents, tuple) or list(agents) != [n for n in names if n in agents]:
        return "agents"
    if not over and agents != names:
        return "agents"
    if not (_is_tuple(rewards, len(agents)) and _is_tuple(cumulative, len(agents))):
        return "rewards"
    paid = (total, *rewards, *cumulative)
    if type(total) is not float or not all(
        type(reward) in (int, float) and abs(reward) < math.inf for reward in paid
    ):
        return "rewards"
    return None


def _is_count(value: Any, largest: int | None = None) -> bool:
    return type(value) is int and value >= 0 and (largest is None or value <= largest)


def _is_tuple(value: Any, length: int) -> bool:
    return isinstance(value, tuple) and len(value) == length


def _is_auction(
    auction: Any, bid_levels: tuple[float, ...], turn: int, names: tuple[str, ...]
) -> bool:
    return (
        isinstance(auction, Auction)
        and _is_count(auction.turn, turn)
        and _is_tuple(auction.bids, len(names))
        and all(bid in bid_levels for bid in auction.bids)
        and (auction.winner is None or auction.winner in names)
        and (auction.runner_up is None or auction.runner_up in names)
    )
