"""The reward functions that a run can name."""

import difflib
import inspect
from collections.abc import Callable

from pydantic import JsonValue, ValidationError

from training.config.base import Section
from training.config.toml import field_errors
from training.errors import ConfigError
from training.rewards import choices, formats, quantities, texts
from training.rewards.types import NoOptions, RewardFunction, RewardInfo


def _rule(function: RewardFunction) -> RewardInfo:
    """A function without options: the first line of its docstring is its summary."""
    summary = (inspect.getdoc(function) or "").partition("\n")[0]
    return RewardInfo(function.__name__, summary, (0.0, 1.0), NoOptions, lambda _: function)


_NUMERIC = RewardInfo(
    "numeric",
    "1 when the one number in the answer equals the gold one within a tolerance; several different ones are wrong.",
    (0.0, 1.0),
    quantities.NumericOptions,
    quantities.numeric,
)

_CATALOGUE: dict[str, RewardInfo] = {
    info.name: info
    for info in (
        _rule(texts.accuracy),
        _NUMERIC,
        _rule(quantities.counting),
        _rule(choices.choice),
        _rule(choices.yes_no),
        _rule(texts.exact_text),
        _rule(texts.fuzzy_text),
        _rule(formats.format_answer),
        _rule(formats.format_think_answer),
        _rule(formats.format_boxed),
    )
}


def catalogue() -> list[RewardInfo]:
    """All entries, those that judge the answer first."""
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
        known = ", ".join(info.options.model_fields) or "none"
        raise ConfigError(f"options of reward {info.name!r}: {details}; its options are: {known}") from error


def make_function(name: str, options: dict[str, JsonValue]) -> Callable[..., object]:
    """The function of a catalogue entry with its options read."""
    info = find(name)
    return info.make(read_options(info, options))
