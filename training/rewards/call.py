"""One call of a reward function: every value that comes back is a finite number, None or a stored error."""

import inspect
import math
import traceback
from collections.abc import Callable
from typing import Any

from training.records import RewardValue
from training.rewards.batch import RESERVED, Batch
from training.rewards.types import Scored

LARGEST = 1e30
"""Of a reward: sums and squares of many such numbers are finite in single precision, or far from infinite in double."""
_LONGEST_ERROR = 4000


class RewardCall:
    """A function under its name in the run; it is given those arguments that it names, or all for a **kwargs."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function
        parameters = inspect.signature(function).parameters.values()
        self._takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self._wanted = frozenset(p.name for p in named)
        self._required = frozenset(p.name for p in named if p.default is p.empty)

    def score(self, batch: Batch) -> list[RewardValue]:
        """One value per completion.

        After an exception each completion is scored alone: it costs only those that cause it.
        """
        given = RESERVED | batch.column_names()
        if missing := self._required - given:
            columns = ", ".join(sorted(given - RESERVED)) or "none"
            error = f"asks for {', '.join(sorted(missing))}, and the dataset has the columns {columns}; rename one"
            return [self._failed(error)] * len(batch)
        names = given if self._takes_all else given & self._wanted
        return self._call(batch, names)

    def _call(self, batch: Batch, names: frozenset[str]) -> list[RewardValue]:
        arguments = {name: batch.argument(name) for name in names}
        try:
            result = self._function(**arguments)
        except Exception:  # it is the user's code: whatever it raises belongs to the completions that cause it
            if len(batch) == 1:
                return [self._failed(traceback.format_exc(limit=-4))]
            return [self._call(batch.only(index), names)[0] for index in range(len(batch))]
        values = result.tolist() if hasattr(result, "tolist") else result
        if not isinstance(values, list | tuple):
            came = type(values).__name__
            return [self._failed(f"expected a list of {len(batch)} values, got {came}")] * len(batch)
        if len(values) != len(batch):
            return [self._failed(f"expected {len(batch)} values, got {len(values)}")] * len(batch)
        return [self._value(item) for item in values]

    def _value(self, item: Any) -> RewardValue:
        scored = item if isinstance(item, Scored) else Scored(item)
        if scored.value is None:
            return RewardValue(name=self.name, value=None, parsed=scored.parsed)
        value = _finite(scored.value)
        if value is None:
            return self._failed(
                f"expected a finite number or None, got {scored.value!r:.100}; the largest is {LARGEST:g}",
                scored.parsed,
            )
        return RewardValue(name=self.name, value=value, parsed=scored.parsed)

    def _failed(self, error: str, parsed: str | None = None) -> RewardValue:
        return RewardValue(name=self.name, value=None, error=error[-_LONGEST_ERROR:], parsed=parsed)


def _finite(value: Any) -> float | None:
    """A number of Python, NumPy or torch as a float; None for everything else and for what is beyond LARGEST."""
    try:
        value = value.item() if hasattr(value, "item") else value
        number = float(value) if isinstance(value, int | float) else math.nan
    except (ValueError, RuntimeError, OverflowError):  # more than one element, or an integer beyond all floats
        return None
    return number if abs(number) <= LARGEST else None
