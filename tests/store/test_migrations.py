"""Migrations make exactly the tables that the code describes, up and down, whoever comes first, and never half."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from app.store import DatabaseUnusable, migrate, open_store
from app.store.engines import WRITES, open_engine, parse_url, sqlite_file
from app.store.migrate import alembic_config, revision, upgrade
from app.store.queries.runs import get_run
from app.store.run_writes import create_run
from app.store.tables import Base
from training.config import RunConfig

HEAD = "0003"
FULL_TEXT = ("completion_texts", "ix_completion_texts")


class Database:
    """A connection as migrations get it."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(parse_url(url), statement_seconds=0).execution_options(**{WRITES: True})

    def __enter__(self) -> Connection:
        self.connection = self.engine.connect()
        self.transaction = self.connection.begin()
        return self.connection

    def __exit__(self, kind: object, *_: object) -> None:
        self.transaction.rollback() if kind else self.transaction.commit()
        self.connection.close()
        self.engine.dispose()


def tables(url: str) -> set[str]:
    with Database(url) as connection:
        names = inspect(connection).get_table_names()
    return {name for name in names if not name.startswith((*FULL_TEXT, "alembic", "sqlite_"))}


def test_the_migrated_database_has_the_tables_that_the_code_describes(database_url: str):
    with Database(database_url) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_server_default": True,
                "include_name": lambda name, *_: not (name or "").startswith(FULL_TEXT),
            },
        )
        assert compare_metadata(context, Base.metadata) == []
        assert revision(connection) == HEAD
    assert tables(database_url) == set(Base.metadata.tables)


def test_alembic_check_agrees_from_the_command_line(database_url: str):
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "check"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "VLMSCOPE_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No new upgrade operations detected" in done.stdout


def test_up_down_up(empty_url: str, tmp_path: Path, config: RunConfig):
    upgrade(empty_url)
    first = schema(empty_url)
    for target, left in (("0002", True), ("0001", False), ("base", False)):
        with Database(empty_url) as connection:
            command.downgrade(alembic_config(connection), target)
        assert ("completions" in tables(empty_url)) == left
    assert tables(empty_url) == set()
    upgrade(empty_url)
    assert schema(empty_url) == first
    store = open_store(empty_url, tmp_path)
    with store.write() as session:
        run_id = create_run(session, config)
    upgrade(empty_url)
    with store.read() as session:
        assert get_run(session, run_id) is not None
    store.close()


def schema(url: str) -> list[tuple]:
    query = (
        "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        if url.startswith("sqlite")
        else "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
    )
    with Database(url) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_four_that_start_at_once_all_find_a_migrated_database(empty_url: str):
    spawn = multiprocessing.get_context("spawn")
    starters = [spawn.Process(target=upgrade, args=(empty_url,)) for _ in range(4)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join(timeout=120)
    assert [starter.exitcode for starter in starters] == [0, 0, 0, 0]
    assert tables(empty_url) == set(Base.metadata.tables)


def test_a_newer_database_is_refused_untouched(database_url: str):
    with Database(database_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = schema(database_url)
    with pytest.raises(DatabaseUnusable, match=f"9999.*{HEAD}.*newer vlmscope"):
        upgrade(database_url)
    assert schema(database_url) == before


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty_url: str, monkeypatch: pytest.MonkeyPatch):
    with Database(empty_url) as connection:
        command.upgrade(alembic_config(connection), "0001")
    before = schema(empty_url)

    def fail_at_the_end(config: object, target: str) -> None:
        real_upgrade(config, target)
        raise RuntimeError("the power went out")

    real_upgrade = command.upgrade
    monkeypatch.setattr(command, "upgrade", fail_at_the_end)
    with pytest.raises(RuntimeError, match="power"):
        upgrade(empty_url)
    assert schema(empty_url) == before
    monkeypatch.undo()
    upgrade(empty_url)
    assert tables(empty_url) == set(Base.metadata.tables)


def test_a_process_killed_in_a_migration_leaves_the_database_as_it_was(empty_url: str):
    program = (
        "import os, signal, sys; from alembic import command; from app.store.migrate import upgrade\n"
        "real = command.upgrade\n"
        "command.upgrade = lambda *arguments: (real(*arguments), os.kill(os.getpid(), signal.SIGKILL))\n"
        "upgrade(sys.argv[1])"
    )
    killed = subprocess.run([sys.executable, "-c", program, empty_url], timeout=120)
    assert killed.returncode == -9
    assert tables(empty_url) == set()
    upgrade(empty_url)
    assert tables(empty_url) == set(Base.metadata.tables)


def test_a_sqlite_file_is_backed_up_before_it_is_changed(tmp_path: Path):
    file = tmp_path / "a folder" / "vlmscope.sqlite3"
    url = f"sqlite:///{file}"
    upgrade(url)
    assert list(file.parent.glob("*.backup")) == []
    with Database(url) as connection:
        command.downgrade(alembic_config(connection), "0001")
        connection.execute(text("INSERT INTO names (name) VALUES ('kept')"))
    upgrade(url)
    (backup,) = file.parent.glob("*.backup")
    assert backup.name.startswith("vlmscope.sqlite3.0001-")
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("SELECT name FROM names").fetchall() == [("kept",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    upgrade(url)
    assert len(list(file.parent.glob("*.backup"))) == 1
    assert list(file.parent.glob("*.tmp")) == []


@contextmanager
def held(url: str) -> Iterator[None]:
    """Another process is at it."""
    file = sqlite_file(parse_url(url))
    if file is None:
        with Database(url) as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({migrate._ADVISORY_LOCK})"))
            yield
    else:
        file.parent.mkdir()
        with migrate._file_lock(file):
            yield


def test_whoever_waits_too_long_is_told_why(empty_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrate, "_PATIENCE_SECONDS", 1)
    with held(empty_url), pytest.raises(DatabaseUnusable, match="another process"):
        upgrade(empty_url)
    upgrade(empty_url)


def test_an_installed_package_finds_its_migrations_from_anywhere(empty_url: str, tmp_path: Path):
    program = "import sys; from app.store.migrate import upgrade; upgrade(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, empty_url], cwd=tmp_path, check=True, timeout=120)
    assert tables(empty_url) == set(Base.metadata.tables)
