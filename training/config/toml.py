"""RunConfig in and out of TOML; every refusal names the field, what came and what was expected."""

import tomllib
from pathlib import Path

import tomlkit
from pydantic import ValidationError

from training.config.algorithms import ALGORITHM_CONFIGS
from training.config.run import RunConfig
from training.errors import ConfigError


def field_errors(error: ValidationError) -> list[tuple[str, str]]:
    """The refusals of a validation as (dotted field, message); input values are never repeated wholesale."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    places = [fault["loc"] for fault in faults]
    return [
        (
            ".".join(str(part) for part in fault["loc"] if part not in ALGORITHM_CONFIGS),
            fault["msg"].removeprefix("Value error, "),
        )
        for fault in faults
        # a list whose only item is at fault counts as too short as well, which would point away from the fault
        if not (fault["type"] == "too_short" and any(_is_inside(place, fault["loc"]) for place in places))
    ]


def _is_inside(place: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(place) > len(outer) and place[: len(outer)] == outer


def load_toml(text: str) -> RunConfig:
    """Read a configuration.  Raises ConfigError that names line or field."""
    try:
        # not tomlkit: it takes ten seconds for a hostile megabyte
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}") from error
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(
            "; ".join(f"{field or 'run'}: {message}" for field, message in field_errors(error))
        ) from error


def read_toml(path: Path) -> RunConfig:
    """Read a configuration file.  Raises ConfigError, also when the file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    return load_toml(text)


def dump_toml(config: RunConfig) -> str:
    """Write a configuration; fields without a value are left out, as TOML has no null."""
    return tomlkit.dumps(config.model_dump(mode="json", exclude_none=True))
