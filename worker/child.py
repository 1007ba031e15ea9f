"""The training process: `vlmscope train` in a session of its own, its output in a file, tied by a death pipe."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from app.processes import kill_marked
from app.settings import Settings

MARKER, ATTEMPT_MARKER = "VLMSCOPE_RUN", "VLMSCOPE_ATTEMPT"

Command = Callable[[Path, int, int], list[str]]
"""Makes the command from the run's directory, the attempt and the descriptor of the death pipe."""


def train_command(directory: Path, attempt: int, death_pipe: int) -> list[str]:
    """The same command that a person uses without a server."""
    config, out = str(directory / "config.toml"), str(directory)
    options = ["--out", out, "--attempt", str(attempt), "--death-pipe", str(death_pipe)]
    return [sys.executable, "-m", "app.cli", "train", config, *options]


def output_file(directory: Path, attempt: int) -> Path:
    return directory / "output" / f"attempt-{attempt:04d}.log"


class Child:
    """One training process and all that it starts."""

    def __init__(self, directory: Path, attempt: int, settings: Settings, command: Command) -> None:
        output = output_file(directory, attempt)
        output.parent.mkdir(parents=True, exist_ok=True)
        self._directory, self._attempt = directory, attempt
        # nobody writes to the pipe: its end tells the child that this process is gone
        read_end, self._write_end = os.pipe()
        try:
            with output.open("wb") as file:
                self._process = subprocess.Popen(
                    command(directory, attempt, read_end),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    pass_fds=(read_end,),
                    start_new_session=True,
                    env=_environment(directory, attempt, settings),
                )
        except BaseException:
            os.close(self._write_end)
            raise
        finally:
            os.close(read_end)

    def poll(self) -> int | None:
        """Return code, negative for a signal; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask for a checkpoint and an end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole session at once, and whatever of the attempt has left it."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        sweep(self._directory, [self._attempt])

    def close(self) -> None:
        """After its end: sweep up what it left running."""
        os.close(self._write_end)
        sweep(self._directory, [self._attempt])

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:  # not reaped yet: the process group is still this child's
            os.killpg(self._process.pid, number)


def sweep(directory: Path, attempts: Iterable[int]) -> int:
    """Kill every process of this machine that was started for these attempts of a run.  Returns how many there were.

    Attempts are named since a supervisor that was frozen and wakes up must not hit the one that took its place.
    """
    return sum(kill_marked(ATTEMPT_MARKER, _mark(directory, attempt)) for attempt in attempts)


def _mark(directory: Path, attempt: int) -> str:
    return f"{attempt}:{directory}"


def _environment(directory: Path, attempt: int, settings: Settings) -> dict[str, str]:
    return {
        **os.environ,
        **settings.environment(),
        MARKER: str(directory),
        ATTEMPT_MARKER: _mark(directory, attempt),
        "PYTHONUNBUFFERED": "1",
        "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads were seen to make a step 30 times slower
        "TQDM_DISABLE": "1",  # progress bars of libraries are noise in a log
    }
