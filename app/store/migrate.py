"""Brings a database to the schema of this version: one process at a time, all of it or nothing, after a backup."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from app.store.engines import WRITES, open_engine, parse_url, sqlite_file
from app.store.errors import DatabaseUnusable

_PATIENCE_SECONDS = 60
_ADVISORY_LOCK = 0x766C6D73  # "vlms": any number that nothing else in the database uses
_LOCK_NOT_AVAILABLE = "55P03"
_POLL_SECONDS = 0.05
_BUSY = (
    f"another process has been updating this database for more than {_PATIENCE_SECONDS} s; wait until it has ended, or "
    f"stop it, and start again"
)


def upgrade(database_url: str) -> None:
    """Create or update the tables; does nothing when they are up to date.

    Whoever comes second waits for the first.  Raises DatabaseUnusable when the database is newer than this version,
    or when another process has been at it for more than a minute.
    """
    url = parse_url(database_url)
    engine = open_engine(url, statement_seconds=0).execution_options(**{WRITES: True})
    file = sqlite_file(url)
    try:
        if file is None:
            with engine.begin() as connection:
                _lock_postgresql(connection)
                _upgrade(connection)
        else:
            with _file_lock(file):
                _prepare_sqlite(file)
                with engine.begin() as connection:
                    _upgrade(connection, backup_of=file)
    finally:
        engine.dispose()


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for this very connection; migrations are found where the package is installed."""
    config = Config(attributes={"connection": connection})
    # the option goes through string interpolation, where a percent sign stands doubled
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    return config


def revision(connection: Connection) -> str | None:
    """The revision that the database is at, None when it has no tables yet."""
    return MigrationContext.configure(connection).get_current_revision()


def _upgrade(connection: Connection, backup_of: Path | None = None) -> None:
    config = alembic_config(connection)
    scripts = ScriptDirectory.from_config(config)
    found, newest = revision(connection), scripts.get_current_head()
    if found == newest:
        return
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise DatabaseUnusable(
            f"the database is at revision {found} and this version knows them up to {newest}: a newer vlmscope wrote "
            f"it. Install that version again, or go back to a backup of the database (*.backup beside a SQLite file)"
        )
    if backup_of is not None and found is not None:
        _back_up(backup_of, found)
    command.upgrade(config, "head")


def _prepare_sqlite(file: Path) -> None:
    """Switch the file to write-ahead logging, which it keeps: readers then never wait for the writer."""
    with closing(sqlite3.connect(file, timeout=_PATIENCE_SECONDS)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _back_up(file: Path, found: str) -> None:
    """Copy the database as it is now; the copy gets its name when it is whole."""
    target = file.with_name(f"{file.name}.{found}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup")
    unfinished = target.with_suffix(".tmp")
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(unfinished)) as copy:
        source.backup(copy)
    unfinished.replace(target)


def _lock_postgresql(connection: Connection) -> None:
    """Hold a lock until the transaction ends."""
    connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE_SECONDS}s'"))
    try:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        raise DatabaseUnusable(_BUSY) from error


@contextmanager
def _file_lock(file: Path) -> Iterator[None]:
    """Hold a lock beside the database; it ends with the process, however that ends."""
    descriptor = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise DatabaseUnusable(_BUSY)
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
