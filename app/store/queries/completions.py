"""Reads completions: by group with prompt and images, or one by one, searched and sorted."""

import base64
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, func, literal, select, tuple_
from sqlalchemy.orm import Session

from app.store.full_text import matching
from app.store.histograms import TOTAL
from app.store.ids import first_id, last_id
from app.store.queries.assembly import completion_rows, group_rows
from app.store.queries.pages import Page, cut, decode, encode
from app.store.queries.rows import CompletionRow, GroupRow, ImageRow, RewardRow, SampleRow, StepRange
from app.store.tables import Completion, CompletionTokens, Group, Name, RewardHistogram
from training.token_stats import TokenStats, unpack

__all__ = [
    "CompletionRow",
    "GroupRow",
    "ImageRow",
    "RewardRow",
    "SampleRow",
    "Sort",
    "StepRange",
    "get_completion",
    "get_group",
    "groups",
    "list_completions",
    "steps",
    "token_stats",
]

Sort = Literal["step", "reward", "num_tokens"]

_SORTED_BY = {"reward": Completion.reward_rank, "num_tokens": Completion.num_tokens}


@dataclass(frozen=True, slots=True)
class _Ids:
    """A range of ids, both ends included."""

    low: int
    high: int


def steps(session: Session, run_id: int) -> StepRange:
    """Which steps have completions; every such step has one histogram of the total reward."""
    step = RewardHistogram.step
    statement = (
        select(func.min(step), func.max(step), func.count())
        .select_from(RewardHistogram)
        .join(Name, Name.id == RewardHistogram.name_id)
        .where(RewardHistogram.run_id == run_id, Name.name == TOTAL)
    )
    return StepRange(*session.execute(statement).one())


def groups(
    session: Session, run_id: int, *, step: int | None = None, after: str | None = None, limit: int = 20
) -> Page[GroupRow]:
    """Groups of one step in their order, or of all steps with the newest first."""
    order = "newest" if step is None else "position"
    statement = select(Group.id).where(Group.id > first_id(run_id), Group.id <= last_id(run_id))
    if step is not None:
        statement = select(Group.id).where(Group.run_id == run_id, Group.step == step)
    if after is not None:
        seen = decode(after, order)[1]
        statement = statement.where(Group.id < seen if step is None else Group.id > seen)
    statement = statement.order_by(Group.id.desc() if step is None else Group.id).limit(limit + 1)
    ids, cursor = cut(session.scalars(statement).all(), limit, lambda row_id: encode(order, 0, row_id))
    return Page(group_rows(session, ids), cursor)


def get_group(session: Session, group_id: int) -> GroupRow | None:
    """One group, or None when there is none with this id."""
    return next(iter(group_rows(session, [group_id])), None)


def get_completion(session: Session, completion_id: int) -> CompletionRow | None:
    """One completion, or None when there is none with this id."""
    return next(iter(completion_rows(session, [completion_id])), None)


def token_stats(session: Session, completion_id: int) -> TokenStats | None:
    """Token ids, log-probabilities and entropies of a completion, when they were recorded."""
    packed = session.scalar(select(CompletionTokens.packed).where(CompletionTokens.completion_id == completion_id))
    return None if packed is None else unpack(base64.b64encode(packed).decode())


def list_completions(
    session: Session,
    run_id: int,
    *,
    step: int | None = None,
    query: str | None = None,
    sort: Sort = "step",
    descending: bool = True,
    after: str | None = None,
    limit: int = 50,
) -> Page[CompletionRow]:
    """Completions one by one.  `query` are words that must all occur; unscored ones sort below every reward."""
    ids = _ids(session, run_id, step)
    order = f"{sort} {'down' if descending else 'up'}"
    seen = None if after is None else decode(after, order, kind=float if sort == "reward" else int)
    if ids is None:
        return Page([], None)
    words = query if query and query.strip() else None
    if sort == "step":
        statement = _by_id(session, ids, words, seen, descending=descending)
    else:
        statement = _by_value(session, run_id, ids, words, seen, sort, step=step, descending=descending)
    rows, cursor = cut(
        session.execute(statement.limit(limit + 1)).all(), limit, lambda row: encode(order, row.value, row.id)
    )
    return Page(completion_rows(session, [row.id for row in rows]), cursor)


def _ids(session: Session, run_id: int, step: int | None) -> _Ids | None:
    """The ids of the run, or of one step: those are contiguous, too."""
    if step is None:
        return _Ids(first_id(run_id), last_id(run_id))
    ends = select(func.min(Completion.id), func.max(Completion.id))
    low, high = session.execute(ends.where(Completion.run_id == run_id, Completion.step == step)).one()
    return None if low is None else _Ids(low, high)


def _by_id(
    session: Session, ids: _Ids, words: str | None, seen: tuple[float, int] | None, *, descending: bool
) -> Select[int, Any]:
    """The order of ids is the order of steps, so the cursor only narrows the range."""
    low, high = ids.low, ids.high
    if seen is not None:
        low, high = (low, min(high, seen[1] - 1)) if descending else (max(low, seen[1] + 1), high)
    if words is not None:
        found = matching(session, words, low=low, high=high)
        row_id: ColumnElement[int] = found.selected_columns.id
    else:
        row_id = Completion.id.expression
        found = select(row_id).where(Completion.id >= low, Completion.id <= high)
    return found.add_columns(literal(0).label("value")).order_by(row_id.desc() if descending else row_id)


def _by_value(
    session: Session,
    run_id: int,
    ids: _Ids,
    words: str | None,
    seen: tuple[float, int] | None,
    sort: Sort,
    *,
    step: int | None,
    descending: bool,
) -> Select[int, Any]:
    value = _SORTED_BY[sort]
    statement = select(Completion.id, value.label("value"))
    if step is None:
        statement = statement.where(Completion.run_id == run_id)
    else:
        # without run_id, lest an index over the whole run be walked to sort the few rows of a step
        statement = statement.where(Completion.id >= ids.low, Completion.id <= ids.high)
    if words is not None:
        statement = statement.where(Completion.id.in_(matching(session, words, low=ids.low, high=ids.high)))
    if seen is not None:
        key = tuple_(value, Completion.id)
        statement = statement.where(key < tuple_(*seen) if descending else key > tuple_(*seen))
    if descending:
        return statement.order_by(value.desc(), Completion.id.desc())
    return statement.order_by(value, Completion.id)
