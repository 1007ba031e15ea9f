"""How a row becomes chat messages: columns fill the template, images stand before the text or where <image> says."""

import json
import re
from collections.abc import Mapping
from typing import Any

from training.config import DataConfig
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


def build_messages(config: DataConfig, columns: Mapping[str, Any], images: int, *, row: int) -> tuple[dict, ...]:
    """The chat messages of a row.

    Example: `{question}` and one image give
    `({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What colour is it?"}]},)`.
    Raises DataFault when the template asks for a column that is no text, or when the <image> marks in the text and the
    images of the row differ in number.
    """
    try:
        text = fill(config.prompt, columns)
    except KeyError as error:
        raise DataFault(
            f"row {row}: column {error} is an image or bytes and cannot stand in the prompt; take it out",
            field="data.prompt",
            row=row,
        ) from error
    marks = text.count(IMAGE_MARK)
    if marks and marks != images:
        raise DataFault(
            f"row {row}: the prompt marks {marks} places with {IMAGE_MARK} and the row has {images} images; "
            "make the numbers equal, or leave all marks out to have the images before the text",
            field="data.prompt",
            row=row,
        )
    content = _marked(text) if marks else [{"type": "image"}] * images + [{"type": "text", "text": text}]
    user = {"role": "user", "content": content}
    if config.system_prompt is None:
        return (user,)
    return ({"role": "system", "content": [{"type": "text", "text": config.system_prompt}]}, user)


def _marked(text: str) -> list[dict[str, str]]:
    content: list[dict[str, str]] = []
    for position, piece in enumerate(text.split(IMAGE_MARK)):
        if position:
            content.append({"type": "image"})
        if piece:
            content.append({"type": "text", "text": piece})
    return content


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
