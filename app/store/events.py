"""What happened to a run and what it printed: two lists that only grow."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.ids import lock_run, next_id
from app.store.tables import LogLine, Run, RunEvent


def add_event(
    session: Session,
    run_id: int,
    *,
    level: str,
    code: str,
    message: str,
    step: int | None = None,
    time: datetime | None = None,
) -> None:
    """Write down something that a person should know; `time` is the present when it is left out."""
    lock_run(session, run_id)
    attempt = select(func.coalesce(func.max(Run.attempt), 0)).where(Run.id == run_id).scalar_subquery()
    session.execute(
        insert(RunEvent).values(
            id=next_id(session, RunEvent.id, run_id),
            run_id=run_id,
            time=time or now(session),
            attempt=attempt,
            level=level,
            code=code,
            message=message,
            step=step,
        )
    )


def add_log_lines(session: Session, run_id: int, attempt: int, lines: Sequence[str]) -> None:
    """Append lines that an attempt printed, also when it has lost the run meanwhile; long lines are cut."""
    if not lines:
        return
    lock_run(session, run_id)
    first = next_id(session, LogLine.id, run_id)
    rows = [
        {"id": first + offset, "run_id": run_id, "attempt": attempt, "text": line} for offset, line in enumerate(lines)
    ]
    session.execute(insert(LogLine), rows)
