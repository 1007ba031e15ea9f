"""Everything that can be known about a run before it takes a device; free of torch."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from training.config import RunConfig
from training.datasets import Access, DataFault, PromptDataset, open_dataset
from training.errors import ConfigError, DatasetError
from training.models_catalogue import BUILT_IN, is_built_in
from training.rewards.catalogue import find, read_options

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: an error refuses the run, a warning and an info do not."""

    level: Literal["error", "warning", "info"]
    field: str
    message: str
    row: int | None = None


def check(config: RunConfig, *, access: Access, time_budget: float = 10.0) -> list[Finding]:
    """Check rewards, model, data and images.  Images are decoded within `time_budget` seconds; all must exist."""
    findings = [*_rewards(config), *_model(config, access), *_advantages(config)]
    deadline = time.monotonic() + time_budget
    findings += _data(config, access, config.data.split, "data.split", deadline)
    if config.evaluation.split is not None:
        findings += _data(config, access, config.evaluation.split, "evaluation.split", deadline)
    return findings


def _rewards(config: RunConfig) -> Iterator[Finding]:
    for index, reward in enumerate(config.rewards):
        try:
            info = find(reward.name)
        except ConfigError as error:
            yield Finding("error", f"rewards.{index}.name", str(error))
            continue
        try:
            read_options(info, dict(reward.options))
        except ConfigError as error:
            yield Finding("error", f"rewards.{index}.options", str(error))


def _advantages(config: RunConfig) -> Iterator[Finding]:
    scaled = config.algorithm.name == "grpo" and config.algorithm.scale_rewards == "group"
    if scaled and config.generation.num_generations == 2:
        yield Finding(
            "warning",
            "generation.num_generations",
            "with two completions per prompt, scaled advantages are +-0.707 whatever the gap between the rewards; "
            "use more, or algorithm.scale_rewards = none",
        )


def _model(config: RunConfig, access: Access) -> Iterator[Finding]:
    path = config.model.path
    if is_built_in(path):
        return
    built_in = ", ".join(BUILT_IN)
    if _HUB_ID.fullmatch(path) and not any((root / path).exists() for root in access.roots or ()):
        yield Finding("info", "model.path", f"{path} is taken as a hub id; whether it exists shows when it is loaded")
        return
    try:
        directory = access.locate(path, field="model.path").path
    except DataFault as error:
        yield Finding(
            "error",
            "model.path",
            f"{error}. Expected a model directory, a hub id (owner/name), or a built-in model ({built_in})",
        )
        return
    try:
        json.loads((directory / "config.json").read_text())
    except (OSError, ValueError) as error:
        yield Finding(
            "error", "model.path", f"{directory} is no model directory, its config.json cannot be read: {error}"
        )


def _data(config: RunConfig, access: Access, split: str, field: str, deadline: float) -> Iterator[Finding]:
    try:
        dataset = open_dataset(config.data, split=split, access=access)
    except DataFault as error:
        yield Finding("error", field if error.field == "data.split" else error.field, str(error), error.row)
        return
    except DatasetError as error:
        yield Finding("error", "data.source", str(error))
        return
    needed = config.optimization.prompts_per_step if field == "data.split" else 1
    if len(dataset) < needed:
        yield Finding(
            "error",
            "optimization.prompts_per_step" if field == "data.split" else field,
            f"a step needs {needed} prompts and {dataset.name} has {len(dataset)}; add rows or lower prompts_per_step",
        )
        return
    yield from _rows(dataset, deadline)


def _rows(dataset: PromptDataset, deadline: float) -> Iterator[Finding]:
    """The first faulty row, of a missing file before a corrupt one; a row of built-in data stands for all."""
    count = 1 if dataset.table.built_in else len(dataset)
    decoded = 0
    try:
        for index in range(count):
            dataset.check_row(index)
        for index in range(count):
            if time.monotonic() > deadline:
                break
            for image in dataset[index].images:
                image.open()
            decoded += 1
    except DataFault as error:
        yield Finding("error", error.field, str(error), error.row)
    except DatasetError as error:
        yield Finding("error", "data.image_column", str(error), decoded)
    else:
        if decoded < count:
            message = f"the images of {decoded} of {count} rows were decoded in the time there was; all files exist"
            yield Finding("info", "data.image_column", message)
