"""Who holds a run: a worker claims it for a while, renews, and ends it or gives it back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.ids import first_id, last_id, lock_run
from app.store.moves import move, move_with
from app.store.states import LEGAL_MOVES, OWNED, RunState
from app.store.tables import Checkpoint, Run, RunEvent
from training.config import RunConfig


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a run; start time and boot id tell it from a later one with the same pid."""

    worker: str
    host: str
    pid: int
    pid_started: float
    boot_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that is ours now; every later write carries `attempt`."""

    run_id: int
    attempt: int
    config: RunConfig


@dataclass(frozen=True, slots=True)
class Renewal:
    """Whether the run is still ours, and whether it should stop."""

    owned: bool
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run that some worker holds."""

    run_id: int
    attempt: int
    state: RunState
    worker: str
    host: str
    pid: int
    pid_started: float
    boot_id: str
    lease_expires_at: datetime


def claim(session: Session, run_id: int, *, owner: Owner, lease_seconds: float) -> Claim | None:
    """Take a waiting run: of all that try at once, one gets it and the others get None."""
    values = {
        **asdict(owner),
        "attempt": Run.attempt + 1,
        "lease_expires_at": now(session) + timedelta(seconds=lease_seconds),
        "exit_code": None,
        "exit_signal": None,
    }
    reason = f"taken by worker {owner.worker}"
    moved = move_with(
        session, run_id, frm={RunState.QUEUED}, to=RunState.STARTING, reason=reason, attempt=None, values=values
    )
    return moved and Claim(run_id, moved.attempt, RunConfig.model_validate(moved.config))


def renew(session: Session, run_id: int, attempt: int, *, lease_seconds: float) -> Renewal:
    """Hold a run for another while.  When it is not ours any more, stop its processes and write nothing else."""
    statement = (
        update(Run)
        .where(Run.id == run_id, Run.attempt == attempt, Run.state.in_(OWNED))
        .values(lease_expires_at=now(session) + timedelta(seconds=lease_seconds))
        .returning(Run.state)
    )
    state = session.scalar(statement)
    return Renewal(owned=state is not None, cancel_requested=state is RunState.CANCELLING)


def started(session: Session, run_id: int, attempt: int) -> bool:
    """The training process lives.  False when the run is stale or was cancelled meanwhile."""
    frm = {RunState.STARTING}
    return move(session, run_id, frm=frm, to=RunState.RUNNING, reason="training", attempt=attempt)


def finish(
    session: Session,
    run_id: int,
    attempt: int,
    *,
    to: RunState,
    reason: str,
    exit_code: int | None = None,
    exit_signal: int | None = None,
) -> bool:
    """End a run that this attempt holds; False when it does not, or when its state has no such end."""
    frm = {state for state in OWNED if to in LEGAL_MOVES[state]}
    values = {"exit_code": exit_code, "exit_signal": exit_signal}
    return move_with(session, run_id, frm=frm, to=to, reason=reason, attempt=attempt, values=values) is not None


def give_back(
    session: Session,
    run_id: int,
    attempt: int,
    *,
    reason: str,
    max_attempts: int,
    exit_code: int | None = None,
    exit_signal: int | None = None,
) -> RunState:
    """Let go of a run that did not end: it waits again, or has failed when its attempts are used up.

    One that was to be cancelled is cancelled now.  Returns the state that the run is in afterwards, which is another
    one when this attempt does not hold it.  Raises LookupError when there is no such run.
    """
    lock_run(session, run_id)
    used_up = attempt >= max_attempts
    again, tried = RunState.FAILED if used_up else RunState.QUEUED, f"{reason} (attempt {attempt} of {max_attempts})"
    values: Mapping[str, Any] = {"exit_code": exit_code, "exit_signal": exit_signal}
    for frm, to, why in (
        ({RunState.STARTING, RunState.RUNNING}, again, tried),
        ({RunState.CANCELLING}, RunState.CANCELLED, reason),
    ):
        if move_with(session, run_id, frm=frm, to=to, reason=why, attempt=attempt, values=values):
            return to
    state = session.scalar(select(Run.state).where(Run.id == run_id))
    if state is None:
        raise LookupError(f"there is no run {run_id} to give back")
    return state


def attempts_allowed(session: Session, run_id: int, attempt: int, *, without_progress: int) -> int:
    """The `max_attempts` by which a run fails after so many attempts in a row that left no new checkpoint.

    A run of days may lose its worker more often than that; it is one that gets nowhere that must not go on for ever.
    """
    newest = select(func.max(Checkpoint.created_at)).where(Checkpoint.run_id == run_id).scalar_subquery()
    since = select(func.count()).where(
        RunEvent.id.between(first_id(run_id), last_id(run_id)),
        RunEvent.code == f"state_{RunState.STARTING}",
        or_(newest.is_(None), RunEvent.time > newest),
    )
    return attempt + max(without_progress - session.scalars(since).one(), 0)


def owned_runs(session: Session, host: str | None = None) -> list[OwnedRun]:
    """Runs that workers hold, on one host or on all."""
    return _owned(session, *([Run.host == host] if host is not None else []))


def expired(session: Session) -> list[OwnedRun]:
    """Runs whose lease has run out: their worker is dead, frozen or cut off."""
    return _owned(session, Run.lease_expires_at < now(session))


def waiting_runs(session: Session) -> list[int]:
    """Runs that nobody has taken yet, next one first."""
    waiting = select(Run.id).where(Run.state == RunState.QUEUED)
    return list(session.scalars(waiting.order_by(Run.priority.desc(), Run.id)))


def _owned(session: Session, *conditions: Any) -> list[OwnedRun]:
    columns = (
        Run.id,
        Run.attempt,
        Run.state,
        Run.worker,
        Run.host,
        Run.pid,
        Run.pid_started,
        Run.boot_id,
        Run.lease_expires_at,
    )
    statement = select(*columns).where(Run.state.in_(OWNED), *conditions).order_by(Run.id)
    return [OwnedRun(*row) for row in session.execute(statement)]
