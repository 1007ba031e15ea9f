"""A real `vlmscope up` in a directory of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from app.listening import listen
from app.processes import kill_marked, marked
from app.up.tree import MARKER
from tests.up.waiting import until


class Installation:
    """Starts and ends `vlmscope up` on one data directory."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.data_dir = folder / "data"
        self.cache = cache
        with listen("127.0.0.1", 0) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.output = folder / "output"
        self._started: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._started is not None, "start() comes first"
        return self._started

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start it as a shell does: in a process group of its own."""
        command = [sys.executable, "-m", "app.cli", "up", "--data-dir", str(self.data_dir), "--port", str(self.port)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VLMSCOPE_")}
        kept["VLMSCOPE_CACHE_DIR"] = str(self.cache)
        with self.output.open("ab") as output:
            self._started = subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=output, env=kept, process_group=0
            )
        return self.process

    def said(self) -> str:
        """Everything on stderr so far."""
        return self.output.read_text() if self.output.exists() else ""

    def wait_until_up(self, *, times: int = 1) -> None:
        """Wait for the line that shows the dashboard's address for the `times`-th time."""
        line = f"dashboard: {self.address}"
        assert until(lambda: self.said().count(line) == times or self.process.poll() is not None, seconds=120)
        assert self.said().count(line) == times, self.said()

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(timeout=120)

    def kill(self) -> None:
        """kill -9 of the parent alone."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Kill the parent, if it was started and still lives."""
        if self._started is not None and self._started.poll() is None:
            self.kill()

    def processes(self) -> list[int]:
        """What carries this installation's marker."""
        return marked(MARKER, str(self.data_dir.resolve()))

    def find(self, word: str) -> int:
        """The one process of this installation with that word in its command line."""
        [pid] = [pid for pid in self.processes() if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]
        return pid

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.address}/api/v1{path}", trust_env=False, timeout=30)

    def submit(self, toml: str) -> str:
        """Launch a run; returns its id."""
        headers = {"content-type": "application/toml"}
        reply = httpx.post(f"{self.address}/api/v1/runs", content=toml, headers=headers, trust_env=False, timeout=60)
        assert reply.status_code == 201, reply.text
        return reply.json()["id"]

    def wait_for_run(self, run_id: str, *states: str, step: int = 0, seconds: float = 240) -> dict[str, object]:
        """Wait until the run is in one of the states and has done so many steps; returns it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = self.get(f"/runs/{run_id}").json()
            if run["state"] in states and run["step"] >= step:
                return run
            time.sleep(0.2)
        raise AssertionError(f"{run}\n{self.said()}")


@contextmanager
def installation(folder: Path, cache: Path) -> Iterator[Installation]:
    """Leaves nothing running, whatever the test does."""
    ours = Installation(folder, cache)
    try:
        yield ours
    finally:
        ours.end()
        kill_marked(MARKER, str(ours.data_dir.resolve()))
