"""Imports what needs torch when it is needed, or says how to install what is missing."""

import importlib
from types import ModuleType

from training.errors import ConfigError

_NEEDED = frozenset({"torch", "transformers", "accelerate", "safetensors", "peft"})


def import_training(module: str) -> ModuleType:
    """A module of training that needs torch.  Raises ConfigError with the remedy where that is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        raise ConfigError(
            f"training needs {error.name}, which is not here: pip install '.[train]' in the repository"
        ) from error
