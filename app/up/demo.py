"""The demo run: submitted like any other run, by REST, and followed with a progress line."""

import secrets
import time
from typing import Any

import httpx

from app.store.states import FINAL, RunState
from app.up.client import Client
from app.up.console import Console
from app.up.summary import Summary, summarize
from training.config import RunConfig
from training.errors import VlmscopeError

_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 90.0


class LostContact(VlmscopeError, RuntimeError):
    """The web server has not answered for too long."""


class Demo:
    """One run that `vlmscope up` submits and watches; `summary` stands once it has ended.

    The summary counts its seconds from `began`, a time.monotonic().
    """

    def __init__(self, client: Client, config: RunConfig, console: Console, *, began: float) -> None:
        self.client = client
        self.config = config
        self.console = console
        self.began = began
        self.run_id: str | None = None
        self.summary: Summary | None = None
        self._answered = time.monotonic()
        self._next_poll = 0.0
        self._pace = Pace()
        self._key = secrets.token_hex(16)

    def advance(self) -> None:
        """Submit the run, later look at it, when it is time to.  Raises LostContact when nobody answers for long."""
        now = time.monotonic()
        if self.summary is not None or now < self._next_poll:
            return
        self._next_poll = now + _POLL_SECONDS
        try:
            if self.run_id is None:
                self.run_id = self._begin()
            run = self.client.run(self.run_id)
            if RunState(run["state"]) in FINAL:
                self.summary = summarize(self.client, run, seconds=now - self.began)
        except httpx.TransportError as error:  # the web server may be starting again
            if now - self._answered > _PATIENCE_SECONDS:
                raise LostContact(f"the web server has not answered for {_PATIENCE_SECONDS:.0f} s: {error}") from error
            return
        self._answered = now
        self._show(run, now)

    def _begin(self) -> str:
        """Take up the run that an earlier start left unfinished, or submit a new one."""
        name, project = self.config.name, self.config.project
        unfinished = self.client.unfinished(project=project, name=name)
        run_id = unfinished or self.client.submit(self.config, key=self._key)
        self.console.say(f"run {run_id} ({name}) {'goes on' if unfinished else 'is queued'}")
        return run_id

    def _show(self, run: dict[str, Any], now: float) -> None:
        line = progress_line(run, self._pace.remaining(run["step"], run["max_steps"], now))
        if self.summary is None:
            self.console.progress(line)
        else:
            self.console.end_progress(f"{line}  {run['reason'] or ''}".rstrip())
            self.console.say(self.summary.sentence())


class Pace:
    """Guesses how long a run still takes from the steps seen so far."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def remaining(self, step: int, max_steps: int, now: float) -> float | None:
        """Seconds to the last step; None until a step's length is known, and after the last one."""
        if step == 0 or step >= max_steps:
            return None
        if self._first is None or step < self._first[0]:
            self._first = (step, now)
        first_step, first_time = self._first
        if step == first_step:
            return None
        return (max_steps - step) * (now - first_time) / (step - first_step)


def progress_line(run: dict[str, Any], remaining: float | None) -> str:
    """One line for a person: state, phase, steps, reward, time left."""
    parts = [f"run {run['id']}", run["state"]]
    if run["state"] == RunState.RUNNING and run["phase"]:
        parts.append(run["phase"])
    parts.append(f"step {run['step']}/{run['max_steps']}")
    if run["reward"] is not None:
        parts.append(f"reward {run['reward']:.3f}")
    if remaining is not None and run["state"] == RunState.RUNNING:
        parts.append(f"about {remaining // 60:.0f}:{remaining % 60:02.0f} left")
    return "  ".join(parts)
