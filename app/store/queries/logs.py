"""Reads what only grows: log lines and events, from a row on or the last ones."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.ids import first_id, last_id
from app.store.tables import LogLine as Line
from app.store.tables import RunEvent


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a training process printed."""

    id: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """A state move, a warning, an alert."""

    id: int
    time: datetime
    level: str
    code: str
    message: str
    step: int | None


def log_lines(session: Session, run_id: int, *, after: int = 0, limit: int = 500, tail: bool = False) -> list[LogLine]:
    """Lines with an id above `after`, oldest first; with `tail` the newest `limit` of them."""
    statement = select(Line.id, Line.attempt, Line.text).where(
        Line.id > max(after, first_id(run_id)), Line.id <= last_id(run_id)
    )
    rows = session.execute(statement.order_by(Line.id.desc() if tail else Line.id).limit(limit)).all()
    return [LogLine(*row) for row in (reversed(rows) if tail else rows)]


def events(session: Session, run_id: int, *, after: int = 0, limit: int = 200, tail: bool = False) -> list[EventRow]:
    """Events with an id above `after`, oldest first; with `tail` the newest `limit` of them."""
    statement = select(
        RunEvent.id, RunEvent.time, RunEvent.level, RunEvent.code, RunEvent.message, RunEvent.step
    ).where(RunEvent.id > max(after, first_id(run_id)), RunEvent.id <= last_id(run_id))
    rows = session.execute(statement.order_by(RunEvent.id.desc() if tail else RunEvent.id).limit(limit)).all()
    return [EventRow(*row) for row in (reversed(rows) if tail else rows)]
