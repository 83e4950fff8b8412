"""Whole runs of language models through the same loop and commands as networks."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from mpt_train.cli.main import main
from mpt_train.config import ColdStartConfig, EvalConfig, OptimizerConfig, TrainConfig
from mpt_train.episode import record_agents, replay
from mpt_train.errors import TrainingInterrupted
from mpt_train.evaluate import evaluate_run
from mpt_train.games import build_game
from mpt_train.language.config import LanguageConfig
from mpt_train.learners.optimizer import clip_per_agent
from mpt_train.loop import Trainer
from mpt_train.methods import method_config
from mpt_train.runs.folder import RunFolder
from tests.mpt_train.language.swarms import TASK, config
from tests.mpt_train.runs import assert_same_run
from tests.mpt_train.stops import StopIn

METHODS = (
    "mpt",
    "mpt-plus",
    "monolithic",
    "round-robin",
    "random-bids",
    "fixed-priority",
    "router",
)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs(method: str) -> None:
    trainer = Trainer(small(config(method)))
    before = {name: p.detach().clone() for name, p in trainer.agents.named_parameters().items()}
    summary = trainer.train()
    assert summary.steps >= 2 and summary.flop == sum(summary.flop_parts.values())
    assert {"cold_start", "rollout_act", "update_action"} <= set(summary.flop_parts)
    assert ("rollout_bid" in summary.flop_parts) == (method in ("mpt", "mpt-plus", "router"))
    assert ("valid_bids" in summary.final["metrics"]) == (method in ("mpt", "mpt-plus"))
    after = trainer.agents.named_parameters()
    if method == "router":
        assert any(not torch.equal(before[n], after[n]) for n in before if "coordination" in n)
    for agent in range(1 if method == "monolithic" else 3):
        own = [name for name in before if name.startswith(f"policy.agents.{agent}.")]
        assert own and any(not torch.equal(before[name], after[name]) for name in own)


def small(run: TrainConfig) -> TrainConfig:
    """The run with few episodes, whatever its method has."""
    optimizer = dataclasses.replace(run.optimizer, minibatches=min(2, run.optimizer.minibatches))
    return dataclasses.replace(run, num_envs=3, optimizer=optimizer, budget_gflop=24.0)


RUN = dataclasses.replace(config(), checkpoint_every=1, budget_gflop=18.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    Trainer(RUN, folder / "run").train()
    return folder / "run"


@pytest.mark.parametrize(
    ("names", "skip", "steps"),
    [
        (("watch",), 5, 0),  # between demonstrated answers
        (("fit_answers",), 1, 0),
        (("_start", "evaluate"), 2, 0),
        (("step", "rollout"), 6, 1),
        (("_finish",), 2, None),
    ],
)
def test_a_stopped_run_comes_to_the_same_numbers(
    names: tuple[str, ...], skip: int, steps: int | None, whole: Path, tmp_path: Path
) -> None:
    first = Trainer(RUN, tmp_path / "run", stop=StopIn(*names, skip=skip))
    with pytest.raises(TrainingInterrupted) as stopped:
        first.train()
    if steps is None:
        steps = RunFolder(whole).read_summary()["steps"]
    assert first.progress.step == stopped.value.step == steps
    resumed = Trainer(RUN, tmp_path / "run", resume=True)
    assert resumed.progress.step == steps
    resumed.train()
    assert_same_run(tmp_path / "run", whole)


def test_sigterm_ends_a_cold_start_of_language_models_in_seconds(tmp_path: Path) -> None:
    """Of one that takes minutes, and that was told to take more than the whole budget."""
    options = ["mpt", "--policy", "language", "--language.model", "tiny", "--task", TASK]
    options += ["--budget-gflop", "2", "--num-envs", "4", "--cold-start.episodes", "8"]
    program = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "mpt_train.cli.main",
            "train",
            *options,
            "--folder",
            tmp_path / "run",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stderr is not None
        told = iter(program.stderr.readline, "")
        line = next((line for line in told if line.startswith("warning: the cold start")), "")
        program.terminate()
        asked = time.monotonic()
        rest = program.stderr.read()
    assert re.search(r"about \d{3} GFLOP of a budget of 2, and nothing will be trained", line)
    assert program.returncode == 128 + signal.SIGTERM, rest
    assert time.monotonic() - asked < 20
    assert "Stopped in the cold start" in rest and "--resume" in rest and "Traceback" not in rest
    assert {p.name for p in (tmp_path / "run").iterdir()} >= {"config.json"}
    assert not RunFolder(tmp_path / "run").checkpoint.exists()


def test_the_checkpoint_holds_adapters_only(tmp_path: Path) -> None:
    trainer = Trainer(config(), tmp_path / "run")
    trainer.train()
    from mpt_train.runs.checkpoint import load_checkpoint

    tensors, _ = load_checkpoint(RunFolder(tmp_path / "run").checkpoint)
    own = [name for name in tensors if not name.startswith(("adam.", "base."))]
    assert own and all(name.startswith("policy.agents.") for name in own)
    assert max(t.numel() for t in tensors.values()) <= 128 * 4
    evaluation = evaluate_run(tmp_path / "run")
    assert (
        evaluation.to_json()
        == {
            **trainer.run.read_summary()["final"]  # type: ignore[union-attr]
        }
        or evaluation.return_mean == trainer.run.read_summary()["final"]["return_mean"]
    )  # type: ignore[union-attr]
    swapped = evaluate_run(tmp_path / "run", coordination="round-robin")
    assert swapped.coordination == "round-robin" and "valid_bids" not in swapped.metrics


def test_unread_answers_are_played_again_as_they_were() -> None:
    trainer = Trainer(config())
    from mpt_envs import make

    game = build_game(trainer.config, 1)
    moves = record_agents(game, 5, trainer.agents, trainer.agents.coordination)
    env = make(TASK, max_turns=4)
    turns = list(replay(env, 5, [dataclasses.replace(m, bids=(5, 0, 0)) for m in moves]))
    assert [t.winner for t in turns] == ["logger_0"] * len(moves)
    unread = [m.action < 0 for m in moves]
    assert any(unread)
    assert [t.action is None for t in turns] == unread
    assert [t.illegal for t in turns][unread.index(True)]


def test_agents_are_clipped_apart() -> None:
    parameters = {
        f"policy.agents.{agent}.a.0": torch.nn.Parameter(torch.zeros(3, 3)) for agent in range(2)
    }
    first, second = parameters.values()
    first.grad, second.grad = torch.full((3, 3), 10.0), torch.full((3, 3), 0.01)
    assert clip_per_agent(parameters, 1.0) == pytest.approx(30.0)
    assert float(first.grad.norm()) == pytest.approx(1.0)
    assert torch.equal(second.grad, torch.full((3, 3), 0.01))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coordination": "graph-of-agents"}, "looks into networks"),
        ({"language": LanguageConfig(rank=0)}, r"language\.rank must be"),
        ({"language": LanguageConfig(temperature=0.0)}, r"language\.temperature must be"),
        ({"language": LanguageConfig(retries=100)}, r"language\.retries must be"),
    ],
)
def test_configurations_that_mean_nothing_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trainer(dataclasses.replace(config("round-robin"), **changes))


def test_the_distribution_of_bids_in_text_is_not_known() -> None:
    run = method_config("mpt-plus", task=TASK, policy="language")
    with pytest.raises(ValueError, match="estimator sampled"):
        Trainer(run)


def test_the_command_trains_evaluates_and_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--policy language --language.answers plain --language.prompts brief --language.rank 4"
    )
    options += " --language.no-profile --language.max-answer-tokens 4 --cold-start.episodes 3"
    options += " --cold-start.epochs 1 --num-envs 2 --budget-gflop 12 --env.max-turns 3 --quiet"
    options += " --eval.worlds 2 --eval.repeats 1 --eval.curve-points 0 --eval.curve-worlds 1"
    folder = str(tmp_path / "run")
    command = ["train", "mpt", "--task", TASK, *options.split(), "--folder", folder]
    assert main(command) == 0
    assert main(["eval", folder, "--json"]) == 0
    out = capsys.readouterr().out
    result = json.loads(out[out.index("{") :])
    assert 0.0 <= result["metrics"]["valid_bids"] <= 1.0
    assert main(["play", folder]) == 0
    assert "logger_0" in capsys.readouterr().out
    record = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"valid_bids", "prompt_tokens", "answer_tokens", "unread"} <= set(record)


def learner(method: str, seed: int, budget: float) -> TrainConfig:
    """The setting in which a model of 0.1 M weights learns crafting from nothing."""
    base = method_config(method, task=TASK, policy="language", seed=seed, num_envs=16)
    return dataclasses.replace(
        base,
        budget_gflop=budget,
        language=LanguageConfig(
            model="tiny",
            parameters="separate",
            answers="plain",
            prompts="brief",
            profile=False,
            max_answer_tokens=8,
            micro_batch=32,
        ),
        cold_start=ColdStartConfig(episodes=96, epochs=4, batch_size=8, learning_rate=6e-3),
        optimizer=OptimizerConfig(learning_rate=1.5e-3),
        eval=EvalConfig(worlds=64, repeats=2, curve_points=0, curve_worlds=1),
    )


def interval(values: list[float]) -> tuple[float, float]:
    """95 % confidence interval of the mean of three seeds (Student's t)."""
    mean, error = np.mean(values), 4.303 * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(mean - error), float(mean + error)


def test_a_model_learns_crafting_from_nothing() -> None:
    """The short form of the slow tests below: most answers are valid, and some episodes succeed."""
    run = learner("mpt", 0, 1.0)
    cold_start = ColdStartConfig(episodes=40, epochs=4, batch_size=8, learning_rate=6e-3)
    evaluation = dataclasses.replace(run.eval, worlds=24, repeats=1)
    summary = Trainer(dataclasses.replace(run, cold_start=cold_start, eval=evaluation)).train()
    metrics = summary.cold_start["metrics"]
    assert metrics["valid_bids"] > 0.8 and metrics["valid_actions"] > 0.5
    assert summary.cold_start["return_mean"] > 1.5


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mpt_raises_the_return_above_the_cold_start() -> None:
    cold, final = [], []
    for seed in range(3):
        # A demonstrator that errs half of the time: answers are valid, and there is room above.
        run = learner("mpt", seed, 1500.0)
        demonstrator = dataclasses.replace(run.cold_start, action_noise=0.5)
        summary = Trainer(dataclasses.replace(run, cold_start=demonstrator)).train()
        cold.append(summary.cold_start["return_mean"])
        final.append(summary.final["return_mean"])
        metrics = summary.cold_start["metrics"]
        assert metrics["valid_bids"] >= 0.9 and metrics["valid_actions"] >= 0.9
        print(seed, cold[-1], final[-1], metrics["valid_bids"], metrics["valid_actions"])
    assert interval(cold)[1] < interval(final)[0]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("method", ["monolithic", "round-robin"])
def test_the_baselines_learn_in_the_same_setting(method: str) -> None:
    run = learner(method, 0, 1500.0)
    optimizer = dataclasses.replace(run.optimizer, minibatches=1)
    summary = Trainer(dataclasses.replace(run, optimizer=optimizer)).train()
    assert summary.cold_start["metrics"]["valid_actions"] >= 0.8
    assert summary.final["return_mean"] > summary.cold_start["return_mean"]
