"""Puts the pieces of completions and groups together: one query per table, whatever the number of rows."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.store.queries.rows import CompletionRow, GroupRow, ImageRow, RewardRow, SampleRow
from app.store.tables import Completion, CompletionBody, Group, Image, Name, Reward, Sample, SampleImage


def completion_rows(session: Session, ids: Sequence[int]) -> list[CompletionRow]:
    """The completions with these ids, in this order; unknown ids are left out."""
    found = {row.id: row for row in _completions(session, Completion.id.in_(ids))}
    return [found[row_id] for row_id in ids if row_id in found]


def group_rows(session: Session, ids: Sequence[int]) -> list[GroupRow]:
    """The groups with these ids, in this order; unknown ids are left out."""
    g = Group
    columns = (g.id, g.run_id, g.step, g.sample_id, g.row, g.reward_mean, g.reward_std, g.zero_signal)
    found = {row.id: row for row in session.execute(select(*columns).where(g.id.in_(ids)))}
    samples = _samples(session, {row.sample_id for row in found.values()})
    completions: dict[int, list[CompletionRow]] = defaultdict(list)
    for completion in _completions(session, Completion.group_id.in_(found)):
        completions[completion.group_id].append(completion)
    return [
        GroupRow(
            id=row.id,
            run_id=row.run_id,
            step=row.step,
            sample=replace(samples[row.sample_id], row=row.row),
            completions=sorted(completions[row.id], key=lambda completion: completion.index),
            reward_mean=row.reward_mean,
            reward_std=row.reward_std,
            zero_signal=row.zero_signal,
        )
        for row in (found[row_id] for row_id in ids if row_id in found)
    ]


def _completions(session: Session, which: ColumnElement[bool]) -> list[CompletionRow]:
    c, body = Completion, CompletionBody
    columns = (
        c.id,
        c.group_id,
        c.run_id,
        c.step,
        c.index,
        body.text,
        body.truncated,
        c.num_tokens,
        c.finish_reason,
        c.reward,
        c.advantage,
    )
    rewards = _rewards(session, which)
    rows = session.execute(select(*columns).join(body, body.completion_id == c.id).where(which))
    return [CompletionRow(*row, rewards=rewards[row.id]) for row in rows]


def _rewards(session: Session, which: ColumnElement[bool]) -> dict[int, list[RewardRow]]:
    statement = (
        select(Reward.completion_id, Name.name, Reward.value, Reward.error, Reward.parsed)
        .join(Completion, Completion.id == Reward.completion_id)
        .join(Name, Name.id == Reward.name_id)
        .where(which)
        .order_by(Reward.completion_id, Reward.position)
    )
    rewards: dict[int, list[RewardRow]] = defaultdict(list)
    for completion_id, name, value, error, parsed in session.execute(statement):
        rewards[completion_id].append(RewardRow(name, value, error, parsed))
    return rewards


def _samples(session: Session, ids: Collection[int]) -> dict[int, SampleRow]:
    shown = (
        select(SampleImage.sample_id, Image.sha256, Image.width, Image.height, SampleImage.position)
        .join(Image, Image.sha256 == SampleImage.sha256)
        .where(SampleImage.sample_id.in_(ids))
        .order_by(SampleImage.sample_id, SampleImage.position)
    )
    images: dict[int, list[ImageRow]] = defaultdict(list)
    for sample_id, sha256, width, height, position in session.execute(shown):
        images[sample_id].append(ImageRow(sha256, width, height, position))
    columns = select(Sample.id, Sample.key, Sample.messages, Sample.columns).where(Sample.id.in_(ids))
    return {
        sample_id: SampleRow(sample_id, key, 0, messages, fields, images[sample_id])
        for sample_id, key, messages, fields in session.execute(columns)
    }
