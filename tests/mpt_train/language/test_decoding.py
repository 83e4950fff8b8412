"""Sessions: padding, shared beginnings, cuts and options change nothing of what comes out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mpt_train.language.decoding import Session, draw, sample, score_options
from mpt_train.language.tiny import build
from wrappers.rng import STREAM_POLICY_BID

MODEL, _ = build("tiny-llama", ["a text"], 0)
GENERATOR = np.random.default_rng(0)


def tokens(*lengths: int) -> list[np.ndarray]:
    return [GENERATOR.integers(10, 250, size).astype(np.int32) for size in lengths]


def alone(sequence: np.ndarray) -> torch.Tensor:
    with torch.no_grad():
        return MODEL(input_ids=torch.from_numpy(sequence.astype(np.int64))[None]).logits[0]


def same(first: torch.Tensor, second: torch.Tensor) -> None:
    torch.testing.assert_close(first, second, atol=3e-5, rtol=1e-4)


@torch.no_grad()
def test_pieces_of_different_lengths_come_out_as_if_alone() -> None:
    session = Session(MODEL, [0, 0, 0])
    parts = [tokens(7, 3, 5), tokens(1, 4, 0), tokens(2, 2, 6)]
    for pieces in parts:
        session.append(pieces)
    assert session.logits is not None
    for row in range(3):
        whole = np.concatenate([pieces[row] for pieces in parts])
        assert np.array_equal(session.tokens[row], whole)
        same(session.logits[row], alone(whole)[-1])
    assert session.work.tokens == sum(len(p) for pieces in parts for p in pieces)
    assert session.work.pairs == sum(n * (n + 1) // 2 for n in (10, 9, 11))


@torch.no_grad()
def test_selected_rows_go_their_own_ways() -> None:
    session = Session(MODEL, [0, 0])
    prompts, more = tokens(9, 4), tokens(3, 3, 2)
    session.append(prompts)
    twin = session.select([1, 0, 1])
    twin.append(more)
    assert twin.logits is not None and session.logits is not None
    for row, source in enumerate((1, 0, 1)):
        same(twin.logits[row], alone(np.concatenate([prompts[source], more[row]]))[-1])
    session.append(tokens(1, 1))
    assert [len(t) for t in session.tokens] == [10, 5]
    assert [len(t) for t in twin.tokens] == [7, 12, 6]


@torch.no_grad()
def test_extending_computes_only_what_is_new() -> None:
    first = tokens(20, 12)
    second = [
        np.concatenate([first[0][:15], tokens(4)[0]]),
        np.concatenate([first[1], tokens(2)[0]]),
    ]
    session = Session(MODEL, [0, 0])
    session.append(first)
    session.append(tokens(3, 2))
    before = session.work.tokens
    session.extend_to(second)
    assert session.work.tokens - before == 4 + 2
    assert session.logits is not None
    for row in range(2):
        same(session.logits[row], alone(second[row])[-1])


@torch.no_grad()
def test_a_prompt_that_is_known_already_is_read_again_by_one_token() -> None:
    (prompt,) = tokens(9)
    session = Session(MODEL, [0])
    session.append([prompt])
    session.extend_to([prompt])
    assert session.work.tokens == 10
    assert session.logits is not None
    same(session.logits[0], alone(prompt)[-1])


@torch.no_grad()
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_options_score_as_each_would_alone(temperature: float) -> None:
    prompts = tokens(11, 6)
    options = [tokens(1, 3, 2), tokens(4, 1)]
    session = Session(MODEL, [0, 0])
    session.append(prompts)
    scores = score_options(session, options, temperature)
    for row, prompt in enumerate(prompts):
        for i, option in enumerate(options[row]):
            logits = alone(np.concatenate([prompt, option]))[len(prompt) - 1 : -1] / temperature
            expected = torch.log_softmax(logits, -1)[
                torch.arange(len(option)), torch.from_numpy(option.astype(np.int64))
            ].sum()
            same(scores[row][i], expected)
    # The prompts were computed once, and no option's last token.
    assert session.work.tokens == 11 + 6 + (0 + 2 + 1) + (3 + 0)


def test_drawing_inverts_the_distribution() -> None:
    log_probs = torch.log(torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]))
    grid = (np.arange(1000) + 0.5) / 1000
    drawn = draw(log_probs.expand(1000, -1), grid)
    assert torch.bincount(drawn, minlength=6).tolist() == [0, 250, 0, 500, 250, 0]
    assert draw(log_probs[None], np.array([0.0])).tolist() == [1]
    assert draw(log_probs[None], np.array([1.0 - 2**-53])).tolist() == [4]


@torch.no_grad()
def test_an_answer_depends_on_its_own_noise_only() -> None:
    prompts = tokens(8, 5, 9)
    keys, turns = np.array([7, 8, 9], np.uint64), np.array([0, 3, 1])
    first = np.array([0, 4096, 8192])

    def answers(rows: list[int]) -> list[list[int]]:
        session = Session(MODEL, [0] * len(rows))
        session.append([prompts[i] for i in rows])
        drawn = sample(
            session, [1], 6, 1.0, keys[rows], turns[rows], STREAM_POLICY_BID, first[rows]
        )
        for i, row in enumerate(rows):
            whole = np.concatenate([prompts[row], drawn.tokens[i]])
            logits = torch.log_softmax(alone(whole)[len(prompts[row]) - 1 : -1], -1)
            picked = logits[
                torch.arange(len(drawn.tokens[i])),
                torch.from_numpy(drawn.tokens[i].astype(np.int64)),
            ]
            same(torch.from_numpy(drawn.log_probs[i]), picked)
        return [t.tolist() for t in drawn.tokens]

    everyone = answers([0, 1, 2])
    assert everyone == answers([0, 1, 2])
    assert [answers([i])[0] for i in range(3)] == everyone
    assert answers([2, 0]) == [everyone[2], everyone[0]]
    keys[0] += np.uint64(1)
    assert answers([0])[0] != everyone[0]


@torch.no_grad()
def test_an_answer_ends_with_its_stop_token_or_at_the_limit() -> None:
    session = Session(MODEL, [0] * 8)
    session.append(tokens(*[5] * 8))
    stop = list(range(0, 262, 2))
    keys = np.arange(8).astype(np.uint64)
    drawn = sample(
        session, stop, 5, 1.0, keys, np.zeros(8, np.int64), STREAM_POLICY_BID, np.zeros(8, np.int64)
    )
    for ids in drawn.tokens:
        assert 1 <= len(ids) <= 5
        assert all(i % 2 for i in ids[:-1])
        assert len(ids) == 5 or ids[-1] % 2 == 0
    assert {len(ids) for ids in drawn.tokens} != {5}
