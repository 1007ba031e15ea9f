"""What every text and number passes on its way into SQL: the databases refuse or mangle the rest, each differently."""

import math
import re
from typing import Any

LONGEST_TEXT = 200_000
"""Characters of a completion: its index entry in PostgreSQL must stay below 1 MB."""

LONGEST_NOTE = 2_000
"""Characters of a message, a reason, an error, a parsed answer."""

LONGEST_LINE = 4_000
"""Characters of one line of a log."""

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def clean_text(text: str, *, longest: int = LONGEST_TEXT) -> str:
    """NUL and lone surrogates become U+FFFD; a text longer than `longest` is cut and ends in an ellipsis."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return _UNSTORABLE.sub(REPLACEMENT, text)


def finite(value: float | None) -> float | None:
    """The number, or None when there is none or it is NaN or infinite."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def clean_json(value: Any) -> Any:
    """A JSON document with every text and number through its door; numbers that are not finite become null."""
    match value:
        case str():
            return clean_text(value)
        case float():
            return finite(value)
        case list() | tuple():
            return [clean_json(item) for item in value]
        case dict():
            return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
    return value
