"""Tiny language models with random weights, and a tokenizer trained on the task's own texts.

They need no download, learn a small task from nothing in seconds on a CPU, and go through exactly
the code that a real model goes through. For tests, for trying things out, and for teaching.

======================  =======================================================================
name                    what it is
======================  =======================================================================
``tiny``                Qwen3, 2 layers of width 64: about 0.15 M parameters
``tiny-128``            Qwen3, 4 layers of width 128: about 1 M
``tiny-llama``          Llama (also SmolLM2's family), 2 layers of width 64
``tiny-qwen2``          Qwen2.5's family
``tiny-gemma4``         Gemma 4 (text), sliding-window and full attention
``tiny-qwen3-vl``       Qwen3-VL: text and pictures
``tiny-gemma4-vl``      Gemma 4: text and pictures
``tiny-llava``          Llava: CLIP tower, Llama text model
======================  =======================================================================
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

VOCABULARY = 768
"""Size of the tokenizer's vocabulary, which is less for little text."""
_PIECE = r" ?[0-9]+(\.[0-9]+)?| ?[A-Za-z_]+|\s+| ?[^\sA-Za-z0-9_]+"
SPECIAL = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|image|>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def train_tokenizer(texts: Sequence[str], vocabulary: int = VOCABULARY) -> Any:
    """A byte-level BPE tokenizer with a chat template; the same texts give the same one.

    Args:
        texts: what it is trained on. Any text can be encoded, however unlike these.
        vocabulary: most tokens it may have.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            # Names and numbers as a whole, each with the space before it.
            pre_tokenizers.Split(Regex(_PIECE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(texts), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[2:]),
    )
    fast.chat_template = TEMPLATE
    return fast


def _text_sizes(width: int, layers: int) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": width // 4,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        # Larger than is usual: narrow models learn much sooner from it.
        "initializer_range": 0.1,
    }


def _qwen3(tokenizer: Any, width: int = 64, layers: int = 2) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    sizes = _text_sizes(width, layers)
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **_ids(tokenizer), **sizes))


def _llama(tokenizer: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = _text_sizes(64, 2)
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **_ids(tokenizer), **sizes))


def _qwen2(tokenizer: Any) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    sizes = _text_sizes(64, 2)
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **_ids(tokenizer), **sizes))


def _gemma4_text_config(tokenizer: Any) -> Any:
    from transformers import Gemma4TextConfig

    sizes = _text_sizes(64, 2)
    return Gemma4TextConfig(
        vocab_size=len(tokenizer),
        vocab_size_per_layer_input=len(tokenizer),
        hidden_size_per_layer_input=16,
        global_head_dim=16,
        sliding_window=64,
        layer_types=["sliding_attention", "full_attention"],
        num_kv_shared_layers=0,
        **_ids(tokenizer),
        **sizes,
    )


def _gemma4(tokenizer: Any) -> Any:
    from transformers import Gemma4ForCausalLM

    return Gemma4ForCausalLM(_gemma4_text_config(tokenizer))


def _ids(tokenizer: Any) -> dict[str, Any]:
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.eos_token_id,
    }


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "tiny": _qwen3,
    "tiny-128": lambda tokenizer: _qwen3(tokenizer, 128, 4),
    "tiny-llama": _llama,
    "tiny-qwen2": _qwen2,
    "tiny-gemma4": _gemma4,
}


def build(name: str, texts: Sequence[str], seed: int) -> tuple[Any, Any]:
    """A tiny model and its tokenizer.

    Args:
        name: one of the table at the top of this file.
        texts: to train the tokenizer on.
        seed: of the weights.

    Raises:
        ValueError: there is no such tiny model.
    """
    import torch

    if name not in BUILDERS:
        close = difflib.get_close_matches(name, BUILDERS, n=2)
        hint = (
            f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(BUILDERS)}"
        )
        raise ValueError(f"there is no tiny model {name!r}; {hint}")
    tokenizer = train_tokenizer(texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BUILDERS[name](tokenizer)
    return model, tokenizer
