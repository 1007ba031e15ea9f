"""Runs reward functions over completions: every value that comes back is a finite number, None or a stored error."""

import inspect
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from training.config import RewardConfig
from training.errors import RewardError
from training.images import SourceImage
from training.records import RewardValue
from training.rewards.catalogue import make_function
from training.rewards.types import Scored

MAX_ERROR_SHARE = 0.5


class RewardSet:
    """The reward functions of a run, in the order of its configuration."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], weights: Sequence[float]) -> None:
        self.names = tuple(functions)
        self.weights = tuple(weights)
        self._functions = [(name, function, _wanted(function)) for name, function in functions.items()]

    def score(
        self,
        *,
        prompts: list[list[dict[str, Any]]],
        completions: list[str],
        completion_ids: list[list[int]],
        images: list[list[SourceImage]],
        columns: list[Mapping[str, Any]],
        step: int,
    ) -> list[list[RewardValue]]:
        """One list of values per completion, in configuration order.

        An exception is tried again one completion at a time, so that it costs only the completions that cause it.
        Raises RewardError when a function fails for more than half of the step.
        """
        given = {"prompts": prompts, "completions": completions, "completion_ids": completion_ids}
        by_function = []
        for name, function, wanted in self._functions:
            arguments = _arguments(given, images, columns, wanted)
            values = _call(name, function, arguments, len(completions), step if _takes(wanted, "step") else None)
            _stop_when_most_fail(name, values, step)
            by_function.append(values)
        return [list(row) for row in zip(*by_function, strict=True)]


def build_rewards(configs: Sequence[RewardConfig]) -> RewardSet:
    """Raises ConfigError for an unknown name or a bad option."""
    functions = {config.name: make_function(config.name, dict(config.options)) for config in configs}
    return RewardSet(functions, [config.weight for config in configs])


def _wanted(function: Callable[..., Any]) -> frozenset[str] | None:
    """Names of the function's arguments; None when it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


def _takes(wanted: frozenset[str] | None, name: str) -> bool:
    return wanted is None or name in wanted


def _arguments(
    given: Mapping[str, list[Any]],
    images: list[list[SourceImage]],
    columns: list[Mapping[str, Any]],
    wanted: frozenset[str] | None,
) -> dict[str, list[Any]]:
    """Lists with one entry per completion; images are decoded, and so copied, only for a function that asks."""
    names = {name for row in columns for name in row} - {*given, "images", "step"}
    arguments = {name: [row.get(name) for row in columns] for name in names if _takes(wanted, name)}
    arguments |= {name: list(values) for name, values in given.items() if _takes(wanted, name)}
    if _takes(wanted, "images"):
        arguments["images"] = [[image.open() for image in row] for row in images]
    return arguments


def _call(
    name: str, function: Callable[..., Any], arguments: dict[str, list[Any]], count: int, step: int | None
) -> list[RewardValue]:
    extra = {} if step is None else {"step": step}
    try:
        result = function(**arguments, **extra)
    except Exception:  # code of the user's: an exception belongs to the completions that cause it
        if count == 1:
            return [RewardValue(name=name, value=None, error=traceback.format_exc(limit=-4))]
        return [
            _call(name, function, {key: [values[i]] for key, values in arguments.items()}, 1, step)[0]
            for i in range(count)
        ]
    if not isinstance(result, Sequence) or isinstance(result, str) or len(result) != count:
        error = f"expected a list of {count} values, got {_describe(result)}"
        return [RewardValue(name=name, value=None, error=error)] * count
    return [_value(name, item) for item in result]


def _value(name: str, item: Any) -> RewardValue:
    scored = item if isinstance(item, Scored) else Scored(item)
    if scored.value is None:
        return RewardValue(name=name, value=None, parsed=scored.parsed)
    if isinstance(scored.value, bool | int | float) and math.isfinite(scored.value):
        return RewardValue(name=name, value=float(scored.value), parsed=scored.parsed)
    error = f"expected a finite number or None, got {scored.value!r:.100}"
    return RewardValue(name=name, value=None, error=error, parsed=scored.parsed)


def _describe(result: Any) -> str:
    return f"{len(result)} values" if isinstance(result, list | tuple) else type(result).__name__


def _stop_when_most_fail(name: str, values: Sequence[RewardValue], step: int) -> None:
    errors = [value.error for value in values if value.error is not None]
    if len(errors) > MAX_ERROR_SHARE * len(values):
        raise RewardError(
            f"reward {name!r} failed for {len(errors)} of {len(values)} completions of step {step}; "
            f"the first: {errors[0]}"
        )
