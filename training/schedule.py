"""The learning rate as a pure function of the step."""

import math

from training.config import OptimizationConfig


def learning_rate(config: OptimizationConfig, step: int, *, last_step: int) -> float:
    """Learning rate of a step (from 1): linear warm-up, then constant, linear or cosine to `final_lr_ratio`."""
    if step <= config.warmup_steps:
        return config.learning_rate * step / config.warmup_steps
    if config.lr_scheduler == "constant":
        return config.learning_rate
    done = (step - 1 - config.warmup_steps) / max(last_step - config.warmup_steps, 1)
    shape = 1 - done if config.lr_scheduler == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.learning_rate * (config.final_lr_ratio + (1 - config.final_lr_ratio) * shape)
