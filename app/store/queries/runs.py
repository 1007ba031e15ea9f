"""Reads runs: lists, one run with everything about it, counts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.queries.metrics import EvalRow, evals, sparklines
from app.store.queries.pages import LARGEST_INTEGER, Page, cut, decode, encode
from app.store.states import RunState
from app.store.tables import Run
from training.config import RunConfig


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as lists show it; `reward` is the mean reward of the last step, `sparkline` that of steps in between."""

    id: int
    name: str
    project: str
    tags: list[str]
    state: RunState
    phase: str | None
    reason: str | None
    step: int
    max_steps: int
    reward: float | None
    reward_first: float | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    created_by: str | None
    sparkline: list[float]


@dataclass(frozen=True, slots=True)
class RunDetail(RunRow):
    """Everything about one run but its lists."""

    config: RunConfig
    phase_detail: str | None
    progress_at: datetime | None
    worker: str | None
    host: str | None
    pid: int | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    exit_code: int | None
    exit_signal: int | None
    model_path: str | None
    completions: int
    images: int
    evals: list[EvalRow]


@dataclass(frozen=True, slots=True)
class Overview:
    """How many runs are in each state, and how many failed within the last day."""

    counts: dict[RunState, int]
    failed_last_day: int


_ORDER = "id"
_LISTED = (
    Run.id,
    Run.name,
    Run.project,
    Run.tags,
    Run.state,
    Run.phase,
    Run.reason,
    Run.step,
    Run.max_steps,
    Run.reward_last.label("reward"),
    Run.reward_first,
    Run.attempt,
    Run.created_at,
    Run.started_at,
    Run.ended_at,
    Run.created_by,
)
_DETAILS = (
    Run.phase_detail,
    Run.progress_at,
    Run.worker,
    Run.host,
    Run.pid,
    Run.lease_expires_at,
    Run.cancel_requested_at,
    Run.exit_code,
    Run.exit_signal,
    Run.model_path,
    Run.completions,
    Run.images,
)


def list_runs(
    session: Session,
    *,
    states: Collection[RunState] | None = None,
    project: str | None = None,
    text: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> Page[RunRow]:
    """Runs, newest first; `text` are words that must all stand in name, project, tags, model or algorithm."""
    statement = select(*_LISTED).order_by(Run.id.desc()).limit(limit + 1)
    if states is not None:
        statement = statement.where(Run.state.in_(list(states)))
    if project is not None:
        statement = statement.where(Run.project == project)
    for word in (text or "").lower().split():
        statement = statement.where(Run.search.contains(word, autoescape=True))
    if after is not None:
        statement = statement.where(Run.id < decode(after, _ORDER, largest_id=LARGEST_INTEGER)[1])
    rows, cursor = cut(session.execute(statement).all(), limit, lambda row: encode(_ORDER, 0, row.id))
    lines = sparklines(session, {row.id: row.step for row in rows})
    return Page([RunRow(**_fields(row), sparkline=lines[row.id]) for row in rows], cursor)


def get_run(session: Session, run_id: int) -> RunDetail | None:
    """One run, or None when there is none with this id."""
    statement = select(*_LISTED, *_DETAILS, Run.config).where(Run.id == run_id)
    row = session.execute(statement).one_or_none()
    if row is None:
        return None
    fields = _fields(row)
    config = RunConfig.model_validate(fields.pop("config"))
    line = sparklines(session, {run_id: row.step})[run_id]
    return RunDetail(**fields, config=config, sparkline=line, evals=evals(session, run_id))


def run_exists(session: Session, run_id: int) -> bool:
    """Whether there is a run with this id."""
    return session.scalar(select(Run.id).where(Run.id == run_id)) is not None


def find_by_key(session: Session, key: str) -> int | None:
    """The run that was submitted with this key."""
    return session.scalar(select(Run.id).where(Run.submission_key == key))


def projects(session: Session) -> list[str]:
    """Every project that has a run, by name."""
    return list(session.scalars(select(Run.project).distinct().order_by(Run.project)))


def overview(session: Session) -> Overview:
    """Counts per state; states without a run count 0."""
    counted = dict(session.execute(select(Run.state, func.count()).group_by(Run.state)).all())
    yesterday = now(session) - timedelta(days=1)
    failed = select(func.count()).where(Run.state == RunState.FAILED, Run.ended_at >= yesterday)
    return Overview({state: counted.get(state, 0) for state in RunState}, session.scalar(failed) or 0)


def _fields(row: Any) -> dict[str, Any]:
    return dict(row._mapping)
