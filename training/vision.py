"""The only file that knows VLM families: how each lays out images, and how many tokens they become; free of torch.

A prompt is run through its processor alone, so nothing ever has to be cut out of a batch; batches are made by joining
prompts with the family's declared rule.  A new family is a row here and a parameter of the tests.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from training.image_tokens import (
    ImageTokens,
    anyres_patches,
    closest_grid,
    cropped_square,
    grid_with_newlines,
    merged_patches,
    one_square,
    split_squares,
)

ImageTensors = Mapping[str, Any]
Features = Callable[[ImageTensors, Any], int]


class Join(Enum):
    """How one image tensor of several prompts becomes one."""

    ROWS = "rows"
    """Concatenate along dim 0, whose unit is a patch, a tile or an image."""
    TILES = "tiles"
    """(images, tiles, ...): pad dim 1 with zeros to the longest, then concatenate along dim 0."""
    SAMPLES = "samples"
    """(1, images, ...): pad with zeros to the largest in every dim, one row per prompt, text-only prompts included."""


@dataclass(frozen=True, slots=True)
class Family:
    """What differs between VLM families."""

    images: Mapping[str, Join]
    """Image tensors of the processor and how they are joined."""
    features: Features | None
    """(image tensors of one prompt, model config) -> tokens that the model makes of them; None where only the model
    itself can tell."""
    tokens: ImageTokens | None
    """Placeholders that the processor writes for an image of some size; None where it cannot be told beforehand."""
    types: tuple[str, ...] = ()
    """Per-token tensors beside input_ids; 0 for padding and for completion tokens."""
    around: tuple[str, str] = ("", "")
    """What a chat template writes before and after an image; only templates that take plain strings need it here."""
    mrope: bool = False
    """Rotary positions have three axes that depend on the images' grids."""


def _rows(tokens: Callable[[Any], int]) -> Features:
    """Each row of pixel_values becomes so many tokens."""
    return lambda images, config: len(images["pixel_values"]) * tokens(config)


def _merged_rows(images: ImageTensors, config: Any) -> int:
    return len(images["pixel_values"]) // config.vision_config.spatial_merge_size**2


def _patches(config: Any) -> int:
    """Patches of the vision encoder's square image."""
    return (config.vision_config.image_size // config.vision_config.patch_size) ** 2


def _shuffled_patches(config: Any) -> int:
    sides = zip(config.vision_config.image_size, config.vision_config.patch_size, strict=True)
    return int(math.prod(side // patch for side, patch in sides) * config.downsample_ratio**2)


def _llava_tokens(config: Any) -> int:
    return _patches(config) + (config.vision_feature_select_strategy == "full")


def _tiles(images: ImageTensors, config: Any) -> int:
    return images["pixel_values"].shape[1] * _patches(config) // config.scale_factor**2


def _anyres(images: ImageTensors, config: Any) -> int:
    side, patch = config.vision_config.image_size, config.vision_config.patch_size
    sizes = images["image_sizes"].tolist()
    return sum(anyres_patches(config.image_grid_pinpoints, side, patch, width, height) for height, width in sizes)


_QWEN = Family(
    {"pixel_values": Join.ROWS, "image_grid_thw": Join.ROWS},
    features=_merged_rows,
    tokens=merged_patches,
    types=("mm_token_type_ids",),
    around=("<|vision_start|>", "<|vision_end|>"),
    mrope=True,
)
_IDEFICS = Family(
    {"pixel_values": Join.SAMPLES, "pixel_attention_mask": Join.SAMPLES}, features=_tiles, tokens=split_squares
)

FAMILIES: dict[str, Family] = {
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": _QWEN,
    "smolvlm": _IDEFICS,
    "idefics3": _IDEFICS,
    "gemma3": Family(
        {"pixel_values": Join.ROWS},
        features=_rows(lambda config: config.mm_tokens_per_image),
        tokens=one_square,
        types=("token_type_ids",),
    ),
    "internvl": Family({"pixel_values": Join.ROWS}, features=_rows(_shuffled_patches), tokens=closest_grid),
    "llava": Family({"pixel_values": Join.ROWS}, features=_rows(_llava_tokens), tokens=cropped_square),
    "llava_next": Family(
        {"pixel_values": Join.TILES, "image_sizes": Join.ROWS}, features=_anyres, tokens=grid_with_newlines
    ),
}
"""By the model config's `model_type`."""

UNTRIED = Family({}, features=None, tokens=None)
"""Stands for the row of any other model until `training.generic` has found one that fits."""
