"""Ringing on a real broker: the message, and what happens when there is nobody to take it."""

import contextlib
import socket
import time

from app.queue import TASK, Queue, make_celery
from tests.worker.brokers import Server


def waiting(server: Server) -> list[list[str]]:
    """Arguments of the messages in the queue, which are taken out."""
    found = []
    with make_celery(server.url).connection_for_read() as connection:
        queue = connection.SimpleQueue("vlmscope")
        with contextlib.suppress(queue.Empty):
            while True:
                message = queue.get_nowait()
                message.ack()
                assert message.headers["task"] == TASK
                found.append(message.payload[0])
        queue.close()
    return found


def test_a_message_is_the_id_and_nothing_else(server: Server):
    assert Queue(server.url).ring(7) is True
    assert waiting(server) == [["7"]]


def test_a_broker_that_was_restarted_is_rung_through_the_old_connection(server: Server):
    queue = Queue(server.url)
    assert queue.ring(1) is True
    server.kill()
    assert queue.ring(2) is False
    server.start()
    assert queue.ring(3) is True
    assert waiting(server) == [["3"]]


def test_a_broker_that_says_nothing_holds_nobody_up():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        started = time.monotonic()
        assert Queue(f"redis://127.0.0.1:{mute.getsockname()[1]}/0").ring(1) is False
    assert time.monotonic() - started < 10


def test_without_a_broker_nobody_is_rung():
    assert Queue(None).ring(1) is False
