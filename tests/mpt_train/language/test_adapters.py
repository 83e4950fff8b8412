"""Adapters: mixed in one batch, apart from each other to the last bit, and readable by PEFT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mpt_train.flops import FlopCounter
from mpt_train.language.learning import _reinforce
from mpt_train.language.lora import AdapterBank, save_peft
from mpt_train.language.policy import LanguagePolicy
from mpt_train.language.tiny import build as build_tiny
from tests.mpt_train.language.swarms import build, config, play


def logits_of(policy: LanguagePolicy, agents: list[int], prompts: list[np.ndarray]) -> torch.Tensor:
    with torch.no_grad():
        session = policy.models.session(agents)
        session.append(prompts)
        assert session.logits is not None
        return session.logits


def test_a_mixed_batch_gives_each_row_its_own_agent() -> None:
    _, policy, game = build(config())
    prompts = [policy.question(game, 0, agent, 1, 0, "bid").prompt for agent in range(3)]
    mixed = logits_of(policy, [0, 1, 2], prompts)
    for agent in range(3):
        alone = logits_of(policy, [agent], [prompts[agent]])
        torch.testing.assert_close(mixed[agent : agent + 1], alone, atol=2e-5, rtol=1e-4)
        other = logits_of(policy, [(agent + 1) % 3], [prompts[agent]])
        assert not torch.allclose(other, alone, atol=1e-2)


def test_one_row_is_the_same_whoever_else_is_in_the_batch() -> None:
    _, policy, game = build(config())
    prompts = [policy.question(game, 0, agent, 1, 0, "bid").prompt for agent in range(3)]
    first = logits_of(policy, [0, 1, 2], prompts)
    second = logits_of(policy, [0, 2, 2], [prompts[0], prompts[2], prompts[2]])
    torch.testing.assert_close(first[0], second[0], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(first[2], second[1], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("parameters", ["adapters", "separate"])
@pytest.mark.parametrize("mixed", [True, False])
def test_learning_of_one_agent_leaves_the_others_bit_identical(
    parameters: str, mixed: bool
) -> None:
    agents, policy, batch = play(config(parameters=parameters))
    answers = [a for _, a in batch.transcript.of("bid")]
    prompts = [next(a.prompt for a in answers if a.agent == agent) for agent in range(3)]

    def outputs() -> list[torch.Tensor]:
        if mixed and parameters == "adapters":
            return list(logits_of(policy, [0, 1, 2], prompts))
        return [logits_of(policy, [agent], [prompts[agent]])[0] for agent in range(3)]

    # As in the loop: a fused step changes weights without a trace.
    optimizer = torch.optim.Adam(agents.named_parameters().values(), lr=1e-2, fused=True)

    def learn(agent: int) -> None:
        own: list[list] = [[], [], []]
        own[agent] = [a for a in answers if a.agent == agent]
        weights = [[1.0] * len(x) for x in own]
        loss, _ = _reinforce(policy.models, own, weights, [1.0] * 3, 0.0, FlopCounter(), "x", None)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    # Adam has moments of every agent by now.
    for agent in range(3):
        learn(agent)
    before = outputs()
    learn(1)
    after = outputs()
    assert torch.equal(before[0], after[0]) and torch.equal(before[2], after[2])
    assert not torch.allclose(before[1], after[1], atol=1e-3)


def test_twelve_agents_share_a_batch() -> None:
    run = config()
    run = type(run)(**{**run.__dict__, "env": type(run.env)(agents=12, max_turns=2)})
    _, policy, game = build(run, 2)
    questions = [policy.question(game, w, a, 1, 0, "bid") for w in range(2) for a in range(12)]
    assert len(policy._batches(questions)) == 1
    with torch.no_grad():
        session = policy._prompted(questions, "bid")
    assert len(session) == 24 and session.logits is not None
    for row in (0, 11, 13):
        alone = logits_of(policy, [questions[row].agent], [questions[row].prompt])
        torch.testing.assert_close(session.logits[row], alone[0], atol=2e-5, rtol=1e-4)


def test_an_adapter_starts_as_the_base() -> None:
    model, _ = build_tiny("tiny", ["some text"], 0)
    ids = torch.arange(10, 30)[None]
    with torch.no_grad():
        base = model(input_ids=ids).logits
        bank = AdapterBank(model, 2, 4, 8.0, r".*\.(q_proj|v_proj)", 0)
        bank.select([0, 1])
        assert torch.equal(model(input_ids=ids.repeat(2, 1)).logits[0], base[0])
        bank.select(None)
        assert torch.equal(model(input_ids=ids).logits, base)
    assert not any(p.requires_grad for p in model.parameters() if p.shape[0] > 100)


def test_targets_that_match_nothing_are_refused() -> None:
    model, _ = build_tiny("tiny", ["some text"], 0)
    with pytest.raises(ValueError, match="no linear layer of the model matches"):
        AdapterBank(model, 1, 4, 8.0, "nothing", 0)


def test_adapters_never_reach_a_vision_tower() -> None:
    model, _ = build_tiny("tiny-qwen3-vl", ["some text"], 0)
    bank = AdapterBank(model, 1, 4, 8.0, r".*", 0)
    assert bank.layers and not any("visual" in name for name in bank.layers)


def test_peft_reads_an_adapter(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    _, policy, game = build(config())
    prompt = policy.question(game, 0, 1, 1, 0, "bid").prompt
    mine = logits_of(policy, [1], [prompt])
    save_peft(policy.agents[1], tmp_path, "tiny", policy.config.alpha)  # type: ignore[arg-type]
    from mpt_train.language.texts import sample_texts

    model, _ = build_tiny("tiny", sample_texts(game, policy.config), 0)
    theirs = peft.PeftModel.from_pretrained(model, tmp_path).eval()
    with torch.no_grad():
        logits = theirs(input_ids=torch.from_numpy(prompt.astype(np.int64))[None]).logits[:, -1]
    torch.testing.assert_close(mine, logits, atol=2e-5, rtol=1e-4)
