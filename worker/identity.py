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
    """Whether the holder, a process of this host, has ended: its pid free or another's, or the host restarted.

    False as well where that cannot be told: without /proc, and for a container that shares this one's host name.
    Then the lease decides.
    """
    boot, _, namespace = run.boot_id.partition("/")
    own_boot, _, own_namespace = boot_id().partition("/")
    if not boot or not own_boot:
        return False
    if boot != own_boot:
        return True
    return namespace == own_namespace and start_time(run.pid) != run.pid_started


def boot_id() -> str:
    """The start of this machine and the namespace that its pids mean something in, as BOOT/NAMESPACE; else empty."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return f"{path.read_text().strip()}/{os.readlink('/proc/self/ns/pid')}" if path.exists() else ""


def start_time(pid: int) -> float | None:
    """Clock ticks from boot to the start of a process; None when there is none, or only its unreaped remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces
    return None if state in "ZX" else float(fields[18])
