"""The only code that writes a run and touches the queue: check, launch, cancel."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.queue import Queue
from app.settings import Settings
from app.store import Store
from app.store.queries.runs import find_by_key, get_run
from app.store.run_writes import Created, create_run, create_run_once, request_cancel
from app.store.states import FINAL, RunState
from training.config import RunConfig
from training.datasets import Access
from training.errors import VlmscopeError
from training.preflight import Finding, check


class Refused(VlmscopeError, ValueError):
    """A run that cannot work; `findings` name each field or row and the remedy."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [finding for finding in findings if finding.level == "error"]
        super().__init__("; ".join(f"{finding.field}: {finding.message}" for finding in errors))


class NoSuchRun(VlmscopeError, LookupError):
    """The id belongs to no run."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"there is no run {run_id}; the list of runs shows which there are")


class AlreadyEnded(VlmscopeError, RuntimeError):
    """The run is in a final state and cannot be changed any more."""

    def __init__(self, run_id: int, state: RunState) -> None:
        super().__init__(f"run {run_id} has already ended ({state}); launch it again for another run")
        self.state = state


class KeyReused(VlmscopeError, RuntimeError):
    """The idempotency key was used before, for another configuration."""

    def __init__(self, key: str, run_id: int) -> None:
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which has another configuration; use a new key"
        )


@dataclass(frozen=True, slots=True)
class RunService:
    """Check, launch and cancel runs: form, REST and command line all come through here."""

    store: Store
    queue: Queue
    access: Access

    def check(self, config: RunConfig) -> list[Finding]:
        """Everything that can be known about a run before it starts; stores nothing."""
        return check(config, access=self.access)

    def launch(self, config: RunConfig, *, created_by: str | None = None) -> int:
        """Queue a new run and return its id.  Raises Refused when a finding is an error."""
        self._refuse_errors(config)
        with self.store.write() as session:
            run_id = create_run(session, config, created_by=created_by)
        self.queue.ring(run_id)
        return run_id

    def launch_once(self, config: RunConfig, *, key: str, created_by: str | None = None) -> Created:
        """Like launch, but one run however often the same configuration comes with the same key.

        Raises KeyReused when the key came with another configuration before.
        """
        with self.store.read() as session:
            known = find_by_key(session, key)
        if known is None:
            self._refuse_errors(config)
            with self.store.write() as session:
                created = create_run_once(session, config, key=key, created_by=created_by)
            if created.created:
                self.queue.ring(created.run_id)
                return created
            known = created.run_id
        self._refuse_another_config(known, config, key)
        return Created(known, created=False)

    def cancel(self, run_id: int, *, reason: str = "cancelled on request") -> RunState:
        """Ask a run to stop; one that waits is cancelled at once.  Raises NoSuchRun or AlreadyEnded."""
        with self.store.write() as session:
            run = get_run(session, run_id)
            if run is None:
                raise NoSuchRun(run_id)
            if run.state in FINAL:
                raise AlreadyEnded(run_id, run.state)
            state = request_cancel(session, run_id, reason=reason)
        return state or run.state

    def _refuse_another_config(self, run_id: int, config: RunConfig, key: str) -> None:
        with self.store.read() as session:
            run = get_run(session, run_id)
        if run is not None and run.config != config:
            raise KeyReused(key, run_id)

    def _refuse_errors(self, config: RunConfig) -> None:
        findings = self.check(config)
        if any(finding.level == "error" for finding in findings):
            raise Refused(findings)


@dataclass(frozen=True, slots=True)
class Services:
    """What routes and pages are built on."""

    store: Store
    queue: Queue
    runs: RunService
    settings: Settings
