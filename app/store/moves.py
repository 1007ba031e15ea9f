"""The one place that changes a run's state: a compare-and-set along a legal move, with a row in run_events."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.errors import IllegalMove
from app.store.events import add_event
from app.store.states import FINAL, LEGAL_MOVES, OWNED, RunState
from app.store.tables import Run

_WITH_A_PHASE = (RunState.RUNNING, RunState.CANCELLING)


@dataclass(frozen=True, slots=True)
class Moved:
    """What stands in the row after a move."""

    attempt: int
    config: dict[str, Any]


def move(
    session: Session, run_id: int, *, frm: Collection[RunState], to: RunState, reason: str, attempt: int | None = None
) -> bool:
    """Move a run to `to` when it is in one of `frm` (and its attempt is `attempt`); False when it is not.

    Raises IllegalMove when a move from one of `frm` is not in the table of legal moves.
    """
    return move_with(session, run_id, frm=frm, to=to, reason=reason, attempt=attempt, values={}) is not None


def move_with(
    session: Session,
    run_id: int,
    *,
    frm: Collection[RunState],
    to: RunState,
    reason: str,
    attempt: int | None,
    values: Mapping[str, Any],
) -> Moved | None:
    """Like move, and sets further columns of the row in the same statement; None when the run did not move."""
    _refuse_illegal(frm, to)
    statement = update(Run).where(Run.id == run_id, Run.state.in_(list(frm)))
    if attempt is not None:
        statement = statement.where(Run.attempt == attempt)
    changes = {"state": to, "reason": reason, **_consequences(session, to), **values}
    row = session.execute(statement.values(changes).returning(Run.attempt, Run.step, Run.config)).one_or_none()
    if row is None:
        return None
    level = "error" if to is RunState.FAILED else "info"
    add_event(session, run_id, level=level, code=f"state_{to}", message=reason, step=row.step)
    return Moved(row.attempt, row.config)


def _refuse_illegal(frm: Collection[RunState], to: RunState) -> None:
    for state in frm:
        if to not in LEGAL_MOVES[state]:
            legal = ", ".join(sorted(LEGAL_MOVES[state])) or "nowhere, it is final"
            raise IllegalMove(f"a run cannot go from {state} to {to}; from {state} it goes to: {legal}")


def _consequences(session: Session, to: RunState) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if to not in OWNED:
        changes["lease_expires_at"] = None
    if to not in _WITH_A_PHASE:
        changes |= {"phase": None, "phase_detail": None}
    if to is RunState.RUNNING:
        changes["started_at"] = func.coalesce(Run.started_at, now(session))
    if to is RunState.CANCELLING:
        changes["cancel_requested_at"] = now(session)
    if to in FINAL:
        changes["ended_at"] = now(session)
    return changes
