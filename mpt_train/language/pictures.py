"""Pictures for vision-language models: what stands for one in a prompt, and what a model is given.

A picture is an RGB array of the state. It goes in front of the user message as the model family's
own placeholder tokens, one for each of the tower's outputs, which is what the family's processor
would write. Image processors are the ones that need Pillow only.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.language.errors import ModelNotFoundError

Picture = NDArray[np.uint8]


class PictureReader:
    """Pictures to inputs, for one model.

    Args:
        model: a vision-language model of transformers.
        processor: its image processor.
    """

    def __init__(self, model: Any, processor: Any) -> None:
        self._inner = model.model
        self._processor = processor
        settings = model.config
        self.kind = str(settings.model_type)
        self._image = _first(settings, "image_token_id", "image_token_index")
        self._before = _first(settings, "vision_start_token_id", "boi_token_id", default=None)
        self._after = _first(settings, "vision_end_token_id", "eoi_token_id", default=None)
        self._merge = getattr(settings.vision_config, "spatial_merge_size", 1)
        self._vision = settings.vision_config
        self._has_rope_index = hasattr(self._inner, "get_rope_index")
        self._sizes: dict[tuple[int, ...], int] = {}

    def tokens(self, picture: Picture) -> NDArray[np.int32]:
        """The tokens that stand for a picture in a prompt."""
        count = self._sizes.get(picture.shape)
        if count is None:
            count = self._count(self._process([picture]))
            self._sizes[picture.shape] = count
        before = [] if self._before is None else [self._before]
        after = [] if self._after is None else [self._after]
        return np.array([*before, *[self._image] * count, *after], np.int32)

    def holds_picture(self, tokens: NDArray[np.int32]) -> bool:
        """Whether there is a picture's token among these."""
        return bool((tokens == self._image).any())

    def inputs(
        self, ids: Tensor, mask: Tensor, pictures: Sequence[Picture]
    ) -> tuple[dict[str, Any], Tensor]:
        """What a model is given for prompts with a picture each.

        Args:
            ids: ``int64 (N, T)`` tokens, padded.
            mask: ``int64 (N, T)``, 0 for padding.
            pictures: N.

        Returns:
            Keywords for the model (with positions, where a family counts them in its own way), and
            ``int64 (N,)``: what a later token's position exceeds its index by.
        """
        values = self._process(pictures)
        values.pop("num_soft_tokens_per_image", None)
        given = {name: value.to(ids.device) for name, value in values.items()}
        kinds = ((ids == self._image) & (mask > 0)).long()
        if self.kind.startswith(("qwen", "gemma4")):
            given["mm_token_type_ids"] = kinds
        shift = torch.zeros(len(ids), dtype=torch.long, device=ids.device)
        if self._has_rope_index:
            positions, deltas = self._inner.get_rope_index(
                ids, kinds, image_grid_thw=given["image_grid_thw"], attention_mask=mask
            )
            given["position_ids"] = positions
            shift = deltas.reshape(-1).to(ids.device)
        return given, shift

    def _process(self, pictures: Sequence[Picture]) -> dict[str, Any]:
        from PIL import Image

        images = [Image.fromarray(picture) for picture in pictures]
        return dict(self._processor(images=images, return_tensors="pt"))

    def _count(self, values: dict[str, Any]) -> int:
        """How many of the tower's outputs a picture has."""
        if "image_grid_thw" in values:
            return int(values["image_grid_thw"][0].prod()) // self._merge**2
        if "num_soft_tokens_per_image" in values:
            return int(values["num_soft_tokens_per_image"][0])
        size = values["pixel_values"].shape[-2:]
        return (size[0] // self._vision.patch_size) * (size[1] // self._vision.patch_size)

    def __deepcopy__(self, memo: dict[int, Any]) -> PictureReader:
        return copy.copy(self)


def picture_reader(model: Any, name: str, processor: Any = None) -> PictureReader:
    """The reader of a model.

    Args:
        model: of transformers.
        name: where its image processor is, too.
        processor: the image processor, if it is there already.

    Raises:
        ModelNotFoundError: the model has no eyes, or no image processor.
    """
    if not hasattr(model.config, "vision_config"):
        raise ModelNotFoundError(
            f"language.pictures is on, but {name} reads text only; use a vision-language model, "
            "such as Qwen/Qwen3-VL-2B-Instruct"
        )
    if processor is None:
        import transformers

        try:
            processor = transformers.AutoImageProcessor.from_pretrained(name, backend="pil")
        except (OSError, ValueError, ImportError) as error:
            raise ModelNotFoundError(
                f"{name} has no image processor that can be loaded here: {error}"
            ) from error
    return PictureReader(model, processor)


def _first(settings: Any, *names: str, default: Any = ...) -> Any:
    for name in names:
        value = getattr(settings, name, None)
        if value is not None:
            return value
    if default is ...:
        raise ModelNotFoundError(
            f"the configuration of this vision-language model says nothing of {' or '.join(names)}"
        )
    return default
