"""Executes one run: claims it, lets a child process train, carries its records into the store, ends it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import OperationalError

from app.settings import Settings
from app.store import RunState, StaleAttempt, Store
from app.store.run_writes import Claim, Owner, claim, finish, give_back, renew, started
from training.config import dump_toml
from worker.child import Child, Command, output_file, sweep, train_command
from worker.exit_reasons import Ending, ending
from worker.tailing import OutputTail, RecordTail

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds between looks at the child and between renewals, of a lease, and from SIGTERM to SIGKILL."""

    poll: float = 0.3
    renew: float = 3.0
    lease: float = 60.0
    grace: float = 60.0


MAX_ATTEMPTS = 3
"""A run whose process is killed is tried so often in all."""


def execute(
    store: Store,
    settings: Settings,
    run_id: int,
    owner: Owner,
    *,
    stopping: Callable[[], bool],
    command: Command = train_command,
    timing: Timing = Timing(),
) -> RunState | None:
    """Train a waiting run to its end; returns the state that it is in afterwards, None when it was not to be had.

    When `stopping` answers True the run is asked for a checkpoint and goes back to the queue.
    """
    with store.write() as session:
        claimed = claim(session, run_id, owner=owner, lease_seconds=timing.lease)
    if claimed is None:
        return None
    directory = settings.runs_dir / str(run_id)
    directory.mkdir(parents=True, exist_ok=True)
    swept = sweep(directory)
    if swept:
        _log.warning("run %s: ended %s processes of an earlier attempt", run_id, swept)
    (directory / "config.toml").write_text(dump_toml(claimed.config), encoding="utf-8")
    return _Execution(store, settings, claimed, directory, stopping, command, timing).run()


class _Execution:
    """The claimed run while its child lives."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        claimed: Claim,
        directory: Path,
        stopping: Callable[[], bool],
        command: Command,
        timing: Timing,
    ) -> None:
        self._store, self._timing, self._stopping = store, timing, stopping
        self._run_id, self._attempt = claimed.run_id, claimed.attempt
        self._child = Child(directory, claimed.attempt, settings, command)
        self._records = RecordTail(store, self._run_id, self._attempt, directory)
        self._output = OutputTail(store, self._run_id, self._attempt, output_file(directory, claimed.attempt))
        self._cancelled = self._stopped = False
        self._stop_asked_at: float | None = None
        self._renewed_at = time.monotonic()

    def run(self) -> RunState | None:
        try:
            with self._store.write() as session:
                started(session, self._run_id, self._attempt)
            returncode = self._follow()
            self._pump(final=True)
        except StaleAttempt:
            _log.warning("run %s is another worker's now: attempt %s ends", self._run_id, self._attempt)
            self._child.kill()
            return None
        except BaseException:
            self._child.kill()
            raise
        finally:
            self._child.close()
        return self._end(ending(returncode, self._records.failure))

    def _follow(self) -> int:
        """Look at the child, its files and the lease until it has ended."""
        while (returncode := self._child.poll()) is None:
            time.sleep(self._timing.poll)
            try:
                self._pump()
                self._keep_lease()
            except OperationalError as error:  # the child goes on, its files wait
                _log.warning("run %s: the database does not answer: %s", self._run_id, error)
            self._forward_stop()
        return returncode

    def _pump(self, *, final: bool = False) -> None:
        self._records.pump()
        self._output.pump(final=final)

    def _keep_lease(self) -> None:
        if time.monotonic() - self._renewed_at < min(self._timing.renew, self._timing.lease / 3):
            return
        with self._store.write() as session:
            renewal = renew(session, self._run_id, self._attempt, lease_seconds=self._timing.lease)
        if not renewal.owned:
            raise StaleAttempt(self._run_id, self._attempt)
        self._cancelled = renewal.cancel_requested
        self._renewed_at = time.monotonic()

    def _forward_stop(self) -> None:
        """SIGTERM once, SIGKILL when the grace is over."""
        self._stopped = self._stopped or self._stopping()
        if not (self._cancelled or self._stopped):
            return
        if self._stop_asked_at is None:
            self._stop_asked_at = time.monotonic()
            self._child.stop()
        elif time.monotonic() - self._stop_asked_at > self._timing.grace:
            self._child.kill()

    def _end(self, end: Ending) -> RunState | None:
        details = {"exit_code": end.exit_code, "exit_signal": end.exit_signal}
        with self._store.write() as session:
            if end.kind == "finished":
                finish(session, self._run_id, self._attempt, to=RunState.SUCCEEDED, reason=end.reason, **details)
                return RunState.SUCCEEDED
            if end.kind == "fault":
                finish(session, self._run_id, self._attempt, to=RunState.FAILED, reason=end.reason, **details)
                return RunState.FAILED
            reason, most = end.reason, MAX_ATTEMPTS
            if self._stop_asked_at is not None:  # an end that was asked for uses up no attempt
                reason = "cancelled on request" if self._cancelled else "handed back by a worker that shut down"
                most = self._attempt + 1
            elif end.kind == "stopped":
                reason, most = "the training process was told to stop from outside", self._attempt + 1
            return give_back(session, self._run_id, self._attempt, reason=reason, max_attempts=most, **details)
