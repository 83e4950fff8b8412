"""Tiny models of the families of the papers: they play, learn, and agree with themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mpt_train.language.agent_models import AgentModels
from mpt_train.loop import Trainer
from tests.mpt_train.language.swarms import build, config, play

TEXT = ("tiny", "tiny-llama", "tiny-qwen2", "tiny-gemma4")
PICTURES = ("tiny-qwen3-vl", "tiny-gemma4-vl", "tiny-llava")


@pytest.mark.parametrize("decoding", ["free", "choice"])
@pytest.mark.parametrize("model", TEXT + PICTURES)
def test_log_probs_of_play_are_those_of_a_fresh_forward_pass(model: str, decoding: str) -> None:
    run = config(
        model=model,
        decoding=decoding,
        pictures=model in PICTURES,
        # Profiles make beginnings to share, also in Gemma's sliding windows (64 tokens).
        profile=model not in PICTURES,
        turns=2,
    )
    _, policy, batch = play(run, worlds=2)
    answers = dict(batch.transcript.answers)
    assert len(answers) >= 9
    if decoding == "choice":
        assert {key.phase for key in answers} == {"bid", "act"}
        assert not batch.transcript.unread
    from mpt_train.flops import FlopCounter
    from mpt_train.language.learning import score

    for answer in answers.values():
        with torch.no_grad():
            scored = score(policy.models, [answer], FlopCounter(), "x")
        assert float(scored.log_prob[0]) == pytest.approx(answer.log_prob, abs=3e-4)


@pytest.mark.parametrize("model", PICTURES)
def test_pictures_are_seen(model: str) -> None:
    _, policy, game = build(config(model=model, pictures=True))
    question = policy.question(game, 0, 0, 1, 0, "bid")
    assert question.picture is not None and question.picture.dtype == np.uint8
    reader = policy.models.loaded.pictures
    assert reader is not None and reader.holds_picture(question.prompt)
    other = np.roll(question.picture, 40, axis=0)
    distributions = []
    for picture in (question.picture, other):
        with torch.no_grad():
            session = policy.models.session([0])
            session.append([question.prompt], reading=policy.models.reading([picture]))
            assert session.logits is not None
            distributions.append(torch.log_softmax(session.logits[0], -1))
    assert float((distributions[0] - distributions[1]).abs().max()) > 1e-3


@pytest.mark.parametrize("model", PICTURES[:2])
def test_one_round_of_mpt_with_pictures(model: str) -> None:
    run = config(model=model, pictures=True, decoding="choice", turns=3)
    trainer = Trainer(run)
    before = {name: p.detach().clone() for name, p in trainer.agents.named_parameters().items()}
    trainer._start(None)
    records = [trainer.step() for _ in range(4)]
    assert [r["phase"] for r in records] == ["action", "bid", "action", "bid"]
    assert any(len(r.get("pairs", {})) and r["pairs"]["contested"] for r in records)
    after = trainer.agents.named_parameters()
    assert all(torch.isfinite(p).all() for p in after.values())
    for agent in range(3):
        assert any(
            not torch.equal(after[name], before[name])
            for name in before
            if name.startswith(f"policy.agents.{agent}.")
        )


def test_separate_models_start_alike_and_are_apart() -> None:
    _, policy, _ = build(config(parameters="separate"))
    assert isinstance(policy.models, AgentModels)
    first, second = (dict(policy.agents[i].named_parameters()) for i in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(first[name].data_ptr() != second[name].data_ptr() for name in first)
