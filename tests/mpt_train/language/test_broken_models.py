"""Models that are damaged, do not fit or compute nothing are told by name, never by a traceback."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from mpt_train.agents import build_agents
from mpt_train.cli import console
from mpt_train.cli.main import main
from mpt_train.config import TrainConfig
from mpt_train.errors import CheckpointError, DivergedError, is_out_of_memory
from mpt_train.evaluate import evaluate_run
from mpt_train.games import build_game
from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import ModelNotFoundError
from mpt_train.language.fingerprint import marks
from mpt_train.language.models import load
from mpt_train.language.tiny import build
from mpt_train.loop import Trainer
from tests.mpt_train.language.swarms import TASK, config, play

TEXTS = ["Turn 1 of 30. Sees: log 4.1 south; no stone.", "0.7", "chop_log"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that can be played with."""
    folder = tmp_path_factory.mktemp("models") / "whole"
    model, tokenizer = build("tiny-llama", TEXTS, 0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def change_json(name: str, **changes: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(values | changes))

    return change


def write(name: str, content: str | bytes) -> Callable[[Path], object]:
    text = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(text)


def cut(name: str, share: float) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return change


def without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def other(make: Callable[[int], Any]) -> Callable[[Path], object]:
    """Another model under the same tokenizer, made for its number of tokens."""

    def change(folder: Path) -> None:
        size = len(transformers.AutoTokenizer.from_pretrained(folder))
        (folder / "model.safetensors").unlink()
        make(size).save_pretrained(folder)

    return change


def gpt2(size: int, positions: int = 4096) -> Any:
    settings = transformers.GPT2Config(
        vocab_size=size, n_positions=positions, n_embd=32, n_layer=1, n_head=2, eos_token_id=1
    )
    return transformers.GPT2LMHeadModel(settings)


def mamba(size: int) -> Any:
    settings = transformers.MambaConfig(vocab_size=size, hidden_size=32, num_hidden_layers=1)
    return transformers.MambaForCausalLM(settings)


CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
TEMPLATE = "chat_template.jinja"
DAMAGE: dict[str, Callable[[Path], object]] = {
    **{f"{name} cut at {share}": cut(name, share)
       for name in (WEIGHTS, CONFIG, TOKENIZER) for share in (0.0, 0.01, 0.5, 0.99)},
    **{f"{name} is garbage": write(name, b"\xff\x00" * 999) for name in (WEIGHTS, TOKENIZER)},
    **{f"{key} = {value!r}": change_json(CONFIG, **{key: value})
       for key, values in {
           "hidden_size": (128, -4, 0, "big", None, 1e9),
           "num_hidden_layers": (0, 1, 3, -1, "two"),
           "num_attention_heads": (0, 3, "four"),
           "vocab_size": (5, 100_000, -1),
           "model_type": ("nonsense", "bert", 7),
       }.items() for value in values},
    "no tokenizer": without_tokenizer,
    "tokens beyond the model": other(lambda size: gpt2(size - 1)),
    "no attention": other(mamba),
    **{f"template {text!r}": write(TEMPLATE, text) for text in (
        "", "hello", "{% for", "{{ raise_exception('no') }}", "{{ 1 / 0 }}",
        "{{ ''.__class__.__mro__ }}", "{{ messages[9].content }}", "{{ messages[0].role }}",
        "{{ undefined_function() }}",
    )},
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_named_and_takes_no_run_folder(
    damage: str, whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    DAMAGE[damage](folder)
    with pytest.raises(ModelNotFoundError, match=str(folder)):
        Trainer(config(model=str(folder)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("room", [True, False])
def test_prompts_have_room_in_the_positions_that_were_learned(
    room: bool, whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    other(lambda size: gpt2(size, 64))(folder)
    run = config(
        model=str(folder), targets=r".*", parameters="separate", max_prompt_tokens=60 + (not room)
    )
    if room:
        assert play(run, 1)[2].num_turns
        return
    with pytest.raises(ValueError, match=r"64 positions.*--language.max-prompt-tokens 60"):
        Trainer(run)


@pytest.mark.parametrize("parameters", ["adapters", "separate"])
@pytest.mark.parametrize("decoding", ["free", "choice"])
@pytest.mark.parametrize("when", ["loaded", "later"])
def test_what_is_not_a_number_is_told_before_anything_is_drawn(
    parameters: Any, decoding: Any, when: str, whole: Path, tmp_path: Path
) -> None:
    run = config(model=str(whole), parameters=parameters, decoding=decoding)
    if when == "loaded":
        model = transformers.AutoModelForCausalLM.from_pretrained(whole)
        torch.nn.init.constant_(model.model.norm.weight, float("nan"))
        shutil.copytree(whole, tmp_path / "nan")
        model.save_pretrained(tmp_path / "nan")
        with pytest.raises(DivergedError, match="not a number"):
            play(dataclasses.replace(
                run, language=dataclasses.replace(run.language, model=str(tmp_path / "nan"))
            ))  # fmt: skip
        return
    run = dataclasses.replace(run, cold_start=dataclasses.replace(run.cold_start, episodes=0))
    trainer = Trainer(run)
    with torch.no_grad():
        next(trainer.agents.policy.parameters()).fill_(float("nan"))
    with pytest.raises(DivergedError, match="not a number"):
        trainer.train()


# -- plug-ins, devices, memory ---------------------------------------------------------------------


def raising(given: LanguageConfig) -> Any:
    raise KeyError("weights")


PLUG_INS: dict[str, Any] = {
    "raises": raising,
    "one": lambda given: 7,
    "three": lambda given: (1, 2, 3),
    "nothing": lambda given: (None, None),
    "texts": lambda given: ("a", "b"),
    "swapped": lambda given: build("tiny", TEXTS, 0)[::-1],
    "no_head": lambda given: (torch.nn.Linear(2, 2), build("tiny", TEXTS, 0)[1]),
    "number": 7,
}


@pytest.mark.parametrize("name", PLUG_INS)
def test_a_plug_in_that_gives_no_model_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_models")
    setattr(module, name, PLUG_INS[name])
    monkeypatch.setitem(sys.modules, "my_models", module)
    with pytest.raises(ModelNotFoundError, match=f"my_models:{name}"):
        load(LanguageConfig(model=f"my_models:{name}"), lambda: TEXTS, 0)


@pytest.mark.parametrize("code", ["def load(:", "1 / 0", "import nowhere_at_all", "load = None"])
def test_a_plug_in_that_cannot_be_imported_is_named(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_plug_in.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_plug_in", raising=False)
    with pytest.raises(ModelNotFoundError, match="broken_plug_in:load"):
        load(LanguageConfig(model="broken_plug_in:load"), lambda: TEXTS, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ""}, "language.model must name a model"),
        ({"model": "  "}, "language.model must name a model"),
        ({"model": ":x"}, "a plug-in is module:function"),
        ({"model": "x:"}, "a plug-in is module:function"),
        ({"model": "x" * 5000}, "is not here"),
        ({"model": "~nobody_here/x"}, "there is no folder"),
        ({"targets": "("}, "language.targets = .* no regular expression"),
        ({"targets": "nothing"}, "no linear layer"),
        ({"rank": 100_000_000}, "language.rank = 100000000 is more"),
        ({"device": "meta"}, "language.device = 'meta' cannot be used"),
        ({"device": "xla"}, "language.device = 'xla' cannot be used"),
        ({"device": "no such"}, "language.device"),
    ],
)
def test_options_that_name_nothing_are_told(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, ModelNotFoundError), match=message):
        Trainer(config(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_running_out_of_memory_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def wanting() -> int:
        torch.zeros(1 << 60)
        return 0

    def failing() -> int:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")

    for command in (wanting, failing):
        assert console.run(command) == 1
        assert "not enough memory" in capsys.readouterr().err
    assert not is_out_of_memory(RuntimeError("sizes of tensors must match"))
    with pytest.raises(RuntimeError, match="sizes"):
        console.run(lambda: (_ for _ in ()).throw(RuntimeError("sizes")))


# -- another model under the same name -------------------------------------------------------------


def trained(model: Path, folder: Path, **changes: Any) -> TrainConfig:
    run = dataclasses.replace(config(model=str(model), **changes), budget_gflop=0.01)
    Trainer(run, folder).train()
    return run


def scale(folder: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight.mul_(1.1)
    model.save_pretrained(folder)


def other_words(folder: Path) -> None:
    values = json.loads((folder / TOKENIZER).read_text())
    vocabulary = values["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (folder / TOKENIZER).write_text(json.dumps(values))


ANOTHER = "{% for m in messages %}{{ m.content }}{% endfor %}"
OTHERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "weights": ("weights", scale),
    "tokenizer": ("tokenizer", other_words),
    "template": (
        "tokenizer",
        write(TEMPLATE, ANOTHER),
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_run_knows_its_base_model_again(what: str, whole: Path, tmp_path: Path) -> None:
    part, change = OTHERS[what]
    model, folder = tmp_path / "model", tmp_path / "run"
    shutil.copytree(whole, model)
    run = trained(model, folder)
    assert evaluate_run(folder).returns.size
    change(model)
    fits = rf"another model than {model} is now: the fingerprint of its {part} was \w+ and is \w+"
    with pytest.raises(CheckpointError, match=fits):
        evaluate_run(folder)
    with pytest.raises(CheckpointError, match=fits):
        Trainer(run, folder, resume=True)
    assert main(["play", str(folder)]) == 1


def test_another_configuration_is_said(whole: Path, tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "run"
    shutil.copytree(whole, model)
    trained(model, folder)
    change_json(CONFIG, rms_norm_eps=0.01)(model)
    with pytest.warns(UserWarning, match=f"the configuration of {model} is not the one"):
        assert evaluate_run(folder).returns.size


def test_weights_that_are_all_learned_are_in_the_checkpoint(whole: Path, tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "run"
    shutil.copytree(whole, model)
    trained(model, folder, parameters="separate")
    expected = evaluate_run(folder).returns
    scale(model)
    assert (evaluate_run(folder).returns == expected).all()


def test_checkpoints_without_a_fingerprint_can_be_used(whole: Path) -> None:
    run = config(model=str(whole))
    agents = build_agents(run, build_game(run, 1))
    tensors = {name: p.detach().clone() for name, p in agents.named_parameters().items()}
    assert len(agents.base()) == 3
    agents.load(tensors)
    agents.load(tensors | agents.base())


def test_a_fingerprint_does_not_depend_on_how_a_model_is_loaded(whole: Path) -> None:
    found = [
        load(LanguageConfig(model=str(whole), dtype=dtype), lambda: TEXTS, 0).base
        for dtype in ("float32", "bfloat16", "float32")
    ]
    for base in found[1:]:
        assert all(torch.equal(base[name], found[0][name]) for name in found[0])
    model, tokenizer = build("tiny-llama", TEXTS, 1)
    assert not torch.equal(marks(model, tokenizer, weights=True)["weights"], found[0]["weights"])


def test_the_command_tells_of_a_damaged_model(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    cut(WEIGHTS, 0.5)(folder)
    options = ["--policy", "language", "--language.model", str(folder), "--task", TASK]
    assert main(["train", "mpt", *options, "--folder", str(tmp_path / "run")]) == 1
    assert f"mpt: {folder} cannot be loaded" in capsys.readouterr().err
