"""Whole chat messages of a row: checked, and brought into one form, a list of text and image blocks each."""

import json
from collections.abc import Mapping
from typing import Any

from training.datasets.faults import DataFault
from training.datasets.template import IMAGE_MARK, marked

ROLES = ("system", "user", "assistant")


def read_messages(value: Any, column: str, *, row: int) -> list[dict[str, Any]]:
    """The messages of a row: a list of {"role", "content"}, or such a list as JSON text.

    Content is text, in which <image> marks an image's place, or a list of {"type": "text", "text": ...} and
    {"type": "image"} blocks.  Raises DataFault that names the row for anything else.
    """
    try:
        return _read(json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError) as error:
        message = f"row {row}, column {column!r}: {error}"
        raise DataFault(message, field="data.messages_column", row=row) from error


def _read(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"expected a list of messages with role and content, got {value!r:.60}; correct the row")
    messages = [_message(item) for item in value]
    roles = [message["role"] for message in messages]
    if "user" not in roles:
        raise ValueError(f"expected a user's message, got the roles {', '.join(roles)}; add one")
    if "system" in roles[1:]:
        raise ValueError(f"a system message can only be the first, got the roles {', '.join(roles)}; move it")
    if roles[-1] == "assistant" and not messages[-1]["content"][-1].get("text"):
        raise ValueError("the assistant's message at the end is to be continued and does not end in text; take it out")
    return messages


def _message(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
        raise ValueError(f"expected a message with role and content, got {item!r:.60}; correct the row")
    role, content = item["role"], item.get("content")
    if role not in ROLES:
        raise ValueError(f"expected one of the roles {', '.join(ROLES)}, got {role!r:.40}; change the role")
    if isinstance(content, str):
        return {"role": role, "content": marked(content)}
    if not isinstance(content, list | tuple):
        raise ValueError(f"expected the {role}'s content as text or a list of blocks, got {content!r:.60}; correct it")
    blocks = [block for part in content for block in _blocks(part, role)]
    return {"role": role, "content": blocks or marked("")}


def _blocks(part: Any, role: str) -> list[dict[str, Any]]:
    if isinstance(part, str):
        return marked(part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return marked(part["text"])
    if kind == "image":
        # Parquet gives every block the keys of all blocks, with None
        if held := [key for key, held in part.items() if key not in ("type", "text") and held is not None]:
            raise ValueError(
                f"an image block holds {', '.join(map(repr, held))}; put the images into the image column, in "
                'the order of the blocks, and leave {"type": "image"}'
            )
        return [{"type": "image"}]
    if kind in ("video", "video_url"):
        raise ValueError("there is a video block and videos are not supported; use images, or remove the row")
    raise ValueError(f'expected text blocks and {{"type": "image"}}, got {part!r:.60} from the {role}; correct the row')


def place_images(messages: list[dict[str, Any]], images: int, *, row: int, field: str) -> tuple[dict[str, Any], ...]:
    """The messages with all image blocks: where they are, or before the first user's text when there are none.

    Raises DataFault when blocks and images differ in number.
    """
    places = sum(part["type"] == "image" for message in messages for part in message["content"])
    if places == 0 and images:
        first = next(index for index, message in enumerate(messages) if message["role"] == "user")
        content = [{"type": "image"}] * images + messages[first]["content"]
        messages = [*messages[:first], {"role": "user", "content": content}, *messages[first + 1 :]]
    elif places != images:
        raise DataFault(
            f"row {row}: the prompt has {places} places for images (image blocks or {IMAGE_MARK}) and the row has "
            f"{images} images; make the numbers equal, or leave all places out to have the images before the text",
            field=field,
            row=row,
        )
    return tuple(messages)
