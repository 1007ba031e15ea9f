"""Everything that writes a run outside of its records; each function takes a session of Store.write()."""

from typing import Any, NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.events import add_event, add_log_lines
from app.store.ids import lock_run
from app.store.leases import (
    Claim,
    OwnedRun,
    Owner,
    Renewal,
    attempts_allowed,
    claim,
    expired,
    finish,
    give_back,
    owned_runs,
    renew,
    started,
    waiting_runs,
)
from app.store.moves import move
from app.store.states import RunState
from app.store.tables import Run
from app.store.upserts import insert_for
from training.config import RunConfig

__all__ = [
    "Claim",
    "Created",
    "OwnedRun",
    "Owner",
    "Renewal",
    "add_event",
    "add_log_lines",
    "attempts_allowed",
    "claim",
    "create_run",
    "create_run_once",
    "expired",
    "finish",
    "give_back",
    "move",
    "owned_runs",
    "renew",
    "request_cancel",
    "started",
    "waiting_runs",
]


class Created(NamedTuple):
    """The run of a submission key; `created` is False when it was there before, perhaps with another configuration."""

    run_id: int
    created: bool


def create_run(
    session: Session, config: RunConfig, *, created_by: str | None = None, state: RunState = RunState.QUEUED
) -> int:
    """Store a new run and return its id."""
    values = _new_run(session, config, created_by=created_by, state=state)
    run_id = session.scalars(insert(Run).values(values).returning(Run.id)).one()
    add_event(session, run_id, level="info", code=f"state_{state}", message="submitted")
    return run_id


def create_run_once(session: Session, config: RunConfig, *, key: str, created_by: str | None = None) -> Created:
    """Store a new run unless one with the same key exists, however many try at the same time."""
    values = {
        **_new_run(session, config, created_by=created_by, state=RunState.QUEUED),
        "submission_key": key,
    }
    statement = insert_for(session, Run).values(values).on_conflict_do_nothing(index_elements=[Run.submission_key])
    run_id = session.scalar(statement.returning(Run.id))
    if run_id is None:
        return Created(session.scalars(select(Run.id).where(Run.submission_key == key)).one(), created=False)
    add_event(session, run_id, level="info", code=f"state_{RunState.QUEUED}", message="submitted")
    return Created(run_id, created=True)


def request_cancel(session: Session, run_id: int, *, reason: str) -> RunState | None:
    """Ask a run to stop: one that waits is cancelled, one that a worker holds becomes CANCELLING.

    Returns the state that the run is in afterwards, unchanged when it has ended; None when there is no such run.
    """
    lock_run(session, run_id)
    for frm, to in (
        ({RunState.DRAFT, RunState.QUEUED}, RunState.CANCELLED),
        ({RunState.STARTING, RunState.RUNNING}, RunState.CANCELLING),
    ):
        if move(session, run_id, frm=frm, to=to, reason=reason):
            return to
    return session.scalar(select(Run.state).where(Run.id == run_id))


def _new_run(session: Session, config: RunConfig, *, created_by: str | None, state: RunState) -> dict[str, Any]:
    if state not in (RunState.DRAFT, RunState.QUEUED):
        raise ValueError(f"a new run is {RunState.DRAFT} or {RunState.QUEUED}, not {state}")
    words = (config.name, config.project, *config.tags, config.model.path, config.algorithm.name)
    return {
        "name": config.name,
        "project": config.project,
        "tags": list(config.tags),
        "config": config.model_dump(mode="json"),
        "search": " ".join(words).lower(),
        "created_by": created_by,
        "state": state,
        "reason": "submitted",
        "created_at": now(session),
        "max_steps": config.optimization.max_steps,
    }
