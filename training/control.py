"""How a run is asked to stop: a flag that the trainer looks at between steps."""

import os
import signal
import threading
from typing import Protocol


class Control(Protocol):
    """Asked once per step."""

    def stop_requested(self) -> bool:
        """True when the run should checkpoint and end."""
        ...


class NeverStop:
    """Runs to the end."""

    def stop_requested(self) -> bool:
        return False


class SignalControl:
    """Stops on SIGTERM, SIGINT, or the end of a death pipe (its writer, the supervisor, is gone).

    The handlers only set a flag: an exception raised in the middle of a write leaves half of it behind.
    """

    def __init__(self, *, death_pipe: int | None = None) -> None:
        self._stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        if death_pipe is not None:
            threading.Thread(target=self._watch, args=(death_pipe,), name="death-pipe", daemon=True).start()

    def stop_requested(self) -> bool:
        return self._stop.is_set()

    def _watch(self, death_pipe: int) -> None:
        while os.read(death_pipe, 1):
            pass
        self._stop.set()
