"""Loading models: tiny ones, folders, plug-ins, and what is told where there is none."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpt_train.cli.main import main
from mpt_train.language import navila
from mpt_train.language.chat import FALLBACK, Chat
from mpt_train.language.config import LanguageConfig
from mpt_train.language.convert import main as convert
from mpt_train.language.errors import ModelNotFoundError
from mpt_train.language.models import load
from mpt_train.language.tiny import BUILDERS, build
from tests.mpt_train.language.swarms import config, play

TEXTS = ["Turn 1 of 30. Sees: log 4.1 south; no stone.", "0.7", "chop_log"]


def load_it(name: str, **changes: Any) -> Any:
    return load(LanguageConfig(model=name, **changes), lambda: TEXTS, 0)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_tiny_model_follows_from_its_seed(name: str) -> None:
    first, second = build(name, TEXTS, 3)[0].state_dict(), build(name, TEXTS, 3)[0].state_dict()
    other = build(name, TEXTS, 4)[0].state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_the_weights_do_not_touch_the_global_generator() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    build("tiny", TEXTS, 3)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", ["tiny", "tiny-llama", "tiny-gemma4", "tiny-qwen3-vl"])
def test_a_folder_is_the_model_that_was_saved(name: str, tmp_path: Path) -> None:
    model, tokenizer = build(name, TEXTS, 0)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_it(str(tmp_path), dtype="float32")
    ids = torch.arange(10, 40)[None]
    with torch.no_grad():
        first = model.eval()(input_ids=ids).logits
        second = loaded.model(input_ids=ids).logits
    torch.testing.assert_close(first, second)
    assert loaded.stop == (tokenizer.eos_token_id,)
    again = Chat(loaded.tokenizer, loaded.stop[0], 100)
    assert again.render("You are one.", "Bid.") == Chat(tokenizer, 1, 100).render(
        "You are one.", "Bid."
    )


def test_a_swarm_plays_with_a_model_from_a_folder(tmp_path: Path) -> None:
    model, tokenizer = build("tiny-llama", TEXTS, 0)
    tokenizer.chat_template = None
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    _, policy, batch = play(config(model=str(tmp_path), decoding="choice"))
    assert policy.chat.tokenizer.chat_template == FALLBACK
    assert batch.num_turns > 3 and not batch.transcript.unread


def test_a_folder_can_be_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokenizer = build("tiny", TEXTS, 0)
    model.save_pretrained(tmp_path / "a")
    tokenizer.save_pretrained(tmp_path / "a")
    assert convert([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert load_it(str(tmp_path / "b")).model.config.hidden_size == 64
    assert convert([str(tmp_path / "nothing.gguf"), str(tmp_path / "b")]) == 1
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny-64", "there is no tiny model 'tiny-64'; did you mean"),
        ("./nowhere", "there is no folder './nowhere'"),
        ("/nowhere/at/all", "there is no folder"),
        ("nowhere.gguf", "there is no file 'nowhere.gguf'"),
        ("no_such_module:load", "cannot be imported"),
        ("mpt_train.language.navila:nothing", "cannot be imported"),
    ],
)
def test_a_model_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises((ModelNotFoundError, ValueError), match=message):
        load_it(name)


def test_a_hub_id_that_cannot_be_fetched_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import transformers

    def offline(*args: Any, **kwargs: Any) -> None:
        raise OSError("We couldn't connect to the hub")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", offline)
    with pytest.raises(ModelNotFoundError, match=r"hf download Qwen/Qwen2\.5-0\.5B-Instruct"):
        load_it("Qwen/Qwen2.5-0.5B-Instruct")


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match="cannot be loaded as a language model"):
        load_it(str(tmp_path))


def test_navila_checkpoints_point_to_their_plug_in(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llava_llama"}')
    with pytest.raises(ModelNotFoundError, match=r"mpt_train\.language\.navila:load"):
        load_it(str(tmp_path))


def test_navila_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mpt_train.language.navila:load"
    monkeypatch.delenv(navila.FOLDER, raising=False)
    with pytest.raises(ModelNotFoundError, match="hf download"):
        load_it(name)
    monkeypatch.setenv(navila.FOLDER, str(tmp_path))
    with pytest.raises(ModelNotFoundError, match="git clone"):
        load_it(name)
    with pytest.raises(ModelNotFoundError, match="pictures"):
        load_it(name, pictures=True)


def test_a_plug_in_brings_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_models")
    module.load = lambda config: build("tiny-llama", TEXTS, 9)  # type: ignore[attr-defined]
    module.wrong = lambda config: 7  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_models", module)
    _, policy, batch = play(config(model="my_models:load"))
    assert policy.models.loaded.model.config.model_type == "llama" and batch.num_turns
    with pytest.raises(ModelNotFoundError, match=r"must return \(model, tokenizer\)"):
        load_it("my_models:wrong")


def test_pictures_need_eyes() -> None:
    with pytest.raises(ModelNotFoundError, match="reads text only"):
        load_it("tiny", pictures=True)


def test_a_missing_device_is_told() -> None:
    for name in ("cuda:0", "nonsense"):
        if name.startswith("cuda") and torch.cuda.is_available():
            continue
        with pytest.raises(ValueError, match=r"language\.device"):
            load_it("tiny", device=name)


def test_the_command_tells_of_a_missing_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    options = ["--policy", "language", "--language.model", "./nowhere", "--folder", str(folder)]
    assert main(["train", "mpt", *options]) == 1
    assert "there is no folder './nowhere'" in capsys.readouterr().err
    assert not folder.exists()


def test_the_tokenizer_of_a_task_is_always_the_same() -> None:
    prompts = []
    for _ in range(2):
        _, policy, batch = play(config(), worlds=1)
        prompts.append([a.prompt for a in batch.transcript.answers.values()])
        assert len(policy.chat.tokenizer) > 300
    assert all(np.array_equal(a, b) for a, b in zip(*prompts, strict=True))
