"""Counterfactual branches: what would have happened had the runner-up acted?

At a contested turn (a second agent bid above 0) the state is restored from a snapshot. The
winner's bid is drawn again, at most `BidLearning.resamples` times, until it is below the
runner-up's; if it never is, the turn is dropped. Then the runner-up wins the auction and the
episode is played on to its end. Both branches are scored by the rewards from that turn on; the bid
of the better one is the chosen response, the other the rejected one; equal scores are dropped.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from mpt_train.config import BidLearning
from mpt_train.coordination.base import Coordination
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy
from mpt_train.records import Batch, Pairs
from mpt_train.rollout import rollout
from mpt_train.runs.interrupt import StopRequest
from wrappers.errors import SnapshotFidelityError
from wrappers.rng import STREAM_BRANCH, hash4
from wrappers.vector import VectorGame


def check_fidelity(game: VectorGame, allow_inexact: bool = False) -> None:
    """Refuse counterfactuals on a game whose snapshots do not promise exact futures."""
    if game.snapshot_fidelity == "approximate" and not allow_inexact:
        raise SnapshotFidelityError(
            f"snapshots of {game.task_id} are approximate, so a counterfactual branch would differ "
            "from its episode in more than the actor; learn bids with "
            "--bids.kind policy_gradient, use the embedded backend, or accept it with "
            "--bids.allow-approximate-snapshots"
        )


def choose_turns(game: VectorGame, count: int, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """``bool (max_turns, N)``: ``count`` turns of the budget per world, drawn without order."""
    words = np.empty((game.max_turns, game.num_envs), np.uint64)
    for turn in range(game.max_turns):
        for world, key in enumerate(keys):
            words[turn, world] = hash4(key, turn, STREAM_BRANCH, 1)
    if count < 1:
        return np.zeros(words.shape, np.bool_)
    count = min(count, game.max_turns)
    cut = np.sort(words, axis=0)[-count]
    return words >= cut


class BranchPlayer:
    """Plays branches in a vector game of its own, which is kept between batches."""

    def __init__(self, game: VectorGame) -> None:
        self._origin = game
        self._game: VectorGame | None = None

    def _worlds(self, count: int) -> VectorGame:
        if self._game is None or self._game.num_envs < count:
            self._game = self._origin.spawn(count)
        self._game.active[:] = False
        return self._game

    def collect(
        self,
        batch: Batch,
        policy: Policy,
        coordination: Coordination,
        config: BidLearning,
        counter: FlopCounter,
        stop: StopRequest | None = None,
    ) -> Pairs:
        """Play a branch from each saved contested turn of ``batch`` and compare.

        The policy must not have changed since the batch was collected. ``stop`` is polled between
        turns, as in `rollout`.
        """
        names = ("tried", "contested", "dropped", "tied", "original_better", "turns")
        counts = dict.fromkeys(names, 0)
        counts["tried"] = len(batch.saved)
        contested = [s for s in batch.saved if batch.runners_up[s[0], s[1]] >= 0]
        counts["contested"] = len(contested)
        turns = np.array([s[0] for s in contested], np.int64)
        worlds = np.array([s[1] for s in contested], np.int64)
        lowered, drawn = policy.lower_bids(batch, turns, worlds, config.resamples, counter)
        keep = np.flatnonzero(lowered >= 0)
        counts["dropped"] = len(contested) - len(keep)
        turns, worlds, lowered = turns[keep], worlds[keep], lowered[keep]
        if not len(keep):
            return _no_pairs(batch, counts)
        winners = batch.winners[turns, worlds]
        game = self._worlds(len(keep))
        rows = np.arange(len(keep))
        game.restore(rows, [contested[i][2] for i in keep])
        bids = np.zeros((game.num_envs, game.num_agents), np.int64)
        bids[rows] = batch.bids[turns, worlds]
        bids[rows, winners] = lowered
        if config.branch_noise == "independent":
            keys = [
                int(hash4(batch.keys[w], t, STREAM_BRANCH, 2))
                for t, w in zip(turns, worlds, strict=True)
            ]
            game.reseed(rows, np.array(keys, np.uint64))
        branch = rollout(
            game, policy, coordination, counter, part="branch", first_bids=bids, stop=stop
        )
        counts["turns"] = branch.num_turns
        # Under independent noise a tie behind the winner can fall to a third agent; the runner-up
        # of the episode did not act then, and the branch says nothing.
        valid = branch.winners[0, rows] == batch.runners_up[turns, worlds]
        counts["dropped"] += int((~valid).sum())
        original = score(batch, turns, worlds, config.score_discount)
        counterfactual = score(branch, np.zeros_like(rows), rows, config.score_discount)
        difference = original - counterfactual
        tied = valid & (np.abs(difference) <= 1e-9)
        counts["tied"] = int(tied.sum())
        use = np.flatnonzero(valid & ~tied)
        if not len(use):
            return _no_pairs(batch, counts)
        difference = difference[use]
        better = difference > 0
        counts["original_better"] = int(better.sum())
        own = batch.bids[turns, worlds, winners][use]
        weights = np.ones(len(use))
        if config.pair_weighting == "difference":
            weights = np.abs(difference) / np.abs(difference).mean()
        return Pairs(
            observations=batch.observations_at(turns[use], worlds[use], winners[use]),
            agents=winners[use],
            chosen=np.where(better, own, lowered[use]),
            rejected=np.where(better, lowered[use], own),
            weights=weights.astype(np.float32),
            worlds=worlds[use],
            counts=counts,
            responses=[
                drawn[keep[i]] if first else drawn[keep[i]][::-1]
                for i, first in zip(use, better, strict=True)
            ]
            if drawn
            else [],
        )


def score(
    batch: Batch, turns: NDArray[np.int64], worlds: NDArray[np.int64], discount: float
) -> NDArray[np.float64]:
    """Discounted rewards from ``turns[i]`` on in world ``worlds[i]``, ``(P,)``."""
    rewards = batch.rewards[:, worlds].astype(np.float64)
    steps = np.arange(rewards.shape[0])[:, None] - turns[None, :]
    weights = np.where(steps >= 0, discount ** np.maximum(steps, 0), 0.0)
    result: NDArray[np.float64] = (rewards * weights).sum(axis=0)
    return result


def _no_pairs(batch: Batch, counts: dict[str, int]) -> Pairs:
    width = batch.observations.shape[-1]
    nothing = np.zeros(0, np.int64)
    return Pairs(
        torch.zeros(0, width), nothing, nothing, nothing, np.zeros(0, np.float32), nothing, counts
    )
