"""What is checked of a model right after it is loaded, so that a broken one is told at once.

transformers loads much that cannot be played with: weights that are not there are drawn at random,
tokenizers have tokens that the model has none of, and configurations promise positions that were
never learned. On a GPU such a mistake ends in an error of the device, far from its cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import nn

from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import ModelNotFoundError
from mpt_train.language.lora import TOWERS

_POSITIONS = re.compile(r"wpe|\w*pos(?:ition)?(?:s|al)?(?:_\w+|$)")


def check_weights(name: str, model: Any, found: Mapping[str, Any]) -> None:
    """Refuse a model whose weights are not those of its folder.

    Args:
        name: for the message.
        model: as loaded.
        found: what transformers tells of the loading (``output_loading_info``).

    Raises:
        ModelNotFoundError: a weight is missing, superfluous or of another shape.
    """
    problems = []
    for key, *shapes in sorted(found.get("mismatched_keys", ())):
        sizes = " and ".join(str(tuple(shape)) for shape in shapes)
        problems.append(f"{key} has other sizes than config.json says ({sizes})")
    problems += [f"{key} is missing" for key in sorted(found.get("missing_keys", ()))]
    # Of a layer that config.json has dropped; other superfluous weights belong to other heads.
    known = {re.sub(r"\d+", "N", key) for key, _ in model.named_parameters()}
    problems += [
        f"{key} belongs to a layer that config.json does not have"
        for key in sorted(found.get("unexpected_keys", ()))
        if re.sub(r"\d+", "N", key) in known
    ]
    if problems:
        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        raise ModelNotFoundError(
            f"{name} cannot be loaded as a language model, its weights and its config.json do not "
            f"belong together: {problems[0]}{more}"
        )


def check_kind(name: str, model: Any, tokenizer: Any) -> None:
    """Refuse what is no transformers model with attention, or no tokenizer.

    Raises:
        ModelNotFoundError: with what it is instead.
    """
    # Kept apart, so that mypy does not take the model's methods for modules.
    is_module = isinstance(model, nn.Module)
    if not (is_module and hasattr(model, "get_output_embeddings")):
        raise ModelNotFoundError(
            f"{name} gave as its model {type(model).__name__}, which is no model of transformers; "
            "a plug-in returns (model, tokenizer)"
        )
    needed = ("apply_chat_template", "get_vocab", "eos_token_id", "added_tokens_decoder")
    if not callable(tokenizer) or not all(hasattr(tokenizer, part) for part in needed):
        raise ModelNotFoundError(
            f"{name} gave as its tokenizer {type(tokenizer).__name__}, which is no tokenizer of "
            "transformers; a plug-in returns (model, tokenizer)"
        )
    settings = model.config.get_text_config(decoder=True)
    counts = (getattr(settings, f"num_{part}", 0) for part in ("attention_heads", "hidden_layers"))
    attends = all(isinstance(count, int) and count > 0 for count in counts)
    if not attends or model.get_output_embeddings() is None:
        raise ModelNotFoundError(
            f"{name} is a {getattr(settings, 'model_type', '?')} model: agents need a causal "
            "language model with layers of attention, whose keys and values can be kept and cut"
        )


def check_vocabulary(name: str, model: Any, tokenizer: Any, end: int) -> None:
    """Refuse a tokenizer with tokens that the model does not have.

    Special tokens may be beyond: they cannot occur in a message (`chat.Chat`), and some models that
    read text only keep those of pictures.

    Raises:
        ModelNotFoundError: the tokenizer belongs to another model, or is empty.
    """
    rows = vocabulary(model)
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    numbers = [int(i) for i in tokenizer.get_vocab().values() if i not in special]
    if not numbers or not tokenizer("a 0", add_special_tokens=False)["input_ids"]:
        raise ModelNotFoundError(f"the tokenizer of {name} is empty: it knows no text")
    largest = max(*numbers, end)
    if largest >= rows:
        raise ModelNotFoundError(
            f"the tokenizer of {name} has tokens up to number {largest}, and its model only "
            f"{rows}: they do not belong together"
        )


def vocabulary(model: Any) -> int:
    """How many tokens a model can read and write."""
    layers = (model.get_input_embeddings(), model.get_output_embeddings())
    return min(int(layer.weight.shape[0]) for layer in layers)


def check_positions(model: Any, config: LanguageConfig) -> None:
    """Refuse prompts and answers for which a model has learned no positions.

    Raises:
        ValueError: with the longest prompt that it can read.
    """
    settings = model.config.get_text_config(decoder=True)
    limit = getattr(settings, "max_position_embeddings", None)
    learned = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
        and _POSITIONS.fullmatch(name.rpartition(".")[2])
        and not TOWERS.search(name)
    ]
    # Others compute positions, and go on beyond what they were trained with.
    if not learned or not isinstance(limit, int):
        return
    limit = min(limit, *(module.num_embeddings for module in learned))
    if config.max_prompt_tokens + config.max_answer_tokens > limit:
        raise ValueError(
            f"{config.model} has learned {limit} positions, but a prompt may have "
            f"language.max_prompt_tokens = {config.max_prompt_tokens} tokens and an answer "
            f"language.max_answer_tokens = {config.max_answer_tokens}; use at most "
            f"--language.max-prompt-tokens {max(0, limit - config.max_answer_tokens)}"
        )
