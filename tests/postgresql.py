"""A private PostgreSQL server for tests: its own directory, reached by a socket in it, gone with the test process."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

_PR_SET_PDEATHSIG = 1
_START_SECONDS = 60
# a test's data need not survive a power cut
_FAST = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")


def server_binaries() -> Path | None:
    """The directory of the newest PostgreSQL server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@contextmanager
def postgresql_server(binaries: Path) -> Iterator[str]:
    """A running server; yields the URL of its maintenance database."""
    # the server refuses to run as root
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    with tempfile.TemporaryDirectory(prefix="vlmscope-pg-", dir="/tmp") as name:
        directory = Path(name)
        os.chown(directory, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        data = str(directory / "data")
        initialize = [str(binaries / "initdb"), "-D", data, *options]
        subprocess.run(initialize, cwd="/", check=True, capture_output=True, **as_user)
        serve = [str(binaries / "postgres"), "-D", data, "-k", name, "-c", "listen_addresses=", *_FAST]
        with (directory / "log").open("wb") as log:
            server = subprocess.Popen(serve, cwd="/", stdout=log, stderr=log, preexec_fn=_end_with_parent, **as_user)
        url = f"postgresql+psycopg://postgres@/postgres?host={name}"
        try:
            _await(server, name, directory / "log")
            yield url
        finally:
            server.send_signal(signal.SIGINT)  # fast shutdown: open sessions are cut
            server.wait(timeout=60)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _await(server: subprocess.Popen[bytes], socket_directory: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(host=socket_directory, user="postgres"):
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start; its log: {log.read_text(errors='replace')[-2000:]}")
