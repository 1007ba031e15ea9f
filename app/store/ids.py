"""Ids of rows that belong to a run: (run_id << 32) | sequence, so that a run is one contiguous key range."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.store.tables import Run

_SEQUENCE_BITS = 32


def first_id(run_id: int) -> int:
    """The lower end of the run's range; no row has this very id, as sequences count from 1."""
    return run_id << _SEQUENCE_BITS


def last_id(run_id: int) -> int:
    """The upper end of the run's range, inclusive."""
    return first_id(run_id + 1) - 1


def run_of(row_id: int) -> int:
    """The run that a row belongs to."""
    return row_id >> _SEQUENCE_BITS


def lock_run(session: Session, run_id: int) -> None:
    """Make other writers of this run wait until the transaction ends; on SQLite a write holds the whole file."""
    session.execute(select(Run.id).where(Run.id == run_id).with_for_update())


def next_id(session: Session, column: InstrumentedAttribute[int], run_id: int) -> int:
    """The next free id of a table in the run's range.  The caller holds lock_run."""
    in_range: Any = column.between(first_id(run_id), last_id(run_id))
    newest = session.scalar(select(func.max(column)).where(in_range))
    return (newest or first_id(run_id)) + 1
