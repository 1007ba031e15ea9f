"""Frozen weights in 8 or 4 bits by bitsandbytes (QLoRA, arXiv 2305.14314)."""

from importlib.util import find_spec
from typing import Literal

import torch
from transformers import AutoModelForImageTextToText, BitsAndBytesConfig, PretrainedConfig

from training.errors import ModelError
from training.model_parts import ModelParts


def quantization_config(
    bits: Literal["8bit", "4bit"], config: PretrainedConfig, *, dtype: torch.dtype, device: torch.device
) -> BitsAndBytesConfig:
    """How to load the language part: 4-bit NormalFloat with double quantization, or LLM.int8 (arXiv 2208.07339).

    Vision tower, projector and head keep `dtype`: they are small, and lose most.  Raises ModelError where bitsandbytes
    cannot work.
    """
    if device.type != "cuda":
        raise ModelError(
            f"parameters.quantization = {bits} expects a CUDA device, got {device.type}; use quantization = none, "
            "or run on a machine with a GPU"
        )
    if find_spec("bitsandbytes") is None:
        raise ModelError(
            f"parameters.quantization = {bits} expects the package bitsandbytes, which is not here: "
            "pip install '.[quantization]' in the repository"
        )
    kept = _kept_modules(config)
    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=kept)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
        llm_int8_skip_modules=kept,
    )


def _kept_modules(config: PretrainedConfig) -> list[str]:
    """Names of the linear layers outside the language part, and of the head."""
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    parts, head = ModelParts.of(model), model.get_output_embeddings()
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and (module is head or parts.part_of(name) != "language")
    ]
