"""What a checkpoint holds: weights, optimizer state and counters, as safetensors and JSON (never pickle)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn

from training.adapters import adapter_tensors
from training.checkpoint_files import CheckpointInfo, prune, write_checkpoint
from training.config import RunConfig
from training.errors import CheckpointError

ADAPTERS = "adapters.safetensors"


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything beside tensors that a step depends on or that metrics count up.

    micro_batch_tokens and at_once: what memory sufficed for; None until it is known to have a limit.
    """

    step: int = 0
    num_tokens: int = 0
    skipped_in_a_row: int = 0
    micro_batch_tokens: int | None = None
    at_once: int | None = None


def save(
    directory: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    config: RunConfig,
    *,
    keep: int,
) -> CheckpointInfo:
    """Write `directory/step-NNNNNNNN`, then remove all but the newest `keep`."""

    def write(path: Path) -> None:
        if adapters := adapter_tensors(model):
            save_file(adapters, path / ADAPTERS)  # what they stand beside never changes
        else:
            save_model(model, str(path / "model.safetensors"))
        save_file(_optimizer_tensors(optimizer), path / "optimizer.safetensors")
        state = {"progress": asdict(progress), "config": numbers_of(config)}
        (path / "state.json").write_text(json.dumps(state, indent=1))

    info = write_checkpoint(directory, progress.step, write)
    prune(directory, keep)
    return info


def restore(info: CheckpointInfo, model: nn.Module, optimizer: torch.optim.Optimizer, config: RunConfig) -> Progress:
    """Load a checkpoint in place.  Raises CheckpointError when it belongs to a run with other numbers."""
    state = json.loads((info.path / "state.json").read_text())
    differing = _differences(state["config"], numbers_of(config))
    if differing:
        raise CheckpointError(
            f"the checkpoint in {info.path} was made with another {', '.join(differing)}; "
            "train into an empty directory, or restore the old values"
        )
    restore_weights(info, model)
    _restore_optimizer(optimizer, load_file(info.path / "optimizer.safetensors"))
    return Progress(**state["progress"])


def restore_weights(info: CheckpointInfo, model: nn.Module) -> None:
    """Load the weights, or the adapters alone, in place."""
    adapters = adapter_tensors(model)
    if not adapters:
        load_model(model, str(info.path / "model.safetensors"))
        return
    saved = load_file(info.path / ADAPTERS)
    if saved.keys() != adapters.keys():
        raise CheckpointError(f"{info.path / ADAPTERS} is of another model; name the model that the run began with")

    with torch.no_grad():
        for name, tensor in adapters.items():
            tensor.copy_(saved[name])


def run_config(info: CheckpointInfo) -> RunConfig:
    """The configuration that a checkpoint was made with, up to what does not decide the weights."""
    return RunConfig.model_validate(json.loads((info.path / "state.json").read_text())["config"])


def numbers_of(config: RunConfig) -> dict[str, object]:
    """The part of a configuration that decides the weights."""
    return config.model_dump(mode="json", exclude={"name", "project", "tags", "tracking", "checkpoint", "evaluation"})


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{index}.{name}": tensor.contiguous()
        for index, parameter in enumerate(_parameters(optimizer))
        for name, tensor in optimizer.state.get(parameter, {}).items()
    }


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    parameters = _parameters(optimizer)
    optimizer.state.clear()
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        parameter = parameters[int(index)]
        # AdamW keeps its step counter on the CPU
        optimizer.state[parameter][name] = tensor if name == "step" else tensor.to(parameter.device)
