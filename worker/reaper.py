"""Gives runs back whose holder is gone, and rings for runs that wait unheard."""

import socket

from app.queue import Queue
from app.store import Store
from app.store.run_writes import expired, give_back, owned_runs, waiting_runs
from worker.identity import is_gone

MAX_ATTEMPTS = 20
"""A lost supervisor says nothing against the run: it is tried more often than one that is killed itself."""


def reap(store: Store) -> list[int]:
    """Return runs to the queue whose supervisor on this host has died, or whose lease has run out anywhere."""
    with store.read() as session:
        dead = [(run, "its worker process died") for run in owned_runs(session, socket.gethostname()) if is_gone(run)]
        seen = {run.run_id for run, _ in dead}
        dead += [(run, "its worker was not heard of") for run in expired(session) if run.run_id not in seen]
    for run, reason in dead:
        with store.write() as session:
            give_back(session, run.run_id, run.attempt, reason=reason, max_attempts=MAX_ATTEMPTS)
    return [run.run_id for run, _ in dead]


def ring_for_waiting(store: Store, queue: Queue) -> None:
    """Ring for the first run that waits while this host does nothing: its message was lost, or published to nobody."""
    with store.read() as session:
        waiting = waiting_runs(session)
        busy = bool(owned_runs(session, socket.gethostname()))
    if waiting and not busy:
        queue.ring(waiting[0])
