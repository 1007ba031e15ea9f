"""The rows that queries about completions give back."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImageRow:
    """An image of a prompt; `position` counts from 0."""

    sha256: str
    width: int
    height: int
    position: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A prompt with its images and the other columns of its dataset row."""

    id: int
    key: str
    row: int
    messages: list[dict[str, Any]]
    columns: dict[str, Any]
    images: list[ImageRow]


@dataclass(frozen=True, slots=True)
class RewardRow:
    """What one reward function said of one completion."""

    name: str
    value: float | None
    error: str | None
    parsed: str | None


@dataclass(frozen=True, slots=True)
class CompletionRow:
    """One completion; `rewards` stand in the order of the run's configuration."""

    id: int
    group_id: int
    run_id: int
    step: int
    index: int
    text: str
    truncated: bool
    num_tokens: int
    finish_reason: str
    reward: float | None
    advantage: float | None
    rewards: list[RewardRow]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One prompt at one step with all its completions, in the order of their index.

    `zero_signal` says that all scored rewards are alike, so that nothing is learned from the group.
    """

    id: int
    run_id: int
    step: int
    sample: SampleRow
    completions: list[CompletionRow]
    reward_mean: float | None
    reward_std: float | None
    zero_signal: bool


@dataclass(frozen=True, slots=True)
class StepRange:
    """Steps that have stored completions: first, last, and how many."""

    first: int | None
    last: int | None
    count: int
