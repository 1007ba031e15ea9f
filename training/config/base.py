"""The one base class of every section of a configuration."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator


class Section(BaseModel):
    """A frozen group of fields: unknown names, NaN, infinity and text that no database takes are refused when read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @field_validator("*")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        _refuse_unstorable(value)
        return value


def _refuse_unstorable(value: Any) -> None:
    match value:
        case str():
            if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in value):
                raise ValueError("expected text without NUL and lone surrogates; remove them")
        case float():
            if not math.isfinite(value):
                raise ValueError(f"expected a finite number, got {value}")
        case list() | tuple():
            for item in value:
                _refuse_unstorable(item)
        case dict():
            for key, item in value.items():
                _refuse_unstorable(key)
                _refuse_unstorable(item)
