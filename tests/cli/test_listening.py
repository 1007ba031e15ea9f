"""The web server's socket and the address that a person opens."""

import socket

import pytest

from app.listening import address, listen
from training.errors import ConfigError


def test_taken_port_is_refused_with_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as refused:
            listen("127.0.0.1", port)
    assert f"cannot listen on http://127.0.0.1:{port}: Address already in use." in str(refused.value)
    assert "choose a free one: --port" in str(refused.value)
    listen("127.0.0.1", port).close()


def test_port_is_free_again_at_once_after_a_connection() -> None:
    server = listen("127.0.0.1", 0)
    port = server.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        connection, _ = server.accept()
        connection.close()
        server.close()
    listen("127.0.0.1", port).close()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:7860"),
        ("localhost", "http://localhost:7860"),
        ("::1", "http://[::1]:7860"),
        ("0.0.0.0", "http://127.0.0.1:7860"),
        ("::", "http://[::1]:7860"),
    ],
)
def test_address_is_one_that_this_machine_can_open(host: str, expected: str) -> None:
    assert address(host, 7860) == expected
