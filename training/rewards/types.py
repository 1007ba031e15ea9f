"""What a reward function is: its description, its options and the signature that users already write for TRL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from training.config.base import Section


@dataclass(frozen=True, slots=True)
class Scored:
    """A value with what the function read from the completion; a value of None means not scored."""

    value: float | None
    parsed: str | None = None


RewardFunction = Callable[..., Sequence[float | Scored | None]]
"""Takes any subset of prompts, completions, completion_ids, images, step and the dataset's columns, by name."""


class NoOptions(Section):
    """A reward without options."""


@dataclass(frozen=True, slots=True)
class RewardInfo:
    """An entry of the catalogue; `make` builds the function from its options."""

    name: str
    summary: str
    range: tuple[float, float]
    options: type[Section]
    make: Callable[[Any], RewardFunction]
