"""Where a run's model is loaded from: a directory or a hub id; a built-in model is made at first use."""

from collections.abc import Callable
from pathlib import Path

from training.datasets import Access
from training.demo.base_models import base_model
from training.model_path import model_directory
from training.models_catalogue import is_built_in


def model_source(path: str, *, cache: Path, access: Access, progress: Callable[[str], None]) -> str:
    """What from_pretrained takes for a configuration's model.path.  Raises ModelError when it is neither."""
    if is_built_in(path):
        return str(base_model(path, cache, progress=progress))
    return str(model_directory(path, access) or path)
