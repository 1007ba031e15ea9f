"""One service of the tree as a child process: start, crash, restart, stop."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.processes import tied_to_parent

_STABLE_SECONDS = 60.0
_LONGEST_DELAY = 30.0
_LOG_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Service:
    """What is to run; `ready` gets the process id and is asked until it says yes once."""

    name: str
    argv: tuple[str, ...]
    ready: Callable[[int], bool]
    environment: Mapping[str, str]
    start_seconds: float = 60.0
    stop_seconds: float = 10.0


class Child:
    """The running process of a service, in a session of its own: a terminal's Ctrl-C reaches the parent alone."""

    def __init__(self, service: Service, log: Path) -> None:
        self.service = service
        self.log = log
        self.crashes = 0
        self.restart_at: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._log_start = 0

    @property
    def pid(self) -> int:
        assert self._process is not None, "start() comes first"
        return self._process.pid

    def start(self) -> None:
        """Start the process; it dies with this one, and its output is appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old.log"))
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                tied_to_parent(self.service.argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **self.service.environment},
            )
        self._started = time.monotonic()
        self.restart_at = None

    def running(self) -> bool:
        """Whether the process lives; one that ended stays uncollected, so that its id cannot become a stranger's."""
        if self._process is None or self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def ready(self) -> bool:
        return self.service.ready(self.pid)

    def age(self) -> float:
        """Seconds since the last start."""
        return time.monotonic() - self._started

    def schedule_restart(self) -> float:
        """Note a crash and when to start again: 1, 2, 4 ... 30 seconds, from 1 again after a minute without a crash."""
        self.crashes = 1 if self.age() >= _STABLE_SECONDS else self.crashes + 1
        delay = min(_LONGEST_DELAY, 2.0 ** (self.crashes - 1))
        self.restart_at = time.monotonic() + delay
        return delay

    def ask_to_stop(self) -> None:
        self.restart_at = None
        if self.running():
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL the process, if it still lives, and what is left of its process group; collect it."""
        if self._process is not None and self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def collect(self) -> str:
        """Clean up after a process that ended; returns how, as a person reads it, with the last lines of its output."""
        assert self._process is not None, "start() comes first"
        self.kill()
        code = self._process.returncode
        ending = f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with code {code}"
        with self.log.open("rb") as file:
            file.seek(max(self._log_start, self.log.stat().st_size - 4_000))
            lines = file.read().decode(errors="replace").splitlines()[-8:]
        return "\n".join(
            [f"{self.service.name} {ending}; its output is in {self.log}", *(f"    {line}" for line in lines)]
        )
