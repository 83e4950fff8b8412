"""Floating-point operations of language models, from tokens and parameters.

A token costs 2 operations for each weight of the linear layers it goes through (Kaplan et al.,
2020), attention 4 per layer, head and dimension for each token that it attends to, and the output
layer counts only where logits are computed. Padding, embeddings, norms and sampling are left out.
Going backward costs twice the forward pass where weights learn, and once where they are frozen,
since only the inputs' gradients are computed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from mpt_train.flops import BACKWARD
from mpt_train.language.decoding import Work


@dataclass(frozen=True)
class ModelFlop:
    """Costs of one model.

    Attributes:
        token: per token, output layer not included.
        head: per place with logits.
        pair: per pair of tokens in attention.
        learned: per token, of the weights that learn.
    """

    token: int
    head: int
    pair: int
    learned: int

    def forward(self, work: Work) -> int:
        """Of a forward pass."""
        return self.token * work.tokens + self.head * work.heads + self.pair * work.pairs

    def update(self, work: Work, recompute: bool = False) -> int:
        """Of a forward and a backward pass; with activations computed twice if asked for."""
        forward = self.forward(work)
        frozen = self.learned < self.token
        backward = forward + self.learned * work.tokens if frozen else BACKWARD * forward
        return forward * (2 if recompute else 1) + backward


def model_flop(model: Any, adapter: int = 0) -> ModelFlop:
    """The costs of a transformers model.

    Args:
        model: with a language-modelling head.
        adapter: number of weights of an adapter; 0: the whole model learns.
    """
    settings = model.config.get_text_config(decoder=True)
    head = model.get_output_embeddings()
    towers = ("vision", "visual", "audio", "image")
    weights = sum(
        module.weight.numel()
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
        and module is not head
        and not any(tower in name for tower in towers)
    )
    size = getattr(settings, "head_dim", None)
    if size is None:
        size = settings.hidden_size // settings.num_attention_heads
    pair = 4 * settings.num_hidden_layers * settings.num_attention_heads * size
    token = 2 * (weights + adapter)
    return ModelFlop(
        token=token,
        head=2 * head.weight.numel(),
        pair=pair,
        learned=2 * adapter if adapter else token,
    )
