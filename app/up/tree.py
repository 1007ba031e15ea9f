"""The process tree: stages of services that are started in order, kept running, and stopped in reverse."""

import time
from collections.abc import Sequence
from pathlib import Path

from app.processes import kill_marked
from app.up.child import Child, Service
from app.up.console import Console
from app.up.interrupts import Interrupts
from training.errors import VlmscopeError

POLL_SECONDS = 0.1
MARKER = "VLMSCOPE_UP"


class StartFailed(VlmscopeError, RuntimeError):
    """A service ended, or did not get ready in time; the message holds its last output."""


class Interrupted(VlmscopeError, RuntimeError):
    """The person asked to stop before everything was ready."""


class Tree:
    """Runs the services of each stage side by side, stage after stage; `mark` is in every process's environment."""

    def __init__(
        self, stages: Sequence[Sequence[Service]], logs: Path, mark: str, console: Console, interrupts: Interrupts
    ) -> None:
        self.stages = [[Child(service, logs / f"{service.name}.log") for service in stage] for stage in stages]
        self.mark = mark
        self.console = console
        self.interrupts = interrupts

    def start(self) -> None:
        """Start everything and wait until it is ready.  Raises StartFailed or Interrupted; stop() is still due then."""
        for stage in self.stages:
            for child in stage:
                child.start()
            for child in stage:
                self._wait_until_ready(child)

    def tick(self) -> None:
        """Start again what crashed, once its delay is over."""
        for child in (child for stage in self.stages for child in stage):
            if child.running():
                continue
            if child.restart_at is None:
                ending, delay = child.collect(), child.schedule_restart()
                self.console.say(f"{ending}\n{child.service.name} starts again in {delay:.0f} s")
            elif time.monotonic() >= child.restart_at:
                child.start()

    def stop(self) -> None:
        """Ask each stage to end, the last one first; a second interrupt, or too long a wait, kills what is left."""
        for stage in reversed(self.stages):
            for child in stage:
                child.ask_to_stop()
            for child in stage:
                self._wait_until_gone(child)
        kill_marked(MARKER, self.mark)

    def _wait_until_ready(self, child: Child) -> None:
        while not child.ready():
            if self.interrupts.stop:
                raise Interrupted("stopped before everything was ready")
            if not child.running():
                raise StartFailed(child.collect())
            if child.age() > child.service.start_seconds:
                raise StartFailed(
                    f"{child.service.name} was not ready after {child.service.start_seconds:.0f} s; "
                    f"its output is in {child.log}"
                )
            time.sleep(POLL_SECONDS)

    def _wait_until_gone(self, child: Child) -> None:
        deadline = time.monotonic() + child.service.stop_seconds
        while child.running() and not self.interrupts.at_once and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if child.running() and not self.interrupts.at_once:
            self.console.say(f"{child.service.name} did not stop within {child.service.stop_seconds:.0f} s: killed")
        child.kill()
