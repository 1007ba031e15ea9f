"""The only file that knows VLM families: how each lays out images, and how its prompts are joined into one batch.

A prompt is run through its processor alone, so nothing ever has to be cut out of a batch; batches are made by joining
prompts with the family's declared rule.  A new family is a row here and a parameter of the tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor
from torch.nn.functional import pad

from training.errors import ModelError


class Join(Enum):
    """How one image tensor of several prompts becomes one."""

    ROWS = "rows"
    """Concatenate along dim 0, whose unit is a patch or an image."""
    TILES = "tiles"
    """(images, tiles, ...): pad dim 1 with zeros to the longest, then concatenate along dim 0."""
    SAMPLES = "samples"
    """(1, images, ...): pad dim 1 with zeros to the longest, one row per prompt, text-only prompts included."""


@dataclass(frozen=True, slots=True)
class Family:
    """What differs between VLM families."""

    images: dict[str, Join]
    """Image tensors of the processor and how they are joined."""
    types: tuple[str, ...] = ()
    """Per-token tensors beside input_ids; 0 for padding and for completion tokens."""
    mrope: bool = False
    """Rotary positions have three axes that depend on the images' grids."""


_QWEN = Family({"pixel_values": Join.ROWS, "image_grid_thw": Join.ROWS}, types=("mm_token_type_ids",), mrope=True)
_IDEFICS = Family({"pixel_values": Join.SAMPLES, "pixel_attention_mask": Join.SAMPLES})

FAMILIES: dict[str, Family] = {
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": _QWEN,
    "smolvlm": _IDEFICS,
    "idefics3": _IDEFICS,
    "gemma3": Family({"pixel_values": Join.ROWS}, types=("token_type_ids",)),
    "llava": Family({"pixel_values": Join.ROWS}),
    "llava_next": Family({"pixel_values": Join.TILES, "image_sizes": Join.ROWS}),
}
"""By the model config's `model_type`."""


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """One prompt as the processor made it, on the CPU.

    ids: (L,) token ids with all image tokens; types: per-token tensors of shape (L,); images: image tensors as the
    processor returned them for this prompt alone; `num_images` of the prompt.
    """

    ids: Tensor
    types: dict[str, Tensor]
    images: dict[str, Tensor]
    num_images: int

    def __len__(self) -> int:
        return len(self.ids)


def family_of(model_type: str) -> Family:
    """The row for a model type.  Raises ModelError that lists the known ones."""
    try:
        return FAMILIES[model_type]
    except KeyError:
        known = ", ".join(sorted(FAMILIES))
        raise ModelError(
            f"model type {model_type!r} is not supported; expected one of {known}. A new family is one row in "
            "training/vision.py"
        ) from None


def split_encoding(family: Family, encoding: dict[str, Tensor], num_images: int) -> EncodedPrompt:
    """Sort a processor's output for one prompt (batch of one) into tokens, types and images.

    Raises ModelError when the processor returned a tensor that the family does not declare.
    """
    known = {"input_ids", "attention_mask", *family.types, *family.images}
    unknown = sorted(set(encoding) - known)
    if unknown:
        raise ModelError(f"the processor returned {unknown}, which its row in training/vision.py does not declare")
    return EncodedPrompt(
        ids=encoding["input_ids"][0],
        types={key: encoding[key][0] for key in family.types if key in encoding},
        images={key: encoding[key] for key in family.images if key in encoding},
        num_images=num_images,
    )


def pad_rows(rows: Sequence[Tensor], value: int, *, side: str) -> Tensor:
    """Stack 1-D tensors into (N, longest), padded with `value` on `side`: the one padding routine for tokens."""
    longest = max(len(row) for row in rows)
    gaps = [(longest - len(row)) for row in rows]
    return torch.stack(
        [pad(r, (g, 0) if side == "left" else (0, g), value=value) for r, g in zip(rows, gaps, strict=True)]
    )


def join_prompts(
    family: Family, prompts: Sequence[EncodedPrompt], *, pad_id: int, device: torch.device
) -> dict[str, Tensor]:
    """Model inputs for several prompts, left-padded: input_ids and attention_mask of (P, L), types, image tensors."""
    inputs = {
        "input_ids": pad_rows([p.ids for p in prompts], pad_id, side="left"),
        "attention_mask": pad_rows([torch.ones_like(p.ids) for p in prompts], 0, side="left"),
    }
    for key in family.types:
        inputs[key] = pad_rows([p.types.get(key, torch.zeros_like(p.ids)) for p in prompts], 0, side="left")
    for key, join in family.images.items():
        joined = _join_images(join, [p.images.get(key) for p in prompts])
        if joined is not None:
            inputs[key] = joined
    return {key: tensor.to(device) for key, tensor in inputs.items()}


def _join_images(join: Join, tensors: Sequence[Tensor | None]) -> Tensor | None:
    present = [t for t in tensors if t is not None]
    if not present:
        return None
    if join is Join.ROWS:
        return torch.cat(present)
    longest = max(t.shape[1] for t in present)
    if join is Join.TILES:
        return torch.cat([_pad_dim1(t, longest) for t in present])
    blank = present[0].new_zeros(1, longest, *present[0].shape[2:])
    return torch.cat([blank if t is None else _pad_dim1(t, longest) for t in tensors])


def _pad_dim1(tensor: Tensor, length: int) -> Tensor:
    return pad(tensor, (0, 0) * (tensor.dim() - 2) + (0, length - tensor.shape[1]))
