"""A trained model as directories that other programs open."""

from pathlib import Path

import torch

from training.adapters import has_adapters, save_adapters
from training.checkpoint_files import newest_whole, verify
from training.checkpoints import restore_weights, run_config
from training.config import RunConfig
from training.datasets import Access
from training.errors import CheckpointError
from training.model_source import model_source
from training.policy import Policy, load_policy


def export(policy: Policy, config: RunConfig, out: Path) -> str:
    """Write `out/model`, a plain model with its processor, and `out/adapter` when the run trained adapters.

    Returns the name of the first.  The plain model's logits are the trained one's up to rounding: adapters are merged,
    quantized weights written in the format that they compute in.
    """
    policy.save(out / "model")
    if has_adapters(policy.model):
        save_adapters(policy.model, out / "adapter", base=config.model.path)
    return "model"


def export_checkpoint(run: Path, out: Path, *, step: int | None, cache: Path, access: Access) -> int:
    """`export` of a run's checkpoint, the newest whole one when `step` is None; returns its step.

    Raises CheckpointError when there is none, or it is torn.
    """
    checkpoints = run / "checkpoints"
    checkpoint = newest_whole(checkpoints) if step is None else verify(checkpoints / f"step-{step:08d}")
    if checkpoint is None:
        raise CheckpointError(f"{checkpoints} holds no whole checkpoint; name the directory of a run that has one")
    config = run_config(checkpoint)
    path = model_source(config.model.path, cache=cache, access=access, progress=lambda _: None)
    quantized = config.parameters.quantization != "none"
    device = torch.device("cuda" if quantized and torch.cuda.is_available() else "cpu")
    policy = load_policy(config.model, path, device=device, parameters=config.parameters, seed=config.seed)
    restore_weights(checkpoint, policy.model)
    export(policy, config, out)
    return checkpoint.step
