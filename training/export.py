"""A trained model as directories that other programs open."""

from pathlib import Path

from training.adapters import has_adapters, save_adapters
from training.config import RunConfig
from training.policy import Policy


def export(policy: Policy, config: RunConfig, out: Path) -> str:
    """Write `out/model`, a plain model with its processor, and `out/adapter` when the run trained adapters.

    Returns the name of the first.  The plain model's logits are the trained one's up to rounding: adapters are merged,
    quantized weights written in the format that they compute in.
    """
    policy.save(out / "model")
    if has_adapters(policy.model):
        save_adapters(policy.model, out / "adapter", base=config.model.path)
    return "model"
