"""The one clock of leases: the database's where several machines share it, this machine's for a SQLite file."""

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session


def now(session: Session) -> datetime:
    """The present time in UTC."""
    if session.get_bind().dialect.name == "postgresql":
        return session.scalars(select(func.clock_timestamp())).one()
    return datetime.now(UTC)


def at(seconds: float) -> datetime:
    """The time of a record, which counts seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC)
