"""What a finished run says of itself in one JSON line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.up.client import Client

REWARD = "reward"
ACCURACY = "eval_rewards/accuracy/mean"
_STEPS = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """`reward_*` are means of the first and last ten steps, `accuracy_*` the first and last held-out evaluation."""

    run: str
    state: str
    steps: int
    reward_first: float | None
    reward_last: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    completions: int
    images: int
    seconds: float

    def sentence(self) -> str:
        """The same for a person."""
        return (
            f"reward {shown(self.reward_first)} -> {shown(self.reward_last)}, "
            f"held-out accuracy {shown(self.accuracy_before)} -> {shown(self.accuracy_after)}, "
            f"{self.completions} completions of {self.images} images, {self.seconds:.0f} s"
        )

    def json(self) -> str:
        return json.dumps(asdict(self), allow_nan=False)


def summarize(client: Client, run: Mapping[str, Any], *, seconds: float) -> Summary:
    """The summary of a run, given as REST shows it; its metrics are read from the server."""
    rewards = values(client.metric(run["id"], REWARD))
    accuracies = values(client.metric(run["id"], ACCURACY))
    return Summary(
        run=run["id"],
        state=run["state"],
        steps=run["step"],
        reward_first=mean(rewards[:_STEPS]),
        reward_last=mean(rewards[-_STEPS:]),
        accuracy_before=mean(accuracies[:1]),
        accuracy_after=mean(accuracies[-1:]),
        completions=run["completions"],
        images=run["images"],
        seconds=round(seconds, 1),
    )


def shown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.3f}"


def values(series: Sequence[tuple[int, float]]) -> list[float]:
    """The values of a series in the order of its steps."""
    return [value for _, value in sorted(series)]


def mean(numbers: Sequence[float]) -> float | None:
    """Rounded to what a reader compares; None of nothing."""
    return round(sum(numbers) / len(numbers), 4) if numbers else None
