"""Loading language models: by name, from a folder, a gguf file, a hub, or through a plug-in."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from mpt_train.errors import is_out_of_memory
from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import MissingLibraryError, ModelNotFoundError
from mpt_train.language.fingerprint import marks
from mpt_train.language.model_checks import (
    check_kind,
    check_vocabulary,
    check_weights,
)
from mpt_train.language.pictures import PictureReader, picture_reader
from wrappers.errors import MarketError, how_to_install

_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<turn|>")


@dataclass
class Loaded:
    """A model and what belongs to it.

    Attributes:
        model: a transformers model with a language-modelling head.
        tokenizer: its tokenizer.
        stop: ids of the tokens that end an answer.
        end: the one of them that ends an answer in demonstrations: the end of a chat turn, or of a
            text.
        pictures: turns pictures into the model's inputs; None: it reads text only.
        base: what it is known by again (`fingerprint.marks`).
    """

    model: Any
    tokenizer: Any
    stop: tuple[int, ...]
    end: int
    pictures: PictureReader | None
    base: dict[str, torch.Tensor] = field(default_factory=dict)


def check_library() -> None:
    """Refuse to go on without the extra.

    Raises:
        MissingLibraryError: transformers is not installed.
    """
    try:
        importlib.import_module("transformers")
    except ImportError as error:
        raise MissingLibraryError(
            f"language models need transformers ({error}); {how_to_install('llm')}"
        ) from error


def device_of(config: LanguageConfig) -> torch.device:
    """The device that a configuration means.

    Raises:
        ValueError: there is none of this name.
    """
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(config.device)
    except RuntimeError as error:
        raise ValueError(f"language.device = {config.device!r}: {error}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"language.device = {config.device!r}, but PyTorch finds no GPU here")
    try:
        # Not every device that PyTorch has a name for is one that holds numbers here.
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        why = str(error).strip().partition("\n")[0][:200]
        raise ValueError(
            f"language.device = {config.device!r} cannot be used here: {why}"
        ) from error
    return device


def dtype_of(config: LanguageConfig) -> torch.dtype:
    """The type of the base model's arithmetic."""
    if config.dtype == "auto":
        on_gpu = device_of(config).type == "cuda"
        return torch.bfloat16 if on_gpu else torch.float32
    return torch.bfloat16 if config.dtype == "bfloat16" else torch.float32


def load(config: LanguageConfig, texts: Callable[[], Sequence[str]], seed: int) -> Loaded:
    """The model that a configuration names, on its device.

    Args:
        config: which one.
        texts: texts of the task, on which a tiny model's tokenizer is trained.
        seed: of a tiny model's weights.

    Raises:
        ModelNotFoundError: it is not there.
        MissingLibraryError: a library is not installed.
        ValueError: the name means nothing.
    """
    check_library()
    if not config.model.strip():
        raise ValueError("language.model must name a model, e.g. tiny, a folder or a hub id")
    device = device_of(config)
    # What is learned is kept in float32 (see `LanguageConfig.dtype`).
    learned = config.parameters == "separate"
    dtype = torch.float32 if learned else dtype_of(config)
    name = config.model
    processor = None
    if name == "tiny" or name.startswith("tiny-"):
        from mpt_train.language import tiny

        model, tokenizer = tiny.build(name, texts(), seed)
        model = model.to(dtype)
        processor = tiny.image_processor(name)
    elif ":" in name and not _exists(_path(name)):
        model, tokenizer = _plug_in(name, config)
    else:
        model, tokenizer = _pretrained(name, dtype)
    check_kind(name, model, tokenizer)
    base = marks(model, tokenizer, weights=not learned)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    stop = _stop_ids(model, tokenizer)
    end = _end_id(tokenizer, stop)
    check_vocabulary(name, model, tokenizer, end)
    model = model.to(device).eval()
    model.config.use_cache = True
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    reader = picture_reader(model, name, processor) if config.pictures else None
    return Loaded(model, tokenizer, stop, end, reader, base)


def _pretrained(name: str, dtype: torch.dtype) -> tuple[Any, Any]:
    import transformers

    path = _path(name)
    options: dict[str, Any] = {}
    source: str = str(path) if _exists(path) else name
    if name.endswith(".gguf"):
        if not path.is_file():
            raise ModelNotFoundError(f"there is no file {name!r}")
        try:
            importlib.import_module("gguf")
        except ImportError as error:
            raise MissingLibraryError(
                f"reading {name} needs gguf; {how_to_install('llm')}"
            ) from error
        source, options = str(path.parent), {"gguf_file": path.name}
    elif not _exists(path) and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise ModelNotFoundError(f"there is no folder {name!r}")
    try:
        settings = transformers.AutoConfig.from_pretrained(source, **options)
        kind: Any = transformers.AutoModelForCausalLM
        if hasattr(settings, "vision_config"):
            kind = transformers.AutoModelForImageTextToText
        # Sizes that do not match are told by `check_weights`, with the names of the weights.
        model, found = kind.from_pretrained(
            source,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=not options,
            **options,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
    except Exception as error:
        # Of any kind: each library that takes part has errors of its own for a damaged file.
        if is_out_of_memory(error):
            raise
        raise ModelNotFoundError(_advice(name, path, error)) from error
    if options:
        _forget_quantization(model)
    else:
        check_weights(name, model, found)
    return model, tokenizer


def _path(name: str) -> Path:
    """The path that a name may be."""
    try:
        return Path(name).expanduser()
    except RuntimeError:  # the home of a user who is not there
        return Path(name)


def _exists(path: Path) -> bool:
    """Whether there is such a path; a name that can be none is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _advice(name: str, path: Path, error: Exception) -> str:
    why = " ".join(str(error).split())[:300] or repr(error)
    if "llava_llama" in str(error):
        return (
            f"{name} is a NaVILA (llava_llama) checkpoint, which transformers does not know; use "
            "--language.model mpt_train.language.navila:load, which says what it needs"
        )
    if _exists(path):
        return f"{name} cannot be loaded as a language model: {why}"
    return (
        f"the model {name!r} is not here and cannot be fetched ({why}); on a machine with network "
        f"access `hf download {name}` gets it (`hf download {name} --local-dir DIR`, then "
        "--language.model DIR, without); `tiny` needs no download"
    )


def _plug_in(name: str, config: LanguageConfig) -> tuple[Any, Any]:
    module, _, function = name.partition(":")
    if not module or not function:
        raise ModelNotFoundError(
            f"language.model = {name!r} names no function: a plug-in is module:function"
        )
    try:
        loader = getattr(importlib.import_module(module), function)
    except Exception as error:
        # Of any kind: importing runs the module.
        raise ModelNotFoundError(
            f"language.model = {name!r} names a function that loads a model, but it cannot be "
            f"imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(loader):
        raise ModelNotFoundError(
            f"language.model = {name!r} names no function, but a {type(loader).__name__}"
        )
    try:
        loaded = loader(config)
    except Exception as error:
        if isinstance(error, MarketError) or is_out_of_memory(error):
            raise
        raise ModelNotFoundError(
            f"the plug-in {name} could not load its model: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(loaded, tuple) and len(loaded) == 2):
        raise ModelNotFoundError(f"{name} must return (model, tokenizer), got {type(loaded)}")
    return loaded[0], loaded[1]


def _forget_quantization(model: Any) -> None:
    """Weights from a gguf file are plain numbers by now, and can be saved and trained as such."""
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _turn_ends(tokenizer: Any) -> list[int]:
    """Ids of the tokens that end a turn of a chat, as far as the tokenizer has them."""
    numbers = [tokenizer.convert_tokens_to_ids(token) for token in _TURN_ENDS]
    return [n for n in numbers if isinstance(n, int) and n != tokenizer.unk_token_id]


def _end_id(tokenizer: Any, stop: tuple[int, ...]) -> int:
    ends = _turn_ends(tokenizer) if tokenizer.chat_template is not None else []
    own = tokenizer.eos_token_id
    return ends[0] if ends else int(own) if own in stop else stop[0]


def _stop_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    ids: set[int] = set()
    settings = getattr(model, "generation_config", None)
    for source in (tokenizer.eos_token_id, getattr(settings, "eos_token_id", None)):
        if isinstance(source, int):
            ids.add(source)
        elif source is not None:
            ids |= {int(x) for x in source}
    # The end of a chat turn is not always the end of a text.
    ids |= set(_turn_ends(tokenizer))
    if not ids:
        raise ModelNotFoundError("the tokenizer has no end-of-text token, so no answer would end")
    return tuple(sorted(ids))
