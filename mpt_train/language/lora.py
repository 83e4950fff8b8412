"""Low-rank adapters (LoRA, Hu et al., 2021): one small set of weights per agent on a shared base.

All agents' adapters can be mixed in one batch. The matrices A of all of them are applied as one,
what belongs to other agents than the row's own is multiplied by 0, and the matrices B are applied
as one::

    y = W x + alpha / rank * [B_1 ... B_K] (mask * [A_1; ...; A_K] x)

For K agents of rank r that is a linear layer of rank K r, whatever the number of rows; and since
the other agents' part is an exact 0, training one agent leaves every other agent's outputs the
same to the last bit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

TOWERS = re.compile(r"(?:^|\.)(?:vision\w*|visual|audio\w*|image\w*|multi_modal_projector)(?:\.|$)")


class Adapter(nn.Module):
    """The adapter of one agent: A ``(rank, in)`` and B ``(out, rank)`` for each adapted layer.

    Args:
        layers: the adapted layers, by name.
        rank: r.
        generator: of the initial A; B starts at 0, so that the agent starts as the base.
    """

    def __init__(self, layers: dict[str, nn.Linear], rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.names = tuple(layers)
        self.rank = rank
        self.a, self.b = nn.ParameterList(), nn.ParameterList()
        for layer in layers.values():
            bound = math.sqrt(3.0 / layer.in_features)
            a = (torch.rand(rank, layer.in_features, generator=generator) * 2.0 - 1.0) * bound
            b = torch.zeros(layer.out_features, rank)
            self.a.append(nn.Parameter(a.to(layer.weight.device)))
            self.b.append(nn.Parameter(b.to(layer.weight.device)))

    @torch.no_grad()
    def copy_from(self, other: Adapter) -> None:
        """Take the weights of another adapter."""
        for own, source in zip(self.parameters(), other.parameters(), strict=True):
            own.copy_(source)


class _Selection:
    """Whose adapters the next forward passes use; shared by all adapted layers."""

    def __init__(self) -> None:
        self.adapters: list[Adapter] = []
        self.single: int | None = None
        self.mask: Tensor | None = None
        self.stamp = 0


class AdaptedLinear(nn.Module):
    """A frozen linear layer and the adapters on it."""

    def __init__(self, base: nn.Linear, index: int, scale: float, selection: _Selection) -> None:
        super().__init__()
        self.base = base
        self.in_features, self.out_features = base.in_features, base.out_features
        self._index, self._scale, self._selection = index, scale, selection
        self._stacked: tuple[tuple[int, ...], Tensor, Tensor] | None = None

    @property
    def weight(self) -> Tensor:
        """Of the base; some models look at its dtype or device."""
        return self.base.weight

    def forward(self, x: Tensor) -> Tensor:
        """``(..., in)`` to ``(..., out)``; the first dimension are rows, or rows by tokens."""
        out: Tensor = self.base(x)
        chosen = self._selection
        if chosen.single is not None:
            adapter = chosen.adapters[chosen.single]
            a, b = adapter.a[self._index], adapter.b[self._index]
            low = nn.functional.linear(x, a.to(x.dtype))
            return out + nn.functional.linear(low, b.to(x.dtype)) * self._scale
        if chosen.mask is None:
            return out
        a, b = self._all(x.dtype)
        mask = chosen.mask.to(x.dtype)
        low = nn.functional.linear(x, a)
        if x.dim() == 2:
            low = low * mask.repeat_interleave(len(x) // len(mask), 0)
        else:
            low = low * mask.view(len(mask), *([1] * (x.dim() - 2)), mask.shape[1])
        return out + nn.functional.linear(low, b) * self._scale

    def _all(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """All agents' A ``(K r, in)`` and B ``(out, K r)``; kept while no weight changes."""
        adapters = self._selection.adapters
        pairs = [(x.a[self._index], x.b[self._index]) for x in adapters]
        if torch.is_grad_enabled():
            return (
                torch.cat([a for a, _ in pairs]).to(dtype),
                torch.cat([b for _, b in pairs], dim=1).to(dtype),
            )
        # A tensor counts its changes, but not those that a fused optimizer makes.
        version = (self._selection.stamp, *(p._version for pair in pairs for p in pair))
        if self._stacked is None or self._stacked[0] != version or self._stacked[1].dtype != dtype:
            a = torch.cat([a.detach() for a, _ in pairs]).to(dtype)
            b = torch.cat([b.detach() for _, b in pairs], dim=1).to(dtype)
            self._stacked = (version, a, b)
        return self._stacked[1], self._stacked[2]


class AdapterBank:
    """The adapters of all agents on one base model, which is changed in place.

    Args:
        model: the base; its parameters are frozen, and matching linear layers replaced.
        count: number of adapters.
        rank, alpha: see `LanguageConfig`.
        targets: regular expression for the names of the layers.
        seed: of the initial weights.

    Attributes:
        adapters: one per agent.

    Raises:
        ValueError: no layer matches, or none is as wide as the rank.
    """

    def __init__(
        self, model: nn.Module, count: int, rank: int, alpha: float, targets: str, seed: int
    ) -> None:
        model.requires_grad_(False)
        self.rank, self.alpha, self.targets = rank, alpha, targets
        pattern = re.compile(targets)
        self.layers = {
            name: module
            for name, module in model.named_modules()
            if type(module) is nn.Linear and pattern.fullmatch(name) and not TOWERS.search(name)
        }
        if not self.layers:
            raise ValueError(
                f"no linear layer of the model matches language.targets = {targets!r}; its layers "
                f"are named like {_some_linear(model)!r}"
            )
        widest = max(max(x.in_features, x.out_features) for x in self.layers.values())
        if rank > widest:
            raise ValueError(
                f"language.rank = {rank} is more than the layers are wide (at most {widest}), and "
                "an adapter of low rank is meant; use language.parameters = 'separate' to learn all"
            )
        generator = torch.Generator().manual_seed(seed)
        self.adapters = [Adapter(self.layers, rank, generator) for _ in range(count)]
        self._selection = _Selection()
        self._selection.adapters = self.adapters
        for index, (name, layer) in enumerate(self.layers.items()):
            adapted = AdaptedLinear(layer, index, alpha / rank, self._selection)
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, adapted)

    @property
    def parameters_each(self) -> int:
        """Number of weights of one adapter."""
        return sum(p.numel() for p in self.adapters[0].parameters())

    def select(self, agents: Sequence[int] | None) -> None:
        """Whose adapter each row of the following batches uses; None: the bare base."""
        chosen = self._selection
        chosen.single, chosen.mask = None, None
        if agents is None:
            return
        names = set(agents)
        if len(names) == 1:
            chosen.single = names.pop()
            return
        device = self.adapters[0].a[0].device
        rows = torch.tensor(list(agents), device=device)
        mask = nn.functional.one_hot(rows, len(self.adapters))
        chosen.mask = mask.repeat_interleave(self.rank, dim=1).float()

    def changed(self) -> None:
        """To be called when weights may have changed: copies that were kept for speed are void."""
        self._selection.stamp += 1


def save_peft(adapter: Adapter, folder: Path, base: str, alpha: float) -> None:
    """Write one adapter in the layout that PEFT, vLLM and others read.

    Args:
        adapter: of one agent.
        folder: gets ``adapter_model.safetensors`` and ``adapter_config.json``.
        base: name or path of the base model.
        alpha: as trained.
    """
    import safetensors.torch

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, a, b in zip(adapter.names, adapter.a, adapter.b, strict=True):
        tensors[f"base_model.model.{name}.lora_A.weight"] = a.detach().cpu().contiguous()
        tensors[f"base_model.model.{name}.lora_B.weight"] = b.detach().cpu().contiguous()
    safetensors.torch.save_file(tensors, folder / "adapter_model.safetensors")
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": adapter.rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(adapter.names),
        "inference_mode": True,
    }
    text = json.dumps(settings, indent=1)
    (folder / "adapter_config.json").write_text(text + "\n", encoding="utf-8")


def _some_linear(model: nn.Module) -> str:
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return names[len(names) // 2] if names else "(none)"
