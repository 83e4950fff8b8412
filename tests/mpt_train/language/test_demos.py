"""Demonstrations: what agents read and should answer, as files that any tool reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpt_envs import register, registry
from mpt_train.cli.main import main
from mpt_train.cold_start import demonstrate, replay_solo
from mpt_train.config import ColdStartConfig, TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.language import cold_start, demos
from mpt_train.language.errors import DemonstrationError
from mpt_train.language.game import TextVectorGame
from mpt_train.language.policy import LanguagePolicy
from mpt_train.loop import Trainer
from mpt_train.runs.logs import RunLogger, read_metrics
from mpt_train.seeds import demonstration_seeds
from tests.mpt_train.language.swarms import TASK, build, config
from tests.toys import RelayTask
from wrappers.errors import MissingCapabilityError
from wrappers.task import TurnTask


def written(tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    out = tmp_path / "demos.jsonl"
    assert main(["demos", TASK, "--episodes", "3", "--out", str(out), *options]) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("form", ["json", "plain"])
@pytest.mark.parametrize("solo", [False, True])
def test_every_demonstrated_answer_is_read_as_what_was_done(form: Any, solo: bool) -> None:
    run = config("monolithic" if solo else "mpt", answers=form)
    swarm = build_game(run, 3, solo=False)
    sizes = max(swarm.observation_sizes), max(swarm.action_counts)
    recorded = demonstrate(swarm, run.cold_start, 0, *sizes)
    game = swarm
    if solo:
        game = build_game(run, 3)
        sizes = max(game.observation_sizes), max(game.action_counts)
        recorded = replay_solo(game, recorded, swarm, 0, *sizes)
    assert isinstance(game, TextVectorGame)
    batch, count = recorded.batch, 0
    rows = {int(seed): row for row, seed in enumerate(demonstration_seeds(0, 3))}
    examples = demos.replay(game, batch, demonstration_seeds(0, 3), form, bids=not solo)
    # The game stands where each answer was given while its example is looked at.
    for example in examples:
        row, agent = rows[example.seed], game.possible_agents.index(example.agent)
        choice = game.read(row, agent, example.answer)
        if example.phase == "bid":
            assert choice == batch.bids[example.turn, row, agent]
        else:
            assert agent == batch.winners[example.turn, row]
            assert choice == batch.actions[example.turn, row]
        assert example.user == game.prompt(row, agent)
        assert example.system == game.profile(agent)
        count += 1
    assert count == batch.num_turns * (0 if solo else 3) + int(batch.acted.sum())


def test_a_file_is_chat_that_others_can_learn_from(tmp_path: Path) -> None:
    lines = written(tmp_path, "--seed", "4")
    assert {line["phase"] for line in lines} == {"bid", "act"}
    for line in lines:
        assert [m["role"] for m in line["prompt"]] == ["system", "user"]
        assert [m["role"] for m in line["completion"]] == ["assistant"]
        answer = json.loads(line["completion"][0]["content"])
        assert list(answer) == (["bid"] if line["phase"] == "bid" else ["action"])
        assert line["agent"].startswith(line["role"]) and line["task"] == TASK
    assert written(tmp_path, "--seed", "4") == lines
    assert written(tmp_path, "--seed", "5") != lines


def test_a_file_teaches_what_the_run_would_teach(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    options = ["--answers", "plain", "--brief", "--out", str(path), "--episodes", "3"]
    assert main(["demos", TASK, *options]) == 0
    run = config(turns=None)
    _, policy, game = build(run, 3)
    recorded = demonstrate(game, ColdStartConfig(), 0, policy.observation_size, policy.num_actions)
    direct = cold_start.encode(
        policy.models, demos.replay(game, recorded.batch, demonstration_seeds(0, 3), "plain"), game
    )
    read = cold_start.encode(policy.models, demos.read(path), game)
    for first, second in zip(direct, read, strict=True):
        assert len(first) == len(second) > 0
        for (phase, a), (other_phase, b) in zip(first, second, strict=True):
            assert phase == other_phase and a.agent == b.agent
            assert np.array_equal(a.prompt, b.prompt) and np.array_equal(a.tokens, b.tokens)


def test_roles_teach_all_their_copies(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    rows = [
        {"messages": _messages("0.5"), "role": role, "phase": "bid"}
        for role in ("logger", "miner", "smith")
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run = config()
    run = type(run)(**{**run.__dict__, "env": type(run.env)(agents=6, max_turns=2)})
    _, policy, game = build(run, 1)
    answers = cold_start.encode(policy.models, demos.read(path), game)
    assert [len(own) for own in answers] == [1] * 6


def _messages(answer: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "You are one."},
        {"role": "user", "content": "Bid."},
        {"role": "assistant", "content": answer},
    ]


def _line(**changes: Any) -> str:
    """A line of a file that can be used, with changes; None leaves a field out."""
    value = {"messages": _messages("0.1"), "agent": "logger_0", "phase": "bid", **changes}
    return json.dumps({k: v for k, v in value.items() if v is not None})


BROKEN = {
    "{": "line 2 of",
    "[1]": "line 2 of",
    "7": "line 2 of",
    '{"prompt": "x", "completion": "y"}': "line 2 of",
    '{"messages": [{"role": "user"}]}': "line 2 of",
    "[" * 100_000: "line 2 of",
    _line(agent=None): "line 2 of .*does not say whose",
    _line(agent=7): "line 2 of .*no text",
    _line(phase=7): "line 2 of .*no text",
    _line(phase="vote"): "line 2 of .*its phase is 'vote'",
    _line(phase="Bid"): "line 2 of .*its phase is 'Bid'",
    _line(messages=[*_messages("0.1"), *_messages("0.2")]): "line 2 of .*not another system",
    _line(messages=[{"role": "tool", "content": "x"}]): "line 2 of .*not another tool",
    **{_line(messages=_messages(a), phase=None): "line 2 of .*no phase" for a in ("1", "", "go 2")},
    _line(messages=_messages('{"bid": 1, "action": "go"}'), phase=None): "line 2 of .*no phase",
    **{
        _line().replace("{", f'{{"{name}": {value}, ', 1): f"line 2 of .*{name} is no whole"
        for name in ("seed", "turn")
        for value in ("1e999", "-Infinity", "NaN", "1.5", "-1", "true", "null", '"3"', "[]")
    },
    # Half of a surrogate pair, wherever a text is.
    **{
        _line(**{name: "a \ud800"}): "line 2 of .*surrogates not allowed"
        for name in ("agent", "role", "phase")
    },
    **{
        _line(
            messages=[
                m if i != j else {**m, "content": "\udfff"} for j, m in enumerate(_messages("0.1"))
            ]
        ): "line 2 of .*surrogates not allowed"
        for i in range(3)
    },
}


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_a_broken_line_is_told_before_anything_is_learned(tmp_path: Path, number: int) -> None:
    line, message = list(BROKEN.items())[number]
    path = tmp_path / "demos.jsonl"
    path.write_text(f"{_line()}\n{line}\n", encoding="utf-8")
    with pytest.raises(DemonstrationError, match=message):
        demos.read(path)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe{}", "{}".encode("utf-16")])
def test_a_file_without_demonstrations_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_bytes(content)
    with pytest.raises(DemonstrationError, match=r"holds no demonstrations|cannot be read"):
        demos.read(path)


@pytest.mark.parametrize(
    ("answer", "phase"),
    [
        ("0.5", "bid"),
        (" .25\n", "bid"),
        ("1.0", "bid"),
        ('{"bid": 1}', "bid"),
        ('{"action": 3}', "act"),
        ("chop_log", "act"),
        ("Action: wait", "act"),
    ],
)
def test_the_phase_follows_from_an_answer_that_leaves_no_doubt(
    tmp_path: Path, answer: str, phase: str
) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text(_line(messages=_messages(answer), phase=None), encoding="utf-8")
    (example,) = demos.read(path)
    assert (example.phase, example.answer) == (phase, answer)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_character_may_stand_in_a_message(tmp_path: Path, mark: str, end: str) -> None:
    """What separates lines elsewhere does not in JSON lines; a byte order mark says nothing."""
    path = tmp_path / "demos.jsonl"
    texts = [f"a{c}b" for c in "\u2028\u2029\x85\x7f\u00e4\U0001f600"] + ["\x0b\x0c\x1c\r\n\t"]
    rows = [{**json.loads(_line()), "messages": [*_messages("0.5")]} for _ in texts]
    for row, text in zip(rows, texts, strict=True):
        row["messages"][1] = {"role": "user", "content": text}
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_bytes((mark + end.join(lines) + end).encode())
    assert [example.user for example in demos.read(path)] == texts


def test_whole_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text(_line(seed=3.0, turn=7))
    (example,) = demos.read(path)
    assert (example.seed, example.turn) == (3, 7)


def test_answers_that_would_be_cut_off_are_told(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    long = "0.1 because of what was seen in the turn before this one"
    path.write_text(_line() + "\n" + _line(messages=_messages(long)), encoding="utf-8")
    _, policy, game = build(config())
    with pytest.raises(DemonstrationError, match=r"line 2 of .*cut off after 4"):
        cold_start.encode(policy.models, demos.read(path), game)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "demos.jsonl"
    example = demos.Example("logger_0", "logger", "bid", 0, 0, "", "Bid.", "0.1")
    assert demos.write([example], path, TASK) == 1
    before = path.read_bytes()

    def broken() -> Iterator[demos.Example]:
        yield example
        raise error

    with pytest.raises(type(error)):
        demos.write(broken(), path, TASK)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["demos.jsonl"]
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert demos.write([example] * 2, link, TASK) == 2
    assert link.is_symlink() and len(demos.read(path)) == 2


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match="mpt demos"):
        demos.read(tmp_path / "nothing.jsonl")


def test_an_agent_without_demonstrations_is_told(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text(json.dumps({"messages": _messages("0.5"), "role": "miner", "phase": "bid"}))
    _, policy, game = build(config())
    with pytest.raises(DemonstrationError, match="no answer of logger_0"):
        cold_start.encode(policy.models, demos.read(path), game)


def test_the_loss_is_on_the_answers_only() -> None:
    """Fitting one answer raises its probability; what the prompt says is not learned."""
    _, policy, game = build(config(parameters="separate"))
    assert isinstance(policy, LanguagePolicy)
    example = demos.Example("logger_0", "logger", "bid", 0, 0, "", "Sees: log. Bid.", "0.9")
    answer = cold_start.encode(
        policy.models, [example, *(_for(game, agent) for agent in (1, 2))], game
    )
    own = answer[0][0][1]
    prompt_before = _prompt_log_prob(policy, own.prompt)
    before = _log_prob(policy, own)
    losses = cold_start.fit_answers(
        policy.models, answer, ColdStartConfig(epochs=40, learning_rate=2e-3), 0, FlopCounter()
    )
    after = _log_prob(policy, own)
    assert before < -5 and after > -0.5
    assert losses["cold_start_bid_loss"] < 1.0
    with torch.no_grad():
        assert _prompt_log_prob(policy, own.prompt) < prompt_before + 5.0


def _for(game: TextVectorGame, agent: int) -> demos.Example:
    name = game.possible_agents[agent]
    return demos.Example(name, game.roles[agent], "bid", 0, 0, "", "Bid.", "0.1")


def _log_prob(policy: LanguagePolicy, answer: Any) -> float:
    with torch.no_grad():
        log_probs, valid, _, _ = policy.models.token_log_probs(
            0, [answer.prompt], [answer.tokens], 1.0
        )
    return float((log_probs * valid).sum())


def _prompt_log_prob(policy: LanguagePolicy, prompt: Any) -> float:
    with torch.no_grad():
        log_probs, valid, _, _ = policy.models.token_log_probs(0, [prompt[:1]], [prompt[1:]], 1.0)
    return float((log_probs * valid).sum())


@pytest.mark.parametrize(
    "options",
    [["--answers", "xml"], ["--episodes", "0"], ["--out", "/nonexistent/folder/x.jsonl"]],
)
def test_mistakes_of_the_command_are_told(
    options: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["demos", TASK, "--out", str(tmp_path / "x"), *options]
    assert main(arguments) == 2
    assert "mpt:" in capsys.readouterr().err


# -- runs that learn from a file -------------------------------------------------------------------


class Alone(RelayTask):
    """The relay without an expert."""

    expert_bid = TurnTask.expert_bid
    expert_action = TurnTask.expert_action


def relay_lines() -> list[str]:
    """An answer of each kind of the relay's agents."""
    answers = {"filler": "fill", "carrier": "carry"}
    return [
        _line(agent=None, role=role, phase=phase, messages=_messages(answer))
        for role, action in answers.items()
        for phase, answer in (("bid", "0.9"), ("act", action))
    ]


def from_file(path: Path, method: str = "mpt", **changes: Any) -> TrainConfig:
    if "toys/alone-v0" not in registry:
        register("toys/alone-v0", task=Alone)
    # Files name actions of the swarm's roles; max_answer_tokens has room for them.
    run = config(method, demonstrations=str(path), max_answer_tokens=8)
    return dataclasses.replace(run, task="toys/alone-v0", budget_gflop=0.01, **changes)


def test_a_file_starts_a_task_that_has_no_expert(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text("\n".join(relay_lines()))
    trainer = Trainer(from_file(path), tmp_path / "run")
    before = [p.detach().clone() for p in trainer.agents.policy.parameters()]
    with RunLogger(tmp_path / "run") as logger:
        trainer._start(logger)
    (record,) = read_metrics(tmp_path / "run")
    assert {"cold_start_bid_loss", "cold_start_action_loss"} <= set(record)
    assert "demonstration_return" not in record and trainer.counter.parts["cold_start"] > 0
    changed = zip(before, trainer.agents.policy.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in changed)
    # What was learned is in the checkpoint: a resumed run does not need the file.
    path.unlink()
    assert Trainer(from_file(path), tmp_path / "run", resume=True).progress.cold_start


@pytest.mark.parametrize("method", ["mpt", "router"])
def test_the_expert_is_asked_for_what_no_file_teaches(tmp_path: Path, method: str) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text("\n".join(relay_lines()))
    run = from_file(path, method)
    if method == "mpt":
        run = dataclasses.replace(
            run, language=dataclasses.replace(run.language, demonstrations="")
        )
    with pytest.raises(MissingCapabilityError, match=r"no scripted expert; .*demonstrations"):
        Trainer(run).train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "networks"}, "needs --policy language"),
        ({"cold_start": ColdStartConfig(episodes=0)}, "wants no cold start"),
        ({"cold_start": ColdStartConfig(epochs=0)}, "wants no cold start"),
        ({}, "cannot be read"),
    ],
)
def test_a_file_that_would_not_be_learned_from_takes_no_folder(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    run = from_file(tmp_path / "nothing.jsonl", **changes)
    with pytest.raises(ValueError, match=message):
        Trainer(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
