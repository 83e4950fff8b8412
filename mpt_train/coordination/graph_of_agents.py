"""Graph-of-Agents (arXiv 2604.17148) as a way to choose who acts and what it does.

The paper's graph passes texts between language models. Here is what stands in for what:

=====================  ===========================================================================
paper                  here
=====================  ===========================================================================
model cards, top-k     k agents drawn at random among those present (all of them where A <= k)
proposal, confidence   an action sampled from the agent's own policy; its largest probability
low confidence (<.1)   the agent abstains
scores of the others   a judge network per agent, a softmax over the other proposers (learned), or
                       the proposals' confidences where there are no judges (a swap over policies
                       that were trained with another strategy)
edges                  mean over judges, normalised, what is below .05 is cut
messages, refinement   the top agent adds to its logits a learned linear function of the other
                       proposals, each weighted by its score
max pooling            one agent executes its refined action. It is drawn with probability
                       proportional to score**4, so that judging can be learned by REINFORCE
=====================  ===========================================================================

Operations count in full: k proposals, k judges, and refinements in both directions (each of the
lower nodes once, the top node once). Those of the lower nodes are only charged: the top node hears
their initial proposals, as no second message is learned.

Nobody scores itself, so with three nodes a score is at most 2/3, and drawing in proportion to the
scores would let a unanimous committee be overruled in a third of the turns; the fourth power makes
that at most one in seventeen. Always taking the top node learns nothing and measures worse.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train import flops
from mpt_train.config import TrainConfig
from mpt_train.coordination.base import Coordination, Shape, one_hot_bids, register
from mpt_train.flops import FlopCounter
from mpt_train.policies.base import Policy, TurnContext
from mpt_train.policies.distributions import NEGATIVE, masked_log_softmax, sample_rows
from mpt_train.policies.networks import StackedLinear, StackedMLP
from mpt_train.policies.swarm import networks_of
from mpt_train.records import Batch, take
from wrappers.rng import STREAM_COORDINATION, STREAM_POLICY_ACTION, hash_rows

TOP_K = 3
MIN_CONFIDENCE = 0.1
MIN_SCORE = 0.05
SHARPNESS = 4.0
"""The executing agent is drawn in proportion to its score to this power."""


class GraphOfAgents(Coordination):
    """Propose, judge, refine, execute (see the top of this file).

    Args:
        shape: sizes of the game.
        hidden: hidden layers of a judge network; None: judge by confidence, learn nothing.
        seed: of the initial weights.
    """

    name = "graph-of-agents"

    def __init__(self, shape: Shape, hidden: tuple[int, ...] | None, seed: int) -> None:
        self._shape = shape
        self._agents = shape.num_agents
        self._k = min(TOP_K, self._agents)
        self.judges: StackedMLP | None = None
        self.messages: StackedLinear | None = None
        self._judge_flop = 0
        message_size = self._agents * shape.num_actions
        self._message_flop = flops.layers((message_size, shape.num_actions))
        if hidden is not None:
            generator = torch.Generator().manual_seed(seed)
            sizes = (shape.observation_size, *hidden, self._agents)
            self.judges = StackedMLP(self._agents, sizes, generator)
            self.messages = StackedLinear(
                self._agents, message_size, shape.num_actions, 0.01, generator
            )
            self.module = nn.ModuleDict({"judges": self.judges, "messages": self.messages})
            self._judge_flop = flops.layers(sizes)

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """The highest bid for the agent that the graph selects; leaves the messages behind."""
        policy = networks_of(context.policy)
        n, a = context.present.shape
        nodes = self._nodes(context.present, context.keys, context.turns)
        features = policy.actor.features(context.observations)
        logits = policy.actor.output(features)
        masks = torch.from_numpy(np.stack(context.masks))
        probs = masked_log_softmax(logits, masks).exp()
        confidence = probs.max(dim=-1).values.T.numpy()
        proposals = np.stack(
            [
                sample_rows(
                    logits[agent].numpy(),
                    context.masks[agent],
                    context.keys,
                    context.turns,
                    STREAM_POLICY_ACTION,
                    agent,
                )
                for agent in range(a)
            ],
            axis=1,
        )
        alive = nodes & (confidence >= MIN_CONFIDENCE)
        alive = np.where(alive.any(axis=1, keepdims=True), alive, nodes)
        if self.judges is not None:
            judged = self._judged(context.observations, torch.from_numpy(alive))
            context.choice_logits = (SHARPNESS * judged).masked_fill(
                ~torch.from_numpy(alive), NEGATIVE
            )
            scores = judged.exp()
        else:
            weights = torch.from_numpy(np.where(alive, confidence, 0.0))
            scores = weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-9)
        scores = torch.where(scores >= MIN_SCORE, scores, torch.zeros(()))
        picks = sample_rows(
            (SHARPNESS * torch.log(scores.clamp_min(1e-9)).float()).numpy(),
            (scores > 0).numpy() & alive,
            context.keys,
            context.turns,
            STREAM_COORDINATION,
            0,
            # Attempt 0 draws the nodes.
            1,
        )
        winners = np.where(alive.any(axis=1), picks, -1)
        if self.messages is not None:
            told = torch.zeros(n, a, policy.num_actions)
            told.scatter_(2, torch.from_numpy(proposals)[:, :, None], 1.0)
            told = told * scores.float()[:, :, None]
            told[torch.arange(n), torch.from_numpy(np.maximum(winners, 0))] = 0.0
            context.messages = told.reshape(n, -1)
        context.features = features
        count = int(alive.sum())
        part = context.part
        context.counter.add(part + "_act", count * (policy.act_flop + self._message_flop))
        context.counter.add(part + "_bid", count * self._judge_flop)
        return one_hot_bids(winners, a, context.num_levels)

    def refine(self, agent: int, logits: Tensor, messages: Tensor) -> Tensor:
        """Own logits plus what the others' weighted proposals say about each action."""
        assert self.messages is not None
        return logits + self.messages.one(agent, messages)

    def _nodes(
        self,
        present: NDArray[np.bool_],
        keys: NDArray[np.uint64],
        turns: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Which k of the present agents take part in each row, ``bool (n, A)``."""
        if self._k == self._agents:
            return present
        words = np.empty(present.shape, np.uint64)
        hash_rows(keys, turns, STREAM_COORDINATION, words)
        words[~present] = 0
        cut = np.sort(words, axis=1)[:, -self._k][:, None]
        chosen: NDArray[np.bool_] = present & (words >= cut)
        return chosen

    def _judged(self, observations: Tensor, alive: Tensor) -> Tensor:
        """Log of the mean over alive judges of their softmax over the other alive nodes."""
        assert self.judges is not None
        logits = self.judges(observations).permute(1, 0, 2)  # (n, judge, judged)
        others = alive[:, None, :] & ~torch.eye(self._agents, dtype=torch.bool)
        # A judge with nobody else to score names itself.
        alone = ~others.any(dim=-1, keepdim=True)
        others = others | (alone & torch.eye(self._agents, dtype=torch.bool))
        log_probs = masked_log_softmax(logits, others)
        weights = alive.float()[:, :, None]
        mean = (log_probs.exp() * weights).sum(1) / weights.sum(1).clamp_min(1.0)
        return torch.log(mean.clamp_min(1e-9))

    def choice_logits(
        self, policy: Policy, batch: Batch, where: NDArray[np.bool_], counter: FlopCounter
    ) -> Tensor | None:
        """The committee's scores ``(n, A)``; `NEGATIVE` for agents that took no part."""
        if self.judges is None:
            return None
        assert batch.choice_logits is not None
        alive = take(batch.choice_logits, where) > NEGATIVE
        cost = (1 + flops.BACKWARD) * self._judge_flop * self._agents
        counter.add("update_bid", cost * len(alive))
        scores = self._judged(batch.rows_of_all(where), alive)
        return (SHARPNESS * scores).masked_fill(~alive, NEGATIVE)

    def choice_log_prob(
        self, logits: Tensor, batch: Batch, where: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Of the agent that acted."""
        log_probs = torch.log_softmax(logits, dim=-1)
        chosen = log_probs.gather(1, take(batch.winners, where)[:, None])[:, 0]
        return chosen, -(log_probs.exp() * log_probs).sum(-1).mean()

    def cold_start_loss(
        self, policy_rows: Tensor, winners: Tensor, counter: FlopCounter
    ) -> Tensor | None:
        """Cross-entropy of the committee's scores to the demonstrated winner."""
        if self.judges is None:
            return None
        rows = policy_rows
        if not self._shape.shared:
            rows = torch.stack(list(policy_rows.chunk(self._agents, dim=-1)))
        alive = torch.ones(len(winners), self._agents, dtype=torch.bool)
        log_scores = torch.log_softmax(SHARPNESS * self._judged(rows, alive), dim=-1)
        cost = (1 + flops.BACKWARD) * self._judge_flop * self._agents
        counter.add("cold_start", cost * len(winners))
        return torch.nn.functional.nll_loss(log_scores, winners)


def _build(config: TrainConfig, shape: Shape) -> Coordination:
    trained = config.coordination == "graph-of-agents"
    hidden = (config.network.bid_hidden or config.network.hidden) if trained else None
    return GraphOfAgents(shape, hidden, config.seed * 7919 + 2)


register("graph-of-agents", _build)
