"""The parts of a VLM, told apart by its structure: language model, vision tower and the projector between them."""

import math
from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel

from training.config import Part
from training.errors import ModelError

PARTS: tuple[Part, ...] = ("language", "vision", "projector")


@dataclass(frozen=True, slots=True)
class ModelParts:
    """Where the parts of a model lie: the language model with its head, and the vision tower; all else projects.

    Qwen's projector, the merger, stands inside the vision tower.
    """

    language: tuple[str, ...]
    vision: tuple[str, ...]

    @staticmethod
    def of(model: PreTrainedModel) -> "ModelParts":
        """Found as what transformers calls decoder, head and image encoder.  Raises ModelError when one is missing."""
        names = {module: name for name, module in model.named_modules(remove_duplicate=False)}
        language = names.get(model.get_decoder()), names.get(model.get_output_embeddings())
        vision = names.get(model.get_encoder(modality="image"))
        if not vision or not all(language):
            raise ModelError(
                f"{type(model).__name__} must have a language model, an output head and a vision tower as modules of "
                f"their own, found {language} and {vision!r}; use parameters.method = full without freeze"
            )
        return ModelParts(language=tuple(name for name in language if name), vision=(vision,))

    def part_of(self, name: str) -> Part:
        """The part of a module or parameter, by its dotted name."""
        steps = f"{name}."
        if any(steps.startswith(f"{prefix}.") for prefix in self.language):
            return "language"
        if "merger" not in name and any(steps.startswith(f"{prefix}.") for prefix in self.vision):
            return "vision"
        return "projector"


def freeze(model: PreTrainedModel, frozen: tuple[Part, ...]) -> None:
    """Take parts out of training: their parameters get no gradient."""
    if not frozen:
        return
    parts = ModelParts.of(model)
    for name, parameter in model.named_parameters():
        if parts.part_of(name) in frozen:
            parameter.requires_grad_(False)


def trainable_counts(model: PreTrainedModel) -> dict[Part, tuple[int, int]]:
    """Trainable and all parameters of each part; a weight in 4 bits counts as the numbers that it stands for."""
    parts = ModelParts.of(model)
    counts: dict[Part, tuple[int, int]] = dict.fromkeys(PARTS, (0, 0))
    for name, parameter in model.named_parameters():
        part, size = parts.part_of(name), _size(parameter)
        trainable, total = counts[part]
        counts[part] = (trainable + size * parameter.requires_grad, total + size)
    return counts


def counts_text(counts: dict[Part, tuple[int, int]]) -> str:
    """Such as: language 1,234 of 5,678, vision 0 of 910, projector 0 of 11."""
    return ", ".join(f"{part} {trainable:,} of {total:,}" for part, (trainable, total) in counts.items())


def _size(parameter: nn.Parameter) -> int:
    quantized = getattr(parameter, "quant_state", None)
    return parameter.numel() if quantized is None else math.prod(quantized.shape)
