"""The part of preflight about the device: what can be known without torch of whether a run can work on it."""

from collections.abc import Iterator
from importlib.util import find_spec

from training.config import RunConfig
from training.findings import Finding


def check_device(config: RunConfig) -> Iterator[Finding]:
    """Options that need a CUDA device or a package.  Packages are looked for only where training is installed."""
    bits, attention = config.parameters.quantization, config.model.attention
    trains_here = find_spec("torch") is not None
    if bits != "none":
        yield from _needs_cuda(config, "parameters.quantization", bits, "choose none")
        if trains_here and find_spec("bitsandbytes") is None:
            yield _missing(
                "parameters.quantization", bits, "bitsandbytes", "pip install '.[quantization]' in the repository"
            )
    if attention == "flash_attention_2":
        yield from _needs_cuda(config, "model.attention", attention, "choose sdpa")
        if trains_here and find_spec("flash_attn") is None:
            yield _missing("model.attention", attention, "flash_attn", "pip install flash-attn, or choose sdpa")


def _needs_cuda(config: RunConfig, field: str, value: str, remedy: str) -> Iterator[Finding]:
    if config.resources.device == "cpu":
        yield Finding("error", field, f"{value} expects a CUDA device, got resources.device = cpu; {remedy}")
    elif config.resources.device == "auto":
        yield Finding("info", field, f"{value} needs a CUDA device; where there is none the run is refused")


def _missing(field: str, value: str, package: str, remedy: str) -> Finding:
    """A warning: another machine may train, and have the package."""
    return Finding("warning", field, f"{value} expects the package {package}, which is not installed here: {remedy}")
