"""A store on each database: every test that takes `store` runs on SQLite and on PostgreSQL."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import Store, open_store
from app.store.migrate import upgrade
from app.store.run_writes import create_run
from tests.store.databases import postgres_database
from training.config import RunConfig

DATABASES = [pytest.param("sqlite", id="sqlite"), pytest.param("postgres", id="postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("template") / "vlmscope.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """A migrated PostgreSQL database to copy."""
    with postgres_database(postgres_url) as url:
        upgrade(url)
        yield url


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'folder' / 'vlmscope.sqlite3'}"
        return
    with postgres_database(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated database without rows."""
    if request.param == "sqlite":
        path = tmp_path / "vlmscope.sqlite3"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server = request.getfixturevalue("postgres_url")
    with postgres_database(server, template=request.getfixturevalue("postgres_template")) as url:
        yield url


@pytest.fixture
def store(database_url: str, tmp_path: Path) -> Iterator[Store]:
    store = open_store(database_url, tmp_path)
    yield store
    store.close()


@pytest.fixture
def config() -> RunConfig:
    return RunConfig(name="colours")


@pytest.fixture
def run_id(store: Store, config: RunConfig) -> int:
    """A run that waits."""
    with store.write() as session:
        return create_run(session, config)
