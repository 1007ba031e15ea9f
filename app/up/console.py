"""What `vlmscope up` tells a person: whole lines, and one progress line, all on stderr."""

import sys
import time
from typing import TextIO


class Console:
    """Messages and one progress line, which a terminal rewrites and a log file repeats every few seconds."""

    def __init__(self, stream: TextIO | None = None, *, every_seconds: float = 5.0) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.every_seconds = every_seconds
        self._progress = ""
        self._shown = ""
        self._shown_at = float("-inf")

    def say(self, message: str) -> None:
        """A line that stays; a progress line on the terminal moves below it."""
        if self.live and self._progress:
            self._write(f"\r\x1b[K{message}\n{self._progress}")
        else:
            self._write(f"{message}\n")

    def progress(self, line: str) -> None:
        """Replace the progress line."""
        if self.live:
            self._progress = line
            self._write(f"\r\x1b[K{line}")
        elif line != self._shown and time.monotonic() - self._shown_at >= self.every_seconds:
            self._shown, self._shown_at = line, time.monotonic()
            self._write(f"{line}\n")

    def end_progress(self, line: str) -> None:
        """Leave `line` standing as the last state of the progress line."""
        self._progress = ""
        self._write(f"\r\x1b[K{line}\n" if self.live else f"{line}\n")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:  # the terminal was closed; what runs must still be stopped in order
            pass
