"""The columns of a row as JSON values, for prompts, rewards and records."""

import datetime
import decimal
import math
import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue


def json_columns(row: Mapping[str, Any], *, without: str) -> dict[str, JsonValue]:
    """All columns but `without` as JSON; binary columns are left out, a NaN (pandas' missing value) becomes None."""
    return {name: _json_value(value) for name, value in row.items() if name != without and not _is_binary(value)}


def _is_binary(value: Any) -> bool:
    match value:
        case bytes() | bytearray():
            return True
        case Mapping():
            return any(_is_binary(item) for item in value.values())
        case list() | tuple():
            return any(_is_binary(item) for item in value)
    return False


def _json_value(value: Any) -> JsonValue:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case datetime.timedelta() | uuid.UUID():
            return str(value)
    raise TypeError(f"a column cannot hold {type(value).__name__}")
