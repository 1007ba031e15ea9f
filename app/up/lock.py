"""At most one `vlmscope up` per data directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from training.errors import ConfigError


class AlreadyRunning(ConfigError):
    """A data directory that another `vlmscope up` holds."""


@contextmanager
def lock(data_dir: Path, *, address: str) -> Iterator[None]:
    """Hold `data_dir` until the block ends, or this process does.  Raises AlreadyRunning at once."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / "up.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0).decode(errors="replace").strip() or "starting"
            raise AlreadyRunning(
                f"`vlmscope up` already runs on {data_dir} ({holder}). Use that one, stop it with Ctrl-C, or start "
                f"this one on a directory of its own: vlmscope up --data-dir DIR --port PORT"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}, {address}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
