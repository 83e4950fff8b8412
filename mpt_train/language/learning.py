"""Losses of language models: REINFORCE on answers, Bradley-Terry on pairs of them.

Answers go through the model in micro-batches, whose gradients are summed up right away, so that a
batch of any size needs the memory of one micro-batch. The result is a loss like any other: an
ordinary tensor whose backward pass hands out the gradients that are there already. So optimizer,
clipping and schedule of the loop do not know the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from mpt_train.flops import FlopCounter
from mpt_train.language.agent_models import AgentModels
from mpt_train.language.decoding import Work, score_options
from mpt_train.language.transcript import Answer
from mpt_train.records import Batch


class _Accumulated(torch.autograd.Function):
    """A value, and the gradients of it that have been computed before."""

    @staticmethod
    def forward(
        ctx: Any,
        value: Tensor,
        gradients: list[Tensor | None],
        models: AgentModels,
        *parameters: Tensor,
    ) -> Tensor:
        ctx.gradients, ctx.models = gradients, models
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> tuple[Any, ...]:
        scale = float(upstream[0])
        # An optimizer's step follows.
        ctx.models.changed()
        return (None, None, None, *[None if g is None else g * scale for g in ctx.gradients])


class Accumulator:
    """Sums losses and their gradients over micro-batches.

    Args:
        models: of the agents.
        modules: those of them that learn.
    """

    def __init__(self, models: AgentModels, modules: nn.ModuleList) -> None:
        self._models = models
        self._parameters = [p for p in modules.parameters() if p.requires_grad]
        self._gradients: list[Tensor | None] = [None] * len(self._parameters)
        self._total = 0.0

    def add(self, loss: Tensor) -> None:
        """Add a term; its graph is freed."""
        self._total += float(loss.detach())
        if not loss.requires_grad:
            return
        found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        for i, gradient in enumerate(found):
            if gradient is None:
                continue
            known = self._gradients[i]
            self._gradients[i] = gradient if known is None else known.add_(gradient)

    def loss(self) -> Tensor:
        """The sum, as a tensor that can be differentiated."""
        value = torch.tensor(self._total)
        result: Tensor = _Accumulated.apply(value, self._gradients, self._models, *self._parameters)
        return result


class Scored(NamedTuple):
    """Answers of one agent under the present parameters.

    Attributes:
        log_prob: ``(n,)`` of each answer as a whole.
        entropy: ``()`` mean over tokens, or over choices.
        divergence: ``()`` mean estimate of the divergence from the reference; 0 without one.
    """

    log_prob: Tensor
    entropy: Tensor
    divergence: Tensor


def score(
    models: AgentModels, answers: Sequence[Answer], counter: FlopCounter, part: str
) -> Scored:
    """Log-probabilities of answers of one agent, with a graph.

    Args:
        models: of the agents.
        answers: at most a micro-batch, all of the same agent.
        counter, part: where operations are counted, those of the backward pass included.
    """
    config = models.config
    agent = answers[0].agent
    temperature = config.temperature
    if answers[0].options:
        return _score_choices(models, answers, counter, part)
    prompts, tokens = [a.prompt for a in answers], [a.tokens for a in answers]
    pictures = [a.picture for a in answers]
    with models.learning():
        log_probs, valid, entropies, work = models.token_log_probs(
            agent, prompts, tokens, temperature, pictures=pictures, entropy=True
        )
    counter.add(part, models.flop.update(work, config.gradient_checkpointing))
    assert entropies is not None
    log_probs = log_probs * valid
    count = valid.sum()
    divergence = torch.zeros((), device=log_probs.device)
    if config.kl:
        with torch.no_grad():
            before, _, _, extra = models.token_log_probs(
                agent, prompts, tokens, temperature, pictures=pictures, reference=True
            )
        counter.add(part, models.flop.forward(extra))
        # Schulman's estimator: never negative, and of low variance.
        ratio = (before - log_probs) * valid
        divergence = ((ratio.exp() - 1.0 - ratio) * valid).sum() / count
    return Scored(log_probs.sum(dim=1), (entropies * valid).sum() / count, divergence)


def _score_choices(
    models: AgentModels, answers: Sequence[Answer], counter: FlopCounter, part: str
) -> Scored:
    """As `score`, of choices among options; the prompt is computed once for all of them."""
    config = models.config
    agents = [a.agent for a in answers]
    options = [a.options for a in answers]
    picked = [a.chosen for a in answers]

    def scores(of: Sequence[int]) -> tuple[list[Tensor], Work]:
        with models.computing():
            session = models.session(of)
            reading = models.reading([a.picture for a in answers])
            session.append([a.prompt for a in answers], reading=reading)
            return score_options(session, options, config.temperature), session.work

    found, work = scores(agents)
    counter.add(part, models.flop.update(work))
    log_probs = [torch.log_softmax(s.float(), dim=0) for s in found]
    chosen = torch.stack([row[i] for row, i in zip(log_probs, picked, strict=True)])
    entropy = torch.stack([-(row.exp() * row).sum() for row in log_probs]).mean()
    divergence = torch.zeros((), device=chosen.device)
    if config.kl:
        with torch.no_grad():
            before, extra = scores([a + models.count for a in agents])
        counter.add(part, models.flop.forward(extra))
        pairs = zip(log_probs, before, strict=True)
        divergence = torch.stack(
            [(p.exp() * (p - torch.log_softmax(q.float(), dim=0))).sum() for p, q in pairs]
        ).mean()
    return Scored(chosen, entropy, divergence)


def lengths(answers: Sequence[Answer], normalize: str) -> NDArray[np.float32]:
    """What log-probabilities are divided by (`LanguageConfig.normalize`)."""
    if normalize == "token":
        return np.array([len(a.tokens) for a in answers], np.float32)
    if normalize == "word":
        return np.array([a.words for a in answers], np.float32)
    return np.ones(len(answers), np.float32)


def _weighed(
    models: AgentModels, batch: Batch, advantage: NDArray[np.float64], phase: str
) -> tuple[list[list[Answer]], list[list[float]]]:
    """Each agent's answers of a phase ("bid", "act") in turns that count, and their advantages."""
    worlds = {int(key): world for world, key in enumerate(batch.keys)}
    answers: list[list[Answer]] = [[] for _ in range(models.count)]
    weights: list[list[float]] = [[] for _ in range(models.count)]
    for key, answer in batch.transcript.of(phase):
        if batch.active[key.turn, worlds[key.episode]]:
            answers[key.agent].append(answer)
            weights[key.agent].append(float(advantage[key.turn, worlds[key.episode]]))
    return answers, weights


def action_loss(
    models: AgentModels,
    batch: Batch,
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
    clip: float | None,
) -> tuple[Tensor, float]:
    """REINFORCE on the action answers; each agent's loss is a mean over its own turns."""
    answers, weights = _weighed(models, batch, advantage, "act")
    counts = [float(len(own)) for own in answers]
    return _reinforce(
        models, answers, weights, counts, entropy_weight, counter, "update_action", clip
    )


def bid_loss(
    models: AgentModels,
    batch: Batch,
    advantage: NDArray[np.float64],
    entropy_weight: float,
    counter: FlopCounter,
    clip: float | None,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE on every bid, with the team's advantage; a mean over all turns."""
    answers, weights = _weighed(models, batch, advantage, "bid")
    turns = [float(batch.num_turns)] * models.count
    loss, entropy = _reinforce(
        models, answers, weights, turns, entropy_weight, counter, "update_bid", clip
    )
    return loss, {"bid_entropy": entropy}


def _reinforce(
    models: AgentModels,
    answers: Sequence[Sequence[Answer]],
    weights: Sequence[Sequence[float]],
    counts: Sequence[float],
    entropy_weight: float,
    counter: FlopCounter,
    part: str,
    clip: float | None,
) -> tuple[Tensor, float]:
    """Sum over agents of ``-sum(weight * log_prob) / count``, and the mean entropy."""
    config = models.config
    accumulator = Accumulator(models, models.agents)
    entropies: list[tuple[float, int]] = []
    for own, own_weights, count in zip(answers, weights, counts, strict=True):
        for rows in micro_batches(own, config.micro_batch):
            chosen = [own[i] for i in rows]
            scored = score(models, chosen, counter, part)
            device = scored.log_prob.device
            weight = torch.tensor([own_weights[i] for i in rows], device=device)
            scale = torch.from_numpy(lengths(chosen, config.normalize)).to(device)
            if clip is None:
                gain = scored.log_prob / scale * weight
            else:
                old = torch.tensor([a.log_prob for a in chosen], device=device)
                ratio = ((scored.log_prob - old) / scale).exp()
                gain = torch.minimum(ratio * weight, ratio.clamp(1.0 - clip, 1.0 + clip) * weight)
            loss = -gain.sum() / count
            share = len(rows) / len(own)
            if entropy_weight:
                loss = loss - entropy_weight * share * scored.entropy
            if config.kl:
                loss = loss + config.kl * share * scored.divergence
            accumulator.add(loss)
            entropies.append((float(scored.entropy.detach()), len(rows)))
    total = sum(n for _, n in entropies)
    entropy = sum(e * n for e, n in entropies) / total if total else 0.0
    return accumulator.loss(), entropy


def preference_loss(
    models: AgentModels,
    weights: NDArray[np.float32],
    responses: Sequence[tuple[Answer, Answer]],
    counter: FlopCounter,
) -> tuple[Tensor, dict[str, float]]:
    """Bradley-Terry on whole bid answers; each agent's loss is a mean over its own pairs."""
    config = models.config
    accumulator = Accumulator(models, models.agents)
    correct = 0
    for agent in range(models.count):
        mine = [i for i, (first, _) in enumerate(responses) if first.agent == agent]
        size = max(1, config.micro_batch // 2)
        for start in range(0, len(mine), size):
            rows = mine[start : start + size]
            pairs = [responses[i][0] for i in rows] + [responses[i][1] for i in rows]
            scored = score(models, pairs, counter, "update_bid")
            scale = torch.from_numpy(lengths(pairs, config.normalize))
            values = scored.log_prob / scale.to(scored.log_prob.device)
            chosen, rejected = values[: len(rows)], values[len(rows) :]
            weight = torch.from_numpy(weights[rows]).to(values.device)
            loss = (weight * softplus(rejected - chosen)).sum() / len(mine)
            if config.kl:
                loss = loss + config.kl * scored.divergence * len(rows) / len(mine)
            accumulator.add(loss)
            correct += int((chosen > rejected).sum())
    accuracy = correct / len(responses) if responses else float("nan")
    return accumulator.loss(), {"pair_accuracy": accuracy}


def micro_batches(answers: Sequence[Answer], size: int) -> list[list[int]]:
    """Indices of answers in groups of like length, so that little is padding."""
    order = sorted(
        range(len(answers)), key=lambda i: (len(answers[i].prompt) + len(answers[i].tokens), i)
    )
    return [order[i : i + size] for i in range(0, len(order), size)]
