"""A PostgreSQL server that refuses its service for a while in the middle of a run."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from app.processes import marked
from app.settings import Settings
from app.store import RunState, Store, open_store
from app.store.migrate import upgrade
from tests.store.databases import postgres_database
from tests.worker.conftest import EVERY_TEXT, FAST, command, shown, texts
from tests.worker.waiting import wait_for
from worker.child import MARKER
from worker.identity import owner
from worker.supervisor import Timing, execute

pytestmark = pytest.mark.postgres


@pytest.fixture
def settings(postgres_url: str, tmp_path: Path) -> Iterator[Settings]:
    with postgres_database(postgres_url) as url:
        yield Settings(data_dir=tmp_path, redis_url=None, database_url=url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    upgrade(settings.database_url)
    store = open_store(settings.database_url, settings.data_dir)
    yield store
    store.close()


class Outage:
    """While it lasts, the database takes no connection and has dropped those that it had."""

    def __init__(self, server_url: str, database_url: str) -> None:
        self._engine = create_engine(make_url(server_url), isolation_level="AUTOCOMMIT")
        self._name = make_url(database_url).database

    def begin(self) -> None:
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        with self._engine.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS false'))
            connection.execute(text(end), {"name": self._name})

    def end(self) -> None:
        with self._engine.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS true'))
        self._engine.dispose()


@pytest.fixture
def outage(postgres_url: str, settings: Settings) -> Outage:
    return Outage(postgres_url, settings.database_url)


def in_background(store: Store, settings: Settings, run_id: int, timing: Timing, fault: str):
    ended: list[RunState | None] = []

    def run() -> None:
        arguments = {"stopping": lambda: False, "command": command(fault), "timing": timing}
        ended.append(execute(store, settings, run_id, owner("w"), **arguments))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: shown(store, run_id).step >= 1)
    return thread, ended


def test_a_run_trains_on_while_the_database_is_away_and_loses_nothing(store, settings, run_id, outage):
    thread, ended = in_background(store, settings, run_id, FAST, "slow")
    outage.begin()
    wait_for(lambda: not marked(MARKER, str(settings.runs_dir / str(run_id))))
    outage.end()
    thread.join(30)
    assert ended == [RunState.SUCCEEDED]
    assert shown(store, run_id).attempt == 1
    assert texts(store, run_id) == EVERY_TEXT


def test_a_run_that_cannot_be_renewed_stops_before_another_may_train_it(store, settings, run_id, outage):
    thread, ended = in_background(store, settings, run_id, replace(FAST, lease=6.0), "slower")
    outage.begin()
    wait_for(lambda: not marked(MARKER, str(settings.runs_dir / str(run_id))))
    outage.end()
    thread.join(30)
    assert ended == [RunState.QUEUED]
    run = shown(store, run_id)
    assert run.reason.startswith("stopped since its worker could not reach the database")
    assert run.exit_code == 75
    thread, ended = in_background(store, settings, run_id, FAST, "slow")
    thread.join(30)
    assert ended == [RunState.SUCCEEDED]
    assert texts(store, run_id) == EVERY_TEXT
