"""A migrated store, a queued run, and a supervisor that starts the small child program."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.settings import Settings
from app.store import RunState, Store, open_store
from app.store.migrate import upgrade
from app.store.queries.completions import list_completions
from app.store.queries.logs import events
from app.store.queries.runs import RunDetail, get_run
from app.store.run_writes import create_run
from tests.worker import brokers, child_program
from training.config import RunConfig
from worker.identity import owner
from worker.supervisor import Timing, execute

FAST = Timing(poll=0.05, renew=0.1, lease=20.0, grace=1.0)
STEPS = 6


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, redis_url=None)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    upgrade(settings.database_url)
    store = open_store(settings.database_url, settings.data_dir)
    yield store
    store.close()


@pytest.fixture(params=brokers.BROKERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[brokers.Server]:
    server = getattr(brokers, request.param)(tmp_path / "broker")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def run_id(store: Store) -> int:
    with store.write() as session:
        return create_run(session, RunConfig())


def command(*faults: str) -> Callable[[Path, int, int], list[str]]:
    """The child program with faults, as `execute` takes it."""

    def make(directory: Path, attempt: int, pipe: int) -> list[str]:
        program = [sys.executable, "-m", child_program.__name__]
        return [*program, str(directory), str(attempt), str(pipe), str(STEPS), *faults]

    return make


@pytest.fixture
def supervise(store: Store, settings: Settings, run_id: int) -> Callable[..., RunState | None]:
    def run(*faults: str, stopping: Callable[[], bool] = lambda: False) -> RunState | None:
        return execute(store, settings, run_id, owner("w"), stopping=stopping, command=command(*faults), timing=FAST)

    return run


def shown(store: Store, run_id: int) -> RunDetail:
    with store.read() as session:
        run = get_run(session, run_id)
    assert run is not None
    return run


def reasons(store: Store, run_id: int) -> list[str]:
    """Why the run moved, oldest first, and what else was told about it."""
    with store.read() as session:
        return [event.message for event in events(session, run_id)]


def texts(store: Store, run_id: int) -> list[str]:
    """The text of every stored completion, sorted."""
    with store.read() as session:
        return sorted(row.text for row in list_completions(session, run_id, limit=500).items)


EVERY_TEXT = sorted(f"{s}/{g}/{i}" for s in range(1, STEPS + 1) for g in range(2) for i in range(2))
