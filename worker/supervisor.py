"""Executes one run: claims it, lets a child process train, carries its records into the store, ends it."""

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from app.settings import Settings
from app.store import RunState, StaleAttempt, Store
from app.store.run_writes import Claim, Owner, add_event, attempts_allowed, claim, finish, give_back, renew, started
from training.config import dump_toml
from worker.child import Child, Command, output_file, sweep, train_command
from worker.exit_reasons import Ending, ending
from worker.tailing import OutputTail, RecordTail

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds between looks at the child and between renewals, of a lease, and from SIGTERM to SIGKILL."""

    poll: float = 0.3
    renew: float = 3.0
    lease: float = 120.0
    grace: float = 60.0

    @property
    def fence(self) -> float:
        """Not renewed for so long, a run is stopped: when the lease is over, another worker may train it."""
        return self.lease * 2 / 3


WITHOUT_PROGRESS = 3
"""A run whose process is killed is tried so often in a row without a new checkpoint."""


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
    """Train a waiting run to its end; returns the state that it is in afterwards, None when it is not ours (any more).

    When `stopping` answers True the run is asked for a checkpoint and goes back to the queue.
    """
    with store.write() as session:
        claimed = claim(session, run_id, owner=owner, lease_seconds=timing.lease)
    if claimed is None:
        return None
    try:
        return _Execution(store, settings, claimed, stopping, command, timing).run()
    except StaleAttempt:
        _log.warning("run %s is another worker's now: attempt %s ends", run_id, claimed.attempt)
        return None
    except OperationalError:  # there is nothing to write it to: this process ends, and the reaper takes care of the run
        raise
    except Exception as error:  # the boundary of a task: the run says what happened to it, a full disk for example
        _log.exception("run %s: attempt %s cannot go on", run_id, claimed.attempt)
        return _let_go(store, claimed, f"the worker failed: {type(error).__name__}: {error}", traceback.format_exc())


def _let_go(store: Store, claimed: Claim, reason: str, details: str) -> RunState:
    run_id, attempt = claimed.run_id, claimed.attempt
    with store.write() as session:
        add_event(session, run_id, level="error", code="worker_failed", message=details)
        most = attempts_allowed(session, run_id, attempt, without_progress=WITHOUT_PROGRESS)
        return give_back(session, run_id, attempt, reason=reason, max_attempts=most)


def _start(settings: Settings, claimed: Claim, directory: Path, command: Command) -> Child:
    directory.mkdir(parents=True, exist_ok=True)
    swept = sweep(directory, range(1, claimed.attempt))
    if swept:
        _log.warning("run %s: ended %s processes of earlier attempts", claimed.run_id, swept)
    (directory / "config.toml").write_text(dump_toml(claimed.config), encoding="utf-8")
    return Child(directory, claimed.attempt, settings, command)


class _Execution:
    """The claimed run while its child lives."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        claimed: Claim,
        stopping: Callable[[], bool],
        command: Command,
        timing: Timing,
    ) -> None:
        self._store, self._timing, self._stopping = store, timing, stopping
        self._run_id, self._attempt = claimed.run_id, claimed.attempt
        self._renewed_at = time.monotonic()
        directory = settings.runs_dir / str(claimed.run_id)
        self._records = RecordTail(store, self._run_id, self._attempt, directory)
        self._output = OutputTail(store, self._run_id, self._attempt, output_file(directory, claimed.attempt))
        self._cancelled = self._stopped = self._cut_off = False
        self._stop_asked_at: float | None = None
        self._child = _start(settings, claimed, directory, command)

    def run(self) -> RunState | None:
        try:
            self._until_stored(self._begin)
            returncode = self._follow()
        except BaseException:
            self._child.kill()
            raise
        finally:
            self._child.close()
        self._until_stored(lambda: self._pump(final=True))
        end = ending(returncode, self._records.failure or self._output.last_line)
        return self._until_stored(lambda: self._end(end))

    def _begin(self) -> None:
        with self._store.write() as session:
            started(session, self._run_id, self._attempt)
        self._renew()  # tells at once whether it did not start since it was cancelled or is not ours

    def _follow(self) -> int:
        """Look at the child, its files and the lease until it has ended."""
        while (returncode := self._child.poll()) is None:
            time.sleep(self._timing.poll)
            try:
                self._pump()
                if time.monotonic() - self._renewed_at >= min(self._timing.renew, self._timing.lease / 3):
                    self._renew()
            except OperationalError as error:  # the child goes on, its files wait
                _log.warning("run %s: the database does not answer: %s", self._run_id, error)
            self._forward_stop()
        return returncode

    def _pump(self, *, final: bool = False) -> None:
        self._records.pump()
        self._output.pump(final=final)

    def _renew(self) -> None:
        asked_at = time.monotonic()  # the lease counts from some moment after this one
        with self._store.write() as session:
            renewal = renew(session, self._run_id, self._attempt, lease_seconds=self._timing.lease)
        if not renewal.owned:
            raise StaleAttempt(self._run_id, self._attempt)
        self._cancelled = renewal.cancel_requested
        self._renewed_at = asked_at

    def _forward_stop(self) -> None:
        """SIGTERM once, SIGKILL when the grace or the lease is over."""
        now = time.monotonic()
        unheard = now - self._renewed_at
        self._stopped = self._stopped or self._stopping()
        self._cut_off = self._cut_off or unheard > self._timing.fence
        if not (self._cancelled or self._stopped or self._cut_off):
            return
        if self._stop_asked_at is None:
            self._stop_asked_at = now
            self._child.stop()
        elif now - self._stop_asked_at > self._timing.grace or unheard > self._timing.lease:
            self._child.kill()

    def _until_stored(self, write: Callable[[], _T]) -> _T:
        """Try a write until the database answers, or the worker shuts down: the child's files wait meanwhile."""
        while True:
            try:
                return write()
            except OperationalError as error:
                if self._stopping():
                    raise
                _log.warning("run %s waits for the database: %s", self._run_id, error)
                time.sleep(self._timing.renew)

    def _end(self, end: Ending) -> RunState | None:
        details = {"exit_code": end.exit_code, "exit_signal": end.exit_signal}
        final = {"finished": RunState.SUCCEEDED, "fault": RunState.FAILED}.get(end.kind)
        with self._store.write() as session:
            if final is not None:
                ended = finish(session, self._run_id, self._attempt, to=final, reason=end.reason, **details)
                return final if ended else None
            if not renew(session, self._run_id, self._attempt, lease_seconds=self._timing.lease).owned:
                return None
            if self._stop_asked_at is not None:  # an end that was asked for uses up no attempt
                reason, most = self._why_stopped(), self._attempt + 1
            else:
                reason = "the training process was told to stop from outside" if end.kind == "stopped" else end.reason
                most = attempts_allowed(session, self._run_id, self._attempt, without_progress=WITHOUT_PROGRESS)
            return give_back(session, self._run_id, self._attempt, reason=reason, max_attempts=most, **details)

    def _why_stopped(self) -> str:
        if self._cancelled:
            return "cancelled on request"
        if self._stopped:
            return "handed back by a worker that shut down"
        return "stopped since its worker could not reach the database"
