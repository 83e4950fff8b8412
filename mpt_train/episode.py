"""One episode to look at: who bids what and does what, written down and played again.

An episode is first played in the vector game, where policies, experts and coordination strategies
live, and written down as a list of `Move`. Then it is played again, move by move, in the AEC game,
which can draw itself. Both give the same trajectory for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wrappers.bid_then_act import BidThenActEnv
from wrappers.rng import STREAM_POLICY_ACTION, STREAM_POLICY_BID, hash4
from wrappers.vector import VectorGame

if TYPE_CHECKING:
    from mpt_train.agents import Agents
    from mpt_train.config import TrainConfig
    from mpt_train.coordination.base import Coordination


@dataclass(frozen=True)
class Move:
    """One turn, written down.

    Attributes:
        bids: bid level of each agent.
        action: the winner's action, counted without the bid levels; -1 if nobody acted, or if
            the winner's answer could not be read.
    """

    bids: tuple[int, ...]
    action: int


@dataclass(frozen=True)
class PlayedTurn:
    """One turn, played.

    Attributes:
        turn: its index, from 0.
        bids: bid of each agent, in [0, 1].
        winner: who acted; None: nobody.
        action: what it did; None: nothing.
        reward: the team's.
        total: sum of all rewards so far.
        illegal: whether the action was illegal and wasted.
    """

    turn: int
    bids: dict[str, float]
    winner: str | None
    action: str | None
    reward: float
    total: float
    illegal: bool


Bidder = Callable[[VectorGame], NDArray[np.int64]]
"""Bid levels ``int64 (1, A)`` for a game with one world."""
Actor = Callable[[VectorGame, int], int]
"""The action of the agent with this index."""


def record(game: VectorGame, seed: int, bid: Bidder, act: Actor) -> list[Move]:
    """Play one episode of a game with one world and write it down."""
    _check_single(game)
    game.reset([seed])
    moves = []
    while game.active[0]:
        bids = bid(game)
        winner = int(game.auction(bids).winners[0])
        action = act(game, winner) if winner >= 0 else -1
        game.act(np.array([max(action, 0)]))
        moves.append(Move(tuple(bids[0].tolist()), action))
    return moves


def record_agents(
    game: VectorGame, seed: int, agents: Agents, coordination: Coordination
) -> list[Move]:
    """Let trained agents play one episode of a game with one world and write it down."""
    from mpt_train.flops import FlopCounter
    from mpt_train.rollout import rollout

    _check_single(game)
    game.reset([seed])
    batch = rollout(game, agents.policy, coordination, FlopCounter())
    return [
        Move(tuple(batch.bids[turn, 0].tolist()), int(batch.actions[turn, 0]))
        for turn in range(batch.num_turns)
    ]


def expert_bids(game: VectorGame) -> NDArray[np.int64]:
    """The bid levels next to what the scripted expert would bid."""
    wanted, _ = game.expert()
    levels: NDArray[np.int64] = np.abs(wanted[:, :, None] - game.bid_levels).argmin(axis=2)
    levels[~game.present()] = 0
    return levels


def expert_action(game: VectorGame, agent: int) -> int:
    """What the scripted expert of the agent's role would do."""
    return int(game.expert()[1][0, agent])


def random_bids(game: VectorGame) -> NDArray[np.int64]:
    """Bid levels drawn uniformly."""
    draws = [
        _draw(game, STREAM_POLICY_BID, i, len(game.bid_levels)) for i in range(game.num_agents)
    ]
    levels = np.array([draws])
    levels[~game.present()] = 0
    return levels


def random_action(game: VectorGame, agent: int) -> int:
    """A legal action drawn uniformly."""
    legal = np.flatnonzero(game.action_masks()[agent][0])
    return int(legal[_draw(game, STREAM_POLICY_ACTION, agent, len(legal))])


def coordinated_bids(game: VectorGame, config: TrainConfig, name: str) -> Bidder:
    """The bids of a coordination strategy that has nothing to learn.

    Raises:
        ValueError: there is no such strategy, or it would have to be trained.
    """
    import dataclasses

    import torch

    from mpt_train.agents import build_agents
    from mpt_train.flops import FlopCounter
    from mpt_train.policies.base import TurnContext
    from mpt_train.rollout import pad_masks, stack_observations

    agents = build_agents(dataclasses.replace(config, coordination=name), game)
    strategy, policy = agents.coordination, agents.policy
    if strategy.module is not None or name == "learned":
        raise ValueError(
            f"the coordination {name!r} has to be trained: play a run that was trained with it"
        )

    def bid(game: VectorGame) -> NDArray[np.int64]:
        width = policy.observation_size
        observations = stack_observations(game.observe(), game.shared_observation, width)
        context = TurnContext(
            policy=policy,
            observations=torch.from_numpy(observations),
            masks=pad_masks(game.action_masks(), policy.num_actions),
            present=game.present(),
            keys=game.keys,
            turns=game.turn,
            num_levels=len(game.bid_levels),
            roles=game.roles,
            counter=FlopCounter(),
            part="play",
        )
        with torch.no_grad():
            return strategy.bids(context)

    return bid


def replay(env: BidThenActEnv, seed: int, moves: Sequence[Move]) -> Iterator[PlayedTurn]:
    """Play written moves in an AEC game, which is in the state after the turn at each yield."""
    env.reset(seed=seed)
    levels = len(env.bid_levels)
    for move in moves:
        for bid in move.bids:
            env.step(bid)
        auction = env.last_auction
        assert auction is not None
        action = None
        if auction.winner is not None:
            # An answer that says nothing is played as a bid, which is illegal here.
            if move.action >= 0:
                action = env.task.action_names(auction.winner)[move.action]
            env.step(levels + move.action)
        result = env.last_result
        assert result is not None
        yield PlayedTurn(
            turn=auction.turn,
            bids=dict(zip(env.possible_agents, auction.bids, strict=True)),
            winner=auction.winner,
            action=action,
            reward=float(result.reward),
            total=env.metrics()["return"],
            illegal=bool(result.info.get("illegal", False)),
        )


def draw(env: BidThenActEnv, mode: str, played: PlayedTurn | None) -> Any:
    """The game's picture with the last auction and, other than `render_as`, the action."""
    overlay: dict[str, Any] = {"turn": env.turn, "max_turns": env.max_turns, "return": 0.0}
    if played is not None:
        overlay |= {
            "return": played.total,
            "bids": played.bids,
            "winner": played.winner,
            "action": played.action,
        }
    return env.task.render(mode, overlay)


def _draw(game: VectorGame, stream: np.uint64, index: int, count: int) -> int:
    word = int(hash4(game.keys[0], game.turn[0], stream, index))
    return (word >> 32) * count >> 32


def _check_single(game: VectorGame) -> None:
    if game.num_envs != 1:
        raise ValueError(f"an episode is recorded in a game with one world, not {game.num_envs}")
