"""The part of preflight that opens the data: splits, columns, rows and images."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from training.config import DataConfig, RunConfig
from training.datasets import Access, DataFault, PromptDataset, open_dataset
from training.datasets.template import template_columns
from training.errors import DatasetError
from training.findings import Finding
from training.processor_settings import ModelFiles
from training.reserved import check_reserved
from training.rewards.batch import RESERVED
from training.token_budget import TokenBudget
from training.vision import FAMILIES

MAX_FAULTY_ROWS = 20
FIRST_ROWS = 8
"""Rows that are decoded in any case, and all that are of built-in data."""


@dataclass(frozen=True, slots=True)
class DataCheck:
    """What was found, and the training data when it could be opened."""

    findings: list[Finding]
    train: PromptDataset | None


def check_data(config: RunConfig, access: Access, *, model: ModelFiles | None, deadline: float) -> DataCheck:
    """Open and check the training split and the evaluation split; images are decoded until `deadline` (monotonic).

    model: tells the image tokens of a row and the texts that no row may hold; None when it is not known.
    """
    train = _open(config, access, config.data.split, "data.split")
    findings = list(_template(config))
    if isinstance(train, PromptDataset):
        findings += [*_enough_prompts(config, train), *_hidden_columns(train), *_rows(train, model, deadline)]
    else:
        findings.append(train)
    if (split := config.evaluation.split) is not None:
        held_out = _open(config, access, split, "evaluation.split")
        findings += _evaluation(config)
        findings += _rows(held_out, model, deadline) if isinstance(held_out, PromptDataset) else [held_out]
    distinct = list(dict.fromkeys(findings))
    return DataCheck(distinct, train if isinstance(train, PromptDataset) else None)


def _open(config: RunConfig, access: Access, split: str, split_field: str) -> PromptDataset | Finding:
    try:
        return open_dataset(config.data, split=split, access=access)
    except DataFault as fault:
        return Finding("error", split_field if fault.field == "data.split" else fault.field, str(fault), fault.row)


def _template(config: RunConfig) -> Iterator[Finding]:
    if not config.data.messages_column and config.data.answer_column in template_columns(config.data.prompt):
        yield Finding(
            "warning",
            "data.prompt",
            f"the prompt shows the gold answer, column {config.data.answer_column!r}; take it out of the prompt",
        )


def _enough_prompts(config: RunConfig, dataset: PromptDataset) -> Iterator[Finding]:
    needed, rows = config.optimization.prompts_per_step, len(dataset)
    if rows < needed and not config.data.cycle:
        limited = f" (data.limit = {config.data.limit})" if rows == config.data.limit else ""
        yield Finding(
            "error",
            "optimization.prompts_per_step",
            f"a step needs {needed} prompts and {dataset.name} has {rows} rows{limited}; "
            f"use at most {rows}, add rows, or set data.cycle = true to take rows several times a step",
        )


def _hidden_columns(dataset: PromptDataset) -> Iterator[Finding]:
    for name in sorted(RESERVED & set(dataset.column_names) - {dataset.image_column, dataset.config.messages_column}):
        message = f"rewards get {name!r} from the run and never see the column of that name; rename the column"
        yield Finding("warning", "data.source", message)


def _evaluation(config: RunConfig) -> Iterator[Finding]:
    if config.evaluation.split == config.data.split:
        yield Finding(
            "warning",
            "evaluation.split",
            f"the run evaluates on {config.data.split!r}, which it trains on; name a split that is held out",
        )


def _rows(dataset: PromptDataset, model: ModelFiles | None, deadline: float) -> Iterator[Finding]:
    """Faulty rows, missing files and too many image tokens before corrupt images; a few of built-in data."""
    rows = range(min(FIRST_ROWS, len(dataset)) if dataset.table.built_in else len(dataset))
    faults: dict[int, Finding] = {}
    reserved, budget = (model.reserved, _budget(model, dataset.config)) if model else ((), None)
    started = time.monotonic()
    measured = 0
    for row in rows:
        in_time = row < FIRST_ROWS or time.monotonic() < (started + deadline) / 2
        if len(faults) >= MAX_FAULTY_ROWS or not (in_time or dataset.names_files):
            break
        _note(faults, row, lambda row=row: check_reserved(dataset.check_row(row), reserved, row=row))
        if budget and in_time and row not in faults:
            _note(faults, row, lambda row=row: budget.check(dataset.image_sizes(row), row=row))
            measured += 1
    decoded: set[str] = set()
    done = 0
    for row in rows:
        if len(faults) >= MAX_FAULTY_ROWS or (row >= FIRST_ROWS and time.monotonic() > deadline):
            break
        if row not in faults:
            _note(faults, row, lambda row=row: _decode(dataset, row, decoded))
        done += 1
    yield from faults.values()
    if len(faults) >= MAX_FAULTY_ROWS:
        message = f"{MAX_FAULTY_ROWS} faulty rows were found and there may be more; correct them and check again"
        yield Finding("info", "data.source", message)
    elif done < len(rows):
        message = (
            f"the images of {done} of {len(rows)} rows of {dataset.name} were decoded in the time there was; "
            "the others are decoded when the run comes to them"
        )
        if budget and budget.data.max_prompt_length and measured < done:
            message += f"; those of {measured} rows were measured for their tokens"
        yield Finding("info", "data.image_column" if dataset.image_column else "data.source", message)


def _budget(model: ModelFiles, data: DataConfig) -> TokenBudget | None:
    family = FAMILIES.get(model.model_type)
    return TokenBudget(family.tokens, model.settings, data) if family and family.tokens else None


def _decode(dataset: PromptDataset, row: int, decoded: set[str]) -> None:
    for image in dataset[row].images:
        if image.sha256 not in decoded:
            image.open()
            decoded.add(image.sha256)


def _note(faults: dict[int, Finding], row: int, step: Callable[[], None]) -> None:
    try:
        step()
    except DataFault as fault:
        faults[row] = Finding("error", fault.field, str(fault), row)
    except DatasetError as error:
        faults[row] = Finding("error", "data.image_column", str(error), row)
