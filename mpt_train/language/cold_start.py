"""The cold start of language models: supervised fine-tuning with the loss on the answers only."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from mpt_train.config import ColdStartConfig
from mpt_train.errors import DivergedError
from mpt_train.flops import ADAM_PER_PARAMETER, FlopCounter
from mpt_train.language.agent_models import AgentModels
from mpt_train.language.decoding import work_of
from mpt_train.language.demos import Example
from mpt_train.language.errors import DemonstrationError
from mpt_train.language.game import TextVectorGame
from mpt_train.language.learning import Accumulator, micro_batches
from mpt_train.language.transcript import Answer
from mpt_train.runs.interrupt import StopRequest


def encode(
    models: AgentModels,
    examples: Iterable[Example],
    game: TextVectorGame,
    bids: bool = True,
    stop: StopRequest | None = None,
) -> list[list[tuple[str, Answer]]]:
    """Examples in tokens, as (phase, answer), for each agent; copies of a role share theirs.

    Args:
        models: of the agents.
        examples: in words.
        game: for the names of its agents.
        bids: whether bids are wanted.
        stop: polled between examples.

    Raises:
        StopRequested: a stop was requested.
        DemonstrationError: an agent has none, or an answer of a file is longer than answers may be.
    """
    answers: list[list[tuple[str, Answer]]] = [[] for _ in range(models.count)]
    for example in examples:
        if stop is not None:
            stop.check()
        if example.agent in game.possible_agents:
            agents = [game.possible_agents.index(example.agent)]
        else:
            agents = [i for i, role in enumerate(game.roles) if role == example.role]
        if not bids and example.phase == "bid":
            continue
        forms = example.user_forms or (example.user,)
        tokens = models.chat.encode_answer(example.answer)
        limit = models.config.max_answer_tokens
        # The token that ends it may be missing: then it is cut off where it ends.
        if example.where and len(tokens) - 1 > limit:
            raise DemonstrationError(
                f"the answer in {example.where} has {len(tokens) - 1} tokens, and answers are cut "
                f"off after {limit}: shorten it, or use a larger --language.max-answer-tokens"
            )
        for agent in agents:
            system = example.system if models.config.profile else ""
            answer = Answer(
                agent=agent,
                prompt=models.chat.encode(system, forms, models.picture_tokens(example.picture)),
                tokens=tokens,
                log_prob=0.0,
                text=example.answer,
                picture=example.picture,
            )
            answers[agent].append((example.phase, answer))
    for agent, found in enumerate(answers):
        if not found:
            raise DemonstrationError(
                f"the demonstrations hold no answer of {game.possible_agents[agent]}; use more of "
                "them (--cold-start.episodes), or a file that names its agents or roles"
            )
    return answers


def fit_flop(
    models: AgentModels, answers: list[list[tuple[str, Answer]]], config: ColdStartConfig
) -> int:
    """About how many operations `fit_answers` will take: every answer on its own."""
    recompute = models.config.gradient_checkpointing
    total = 0
    for agent, own in enumerate(answers):
        for _, answer in own:
            length = len(answer.prompt) + len(answer.tokens)
            work = work_of([length], [length], len(answer.tokens) + 1)
            total += models.flop.update(work, recompute)
        weights = sum(p.numel() for p in models.agents[agent].parameters())
        total += ADAM_PER_PARAMETER * weights * -(-len(own) // config.batch_size)
    return total * config.epochs


def fit_answers(
    models: AgentModels,
    answers: list[list[tuple[str, Answer]]],
    config: ColdStartConfig,
    seed: int,
    counter: FlopCounter,
    stop: StopRequest | None = None,
) -> dict[str, float]:
    """Supervised epochs over answers of each agent, one agent after the other.

    The loss of an answer is the mean over its tokens. The learners' Adam is not kept. ``stop`` is
    polled between micro-batches.
    """
    losses: dict[str, float] = {}
    sums = {"act": [0.0, 0], "bid": [0.0, 0]}
    for agent, own in enumerate(answers):
        parameters = list(models.agents[agent].parameters())
        weights = sum(p.numel() for p in parameters)
        optimizer = torch.optim.Adam(parameters, lr=config.learning_rate)
        generator = np.random.default_rng([seed, 0x5F7, agent])
        steps = config.epochs * -(-len(own) // config.batch_size)
        step = 0
        for epoch in range(config.epochs):
            order = generator.permutation(len(own))
            for start in range(0, len(order), config.batch_size):
                pick = [own[i] for i in order[start : start + config.batch_size]]
                accumulator = Accumulator(models, torch.nn.ModuleList([models.agents[agent]]))
                batch = [answer for _, answer in pick]
                for rows in micro_batches(batch, models.config.micro_batch):
                    if stop is not None:
                        stop.check()
                    chosen = [batch[i] for i in rows]
                    with models.learning():
                        log_probs, valid, _, work = models.token_log_probs(
                            agent,
                            [a.prompt for a in chosen],
                            [a.tokens for a in chosen],
                            1.0,
                            pictures=[a.picture for a in chosen],
                        )
                    recompute = models.config.gradient_checkpointing
                    counter.add("cold_start", models.flop.update(work, recompute))
                    each = -(log_probs * valid).sum(1) / valid.sum(1)
                    accumulator.add(each.sum() / len(batch))
                    if epoch == config.epochs - 1:
                        for i, value in zip(rows, each.detach().tolist(), strict=True):
                            sums[pick[i][0]][0] += value
                            sums[pick[i][0]][1] += 1
                loss = accumulator.loss()
                if not torch.isfinite(loss):
                    raise DivergedError(
                        f"the cold start diverged: its loss is {float(loss)}; try a lower "
                        "--cold-start.learning-rate"
                    )
                # Linear decay: language models end a fine-tuning with small steps.
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate * (1.0 - 0.9 * step / max(1, steps))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                counter.add("cold_start", ADAM_PER_PARAMETER * weights)
                step += 1
    for phase, name in (("act", "action"), ("bid", "bid")):
        total, count = sums[phase]
        if count:
            losses[f"cold_start_{name}_loss"] = total / count
    models.keep_reference()
    return losses
