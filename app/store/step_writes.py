"""Stores one training step: groups, completions with all that belongs to them, histograms, metrics, progress."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from app.store.doors import LONGEST_TEXT, finite
from app.store.histograms import TOTAL, histogram, histogram_name
from app.store.ids import next_id
from app.store.tables import (
    Completion,
    CompletionBody,
    CompletionTokens,
    Group,
    Metric,
    Reward,
    RewardHistogram,
    Run,
    RunImage,
)
from app.store.tables.completions import UNSCORED_RANK
from app.store.tables.metrics import MEAN_REWARD
from app.store.upserts import insert_or_ignore, insert_or_replace
from app.store.voiding import void_after
from training.records import CompletionRecord, GroupRecord, RewardValue, StepRecord

Row = dict[str, Any]


def reward_names(record: StepRecord) -> set[str]:
    """The names that the rewards of a step are stored under."""
    functions = {
        reward.name for group in record.groups for completion in group.completions for reward in completion.rewards
    }
    return functions | {histogram_name(name) for name in functions} | {TOTAL}


def write_step(
    session: Session, run_id: int, record: StepRecord, *, names: Mapping[str, int], samples: Mapping[str, int]
) -> None:
    """Store a step; when it was stored before, it and all after it were made again and the old ones are void."""
    if record.step <= session.scalars(select(Run.step).where(Run.id == run_id)).one():
        void_after(session, run_id, record.step - 1)
    first_group = next_id(session, Group.id, run_id)
    groups = [
        _group_row(first_group + place, run_id, record.step, group, samples[group.sample.key])
        for place, group in enumerate(record.groups)
    ]
    members = [
        (row["id"], completion)
        for row, group in zip(groups, record.groups, strict=True)
        for completion in group.completions
    ]
    _insert(session, Group, groups)
    _write_completions(session, run_id, record.step, members, names)
    _write_histograms(session, run_id, record.step, [completion for _, completion in members], names)
    write_metrics(session, run_id, record.step, record.metrics, names=names)
    _write_images(session, run_id, record)
    _write_progress(session, run_id, record, completions=len(members))


def write_metrics(
    session: Session, run_id: int, step: int, metrics: Mapping[str, float], *, names: Mapping[str, int]
) -> None:
    """Store metrics of a step; a value that is not finite has no place on a curve and is left out."""
    rows = [
        {"run_id": run_id, "name_id": names[name], "step": step, "value": value}
        for name, value in metrics.items()
        if finite(value) is not None
    ]
    insert_or_replace(session, Metric, rows)


def _group_row(group_id: int, run_id: int, step: int, group: GroupRecord, sample_id: int) -> Row:
    spread = histogram([completion.reward for completion in group.completions])
    return {
        "id": group_id,
        "run_id": run_id,
        "step": step,
        "sample_id": sample_id,
        "row": group.sample.row,
        "reward_mean": spread.mean,
        "reward_std": spread.std,
        "zero_signal": spread.low == spread.high,
    }


def _write_completions(
    session: Session, run_id: int, step: int, members: Sequence[tuple[int, CompletionRecord]], names: Mapping[str, int]
) -> None:
    first = next_id(session, Completion.id, run_id)
    numbered = [(first + place, group_id, completion) for place, (group_id, completion) in enumerate(members)]
    _insert(session, Completion, [_completion_row(*entry, run_id=run_id, step=step) for entry in numbered])
    bodies = [
        {"completion_id": row_id, "text": completion.text, "truncated": len(completion.text) > LONGEST_TEXT}
        for row_id, _, completion in numbered
    ]
    _insert(session, CompletionBody, bodies)
    rewards = [
        _reward_row(row_id, position, reward, names)
        for row_id, _, completion in numbered
        for position, reward in enumerate(completion.rewards)
    ]
    _insert(session, Reward, rewards)
    tokens = [
        {"completion_id": row_id, "packed": base64.b64decode(completion.tokens)}
        for row_id, _, completion in numbered
        if completion.tokens is not None
    ]
    _insert(session, CompletionTokens, tokens)


def _completion_row(row_id: int, group_id: int, completion: CompletionRecord, *, run_id: int, step: int) -> Row:
    reward = finite(completion.reward)
    return {
        "id": row_id,
        "run_id": run_id,
        "step": step,
        "group_id": group_id,
        "index": completion.index,
        "num_tokens": completion.num_tokens,
        "finish_reason": completion.finish_reason,
        "reward": reward,
        "reward_rank": UNSCORED_RANK if reward is None else reward,
        "advantage": completion.advantage,
    }


def _reward_row(completion_id: int, position: int, reward: RewardValue, names: Mapping[str, int]) -> Row:
    value = finite(reward.value)
    strange = reward.value is not None and value is None
    return {
        "completion_id": completion_id,
        "position": position,
        "name_id": names[reward.name],
        "value": value,
        "error": f"the value is not finite: {reward.value}" if strange else reward.error,
        "parsed": reward.parsed,
    }


def _write_histograms(
    session: Session, run_id: int, step: int, completions: Sequence[CompletionRecord], names: Mapping[str, int]
) -> None:
    values: dict[str, list[float | None]] = {TOTAL: [completion.reward for completion in completions]}
    for completion in completions:
        for reward in completion.rewards:
            values.setdefault(histogram_name(reward.name), []).append(reward.value)
    rows = [
        {"run_id": run_id, "step": step, "name_id": names[name], **asdict(histogram(scores))}
        for name, scores in values.items()
    ]
    _insert(session, RewardHistogram, rows)


def _write_images(session: Session, run_id: int, record: StepRecord) -> None:
    shown = sorted({image.sha256 for group in record.groups for image in group.sample.images})
    rows = [{"run_id": run_id, "sha256": sha256, "first_step": record.step} for sha256 in shown]
    insert_or_ignore(session, RunImage, rows)


def _write_progress(session: Session, run_id: int, record: StepRecord, *, completions: int) -> None:
    reward = finite(record.metrics.get(MEAN_REWARD))
    images = select(func.count()).where(RunImage.run_id == run_id).scalar_subquery()
    values: Row = {
        "step": record.step,
        "completions": Run.completions + completions,
        "images": images,
        "reward_last": reward,
    }
    session.execute(update(Run).where(Run.id == run_id).values(values))
    if reward is not None:
        unset = (Run.id == run_id, Run.reward_first.is_(None))
        session.execute(update(Run).where(*unset).values(reward_first=reward))


def _insert(session: Session, table: Any, rows: Sequence[Row]) -> None:
    if rows:
        session.execute(insert(table), rows)
