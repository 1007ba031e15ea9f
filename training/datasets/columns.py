"""The columns of a row as JSON values, for prompts, rewards and records."""

import datetime
import decimal
import math
import uuid
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from PIL import Image
from pydantic import JsonValue


def json_columns(row: Mapping[str, Any], *, without: Collection[str]) -> dict[str, JsonValue]:
    """All columns but `without` as JSON; binary columns are left out, a NaN (pandas' missing value) becomes None."""
    return {name: _json_value(value) for name, value in row.items() if name not in without and not _is_binary(value)}


def _is_binary(value: Any) -> bool:
    match value:
        case bytes() | bytearray() | Image.Image():
            return True
        case Mapping():
            return any(_is_binary(item) for item in value.values())
        case list() | tuple():
            return any(_is_binary(item) for item in value)
    return False


def _json_value(value: Any) -> JsonValue:
    match value:
        case None | bool() | int():
            return value
        case str():
            return _text(value)
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {_text(str(key)): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case np.ndarray() | np.generic():
            return _json_value(value.tolist())
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case datetime.timedelta() | uuid.UUID():
            return str(value)
    raise TypeError(f"a column cannot hold {type(value).__name__}")


def _text(value: str) -> str:
    """Lone surrogates, which JSON can hold and no tokenizer, file or database takes, become question marks."""
    return value if value.isascii() else value.encode("utf-8", errors="replace").decode("utf-8")
