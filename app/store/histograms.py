"""How a reward is spread over the completions of a step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOTAL = "reward"
"""The name under which the weighted sum of all rewards is kept."""

BINS = 20


def histogram_name(reward: str) -> str:
    """The name under which one function's values are kept, as in TRL's metrics."""
    return f"rewards/{reward}"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of equal width between `low` and `high`; `std` is that of the population.

    Example: values 0, 0, 1 and None give scored 3, missing 1, low 0, high 1, bins [2, 0, ..., 0, 1].
    """

    scored: int
    missing: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    bins: list[int]


def histogram(values: Sequence[float | None]) -> Histogram:
    """Count finite values; None and what is not finite counts as missing."""
    scored = np.array([value for value in values if value is not None and math.isfinite(value)], dtype=np.float64)
    missing = len(values) - len(scored)
    if len(scored) == 0:
        return Histogram(0, missing, None, None, None, None, [])
    with np.errstate(over="ignore", invalid="ignore"):  # a mean that overflows is stored as none
        mean, std = float(scored.mean()), float(scored.std())
    return Histogram(len(scored), missing, mean, std, float(scored.min()), float(scored.max()), _bins(scored))


def _bins(scored: np.ndarray) -> list[int]:
    # np.histogram refuses ranges that overflow and ranges of a few last places; halves and one division take both
    halves = scored / 2
    width = halves.max() - halves.min()
    if width == 0:
        return [len(scored)]
    places = ((halves - halves.min()) / width * BINS).astype(np.int64).clip(0, BINS - 1)
    return np.bincount(places, minlength=BINS).tolist()
