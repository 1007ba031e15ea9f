"""The launch form, derived from RunConfig: one component per field, with its description, bounds and default."""

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

import gradio as gr
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from training.config import ALGORITHM_CONFIGS, RunConfig
from training.config.toml import field_errors
from training.errors import ConfigError
from training.rewards import catalogue

_OWN = {"rewards", "algorithm", "tags"}


@dataclass(frozen=True, slots=True)
class FormField:
    """A leaf of the configuration: dotted path, and what pydantic knows of it."""

    path: str
    info: FieldInfo

    @property
    def label(self) -> str:
        return self.path.rsplit(".", 1)[-1].replace("_", " ")

    def kind(self) -> Any:
        """The annotated type without None."""
        parts = [part for part in typing.get_args(self.info.annotation) if part is not NoneType]
        union = typing.get_origin(self.info.annotation) is not Literal and len(parts) == 1
        return parts[0] if union and NoneType in typing.get_args(self.info.annotation) else self.info.annotation

    def default(self) -> Any:
        return self.info.get_default(call_default_factory=True, validated_data={})


def section_fields(name: str, model: type[BaseModel]) -> list[FormField]:
    """The fields of one section, its own before inherited ones, but the name that tells an algorithm."""
    prefix = f"{name}." if name else ""
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] not in model.__annotations__)
    return [
        FormField(prefix + key, info)
        for key, info in fields
        if key not in _OWN and not _is_section(info) and not (model in ALGORITHM_CONFIGS.values() and key == "name")
    ]


def sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """(path, title, model) of every section but rewards and algorithm."""
    yield "", "Run", RunConfig
    for key, info in RunConfig.model_fields.items():
        if _is_section(info):
            yield key, info.title or key, typing.cast(type[BaseModel], info.annotation)


def component(field: FormField) -> Any:
    """The Gradio component of a field, showing its default."""
    kind, value = field.kind(), field.default()
    common: dict[str, Any] = {
        "label": field.label,
        "info": field.info.description,
        "value": value,
        "elem_id": "field-" + field.path.replace(".", "-"),
    }
    if typing.get_origin(kind) is Literal:
        return gr.Dropdown(choices=list(typing.get_args(kind)), **common)
    if members := _choices(kind):
        common["value"] = list(value)
        return gr.CheckboxGroup(choices=members, **common)
    if kind is bool:
        return gr.Checkbox(**common)
    if kind in (int, float):
        return gr.Number(precision=0 if kind is int else None, **common)
    if kind is str:
        return gr.Textbox(lines=2 if field.path in ("data.prompt", "data.system_prompt") else 1, **common)
    # a pair of numbers, the one kind that is left
    return gr.Textbox(placeholder="low, high", **common)


def to_config(values: Mapping[str, Any], algorithm: str, rewards: Mapping[str, float | None], tags: str) -> RunConfig:
    """Read what the form holds; fields left empty take their default.  Raises ConfigError that names each field."""
    document: dict[str, Any] = {
        "algorithm": {"name": algorithm},
        "rewards": [{"name": name, "weight": 1.0 if weight is None else weight} for name, weight in rewards.items()],
        "tags": [tag.strip() for tag in tags.split(",") if tag.strip()],
    }
    for path, value in values.items():
        *parents, leaf = path.split(".")
        if value is None or (value == "" and leaf != "image_column"):
            continue
        target = document
        for parent in parents:
            target = target.setdefault(parent, {})
        target[leaf] = _pair(value) if leaf == "reward_clip_range" else value
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(
            "; ".join(f"{field or 'run'}: {message}" for field, message in field_errors(error))
        ) from error


def from_config(config: RunConfig, fields: Sequence[FormField], algorithm: str) -> list[Any]:
    """What the components of `fields` show for a configuration; `algorithm` owns those below `algorithm.`."""
    values = []
    for field in fields:
        if field.path.startswith("algorithm.") and algorithm != config.algorithm.name:
            values.append(field.default())
            continue
        value: Any = config
        for part in field.path.split("."):
            value = getattr(value, part)
        if isinstance(value, tuple):
            value = list(value) if _choices(field.kind()) else ", ".join(map(str, value))
        values.append(value)
    return values


def reward_names() -> list[str]:
    return [info.name for info in catalogue()]


def _choices(kind: Any) -> list[str]:
    """The members of a tuple of literals, of which any may be chosen; empty for every other kind."""
    members = typing.get_args(kind)[:1] if typing.get_origin(kind) is tuple else ()
    return [choice for member in members if typing.get_origin(member) is Literal for choice in typing.get_args(member)]


def _is_section(info: FieldInfo) -> bool:
    return isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)


def _pair(value: Any) -> Any:
    """Numbers of "low, high"; text that is none is left for the configuration to refuse."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value
