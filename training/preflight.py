"""Everything that can be known about a run before it takes a device; free of torch."""

import time
from collections.abc import Iterator

from training.config import RunConfig
from training.datasets import Access, PromptDataset
from training.errors import ConfigError, ModelError
from training.findings import Finding
from training.model_path import model_directory
from training.models_catalogue import is_built_in
from training.preflight_data import FIRST_ROWS, check_data
from training.preflight_device import check_device
from training.processor_settings import ModelFiles, read_model_files
from training.rewards import RewardSet, build_rewards

__all__ = ["Finding", "check"]


def check(config: RunConfig, *, access: Access, time_budget: float = 10.0) -> list[Finding]:
    """Check rewards, model, data and images; errors name the field or the row, and the remedy.

    Every image file must exist; images are decoded for `time_budget` seconds, and an info says how many were.
    """
    deadline = time.monotonic() + time_budget
    findings = [*_rewards(config), *_model(config, access), *check_device(config), *_cautions(config)]
    data = check_data(config, access, model=_model_files(config, access), deadline=deadline)
    findings += data.findings
    if data.train is not None and not any(finding.level == "error" for finding in findings):
        findings += _tried_rewards(build_rewards(config.rewards, max_error_share=1.0), data.train)
    return findings


def _rewards(config: RunConfig) -> Iterator[Finding]:
    for index, reward in enumerate(config.rewards):
        for part, known in (("name", reward.model_copy(update={"options": {}})), ("options", reward)):
            try:
                build_rewards([known])
            except ConfigError as error:
                yield Finding("error", f"rewards.{index}.{part}", str(error))
                break


def _tried_rewards(rewards: RewardSet, dataset: PromptDataset) -> Iterator[Finding]:
    """Each reward, on the gold answers of the first rows: it must not fail, and should be able to score one."""
    samples = [dataset[row] for row in range(min(FIRST_ROWS, len(dataset)))]
    values = rewards.score(
        prompts=[sample.messages for sample in samples],
        completions=[str(sample.columns["answer"]) for sample in samples],
        completion_ids=[[] for _ in samples],
        images=[sample.images for sample in samples],
        columns=[sample.columns for sample in samples],
        step=0,
    )
    for index, name in enumerate(rewards.names):
        column = [row[index] for row in values]
        failed = next((row for row, value in enumerate(column) if value.error), None)
        if failed is not None:
            message = f"reward {name!r} fails on the gold answer of row {failed}: {column[failed].error}"
            yield Finding("error", f"rewards.{index}.name", message, failed)
        elif all(value.value is None for value in column):
            answers = ", ".join(repr(sample.columns["answer"]) for sample in samples[:3])
            yield Finding(
                "warning",
                f"rewards.{index}.name",
                f"reward {name!r} can score none of the first {len(samples)} rows, whose gold answers are "
                f"{answers:.200}; choose a reward for such answers or correct data.answer_column",
            )


def _model(config: RunConfig, access: Access) -> Iterator[Finding]:
    path = config.model.path
    if is_built_in(path):
        return
    try:
        directory = model_directory(path, access)
    except ModelError as error:
        yield Finding("error", "model.path", str(error))
        return
    if directory is None:
        message = (
            f"{path} is no directory here and is taken as a hub id; it shows when the run starts whether it exists"
        )
        yield Finding("info", "model.path", message)


def _model_files(config: RunConfig, access: Access) -> ModelFiles | None:
    """None for a model that is not here, or not made yet."""
    try:
        directory = None if is_built_in(config.model.path) else model_directory(config.model.path, access)
    except ModelError:
        return None
    return read_model_files(directory) if directory else None


def _cautions(config: RunConfig) -> Iterator[Finding]:
    for field, message in config.algorithm.cautions(config.generation.num_generations):
        yield Finding("warning", field, message)
