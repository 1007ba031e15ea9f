"""Which process this is, so that another can tell whether it still lives (Linux)."""

import os
import socket
from pathlib import Path

from app.store.run_writes import OwnedRun, Owner


def owner(worker: str) -> Owner:
    """This process as the holder of a run."""
    pid = os.getpid()
    started = start_time(pid)
    return Owner(worker, socket.gethostname(), pid, 0.0 if started is None else started, boot_id())


def is_gone(run: OwnedRun) -> bool:
    """Whether the holder, a process of this host, has ended: its pid free or another's, or the host restarted."""
    return run.boot_id != boot_id() or start_time(run.pid) != run.pid_started


def boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def start_time(pid: int) -> float | None:
    """Clock ticks from boot to the start of a process; None when there is none, or only its unreaped remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces
    return None if state in "ZX" else float(fields[18])
