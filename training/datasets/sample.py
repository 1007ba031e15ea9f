"""One dataset row as a prompt with its images and columns, known everywhere by a hash of its content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue

from training.images import SourceImage
from training.records import SampleRecord


@dataclass(frozen=True, slots=True)
class Sample:
    """A prompt.  `columns` are the row's other columns, with the gold answer under `answer`."""

    row: int
    key: str
    messages: tuple[dict[str, Any], ...]
    images: tuple[SourceImage, ...]
    columns: Mapping[str, JsonValue]

    def record(self) -> SampleRecord:
        return SampleRecord(
            key=self.key,
            row=self.row,
            messages=list(self.messages),
            images=[image.record() for image in self.images],
            columns=dict(self.columns),
        )


class Dataset(Protocol):
    """Samples by index; the same index always gives an equal sample."""

    @property
    def name(self) -> str: ...

    @property
    def column_names(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


def sample_key(messages: tuple[dict[str, Any], ...], images: tuple[SourceImage, ...], answer: JsonValue) -> str:
    """SHA-256 over messages, image hashes and gold answer: the same prompt has the same key in every run."""
    content = [messages, [image.sha256 for image in images], answer]
    # ASCII, as a lone surrogate in a row has no UTF-8
    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
