"""The reward functions that a run can name."""

import difflib
from collections.abc import Callable

from pydantic import JsonValue, ValidationError

from training.config.base import Section
from training.config.toml import field_errors
from training.errors import ConfigError
from training.rewards import rules
from training.rewards.types import NoOptions, RewardFunction, RewardInfo


def _rule(function: RewardFunction) -> RewardInfo:
    """A function without options: the first line of its docstring is its summary."""
    summary = (function.__doc__ or "").strip().splitlines()[0]
    return RewardInfo(function.__name__, summary, (0.0, 1.0), NoOptions, lambda _: function)


_CATALOGUE: dict[str, RewardInfo] = {
    info.name: info
    for info in map(_rule, (rules.accuracy, rules.exact_text, rules.format_answer, rules.format_think_answer))
}


def catalogue() -> list[RewardInfo]:
    """All entries by name."""
    return list(_CATALOGUE.values())


def find(name: str) -> RewardInfo:
    """Raises ConfigError that lists the known names and the nearest one."""
    if name in _CATALOGUE:
        return _CATALOGUE[name]
    near = difflib.get_close_matches(name, _CATALOGUE, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"there is no reward {name!r}; expected one of {', '.join(sorted(_CATALOGUE))}{hint}")


def read_options(info: RewardInfo, options: dict[str, JsonValue]) -> Section:
    """Raises ConfigError that names the option."""
    try:
        return info.options.model_validate(options)
    except ValidationError as error:
        details = "; ".join(f"{field}: {message}" for field, message in field_errors(error))
        raise ConfigError(f"reward {info.name!r}: {details}") from error


def make_function(name: str, options: dict[str, JsonValue]) -> Callable[..., object]:
    """The function of a catalogue entry with its options read."""
    info = find(name)
    return info.make(read_options(info, options))
