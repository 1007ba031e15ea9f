"""Stores what a run recorded, exactly once: all of a batch and the new place in the record files, or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.store.clock import at
from app.store.errors import StaleAttempt
from app.store.events import add_event
from app.store.media import MediaStore
from app.store.names import name_ids
from app.store.prompt_writes import store_prompts
from app.store.states import OWNED
from app.store.step_writes import reward_names, write_metrics, write_step
from app.store.tables import Checkpoint, Run
from app.store.upserts import insert_or_replace
from app.store.voiding import void_after
from training.records import (
    AnyRecord,
    CheckpointRecord,
    EvalRecord,
    EventRecord,
    PhaseRecord,
    ResultRecord,
    StartRecord,
    StepRecord,
)

__all__ = ["Cursor", "StaleAttempt", "cursor", "ingest"]


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in a run's record files: the number in the file's name, and how many of its bytes have been read."""

    attempt_file: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Known:
    """Numbers of the names and prompts that a batch mentions."""

    names: dict[str, int]
    samples: dict[str, int]


def cursor(session: Session, run_id: int) -> Cursor:
    """How far the records of a run have been stored; Cursor(0, 0) is the beginning."""
    row = session.execute(select(Run.record_file, Run.record_offset).where(Run.id == run_id)).one_or_none()
    if row is None:
        raise LookupError(f"there is no run {run_id}")
    return Cursor(*row)


def ingest(
    session: Session, run_id: int, attempt: int, records: Sequence[AnyRecord], cursor: Cursor, media: MediaStore
) -> None:
    """Store records that end at `cursor`, and the cursor with them, in the transaction of the caller.

    Records up to a cursor that has been stored before are left alone, so a batch may be sent again when nobody knows
    whether its commit arrived.  `attempt` is the one that holds the run now; the records may be of an earlier one.
    The images must be in the media store already: a row never names a file that is not there.
    Raises StaleAttempt when this attempt does not hold the run, MediaError when an image file is missing.
    """
    run = select(Run.state, Run.attempt, Run.record_file, Run.record_offset).where(Run.id == run_id).with_for_update()
    row = session.execute(run).one_or_none()
    if row is None or row.attempt != attempt or row.state not in OWNED:
        raise StaleAttempt(run_id, attempt)
    if cursor <= Cursor(row.record_file, row.record_offset):
        return
    known = _Known(names=name_ids(session, _names(records)), samples=store_prompts(session, records, media))
    for record in records:
        _store(session, run_id, record, known)
    progress = {"progress_at": at(records[-1].time)} if records else {}
    _set(session, run_id, {"record_file": cursor.attempt_file, "record_offset": cursor.offset, **progress})


def _store(session: Session, run_id: int, record: AnyRecord, known: _Known) -> None:
    match record:
        case StartRecord():
            void_after(session, run_id, -1 if record.resumed_from_step is None else record.resumed_from_step)
            _set(session, run_id, {"max_steps": record.max_steps})
        case PhaseRecord():
            steps = {} if record.max_steps is None else {"max_steps": record.max_steps}
            _set(session, run_id, {"phase": record.name, "phase_detail": record.detail, **steps})
        case EventRecord():
            step = session.scalar(select(Run.step).where(Run.id == run_id))
            level, code, message = record.level, record.code, record.message
            add_event(session, run_id, level=level, code=code, message=message, step=step, time=at(record.time))
        case StepRecord():
            write_step(session, run_id, record, names=known.names, samples=known.samples)
        case EvalRecord():
            write_metrics(session, run_id, record.step, record.metrics, names=known.names)
        case CheckpointRecord():
            values = {"path": record.path, "bytes": record.bytes, "created_at": at(record.time)}
            insert_or_replace(session, Checkpoint, [{"run_id": run_id, "step": record.step, **values}])
        case ResultRecord() if record.model_path is not None:
            _set(session, run_id, {"model_path": record.model_path})


def _set(session: Session, run_id: int, values: Mapping[str, Any]) -> None:
    session.execute(update(Run).where(Run.id == run_id).values(values))


def _names(records: Sequence[AnyRecord]) -> set[str]:
    names: set[str] = set()
    for record in records:
        if isinstance(record, StepRecord | EvalRecord):
            names |= record.metrics.keys()
        if isinstance(record, StepRecord):
            names |= reward_names(record)
    return names
