"""A model with its processor and the few token facts that sampling and the loss need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoConfig, AutoModelForImageTextToText, PretrainedConfig, PreTrainedModel

from training.adapters import add_adapters, has_adapters, save_merged
from training.config import ModelConfig, ParametersConfig
from training.errors import ModelError
from training.model_parts import freeze
from training.processors import load_processor, save_processor
from training.quantization import quantization_config
from training.vision import FAMILIES, UNTRIED, Family


@dataclass(frozen=True, slots=True)
class Policy:
    """The model that is trained.

    forbidden_ids: tokens that are never sampled and have probability 0 in the loss too (image, video and other
    special tokens, padding); end_ids: tokens that end a completion.
    """

    model: PreTrainedModel
    processor: Any
    family: Family
    forbidden_ids: torch.Tensor
    end_ids: torch.Tensor
    pad_id: int

    @property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    def forbidden_list(self) -> list[int]:
        """forbidden_ids for a sampler outside of this process."""
        return self.forbidden_ids.tolist()

    @property
    def device(self) -> torch.device:
        return self.model.device

    def save(self, path: Path) -> None:
        """Write a directory that stock transformers and vLLM open; adapters are merged into the weights."""
        if has_adapters(self.model):
            save_merged(self.model, path)
        else:
            self.model.save_pretrained(path)
        save_processor(self.processor, path)


def make_policy(model: PreTrainedModel, processor: Any) -> Policy:
    """Wrap a model and its processor.  Raises ModelError for a tokenizer without an end token."""
    end_ids = _end_ids(model, processor.tokenizer)
    pad_id = processor.tokenizer.pad_token_id
    return Policy(
        model=model,
        processor=processor,
        family=FAMILIES.get(model.config.model_type, UNTRIED),
        forbidden_ids=torch.tensor(_forbidden_ids(model, processor, end_ids), device=model.device),
        end_ids=torch.tensor(end_ids, device=model.device),
        pad_id=end_ids[0] if pad_id is None else pad_id,
    )


def load_policy(
    config: ModelConfig, path: str, *, device: torch.device, parameters: ParametersConfig | None = None, seed: int = 0
) -> Policy:
    """Load weights and processor from a directory or hub id and choose what is trained.

    seed: of new adapters.  Raises ModelError that says what is wrong.
    """
    chosen = parameters or ParametersConfig()
    try:
        model_config = AutoConfig.from_pretrained(path, revision=config.revision)
        model = _load_model(config, path, model_config, chosen.quantization, device)
        processor = load_processor(path, revision=config.revision)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"model {path!r} cannot be loaded as an image-text-to-text model: {error}") from error
    if chosen.method == "lora":
        add_adapters(model, chosen, seed=seed)
    freeze(model, chosen.freeze)
    return make_policy(model, processor)


def _load_model(
    config: ModelConfig,
    path: str,
    model_config: PretrainedConfig,
    quantization: Literal["none", "8bit", "4bit"],
    device: torch.device,
) -> PreTrainedModel:
    dtype = _dtype(config, device)
    arguments: dict[str, Any] = {"dtype": dtype, "attn_implementation": config.attention, "revision": config.revision}
    if quantization != "none":
        arguments["quantization_config"] = quantization_config(quantization, model_config, dtype=dtype, device=device)
        arguments["device_map"] = {"": device}  # quantized as it is loaded: it cannot be moved afterwards
        return AutoModelForImageTextToText.from_pretrained(path, **arguments)
    model = AutoModelForImageTextToText.from_pretrained(path, **arguments)
    model.to(device)  # pyright: ignore[reportArgumentType]  (its decorated signature hides the device)
    return model


def _dtype(config: ModelConfig, device: torch.device) -> torch.dtype:
    if config.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, config.dtype)


def _end_ids(model: PreTrainedModel, tokenizer: Any) -> list[int]:
    """The generation config's end tokens and the tokenizer's, without repeats, in that order."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list) else [configured]
    unique = list(dict.fromkeys(i for i in [*ids, tokenizer.eos_token_id] if i is not None))
    if not unique:
        raise ModelError("neither the generation config nor the tokenizer names an end-of-sequence token; set one")
    return unique


def _forbidden_ids(model: PreTrainedModel, processor: Any, end_ids: list[int]) -> list[int]:
    """Special tokens but the end tokens, vision tokens of config and processor, rows of the head without a token."""
    tokenizer = processor.tokenizer
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    special |= set(tokenizer.all_special_ids)
    special |= {i for kind in ("image", "video") for i in getattr(processor, f"{kind}_token_ids", ()) if i is not None}
    for name, value in model.config.to_dict().items():
        if isinstance(value, int) and (name.endswith("_token_id") or name.endswith("_token_index")):
            special.add(value)
    vocabulary = model.config.get_text_config().vocab_size
    special |= set(range(len(tokenizer), vocabulary))
    return sorted(i for i in special - set(end_ids) if 0 <= i < vocabulary)
