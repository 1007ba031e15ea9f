"""Gives runs back whose holder is gone, and rings for runs that wait unheard."""

import socket
from pathlib import Path

from app.queue import Queue
from app.store import RunState, Store
from app.store.run_writes import OwnedRun, attempts_allowed, expired, give_back, owned_runs, waiting_runs
from worker.child import sweep
from worker.identity import is_gone

LOST_WITHOUT_PROGRESS = 20
"""A lost supervisor says little against the run: it is tried more often than one that is killed itself."""


def reap(store: Store, runs_dir: Path) -> list[int]:
    """Let go of runs whose supervisor on this host has died, or whose lease has run out anywhere.

    Returns those that wait again.
    """
    host = socket.gethostname()
    with store.read() as session:
        dead = [(run, "its worker process died") for run in owned_runs(session, host) if is_gone(run)]
        seen = {run.run_id for run, _ in dead}
        dead += [(run, "its worker was not heard of") for run in expired(session) if run.run_id not in seen]
    for run, _ in dead:
        if run.host == host:  # nobody else ends what the supervisor left, when the run is not tried again
            sweep(runs_dir / str(run.run_id), range(1, run.attempt + 1))
    return [run.run_id for run, reason in dead if _let_go(store, run, reason) is RunState.QUEUED]


def _let_go(store: Store, run: OwnedRun, reason: str) -> RunState:
    with store.write() as session:
        most = attempts_allowed(session, run.run_id, run.attempt, without_progress=LOST_WITHOUT_PROGRESS)
        return give_back(session, run.run_id, run.attempt, reason=reason, max_attempts=most)


def ring_for_waiting(store: Store, queue: Queue, worker: str) -> None:
    """Ring for the first run that waits while this worker does nothing: its message was lost, or never published."""
    with store.read() as session:
        waiting = waiting_runs(session)
        busy = any(run.worker == worker for run in owned_runs(session, socket.gethostname()))
    if waiting and not busy:
        queue.ring(waiting[0])
