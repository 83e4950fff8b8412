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
SPECIAL = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
PICTURE = ("<|image|>", "<|picture|>", "<|/picture|>", "<|video|>")
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
        special_tokens=[*SPECIAL, *PICTURE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(texts), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=[*SPECIAL[2:], *PICTURE],
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


def _picture_ids(tokenizer: Any) -> dict[str, int]:
    """Ids of the placeholder tokens; names that no text contains stand for sound and video."""
    names = ("<|image|>", "<|picture|>", "<|/picture|>", "<|video|>")
    ids: list[int] = tokenizer.convert_tokens_to_ids(list(names))
    return dict(zip(("image", "before", "after", "video"), ids, strict=True))


def _qwen3_vl(tokenizer: Any) -> Any:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    ids = _picture_ids(tokenizer)
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 10000.0}
    text = {"vocab_size": len(tokenizer), "rope_parameters": rope, **_ids(tokenizer)}
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "patch_size": 8,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "deepstack_visual_indexes": [0],
        "num_position_embeddings": 256,
    }
    settings = Qwen3VLConfig(
        text_config={**text, **_text_sizes(64, 2)},
        vision_config=vision,
        image_token_id=ids["image"],
        video_token_id=ids["video"],
        vision_start_token_id=ids["before"],
        vision_end_token_id=ids["after"],
        tie_word_embeddings=True,
    )
    return Qwen3VLForConditionalGeneration(settings)


def _gemma4_vl(tokenizer: Any) -> Any:
    from transformers import Gemma4Config, Gemma4ForConditionalGeneration

    ids = _picture_ids(tokenizer)
    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "global_head_dim": 16,
        "patch_size": 8,
        "pooling_kernel_size": 2,
        "position_embedding_size": 64,
    }
    settings = Gemma4Config(
        text_config=_gemma4_text_config(tokenizer).to_dict(),
        vision_config=vision,
        audio_config=None,
        image_token_id=ids["image"],
        boi_token_id=ids["before"],
        eoi_token_id=ids["after"],
        video_token_id=ids["video"],
        audio_token_id=len(tokenizer) + 1,
    )
    return Gemma4ForConditionalGeneration(settings)


def _llava(tokenizer: Any) -> Any:
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    ids = _picture_ids(tokenizer)
    text = {"model_type": "llama", "vocab_size": len(tokenizer), **_ids(tokenizer)}
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    settings = LlavaConfig(
        text_config={**text, **_text_sizes(64, 2)},
        vision_config=vision,
        image_token_index=ids["image"],
        tie_word_embeddings=True,
    )
    return LlavaForConditionalGeneration(settings)


def image_processor(name: str) -> Any:
    """The image processor of a tiny vision-language model; None of one that reads text only."""
    import transformers

    if name == "tiny-qwen3-vl":
        kind = transformers.Qwen2VLImageProcessorPil
        return kind(patch_size=8, merge_size=2, min_pixels=256, max_pixels=4096)
    if name == "tiny-gemma4-vl":
        kind = transformers.Gemma4ImageProcessorPil
        return kind(patch_size=8, max_soft_tokens=70, pooling_kernel_size=2)
    if name == "tiny-llava":
        size = {"height": 64, "width": 64}
        return transformers.CLIPImageProcessorPil(size=size, crop_size=size)
    return None


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "tiny": _qwen3,
    "tiny-128": lambda tokenizer: _qwen3(tokenizer, 128, 4),
    "tiny-llama": _llama,
    "tiny-qwen2": _qwen2,
    "tiny-gemma4": _gemma4,
    "tiny-qwen3-vl": _qwen3_vl,
    "tiny-gemma4-vl": _gemma4_vl,
    "tiny-llava": _llava,
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
