"""Runs: what was asked for, where each stands, who holds it, what happened to it."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.doors import LONGEST_LINE, LONGEST_NOTE
from app.store.states import RunState
from app.store.tables.base import Base
from app.store.tables.columns import BigId, CleanText, Document, Instant, Number, word


class Run(Base):
    """One run.  While a worker holds it, `attempt` is the fencing token that every write of that worker carries."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "state", "id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200))
    project: Mapped[str] = mapped_column(CleanText(200))
    tags: Mapped[list[str]] = mapped_column(Document)
    config: Mapped[dict[str, Any]] = mapped_column(Document)
    search: Mapped[str] = mapped_column(CleanText(LONGEST_LINE))  # lower-cased here: SQL's lower() knows ASCII alone
    created_by: Mapped[str | None] = mapped_column(CleanText(200))
    submission_key: Mapped[str | None] = mapped_column(String(200), unique=True)
    priority: Mapped[int] = mapped_column(default=0)

    state: Mapped[RunState] = mapped_column(word(RunState))
    reason: Mapped[str | None] = mapped_column(CleanText(LONGEST_NOTE))
    created_at: Mapped[datetime] = mapped_column(Instant)
    started_at: Mapped[datetime | None] = mapped_column(Instant)
    ended_at: Mapped[datetime | None] = mapped_column(Instant)
    cancel_requested_at: Mapped[datetime | None] = mapped_column(Instant)

    attempt: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str | None] = mapped_column(CleanText(200))
    host: Mapped[str | None] = mapped_column(CleanText(255))
    pid: Mapped[int | None]
    pid_started: Mapped[float | None] = mapped_column(Number)
    boot_id: Mapped[str | None] = mapped_column(CleanText(100))
    lease_expires_at: Mapped[datetime | None] = mapped_column(Instant)
    exit_code: Mapped[int | None]
    exit_signal: Mapped[int | None]

    phase: Mapped[str | None] = mapped_column(CleanText(100))
    phase_detail: Mapped[str | None] = mapped_column(CleanText(LONGEST_NOTE))
    step: Mapped[int] = mapped_column(default=0)
    max_steps: Mapped[int]
    progress_at: Mapped[datetime | None] = mapped_column(Instant)
    reward_first: Mapped[float | None] = mapped_column(Number)
    reward_last: Mapped[float | None] = mapped_column(Number)
    completions: Mapped[int] = mapped_column(default=0)
    images: Mapped[int] = mapped_column(default=0)
    model_path: Mapped[str | None] = mapped_column(CleanText(LONGEST_NOTE))

    record_file: Mapped[int] = mapped_column(default=0)  # how far the record files have been stored
    record_offset: Mapped[int] = mapped_column(BigId, default=0)


class RunEvent(Base):
    """A state move, a warning, an alert."""

    __tablename__ = "run_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    time: Mapped[datetime] = mapped_column(Instant)
    attempt: Mapped[int]
    level: Mapped[str] = mapped_column(CleanText(20))
    code: Mapped[str] = mapped_column(CleanText(100))
    message: Mapped[str] = mapped_column(CleanText(LONGEST_LINE))
    step: Mapped[int | None]


class LogLine(Base):
    """One line that a training process printed."""

    __tablename__ = "log_lines"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    text: Mapped[str] = mapped_column(CleanText(LONGEST_LINE))


class Checkpoint(Base):
    """A whole checkpoint that was on disk when it was recorded."""

    __tablename__ = "checkpoints"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(CleanText(LONGEST_NOTE))
    bytes: Mapped[int] = mapped_column(BigId)
    created_at: Mapped[datetime] = mapped_column(Instant)
