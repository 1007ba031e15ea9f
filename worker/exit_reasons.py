"""What the end of a training process means, in words."""

import signal
from dataclasses import dataclass
from typing import Literal

FINISHED, REFUSED, STOPPED = 0, 2, 75


@dataclass(frozen=True, slots=True)
class Ending:
    """`kind` says what follows: finished, stopped (on request), fault (the run's own), lost (may be tried again)."""

    kind: Literal["finished", "stopped", "fault", "lost"]
    reason: str
    exit_code: int | None = None
    exit_signal: int | None = None


_HINTS: dict[int, str] = {
    signal.SIGKILL: ", most often by the system when memory runs out",
    signal.SIGSEGV: ": a crash inside native code",
    signal.SIGBUS: ", most often when shared memory (/dev/shm) or a disk is full",
}


def ending(returncode: int, message: str) -> Ending:
    """Of a subprocess's return code; `message` is the failure that the run recorded, or else its last words."""
    if returncode == FINISHED:
        return Ending("finished", "trained to the end", exit_code=returncode)
    if returncode == STOPPED:
        return Ending("stopped", "stopped on request after a checkpoint", exit_code=returncode)
    if returncode > 0:
        said = message or ("the configuration, data or model was refused" if returncode == REFUSED else "see the log")
        return Ending("fault", f"training failed (exit code {returncode}): {said}", exit_code=returncode)
    number = -returncode
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"  # real-time: no name
    return Ending("lost", f"the training process was killed by {name}{_HINTS.get(number, '')}", exit_signal=number)
