"""The whole worker on a real broker: messages, kills at each level, warm shutdown, orphans."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.processes import marked
from app.queue import Queue
from app.settings import Settings
from app.store import RunState, Store, open_store
from app.store.migrate import upgrade
from app.store.queries.workers import list_workers
from app.store.run_writes import create_run, owned_runs
from app.up import broker
from tests.worker.conftest import EVERY_TEXT, shown, texts
from tests.worker.test_supervisor import wait_for
from training.config import RunConfig
from worker.child import MARKER


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    server = broker.configure(tmp_path / "broker")
    process = subprocess.Popen(server.argv, stdout=subprocess.DEVNULL)
    wait_for(server.answers)
    yield server.url
    process.kill()
    process.wait()


@pytest.fixture
def settings(tmp_path: Path, url: str) -> Settings:
    return Settings(data_dir=tmp_path, redis_url=url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    upgrade(settings.database_url)
    store = open_store(settings.database_url, settings.data_dir)
    yield store
    store.close()


@pytest.fixture
def start(settings: Settings) -> Iterator:
    """Starts `vlmscope worker` with the slow child program in the place of the trainer."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "tests.worker.host_program"]
        process = subprocess.Popen(program, env={**os.environ, **settings.environment()}, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def submit(store: Store, settings: Settings, *, ring: bool = True) -> int:
    with store.write() as session:
        run_id = create_run(session, RunConfig())
    if ring:
        assert Queue(settings.redis_url).ring(run_id)
    return run_id


def succeeded(store: Store, run_id: int) -> bool:
    return shown(store, run_id).state is RunState.SUCCEEDED


@pytest.mark.parametrize("ring", [True, False], ids=["rung", "message lost"])
def test_a_queued_run_is_trained(start, store, settings, ring):
    run_id = submit(store, settings, ring=ring)
    worker = start()
    wait_for(lambda: succeeded(store, run_id), 60)
    assert texts(store, run_id) == EVERY_TEXT
    with store.read() as session:
        [row] = list_workers(session)
    assert row.pid == worker.pid
    assert row.devices


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["child", "supervisor", "worker"])
def test_after_kill_nine_the_run_goes_on_and_nothing_is_lost_or_doubled(start, store, settings, victim):
    run_id = submit(store, settings)
    worker = start()
    wait_for(lambda: shown(store, run_id).step >= 2, 60)
    directory = str(settings.runs_dir / str(run_id))
    with store.read() as session:
        [held] = owned_runs(session)
    pid = {"child": marked(MARKER, directory)[0], "supervisor": held.pid, "worker": worker.pid}[victim]
    os.kill(pid, signal.SIGKILL)
    if victim == "worker":
        worker.wait()
        start()
    wait_for(lambda: succeeded(store, run_id), 90)
    assert texts(store, run_id) == EVERY_TEXT
    assert shown(store, run_id).attempt >= 2
    assert not marked(MARKER, directory)


@pytest.mark.slow
def test_a_terminated_worker_hands_its_run_back_after_a_checkpoint(start, store, settings):
    run_id = submit(store, settings)
    worker = start()
    wait_for(lambda: shown(store, run_id).step >= 1, 60)
    worker.terminate()
    assert worker.wait(60) == 0
    assert shown(store, run_id).state is RunState.QUEUED
    time.sleep(0.5)
    assert not marked(MARKER, str(settings.runs_dir / str(run_id)))
    start()
    wait_for(lambda: succeeded(store, run_id), 60)
    assert texts(store, run_id) == EVERY_TEXT
