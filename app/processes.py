"""Child processes that never outlive their purpose: tied to their parent, and found again by an environment marker."""

import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

_SHIM = Path(__file__).with_name("exec_tied.py")
_PROC = Path("/proc")


def tied_to_parent(argv: Sequence[str], *, death_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    """The command that runs `argv` and gets `death_signal` when the calling process dies, however it dies (Linux).

    The signal comes already when the calling *thread* ends, so only a main thread may ask.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a tied process must be started by the main thread: it would die with any other thread")
    return [sys.executable, "-I", "-S", str(_SHIM), str(os.getpid()), str(int(death_signal)), *argv]


def marked(name: str, value: str) -> list[int]:
    """Process ids, this one's left out, that were started with `name=value` in their environment (Linux; else none)."""
    return [pid for pid in _pids() if _is_marked(pid, name, value)]


def kill_marked(name: str, value: str, *, spare: Collection[int] = (), passes: int = 10) -> int:
    """SIGKILL every process that `marked` finds, also those that left their session.  Returns how many were hit."""
    killed: set[int] = set()
    for _ in range(passes):  # again, as long as one of them may just have started another
        found = [pid for pid in marked(name, value) if pid not in spare]
        if not found:
            break
        killed.update(pid for pid in found if _kill(pid, name, value))
    return len(killed)


def _pids() -> Iterator[int]:
    own = os.getpid()
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if entry.name.isdecimal() and int(entry.name) != own:
            yield int(entry.name)


def _is_marked(pid: int, name: str, value: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:  # ended, or another user's
        return False
    return os.fsencode(f"{name}={value}") in environment.split(b"\0")


def _kill(pid: int, name: str, value: str) -> bool:
    """Kill through a descriptor of the process: the pid alone could be a stranger's by now."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _is_marked(pid, name, value):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
