"""The interface in process, on a temporary SQLite store, with a queue that only remembers who was rung."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.runs import RunService, Services
from app.settings import Settings
from app.store import open_store
from app.store.migrate import upgrade
from app.web import create_rest
from tests.api.rows import finished_run, write_dataset
from training.config import RunConfig
from training.datasets import Access


class RememberingQueue:
    """Rings nobody."""

    def __init__(self) -> None:
        self.rung: list[int] = []

    def ring(self, run_id: int) -> bool:
        self.rung.append(run_id)
        return True


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", dataset_roots=(tmp_path / "datasets",))


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database to copy: migrating anew for each test would take most of the time."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("template"))
    upgrade(settings.database_url)
    return settings.data_dir / "vlmscope.sqlite3"


def _open(settings: Settings, empty_database: Path) -> Services:
    settings.data_dir.mkdir(exist_ok=True)
    shutil.copy(empty_database, settings.data_dir)
    store = open_store(settings.database_url, settings.data_dir)
    queue = RememberingQueue()
    runs = RunService(store, queue, Access(roots=settings.dataset_roots))
    return Services(store=store, queue=queue, runs=runs, settings=settings)


def _serve(services: Services) -> TestClient:
    return TestClient(create_rest(services), base_url="http://localhost:7860", raise_server_exceptions=False)


@pytest.fixture
def services(settings: Settings, empty_database: Path) -> Services:
    return _open(settings, empty_database)


@pytest.fixture
def client(services: Services) -> Iterator[TestClient]:
    with _serve(services) as client:
        yield client


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[TestClient]:
    """An interface without any run, shared by tests that store nothing."""
    with _serve(_open(Settings(data_dir=tmp_path_factory.mktemp("empty")), empty_database)) as client:
        yield client


@pytest.fixture
def dataset(settings: Settings) -> Path:
    return write_dataset(settings.dataset_roots[0])


@pytest.fixture
def config(dataset: Path) -> RunConfig:
    """A small run that preflight accepts."""
    return RunConfig.model_validate(
        {
            "name": "colours",
            "data": {"source": str(dataset)},
            "optimization": {"prompts_per_step": 2, "max_steps": 2},
            "generation": {"num_generations": 2, "max_completion_length": 8},
            "algorithm": {"name": "rloo"},
        }
    )


@pytest.fixture
def run_id(services: Services, config: RunConfig) -> int:
    """A run that has ended, with completions, images, metrics and events."""
    return finished_run(services.store, config)
