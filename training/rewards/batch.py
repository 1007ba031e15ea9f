"""The completions of one step as arguments of reward functions, which get copies: what they change stays theirs."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from training.images import SourceImage

RESERVED = frozenset(("prompts", "completions", "completion_ids", "images", "step"))
"""Arguments that are not columns; a column of such a name is not handed on."""


@dataclass(frozen=True, slots=True)
class Batch:
    """B completions with everything that a reward function may ask for; every sequence has B entries."""

    prompts: Sequence[Sequence[Mapping[str, Any]]]
    completions: Sequence[str]
    completion_ids: Sequence[Sequence[int]]
    images: Sequence[Sequence[SourceImage]]
    columns: Sequence[Mapping[str, Any]]
    step: int

    def __len__(self) -> int:
        return len(self.completions)

    def only(self, index: int) -> "Batch":
        """The batch of one completion."""
        part = slice(index, index + 1)
        return Batch(
            self.prompts[part],
            self.completions[part],
            self.completion_ids[part],
            self.images[part],
            self.columns[part],
            self.step,
        )

    def column_names(self) -> frozenset[str]:
        return frozenset(name for row in self.columns for name in row) - RESERVED

    def argument(self, name: str) -> Any:
        """A fresh copy of one argument: one of RESERVED or a column, None where a row lacks it."""
        match name:
            case "completions":
                return list(self.completions)
            case "step":
                return self.step
            case "completion_ids":
                return [list(ids) for ids in self.completion_ids]
            case "prompts":
                return [copy.deepcopy(list(prompt)) for prompt in self.prompts]
            case "images":
                return self._pictures()
        return [_copied(row.get(name)) for row in self.columns]

    def _pictures(self) -> list[list[Image.Image]]:
        """PIL copies; an image that many completions share is decoded once."""
        decoded: dict[str, Image.Image] = {}
        for image in (image for row in self.images for image in row):
            if image.sha256 not in decoded:
                decoded[image.sha256] = image.open()
        return [[decoded[image.sha256].copy() for image in row] for row in self.images]


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, list | dict) else value
