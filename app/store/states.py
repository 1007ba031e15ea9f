"""The states of a run and the one table of legal moves between them."""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is in its life."""

    DRAFT = "draft"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


LEGAL_MOVES: dict[RunState, frozenset[RunState]] = {
    RunState.DRAFT: frozenset({RunState.QUEUED, RunState.CANCELLED}),
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.CANCELLED}),
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.QUEUED, RunState.CANCELLING, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.QUEUED, RunState.CANCELLING, RunState.SUCCEEDED, RunState.FAILED}),
    # a run that ends before it sees the request has ended as it ended
    RunState.CANCELLING: frozenset({RunState.CANCELLED, RunState.SUCCEEDED, RunState.FAILED}),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
}

FINAL = frozenset(state for state, moves in LEGAL_MOVES.items() if not moves)
OWNED = frozenset({RunState.STARTING, RunState.RUNNING, RunState.CANCELLING})
"""States in which a worker holds a lease on the run."""
