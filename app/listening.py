"""The web server's listening socket and its address."""

import socket

from training.errors import ConfigError


def listen(host: str, port: int) -> socket.socket:
    """A bound and listening TCP socket.  Raises ConfigError with the remedy when the address is not free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        cause = str(error.strerror or error).partition(" (while")[0]  # the socket module repeats the address there
        raise ConfigError(
            f"cannot listen on {address(host, port)}: {cause}. If another program has the port, "
            f"choose a free one: --port {port + 1 if port < 65_535 else port - 1}"
        ) from error


def address(host: str, port: int) -> str:
    """What a person opens in the browser of this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
