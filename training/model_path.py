"""What a model path of a configuration means: a directory that may be read, or an id of the Hugging Face hub."""

import json
import re
from pathlib import Path

from training.datasets import Access, DataFault
from training.errors import ModelError
from training.models_catalogue import BUILT_IN

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def model_directory(path: str, access: Access) -> Path | None:
    """The model directory of a path, or None when it is a hub id: owner/name, and no such directory exists.

    Raises ModelError when it is neither.
    """
    try:
        directory = access.locate(path, field="model.path").path
    except DataFault as error:
        if _HUB_ID.fullmatch(path):
            return None
        raise ModelError(
            f"{error}. Expected a model directory, a hub id (owner/name) or a built-in model ({', '.join(BUILT_IN)})"
        ) from error
    try:
        document = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{directory} is no model directory, its config.json cannot be read ({error}); "
            "name a directory that save_pretrained has written"
        ) from error
    if not isinstance(document, dict) or "model_type" not in document:
        raise ModelError(
            f"{directory}/config.json names no model_type; name a directory that save_pretrained has written"
        )
    return directory
