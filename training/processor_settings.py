"""What a model directory says of its processor, read from its JSON files: no torch, no transformers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = ("processor_config.json", "preprocessor_config.json")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The model's type, settings of its processor and image processor in one mapping, special tokens' texts."""

    model_type: str
    settings: Mapping[str, Any]
    reserved: tuple[str, ...]


def read_model_files(directory: Path) -> ModelFiles:
    """Read a directory whose config.json is known to be readable.  Files that are missing or broken add nothing."""
    settings: dict[str, Any] = {}
    for name in FILES:
        settings |= merged_settings(_document(directory / name))
    added = _document(directory / "tokenizer.json").get("added_tokens")
    tokens = added if isinstance(added, list) else []
    special = (token.get("content") for token in tokens if isinstance(token, dict) and token.get("special"))
    reserved = tuple(text for text in special if isinstance(text, str) and text.strip())
    return ModelFiles(_document(directory / "config.json").get("model_type", ""), settings, reserved)


def merged_settings(processor: Mapping[str, Any]) -> dict[str, Any]:
    """A processor's settings with those of its image processor, which may be nested in them, beside them."""
    own = processor.get("image_processor")
    return {**processor, **own} if isinstance(own, Mapping) else dict(processor)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
