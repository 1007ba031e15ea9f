"""Opens databases: SQLite set up for one writer beside many readers, PostgreSQL with limits on what may hang."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from app.store.errors import DatabaseUnusable
from app.store.filesystems import network_filesystem

WRITES = "vlmscope_writes"
"""Execution option of connections that write: SQLite must know when a transaction begins, or it fails half way."""

_BUSY_MILLISECONDS = 30_000
_PRAGMAS = (
    f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = NORMAL",
)
_POSTGRESQL_OPTIONS = "-c timezone=UTC -c idle_in_transaction_session_timeout=60000 -c statement_timeout={}"
_to_json = partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def parse_url(database_url: str) -> URL:
    """Read a database's URL.  Raises DatabaseUnusable when it is none of SQLite file or PostgreSQL."""
    expected = "expected sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME"
    try:
        url = make_url(database_url)
    except ArgumentError as error:
        raise DatabaseUnusable(f"{expected}, got something that is no URL; check VLMSCOPE_DATABASE_URL") from error
    match url.get_backend_name():
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
        case "sqlite" if url.database and url.database != ":memory:":
            return url.set(drivername="sqlite+pysqlite")
    raise DatabaseUnusable(f"{expected}, got {url.render_as_string(hide_password=True)}; set VLMSCOPE_DATABASE_URL")


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database, None for PostgreSQL."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def open_engine(url: URL, *, statement_seconds: float = 60) -> Engine:
    """An engine that connects when it is first used.  `statement_seconds` 0 lets PostgreSQL take any time."""
    file = sqlite_file(url)
    if file is None:
        options = _POSTGRESQL_OPTIONS.format(round(statement_seconds * 1000))
        return create_engine(
            url, json_serializer=_to_json, pool_pre_ping=True, connect_args={"options": options, "connect_timeout": 10}
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    _refuse_network(file)
    engine = create_engine(url, json_serializer=_to_json)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, record: object) -> None:
    del record
    connection.isolation_level = None  # sqlite3 would begin transactions itself, too late and of the wrong kind
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    # a transaction that reads first and then writes fails at once when another wrote in between, whatever the timeout
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITES) else "BEGIN")


def _refuse_network(file: Path) -> None:
    kind = network_filesystem(file.parent)
    if kind is not None:
        raise DatabaseUnusable(
            f"{file} lies on a network file system ({kind}), where SQLite loses data; choose a local data directory "
            f"(VLMSCOPE_DATA_DIR) or a PostgreSQL server (VLMSCOPE_DATABASE_URL)"
        )
