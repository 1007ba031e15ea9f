"""Low-rank adapters (LoRA, arXiv 2106.09685): y = W x + (alpha / r) B A x, with W frozen and B = 0 at the start."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model_state_dict, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from peft.utils.integrations import dequantize_module_weight
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.config import ParametersConfig
from training.errors import ModelError
from training.model_parts import ModelParts

ADAPTER = "default"


def add_adapters(model: PreTrainedModel, config: ParametersConfig, *, seed: int) -> None:
    """Put adapters beside the linear layers of the target parts, in place; nothing else is trained any more.

    The model keeps its class and its modules' places.  Adapters are float32 whatever the weights are: updates of a
    small learning rate would vanish in a half format.  Raises ModelError when a part has no linear layer.
    """
    parts, head = ModelParts.of(model), model.get_output_embeddings()
    targets = {
        part: [
            name
            for name, module in model.named_modules()
            if _is_linear(module) and module is not head and parts.part_of(name) == part
        ]
        for part in config.lora_targets
    }
    for part, names in targets.items():
        if not names:
            raise ModelError(
                f"parameters.lora_targets names {part}, and this model's {part} has no linear layer to adapt; "
                "leave it out"
            )
    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,  # pyright: ignore[reportArgumentType]  (a float works and is saved as one)
        lora_dropout=config.lora_dropout,
        target_modules=[name for names in targets.values() for name in names],
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inject_adapter_in_model(lora, model, ADAPTER)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def has_adapters(model: nn.Module) -> bool:
    return any(isinstance(module, LoraLayer) for module in model.modules())


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """Inside, the model is the one that the adapters were put beside."""
    layers = [module for module in model.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The trained tensors by name, those of the model itself and not copies."""
    return {name: parameter for name, parameter in model.named_parameters() if ".lora_" in name}


def save_adapters(model: PreTrainedModel, path: Path, *, base: str) -> None:
    """Write a directory that `PeftModel.from_pretrained(base_model, path)` opens."""
    path.mkdir(parents=True, exist_ok=True)
    tensors = get_peft_model_state_dict(model, adapter_name=ADAPTER)
    named = {f"base_model.model.{name}": tensor.contiguous() for name, tensor in tensors.items()}
    save_file(named, path / "adapter_model.safetensors")
    config = copy.copy(model.peft_config[ADAPTER])
    config.base_model_name_or_path, config.inference_mode = base, True
    config.save_pretrained(str(path))


def save_merged(model: PreTrainedModel, path: Path) -> None:
    """Write the model with W + (alpha / r) B A in place of W, whole numbers of bits again, as save_pretrained would."""
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        delattr(config, "quantization_config")
    with torch.device("meta"):
        plain = type(model)._from_config(config, dtype=model.dtype)
    plain.generation_config = model.generation_config
    weights = {name: _merged(model, name).detach().cpu() for name in plain.state_dict()}
    plain.save_pretrained(path, state_dict=weights)


def _merged(model: nn.Module, name: str) -> Tensor:
    """A tensor of the plain model, made of this one's."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    adapted = isinstance(module, LoraLayer)
    layer: nn.Module = module.get_base_layer() if adapted else module
    tensor = getattr(layer, leaf)
    if leaf != "weight" or not isinstance(tensor, nn.Parameter):
        return tensor
    plain = dequantize_module_weight(layer)
    return (plain.float() + _delta(module).float()).to(plain.dtype) if adapted else plain


def _delta(layer: Any) -> Tensor:
    """(alpha / r) B A of one adapted layer."""
    return layer.get_delta_weight(ADAPTER)


def _is_linear(module: nn.Module) -> bool:
    """nn.Linear itself and its quantized forms, not the subclasses that other modules read the weights of."""
    return type(module) is nn.Linear or type(module).__name__ in ("Linear4bit", "Linear8bitLt")
