"""Special tokens of a tokenizer, which no row may hold as text: they would become images, turns or ends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from training.datasets import DataFault


def check_reserved(
    messages: Sequence[Mapping[str, Any]], reserved: Iterable[str], *, row: int, field: str = "data.prompt"
) -> None:
    """Raise DataFault when the text of a message holds a reserved token."""
    texts = [part["text"] for message in messages for part in message["content"] if part["type"] == "text"]
    found = next((token for token in reserved if any(token in text for text in texts)), None)
    if found is not None:
        raise DataFault(
            f"row {row}: the text holds {found!r}, which this model's tokenizer reads as a special token and not as "
            "text; take it out of the row, to which the model's chat template is yet to be applied",
            field=field,
            row=row,
        )
