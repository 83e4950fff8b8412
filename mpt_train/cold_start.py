"""The cold start: supervised learning on demonstrations, before anything else.

The swarm learns each role's action in the turns the role acted in, and every agent's bid. The
monolithic policy learns from the *same* demonstrations, replayed in its own view. Agents that
answer in text learn from what they should have answered, or from a file of such answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpt_train.agents import Agents
from mpt_train.config import ColdStartConfig, TrainConfig
from mpt_train.coordination.base import Coordination, central_rows
from mpt_train.demonstrations import demonstrate, replay_solo, require_expert
from mpt_train.errors import DivergedError
from mpt_train.flops import BACKWARD, FlopCounter
from mpt_train.games import build_game
from mpt_train.policies.base import Policy
from mpt_train.policies.distributions import masked_log_softmax
from mpt_train.policies.swarm import SwarmPolicy
from mpt_train.policies.text import TextPolicy
from mpt_train.records import Batch, Demonstrations
from mpt_train.runs.interrupt import StopRequest
from wrappers.vector import VectorGame


class ColdStart:
    """The cold start of a run.

    Args:
        config: the run.
        agents: what learns.
    """

    def __init__(self, config: TrainConfig, agents: Agents) -> None:
        self._config = config
        self._agents = agents
        self._file = bool(config.language.demonstrations)
        own = agents.coordination.module is not None
        # A strategy with parameters of its own learns from the expert's moves even where a file
        # teaches the agents.
        self._expert = config.cold_start.episodes > 0 and (own or not self._file)
        self._networks = isinstance(agents.policy, SwarmPolicy) or own

    def prepare(self, game: VectorGame) -> None:
        """Read the file, or find out that nobody demonstrates: before any work is done.

        Args:
            game: of the run.

        Raises:
            DemonstrationError: the file cannot be used.
            MissingCapabilityError: the task has no expert.
        """
        if self._file:
            assert isinstance(self._agents.policy, TextPolicy)
            self._agents.policy.read_demonstrations(game)
        if self._expert:
            require_expert(game)

    def run(
        self,
        counter: FlopCounter,
        stop: StopRequest | None = None,
        announce: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Learn; returns numbers for the log.

        Args:
            counter: operations.
            stop: polled between turns of demonstrations and between mini-batches.
            announce: is told about how many operations the supervised steps will take, before the
                first of them.

        Raises:
            StopRequested: a stop was requested; the agents are half taught.
            DivergedError: a loss is not finite.
        """
        config, policy = self._config, self._agents.policy
        record: dict[str, Any] = {}
        reads = isinstance(policy, TextPolicy) and (self._file or self._expert)
        demonstrations = self._watch(stop) if self._expert else None
        flop = 0
        if reads:
            assert isinstance(policy, TextPolicy)
            flop += policy.fit_flop(config.cold_start)
        if demonstrations is not None and self._networks:
            flop += fit_flop(demonstrations, policy, self._agents.coordination, config.cold_start)
        if announce is not None:
            announce(flop)
        if reads:
            assert isinstance(policy, TextPolicy)
            record |= policy.fit(config.cold_start, config.seed, counter, stop)
        if demonstrations is not None:
            if self._networks:
                record |= fit(
                    demonstrations,
                    policy,
                    self._agents.coordination,
                    config.cold_start,
                    config.seed,
                    counter,
                    stop,
                )
            record["demonstration_return"] = demonstrations.mean_return
        return record

    def _watch(self, stop: StopRequest | None) -> Demonstrations:
        """Let the scripted expert demonstrate."""
        config, policy = self._config, self._agents.policy
        seed, episodes = config.seed, config.cold_start.episodes
        game = build_game(config, episodes, solo=False)
        solo = config.coordination == "solo"
        width = max(game.observation_sizes) if solo else policy.observation_size
        actions = max(game.action_counts) if solo else policy.num_actions
        found = demonstrate(game, config.cold_start, seed, width, actions, stop)
        if solo:
            swarm, game = game, build_game(config, episodes)
            width, actions = policy.observation_size, policy.num_actions
            found = replay_solo(game, found, swarm, seed, width, actions, stop)
        if isinstance(policy, TextPolicy) and not self._file:
            policy.watch(found, game, seed, stop)
        return found


def fit(
    demonstrations: Demonstrations,
    policy: Policy,
    coordination: Coordination,
    config: ColdStartConfig,
    seed: int,
    counter: FlopCounter,
    stop: StopRequest | None = None,
) -> dict[str, float]:
    """Supervised epochs over the demonstrations; returns the losses of the last one.

    Agents that answer in text learn apart from this (`TextPolicy.fit`); of them, only the
    coordination learns here. The learner's Adam is not kept: reinforcement learning starts with a
    fresh one.
    """
    batch = demonstrations.batch
    turns, worlds = np.nonzero(batch.acted)
    parameters = list(policy.parameters()) if isinstance(policy, SwarmPolicy) else []
    if coordination.module is not None:
        parameters += list(coordination.module.parameters())
    optimizer = torch.optim.Adam(parameters, lr=config.learning_rate)
    generator = np.random.default_rng([seed, 0xC01D])
    losses: dict[str, float] = {}
    for _ in range(config.epochs):
        order = generator.permutation(len(turns))
        sums = {"action": 0.0, "bid": 0.0}
        starts = range(0, len(order), config.batch_size)
        for start in starts:
            if stop is not None:
                stop.check()
            pick = order[start : start + config.batch_size]
            where = np.zeros(batch.active.shape, np.bool_)
            where[turns[pick], worlds[pick]] = True
            action, bid = _losses(batch, where, policy, coordination, counter)
            loss = action + bid
            if not torch.isfinite(loss):
                raise DivergedError(
                    f"the cold start diverged: its loss is {float(loss.detach())}; try a lower "
                    "--cold-start.learning-rate"
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sums["action"] += float(action.detach())
            sums["bid"] += float(bid.detach())
        if not isinstance(policy, SwarmPolicy):
            sums = {"coordination": sums["bid"]}
        losses = {f"cold_start_{k}_loss": v / max(len(starts), 1) for k, v in sums.items()}
    return losses


def fit_flop(
    demonstrations: Demonstrations,
    policy: Policy,
    coordination: Coordination,
    config: ColdStartConfig,
) -> int:
    """How many operations `fit` will take: those of one turn, for all turns of all epochs."""
    batch = demonstrations.batch
    turns = np.argwhere(batch.acted)
    if not len(turns):
        return 0
    where = np.zeros(batch.active.shape, np.bool_)
    where[tuple(turns[0])] = True
    counter = FlopCounter()
    with torch.no_grad():
        _losses(batch, where, policy, coordination, counter)
    return counter.total * len(turns) * config.epochs


def _losses(
    batch: Batch,
    where: NDArray[np.bool_],
    policy: Policy,
    coordination: Coordination,
    counter: FlopCounter,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropies of one mini-batch: actions of the winners, bids of all agents."""
    total = int(where.sum())
    action = torch.zeros(())
    bid = torch.zeros(())
    for agent in range(policy.num_agents):
        if not isinstance(policy, SwarmPolicy):
            break
        mine = where & (batch.winners == agent)
        count = int(mine.sum())
        if count:
            logits = policy.action_logits_one(agent, batch.rows_of(agent, mine))
            log_probs = masked_log_softmax(logits, torch.from_numpy(batch.masks[mine]))
            labels = torch.from_numpy(batch.actions[mine])[:, None]
            action = action - log_probs.gather(1, labels).sum() / total
            counter.add("cold_start", (1 + BACKWARD) * policy.act_flop * count)
        if policy.num_levels:
            logits = policy.bid_logits_one(agent, batch.rows_of(agent, where))
            labels = torch.from_numpy(batch.bids[:, :, agent][where])
            bid = bid + torch.nn.functional.cross_entropy(logits, labels) / policy.num_agents
            counter.add("cold_start", (1 + BACKWARD) * policy.bid_flop * total)
    own = coordination.cold_start_loss(
        central_rows(batch, where), torch.from_numpy(batch.winners[where]), counter
    )
    return action, bid if own is None else bid + own
