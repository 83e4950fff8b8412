"""Trainings that cannot go well: said clearly, before any harm, with the last checkpoint intact."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mpt_envs import register, registry
from mpt_train.cli.main import main
from mpt_train.config import TrainConfig, check_config, from_json, to_json
from mpt_train.errors import CheckpointError, DivergedError, RunFolderError
from mpt_train.evaluate import evaluate_run
from mpt_train.learners.optimizer import clip_per_agent
from mpt_train.loop import Trainer
from mpt_train.methods import METHODS, method_config
from mpt_train.runs.checkpoint import load_checkpoint, save_checkpoint
from tests.mpt_train.relay import tiny
from tests.toys import RelayTask
from wrappers.errors import MarketError, TaskError
from wrappers.task import TurnResult


class Failing(RelayTask):
    """A relay that goes wrong after so many actions of all its worlds together."""

    left = 0
    """Actions that still go well."""

    def wrong(self) -> bool:
        kind = type(self)
        kind.left -= 1
        return kind.left < 0


class Raising(Failing):
    def act(self, agent: str, action: int) -> TurnResult:
        if self.wrong():
            raise RuntimeError("the simulator has crashed")
        return super().act(agent, action)


class BadReward(Failing):
    def act(self, agent: str, action: int) -> TurnResult:
        result = super().act(agent, action)
        return result._replace(reward=math.nan) if self.wrong() else result


class BadObservation(Failing):
    def observe(self, agent: str) -> NDArray[np.float32]:
        values = super().observe(agent)
        if self.wrong():
            values[0] = math.inf
        return values


class HugeReward(Failing):
    def act(self, agent: str, action: int) -> TurnResult:
        result = super().act(agent, action)
        return result._replace(reward=1e200) if self.wrong() else result


class ShortObservation(Failing):
    def observe(self, agent: str) -> NDArray[np.float32]:
        return super().observe(agent)[:-1]


FAILING: dict[type[Failing], tuple[type[Exception], str]] = {
    Raising: (RuntimeError, "the simulator has crashed"),
    BadReward: (TaskError, "gave the reward nan in turn"),
    BadObservation: (TaskError, "showed filler_0 the value inf in entry 0"),
    HugeReward: (DivergedError, "diverged in step"),
}


def config_for(kind: type[Failing], method: str, **changes: Any) -> TrainConfig:
    name = f"toys/{kind.__name__.lower()}-v0"
    if name not in registry:
        register(name, task=kind)
    kind.left = 10**9
    return dataclasses.replace(tiny(method), task=name, **changes)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (Raising, "mpt"),
        (BadReward, "router"),
        (BadObservation, "mpt-plus"),
        (HugeReward, "mpt-plus"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_a_task_that_breaks_in_training(kind: type[Failing], method: str, tmp_path: Path) -> None:
    """It stops there, and goes on from the checkpoint once the task is mended."""
    config = config_for(kind, method, checkpoint_every=1)
    error, message = FAILING[kind]
    trainer = Trainer(config, tmp_path / "run")
    step = trainer.step
    done = []

    def step_and_break() -> dict[str, Any]:
        if len(done) == 3:
            kind.left = 60
        done.append(step())
        return done[-1]

    trainer.step = step_and_break  # type: ignore[method-assign]
    with pytest.raises(error, match=message):
        trainer.train()
    tensors, state = load_checkpoint(tmp_path / "run" / "checkpoint")
    assert state["step"] == len(done) >= 3
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    kind.left = 10**9
    summary = Trainer(config, tmp_path / "run", resume=True).train()
    assert summary.steps > state["step"]
    whole = Trainer(config, tmp_path / "whole").train()
    assert summary.final == whole.final


@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_a_task_that_breaks_in_the_cold_start(kind: type[Failing], tmp_path: Path) -> None:
    config = config_for(kind, "mpt-plus")
    kind.left = 20
    error, message = FAILING[kind]
    with pytest.raises(error, match=message):
        Trainer(config, tmp_path / "run").train()
    kind.left = 10**9
    # Nothing was begun, so a resumed run starts again.
    assert Trainer(config, tmp_path / "run", resume=True).train().steps > 0


def test_an_observation_of_another_size(tmp_path: Path) -> None:
    config = config_for(ShortObservation, "mpt-plus")
    with pytest.raises(TaskError, match="shows filler_0 2 numbers, but its observation_size is 3"):
        Trainer(config, tmp_path / "run").train()


def test_learning_that_diverges(tmp_path: Path) -> None:
    config = tiny("mpt-plus", checkpoint_every=1)
    config = dataclasses.replace(
        config, cold_start=dataclasses.replace(config.cold_start, learning_rate=1e30)
    )
    with pytest.raises(DivergedError, match=r"cold-start\.learning-rate"):
        Trainer(config, tmp_path / "run").train()
    assert issubclass(DivergedError, MarketError)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_norm_of_a_gradient_tells(value: float) -> None:
    parameters = {name: torch.nn.Parameter(torch.ones(2, 3)) for name in ("a.x", "b.x")}
    for name, parameter in parameters.items():
        parameter.grad = torch.ones(2, 3)
        if name == "a.x":
            parameter.grad[1, 2] = value
    assert not math.isfinite(clip_per_agent(parameters, 1.0))


# -- configurations ------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, ...]] = {
    "seed": (-1, 1 << 18, "three", None, 1.5j),
    "budget_gflop": (0, -1, math.nan, math.inf, "much"),
    "num_envs": (0, -4, 1.5),
    "action_steps": (-1,),
    "checkpoint_every": (0,),
    "network.hidden": ((), (0,), (8, -1), ("a",)),
    "network.bid_hidden": ((0,),),
    "network.critic_hidden": ((0,), (-1,)),
    "cold_start.episodes": (-1,),
    "cold_start.action_noise": (-0.1, 1.1, math.nan),
    "cold_start.bid_noise": (-0.1, 1.1, math.nan),
    "cold_start.epochs": (-1,),
    "cold_start.batch_size": (0,),
    "cold_start.learning_rate": (0.0, -1.0, math.nan, math.inf),
    "action.discount": (-0.1, 1.1, math.nan),
    "action.entropy": (math.nan, math.inf),
    "bids.contested_turns": (-1,),
    "bids.resamples": (-1,),
    "bids.score_discount": (1.5, math.nan),
    "bids.discount": (1.5, math.nan),
    "bids.entropy": (math.nan,),
    "bids.coefficient": (math.nan,),
    "optimizer.learning_rate": (0.0, -1.0, math.nan),
    "optimizer.max_grad_norm": (0.0, -1.0, math.nan),
    "optimizer.minibatches": (0, -1, 1.5),
    "optimizer.clip": (0.0, 1.5, math.nan),
    "eval.worlds": (0,),
    "eval.repeats": (0,),
    "eval.curve_points": (-1,),
    "eval.curve_worlds": (0,),
    "env.dropout": (1.0, -0.1, math.nan),
    "env.agents": (0, 3, -2),
    "env.max_turns": (0, -1),
    "env.bid_levels": ("foo",),
    "env.backend": ("nowhere",),
    "coordination": ("nonsense", "no_such_module:x"),
    "language.rank": (0, 1.5),
    "language.alpha": (0.0, math.nan),
    "language.temperature": (0.0, -1.0, 1e-300, 9e-4, math.inf),
    "language.max_prompt_tokens": (0,),
    "language.max_answer_tokens": (0, 1 << 20),
    "language.history": (-1,),
    "language.retries": (0, 1000),
    "language.kl": (-0.1, math.nan),
    "language.batch_rows": (0,),
    "language.micro_batch": (0,),
    "language.engine_concurrency": (0, 10**9),
    "language.engine_timeout": (0.0, math.nan, 1e300, 10**400),
    "language.engine_retries": (-1, 10**6),
}


def changed(config: TrainConfig, name: str, value: Any) -> TrainConfig:
    part, _, field = name.rpartition(".")
    if not part:
        return dataclasses.replace(config, **{field: value})
    inner = dataclasses.replace(getattr(config, part), **{field: value})
    return dataclasses.replace(config, **{part: inner})


@pytest.mark.parametrize("name", WRONG)
def test_values_that_mean_nothing_take_no_folder(name: str, tmp_path: Path) -> None:
    for value in WRONG[name]:
        with pytest.raises(
            (ValueError, MarketError), match=r"must|unknown|needs|no backend|cannot"
        ):
            Trainer(changed(tiny("mpt-plus"), name, value), tmp_path / "run")
        assert not (tmp_path / "run").exists(), (name, value)


def test_every_number_of_a_configuration_is_checked() -> None:
    """A field that is added later must be given a range."""
    config = to_json(tiny("mpt-plus"))
    numbers = {
        f"{part}.{field}" if part else field
        for part, values in {"": config, **config}.items()
        if isinstance(values, dict)
        for field, value in values.items()
        if (isinstance(value, (int, float)) and not isinstance(value, bool))
        or (isinstance(value, list) and field != "priority")
    }
    assert numbers <= set(WRONG)


def test_all_methods_pass_the_check() -> None:
    for name in METHODS:
        check_config(method_config(name))
        check_config(from_json(to_json(tiny(name))))


LEAVES = [
    f"{part}.{field}" if part else field
    for part, values in {"": to_json(TrainConfig()), **to_json(TrainConfig())}.items()
    if isinstance(values, dict)
    for field, value in values.items()
    if not isinstance(value, dict)
]


@pytest.mark.parametrize("name", LEAVES)
def test_values_of_other_types_take_no_folder(name: str, tmp_path: Path) -> None:
    """Also those that compare, or are true, as if they were of the right type."""
    config = tiny("mpt-plus")
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    others: list[Any] = [{}, ({},), object(), b"x"]
    if not isinstance(value, str) and name not in ("env.backend", "env.bid_levels"):
        others.append("nonsense")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        others += [] if name in ("env.agents", "env.max_turns") else [1, 0.5]
    elif name != "env.dropout":  # whose range the game knows
        others.append(10**400)
    if value is not None and name != "network.bid_hidden":
        others.append(None)
    for other in others:
        with pytest.raises(ValueError, match=f"{name} must be "):
            check_config(changed(config, name, other))


# -- folders -------------------------------------------------------------------------------------


def garbage(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(text)
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[1]",
        "7",
        "null",
        '"text"',
        '{"env": 7}',
        '{"a": 1}',
        "\x00" * 9,
        "[" * 99_999,
    ],
)
def test_folders_of_garbage(text: str, tmp_path: Path) -> None:
    folder = garbage(tmp_path / "run", text)
    uses: tuple[Callable[[], object], ...] = (
        lambda: evaluate_run(folder),
        lambda: Trainer(tiny("mpt"), folder),
        lambda: Trainer(tiny("mpt"), folder, resume=True),
    )
    for use in uses:
        with pytest.raises(RunFolderError, match=str(folder)):
            use()
    assert [path.name for path in folder.iterdir()] == ["config.json"]


@pytest.mark.parametrize("text", ['{"num_envs": "three"}', '{"network": {"hidden": "abc"}}'])
def test_configurations_of_other_types(text: str, tmp_path: Path) -> None:
    config = from_json(json.loads(text))
    with pytest.raises(ValueError, match=r"must be (at least 1|a list)"):
        Trainer(config, tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("language.temperature", 0),
        ("language.model", 3),
        ("language.batch_rows", 0),
        ("language.decoding", "beam"),
        ("language.profile", "yes"),
        ("language.engine_timeout", 1e300),
        ("eval.worlds", 0),
        ("eval.repeats", "two"),
        ("env.agents", "two"),
        ("env.dropout", None),
        ("policy", "nets"),
        ("coordination", 7),
        ("network.hidden", []),
        ("seed", -1),
    ],
)
def test_an_edited_configuration_is_checked_wherever_it_is_read(
    name: str, value: Any, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    values = json.loads((folder / "config.json").read_text())
    part, _, field = name.rpartition(".")
    (values[part] if part else values)[field] = value
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(RunFolderError, match=f"config.json cannot be used: .*{name}"):
        evaluate_run(folder)
    for command in (
        ["eval", str(folder)],
        ["eval", str(folder), "--engine", "http://localhost:1/v1"],
        ["play", str(folder)],
        ["train", "--resume", "--folder", str(folder)],
    ):
        assert main(command) == 1
        assert f"config.json cannot be used: {name}" in capsys.readouterr().err


# -- checkpoints that were written by somebody else ----------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    Trainer(tiny("mpt-plus"), folder).train()
    return folder


def forged(finished: Path, tmp_path: Path, change: Callable[[dict[str, Any], Any], None]) -> Path:
    """A copy of the run whose checkpoint is valid in itself, with other content."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    tensors, state = load_checkpoint(folder / "checkpoint")
    change(tensors, state)
    save_checkpoint(folder / "checkpoint", tensors, state)
    return folder


BAD_TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "missing": lambda tensor: None,
    "longer": lambda tensor: torch.cat([tensor, tensor]),
    "scalar": lambda tensor: torch.zeros(()),
    "empty": lambda tensor: torch.zeros(0),
    "nan": lambda tensor: torch.full_like(tensor, math.nan),
    "inf": lambda tensor: torch.full_like(tensor, math.inf),
    "integer": lambda tensor: torch.zeros(tensor.shape, dtype=torch.int64),
}


@pytest.mark.parametrize("how", BAD_TENSORS)
def test_tensors_that_do_not_fit(how: str, finished: Path, tmp_path: Path) -> None:
    def change(tensors: dict[str, Any], state: Any) -> None:
        name = next(name for name in reversed(tensors) if name.startswith("policy."))
        bad = BAD_TENSORS[how](tensors.pop(name))
        if bad is not None:
            tensors[name] = bad

    folder = forged(finished, tmp_path, change)
    with pytest.raises(CheckpointError, match=r"does not fit|no finite number"):
        Trainer(tiny("mpt-plus"), folder, resume=True)
    with pytest.raises(CheckpointError, match=r"does not fit|no finite number"):
        evaluate_run(folder)


def test_moments_that_do_not_fit(finished: Path, tmp_path: Path) -> None:
    def change(tensors: dict[str, Any], state: Any) -> None:
        name = next(name for name in tensors if name.startswith("adam.exp_avg."))
        tensors[name] = torch.zeros(1)

    folder = forged(finished, tmp_path, change)
    with pytest.raises(CheckpointError, match="moments"):
        Trainer(tiny("mpt-plus"), folder, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", "three"),
        ("step", -1),
        ("step", 1.5),
        ("step", True),
        ("flop", None),
        ("flop_parts", []),
        ("curve", {}),
        ("wall_seconds", "long"),
        ("cold_start", 7),
        ("nonsense", 1),
    ],
)
def test_states_that_do_not_fit(name: str, value: Any, finished: Path, tmp_path: Path) -> None:
    folder = forged(finished, tmp_path, lambda tensors, state: state.update({name: value}))
    with pytest.raises(CheckpointError, match=f"another release: {name} = "):
        Trainer(tiny("mpt-plus"), folder, resume=True)
