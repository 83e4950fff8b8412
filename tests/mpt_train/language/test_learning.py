"""Losses: gradients are those of the formula, whatever the micro-batches; FLOP are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mpt_train.credit import credit_by_role
from mpt_train.flops import FlopCounter
from mpt_train.language.learning import _reinforce, lengths, preference_loss, score
from mpt_train.language.policy import LanguagePolicy
from mpt_train.language.transcript import Answer
from tests.mpt_train.language.swarms import config, play


def gradients(policy: LanguagePolicy, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    policy.zero_grad(set_to_none=True)
    loss.backward()
    found = {n: p.grad.clone() for n, p in policy.named_parameters() if p.grad is not None}
    policy.zero_grad(set_to_none=True)
    return found


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys() and first
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=2e-4, rtol=2e-3)


def naive_log_prob(policy: LanguagePolicy, answer: Answer) -> torch.Tensor:
    """From one sequence without padding and the model alone."""
    models = policy.models
    if models._bank is not None:
        models._bank.select([answer.agent])
    whole = np.concatenate([answer.prompt, answer.tokens]).astype(np.int64)
    logits = models.model_of(answer.agent)(input_ids=torch.from_numpy(whole)[None]).logits[0]
    start = len(answer.prompt)
    log_probs = torch.log_softmax(logits[start - 1 : -1] / policy.config.temperature, -1)
    return log_probs[torch.arange(len(answer.tokens)), torch.from_numpy(whole[start:])].sum()


def bids_of(batch: Any) -> list[list[Answer]]:
    answers = [a for _, a in batch.transcript.of("bid")]
    return [[a for a in answers if a.agent == agent] for agent in range(3)]


@pytest.mark.parametrize("parameters", ["adapters", "separate"])
@pytest.mark.parametrize("size", [1, 4, 64])
def test_reinforce_is_its_formula(parameters: str, size: int) -> None:
    _, policy, batch = play(config(parameters=parameters, micro_batch=size, temperature=0.8))
    answers = bids_of(batch)
    weights = [
        [0.5 + 0.1 * i - agent for i in range(len(own))] for agent, own in enumerate(answers)
    ]
    counts = [float(len(own)) for own in answers]
    loss, entropy = _reinforce(
        policy.models, answers, weights, counts, 0.0, FlopCounter(), "x", None
    )
    expected = torch.zeros(())
    for own, mine, count in zip(answers, weights, counts, strict=True):
        terms = [naive_log_prob(policy, a) * w for a, w in zip(own, mine, strict=True)]
        expected = expected - torch.stack(terms).sum() / count
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-4)
    assert entropy > 0
    same(gradients(policy, 0.5 * loss), gradients(policy, 0.5 * expected))


@pytest.mark.parametrize("decoding", ["free", "choice"])
def test_preferences_are_bradley_terry(decoding: str) -> None:
    _, policy, batch = play(config(decoding=decoding, micro_batch=4))
    own = bids_of(batch)
    pairs = [(own[0][0], own[0][1]), (own[2][1], own[2][0]), (own[0][1], own[0][2])]
    weights = np.array([1.0, 2.0, 0.5], np.float32)
    counter = FlopCounter()
    loss, statistics = preference_loss(policy.models, weights, pairs, counter)
    expected = torch.zeros(())
    correct = 0
    for (chosen, rejected), weight in zip(pairs, weights, strict=True):
        first, second = (
            score(policy.models, [a], FlopCounter(), "x").log_prob[0] for a in (chosen, rejected)
        )
        correct += int(first > second)
        mean = 2 if chosen.agent == 0 else 1
        expected = expected - float(weight) * torch.nn.functional.logsigmoid(first - second) / mean
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-4)
    assert statistics["pair_accuracy"] == pytest.approx(correct / 3)
    same(gradients(policy, loss), gradients(policy, expected))
    assert counter.parts["update_bid"] > 0


def test_choices_are_learned_over_all_options() -> None:
    """The gradient of one choice's log-probability lowers the others: they sum to one."""
    _, policy, batch = play(config(decoding="choice"))
    answer = bids_of(batch)[1][0]
    assert len(answer.options) == 11
    total = torch.zeros(())
    for option in answer.options:
        twin = Answer(1, answer.prompt, option, 0.0, "", options=answer.options)
        total = total + score(policy.models, [twin], FlopCounter(), "x").log_prob[0].exp()
    assert float(total.detach()) == pytest.approx(1.0, abs=1e-4)
    assert max(float(g.abs().max()) for g in gradients(policy, total).values()) < 1e-3


def test_only_the_actors_tokens_learn() -> None:
    agents, policy, batch = play(config(decoding="choice"))
    advantage = np.where(batch.acted & (batch.winners == 1), 1.0, 0.0)
    assert advantage.any()
    counter = FlopCounter()
    loss, entropy = policy.action_loss(batch, agents.coordination.refine, advantage, 0.0, counter)
    moved = {n for n, g in gradients(policy, loss).items() if float(g.abs().max()) > 0}
    assert moved and all(name.startswith("agents.1.") for name in moved)
    assert counter.parts.keys() == {"update_action"}
    assert "credit_mean/miner" in credit_by_role(batch, advantage) and entropy > 0


def test_bids_learn_from_the_teams_advantage() -> None:
    agents, policy, batch = play(config("mpt-plus"))
    advantage = np.where(batch.active, 1.0, 0.0)
    loss, statistics = agents.coordination.choice_loss(policy, batch, advantage, 0.0, FlopCounter())
    expected = -sum(a.log_prob for own in bids_of(batch) for a in own) / batch.num_turns
    assert loss is not None and float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    assert statistics["bid_entropy"] > 0


def test_half_a_batch_holds_its_own_answers_only() -> None:
    agents, policy, batch = play(config("mpt-plus"))
    half = batch.only(np.array([2, 0]))
    advantage = np.where(half.active, 1.0, 0.0)
    loss, _ = agents.coordination.choice_loss(policy, half, advantage, 0.0, FlopCounter())
    keys = {int(batch.keys[0]), int(batch.keys[2])}
    own = [a for k, a in batch.transcript.answers.items() if k.phase == "bid" and k.episode in keys]
    assert loss is not None
    assert float(loss.detach()) == pytest.approx(
        -sum(a.log_prob for a in own) / half.num_turns, rel=1e-4
    )


def test_a_clipped_ratio_no_longer_moves_what_has_moved_far() -> None:
    _, policy, batch = play(config())
    own = bids_of(batch)
    for answer in own[0]:
        answer.log_prob -= 1.0  # the policy has become e times more likely to say it
    weights = [[1.0] * len(own[0]), [1.0] * len(own[1]), []]
    loss, _ = _reinforce(
        policy.models, [own[0], own[1], []], weights, [1.0] * 3, 0.0, FlopCounter(), "x", 0.2
    )
    expected = -1.2 * len(own[0]) - 1.0 * len(own[1])
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-3)
    moved = gradients(policy, loss)
    assert all(float(g.abs().max()) == 0 for n, g in moved.items() if n.startswith("agents.0."))
    assert any(float(g.abs().max()) > 0 for n, g in moved.items() if n.startswith("agents.1."))


@pytest.mark.parametrize("decoding", ["free", "choice"])
def test_the_divergence_is_none_at_first_and_pulls_back(decoding: str) -> None:
    agents, policy, batch = play(config(kl=1.0, decoding=decoding))
    policy.models.keep_reference()
    assert not any("reference" in n for n, p in policy.named_parameters() if p.requires_grad)
    answers = bids_of(batch)
    first = score(policy.models, answers[0][:3], FlopCounter(), "x")
    assert float(first.divergence.detach()) == pytest.approx(0.0, abs=1e-5)
    with torch.no_grad():
        for b in policy.agents[0].b:  # type: ignore[union-attr]
            b.add_(torch.randn(b.shape, generator=torch.Generator().manual_seed(0)) * 0.2)
    optimizer = torch.optim.Adam(agents.named_parameters().values(), lr=2e-2)
    weights = [[0.0] * len(own) for own in answers]
    seen = []
    for _ in range(10):
        seen.append(float(score(policy.models, answers[0], FlopCounter(), "x").divergence.detach()))
        loss, _ = _reinforce(
            policy.models, answers, weights, [1.0] * 3, 0.0, FlopCounter(), "x", None
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    assert seen[0] > 0.01 and seen[-1] < 0.5 * seen[0]


def test_lengths_of_answers() -> None:
    nothing = np.zeros(0, np.int32)
    answers = [
        Answer(0, nothing, np.zeros(4, np.int32), 0.0, "two words"),
        Answer(0, nothing, np.zeros(2, np.int32), 0.0, ""),
    ]
    assert lengths(answers, "none").tolist() == [1, 1]
    assert lengths(answers, "token").tolist() == [4, 2]
    assert lengths(answers, "word").tolist() == [2, 1]


@pytest.mark.parametrize("normalize", ["token", "word"])
def test_normalised_gradients_are_scaled(normalize: str) -> None:
    _, policy, batch = play(config(normalize=normalize))
    answer = bids_of(batch)[0][0]
    loss, _ = _reinforce(
        policy.models, [[answer], [], []], [[1.0], [], []], [1.0] * 3, 0.0, FlopCounter(), "x", None
    )
    size = len(answer.tokens) if normalize == "token" else answer.words
    assert float(loss.detach()) == pytest.approx(-answer.log_prob / size, rel=1e-4)


def test_checkpointed_activations_give_the_same_gradients() -> None:
    found = []
    for checkpointing in (False, True):
        _, policy, batch = play(config(gradient_checkpointing=checkpointing))
        answers = bids_of(batch)
        weights = [[1.0] * len(own) for own in answers]
        counter = FlopCounter()
        loss, _ = _reinforce(policy.models, answers, weights, [3.0] * 3, 0.1, counter, "x", None)
        found.append((gradients(policy, loss), counter.total))
    same(found[0][0], found[1][0])
    assert found[1][1] > 1.3 * found[0][1]


def test_bfloat16_plays_and_learns_in_float32() -> None:
    for parameters in ("adapters", "separate"):
        _, policy, batch = play(config(dtype="bfloat16", parameters=parameters))
        assert all(p.dtype == torch.float32 for p in policy.parameters())
        answers = bids_of(batch)
        weights = [[1.0] * len(own) for own in answers]
        loss, _ = _reinforce(
            policy.models, answers, weights, [1.0] * 3, 0.0, FlopCounter(), "x", None
        )
        assert all(g.dtype == torch.float32 for g in gradients(policy, loss).values())
        scored = score(policy.models, answers[0][:1], FlopCounter(), "x")
        assert float(scored.log_prob[0].detach()) == pytest.approx(answers[0][0].log_prob, abs=1.0)


def test_operations_follow_from_tokens_and_parameters() -> None:
    from mpt_train.language.decoding import Work
    from mpt_train.language.flop import ModelFlop

    work = Work(tokens=10, pairs=55, heads=2)
    frozen = ModelFlop(token=1100, head=500, pair=8, learned=100)
    assert frozen.forward(work) == 11000 + 1000 + 440
    assert frozen.update(work) == 2 * frozen.forward(work) + 1000
    whole = ModelFlop(token=1000, head=500, pair=8, learned=1000)
    assert whole.update(work) == 3 * whole.forward(work)
    assert whole.update(work, recompute=True) == 4 * whole.forward(work)
    _, policy, _ = play(config(parameters="separate"))
    model = policy.models.loaded.model
    linear = sum(m.weight.numel() for m in model.model.modules() if isinstance(m, torch.nn.Linear))
    assert policy.models.flop.token == 2 * linear
    assert policy.models.flop.head == 2 * model.lm_head.weight.numel()
    assert policy.models.flop.pair == 4 * 2 * 64
