"""What a base model is known by again: short digests of its configuration, tokenizer and weights.

Adapters mean something on the model that they were learned on only, and a folder or a hub id can
hold another one tomorrow. Each part has a digest of its own, so that a message can name the part.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
from torch import Tensor

_VALUES = 64
"""Numbers of each tensor that are looked at: a changed model has changed nearly all of them."""
_PROBE = 'Turn 1 of 30. {"bid": 0.7}\n\u00e4\u4e2d\U0001f600 chop_log'
_VOLATILE = {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "use_cache"}
"""What a configuration says of where and how it was loaded."""


def marks(model: Any, tokenizer: Any, *, weights: bool) -> dict[str, Tensor]:
    """Digests, ``uint8 (16,)`` each, by the name of what they are of.

    Args:
        model: of transformers, as it was loaded, without adapters.
        tokenizer: its tokenizer.
        weights: whether the weights count; they do not where all of them are learned.
    """
    found = {
        "configuration": _digest(_plain(model.config.to_diff_dict())),
        "tokenizer": _digest(
            {
                "vocabulary": sorted((str(t), int(i)) for t, i in tokenizer.get_vocab().items()),
                "template": tokenizer.chat_template,
                "probe": list(tokenizer(_PROBE, add_special_tokens=False)["input_ids"]),
            }
        ),
    }
    if weights:
        found["weights"] = _digest(_sample(model))
    return found


@torch.no_grad()
def _sample(model: Any) -> list[Any]:
    """Name, shape and some values of each weight.

    Values are rounded to bfloat16, so that they are the same in whatever type a model is loaded.
    """
    found = []
    for name, value in sorted(model.named_parameters()):
        flat = value.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // _VALUES)][:_VALUES]
        numbers = some.to(torch.bfloat16).view(torch.int16).tolist()
        found.append([name, list(value.shape), numbers])
    return found


def _plain(value: Any) -> Any:
    """A configuration without what is volatile, in it or in its parts."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items() if k not in _VOLATILE}
    return value


def _digest(value: Any) -> Tensor:
    text = json.dumps(value, sort_keys=True, default=str)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return torch.tensor(list(digest), dtype=torch.uint8)
