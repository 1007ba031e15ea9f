"""The worker's health check, on a real database."""

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from app.store import Store, open_store
from app.store.clock import now
from app.store.migrate import upgrade
from app.store.tables import Worker
from app.store.worker_writes import register_worker
from worker.health import alive


@pytest.fixture
def store(tmp_path: Path) -> Store:
    url = f"sqlite:///{tmp_path / 'vlmscope.sqlite3'}"
    upgrade(url)
    return open_store(url, tmp_path)


def register(store: Store, *, silent_for: timedelta = timedelta()) -> None:
    with store.write() as session:
        register_worker(session, "w", socket.gethostname(), 1, {}, [])
        session.execute(update(Worker).values(last_seen=now(session) - silent_for))


def exit_code(data_dir: Path) -> int:
    environment = os.environ | {"VLMSCOPE_DATA_DIR": str(data_dir)}
    return subprocess.run([sys.executable, "-m", "worker.health"], env=environment, timeout=60).returncode


def test_worker_that_was_just_heard_of_is_healthy(store: Store, tmp_path: Path) -> None:
    register(store)
    assert exit_code(tmp_path) == 0


def test_worker_that_fell_silent_is_not(store: Store, tmp_path: Path) -> None:
    register(store, silent_for=timedelta(minutes=2))
    assert exit_code(tmp_path) == 1


def test_database_without_a_worker_is_not_healthy(store: Store, tmp_path: Path) -> None:
    assert exit_code(tmp_path) == 1


def test_worker_of_another_host_does_not_count(store: Store) -> None:
    register(store)
    with store.read() as session:
        assert alive(session, socket.gethostname())
        assert not alive(session, "another-host")
