"""Real brokers that tests start, kill and start again on the same port: the embedded Valkey and Debian's Redis."""

import secrets
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.up import broker
from tests.worker.waiting import wait_for

BROKERS = ["valkey", pytest.param("redis", marks=pytest.mark.redis)]


class Server:
    """A server on loopback that keeps nothing over a kill."""

    def __init__(self, url: str, argv: Sequence[str], port: int) -> None:
        self.url, self._argv, self._port = url, argv, port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL)
        wait_for(self._listens)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _listens(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self._port)) == 0


def valkey(directory: Path) -> Server:
    configured = broker.configure(directory)
    # the append-only file would keep the messages, which the tests want to lose
    return Server(configured.url, [*configured.argv, "--appendonly", "no"], configured.port)


def redis(directory: Path) -> Server:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on the PATH: apt-get install redis-server")
    directory.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    password = secrets.token_hex(8)
    options = {"bind": "127.0.0.1", "port": port, "requirepass": password, "save": "", "dir": directory}
    argv = [program, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
    return Server(f"redis://:{password}@127.0.0.1:{port}/0", argv, port)
