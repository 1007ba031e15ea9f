"""How a row becomes a chat message: columns fill the template, <image> in the text marks an image's place."""

import json
import re
from collections.abc import Mapping
from typing import Any

from training.datasets.faults import DataFault

IMAGE_MARK = "<image>"
_NAME = r"[^\W\d][\w .-]*"
_SLOT = re.compile(rf"\{{\{{({_NAME})\}}\}}|\{{({_NAME})\}}")


def template_columns(template: str) -> tuple[str, ...]:
    """The columns that a template asks for: every {name}; {{name}} is literal, and so are all other braces."""
    return tuple(dict.fromkeys(match[2] for match in _SLOT.finditer(template) if match[2]))


def fill(template: str, columns: Mapping[str, Any]) -> str:
    """Put a row's columns into the template.  Raises KeyError for a column that the row lacks."""
    return _SLOT.sub(lambda match: f"{{{match[1]}}}" if match[1] else _text(columns[match[2]]), template)


def user_message(template: str, columns: Mapping[str, Any], *, row: int) -> dict[str, Any]:
    """The user's message of a row.  Raises DataFault when the template asks for a column that is no text.

    Example: `{question}` gives `{"role": "user", "content": [{"type": "text", "text": "What colour is it?"}]}`.
    """
    try:
        text = fill(template, columns)
    except KeyError as error:
        raise DataFault(
            f"row {row}: column {error} is an image or bytes and cannot stand in the prompt; take it out",
            field="data.prompt",
            row=row,
        ) from error
    return {"role": "user", "content": marked(text)}


def system_message(text: str) -> dict[str, Any]:
    return {"role": "system", "content": [{"type": "text", "text": text}]}


def marked(text: str) -> list[dict[str, str]]:
    """Text as blocks, with an image block for every <image>."""
    content: list[dict[str, str]] = []
    for position, piece in enumerate(text.split(IMAGE_MARK)):
        if position:
            content.append({"type": "image"})
        if piece:
            content.append({"type": "text", "text": piece})
    return content or [{"type": "text", "text": ""}]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
