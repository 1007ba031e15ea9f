"""The embedded broker is a real server: password, privacy, durability."""

import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from app.processes import marked
from app.up.broker import Broker, configure
from tests.up.waiting import until


@contextmanager
def started(broker: Broker) -> Iterator[subprocess.Popen[bytes]]:
    server = subprocess.Popen(broker.argv, env={"MARKED": broker.password}, stdout=subprocess.DEVNULL)
    try:
        assert until(broker.answers, seconds=10)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=10) == 0


def test_server_answers_with_the_password_only(tmp_path: Path) -> None:
    broker = configure(tmp_path / "broker")
    assert not broker.answers()
    with started(broker):
        assert redis.Redis.from_url(broker.url).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=broker.port).ping()
        wrong = Broker(broker.argv, broker.port, password="wrong")
        assert not wrong.answers()
    assert not broker.answers()


def test_server_listens_on_loopback_and_never_evicts(tmp_path: Path) -> None:
    broker = configure(tmp_path)
    with started(broker):
        client = redis.Redis.from_url(broker.url, decode_responses=True)
        assert client.config_get("bind", "maxmemory-policy", "appendonly", "appendfsync") == {
            "bind": "127.0.0.1",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "appendfsync": "everysec",
        }


def test_server_can_be_found_by_the_marker_in_its_environment(tmp_path: Path) -> None:
    broker = configure(tmp_path)
    with started(broker) as server:
        assert marked("MARKED", broker.password) == [server.pid]


def test_messages_outlive_a_restart_with_another_port_and_password(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" \\ name with spaces'
    first = configure(folder)
    with started(first):
        redis.Redis.from_url(first.url).rpush("queue", "17")
    second = configure(folder)
    assert second.password != first.password
    with started(second):
        assert redis.Redis.from_url(second.url).lrange("queue", 0, -1) == [b"17"]


def test_password_is_readable_by_the_owner_alone_and_in_no_command_line_or_repr(tmp_path: Path) -> None:
    path = tmp_path / "broker" / "valkey.conf"
    path.parent.mkdir()
    path.write_text("left by an earlier start, with a mode that others can read")
    path.chmod(0o644)
    broker = configure(tmp_path / "broker")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert broker.password in path.read_text()
    assert len(broker.password) == 64
    assert broker.password not in " ".join(broker.argv) + repr(broker)
