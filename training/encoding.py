"""One prompt as its processor made it, and several of them joined into model inputs by their family's rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from training.errors import ModelError
from training.vision import Family, Join


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

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in (self.ids, *self.types.values(), *self.images.values()))


def split_encoding(family: Family, encoding: Mapping[str, Any], num_images: int) -> EncodedPrompt:
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


def placeholder_fault(family: Family, config: Any, prompt: EncodedPrompt) -> str | None:
    """Why the prompt's image placeholders and its image features disagree; None when they agree.

    What is embedded in place of a placeholder is the next feature: one too many or too few anywhere in a batch shifts
    the images of every prompt after it, so it is counted once for each prompt, before it is ever part of a batch.
    """
    placeholders = int((prompt.ids == config.image_token_id).sum())
    if not prompt.images:
        fits, made = placeholders == 0 and prompt.num_images == 0, "no image tensors"
    elif family.features is None:
        fits, made = placeholders > 0, "image tensors"
    else:
        features = family.features(prompt.images, config)
        fits, made = placeholders == features, f"{features} image features"
    if fits:
        return None
    return f"its {prompt.num_images} images give {made} and the token ids hold {placeholders} image placeholders"


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
    if join is Join.TILES:
        longest = max(t.shape[1] for t in present)
        return torch.cat([_padded(t, (longest, *t.shape[2:])) for t in present])
    largest = tuple(max(t.shape[dim] for t in present) for dim in range(1, present[0].dim()))
    blank = present[0].new_zeros(1, *largest)
    return torch.cat([blank if t is None else _padded(t, largest) for t in tensors])


def _padded(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros at the end of dims 1 and up to the given shape."""
    gaps = [(0, size - own) for size, own in zip(shape, tensor.shape[1:], strict=True)]
    return pad(tensor, [edge for gap in reversed(gaps) for edge in gap])
