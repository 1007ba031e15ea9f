"""The whole worker on a real broker: messages, kills at each level, warm shutdown, orphans."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.processes import marked
from app.queue import Queue
from app.settings import Settings
from app.store import RunState, Store
from app.store.queries.workers import list_workers
from app.store.run_writes import create_run, owned_runs
from tests.worker.brokers import Server
from tests.worker.conftest import EVERY_TEXT, reasons, shown, texts
from tests.worker.waiting import wait_for
from training.config import RunConfig
from worker.child import MARKER

VALKEY = pytest.mark.parametrize("server", ["valkey"], indirect=True)
"""For what does not hang on which server it is."""

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def settings(tmp_path: Path, server: Server) -> Settings:
    return Settings(data_dir=tmp_path, redis_url=server.url)


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Starts `vlmscope worker` with the slow child program in the place of the trainer."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "tests.worker.host_program"]
        process = subprocess.Popen(program, env={**os.environ, **settings.environment()}, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(30)
    wait_for(lambda: not marked("VLMSCOPE_DATA_DIR", str(settings.data_dir)))


def submit(store: Store, settings: Settings, *, rings: int = 1) -> int:
    with store.write() as session:
        run_id = create_run(session, RunConfig())
    for _ in range(rings):
        assert Queue(settings.redis_url).ring(run_id)
    return run_id


def ends_well(store: Store, run_id: int) -> None:
    wait_for(lambda: shown(store, run_id).state is RunState.SUCCEEDED, 90)
    assert texts(store, run_id) == EVERY_TEXT


def supervisor_of(store: Store, run_id: int) -> int:
    with store.read() as session:
        [pid] = [held.pid for held in owned_runs(session) if held.run_id == run_id]
    return pid


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("rings", [3, 0], ids=["message tripled", "message lost"])
def test_a_queued_run_is_trained_once(start: Start, store: Store, settings: Settings, rings: int):
    run_id = submit(store, settings, rings=rings)
    worker = start()
    ends_well(store, run_id)
    assert shown(store, run_id).attempt == 1
    with store.read() as session:
        [row] = list_workers(session)
    assert row.pid == worker.pid
    assert row.devices


@VALKEY
@pytest.mark.slow
def test_no_process_of_the_worker_loads_torch(start: Start, store: Store, settings: Settings):
    run_id = submit(store, settings)
    worker = start()
    wait_for(lambda: shown(store, run_id).step >= 1, 60)
    supervisor = supervisor_of(store, run_id)
    for pid in (worker.pid, parent(supervisor), supervisor):
        assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()
    ends_well(store, run_id)


@VALKEY
@pytest.mark.slow
@pytest.mark.parametrize(
    ("victims", "reason"),
    [
        pytest.param(["child"], "the training process was killed by SIGKILL", id="child"),
        pytest.param(["supervisor"], "its worker process died", id="supervisor"),
        pytest.param(["pool"], "its worker process died", id="pool"),
        pytest.param(["worker"], "handed back by a worker that shut down", id="worker"),
        pytest.param(["worker", "pool", "supervisor"], "its worker process died", id="all"),
    ],
)
def test_after_kill_nine_the_run_goes_on_and_nothing_is_lost_or_doubled(
    start: Start, store: Store, settings: Settings, victims: list[str], reason: str
):
    run_id = submit(store, settings)
    worker = start()
    wait_for(lambda: shown(store, run_id).step >= 2, 60)
    directory = str(settings.runs_dir / str(run_id))
    supervisor = supervisor_of(store, run_id)
    pids = {"worker": worker.pid, "pool": parent(supervisor), "supervisor": supervisor}
    pids["child"] = marked(MARKER, directory)[0]
    for victim in victims:
        os.kill(pids[victim], signal.SIGKILL)
    if "worker" in victims:
        worker.wait()
        start()
    ends_well(store, run_id)
    # and not: was not heard of, which is told when the lease is over
    assert any(text.startswith(reason) for text in reasons(store, run_id))
    assert shown(store, run_id).attempt == 2
    assert not marked(MARKER, directory)


@VALKEY
@pytest.mark.slow
def test_a_terminated_worker_hands_its_run_back_after_a_checkpoint(start: Start, store: Store, settings: Settings):
    run_id = submit(store, settings)
    worker = start()
    wait_for(lambda: shown(store, run_id).step >= 1, 60)
    worker.terminate()
    assert worker.wait(60) == 0
    run = shown(store, run_id)
    assert (run.state, run.exit_code) == (RunState.QUEUED, 75)
    assert not marked(MARKER, str(settings.runs_dir / str(run_id)))
    start()
    ends_well(store, run_id)


@pytest.mark.slow
def test_a_broker_that_dies_with_all_its_messages_costs_no_run(
    start: Start, store: Store, settings: Settings, server: Server
):
    first = submit(store, settings)
    start()
    wait_for(lambda: shown(store, first).step >= 1, 60)
    second = submit(store, settings)
    server.kill()
    third = submit(store, settings, rings=0)
    ends_well(store, first)
    server.start()
    for run_id in (second, third):
        ends_well(store, run_id)
    assert [shown(store, run_id).attempt for run_id in (first, second, third)] == [1, 1, 1]
