"""The store: the record of runs in SQL, and their images beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.store.engines import WRITES, open_engine, parse_url
from app.store.media import MediaStore


class Store:
    """Hands out sessions; keep each short, and never wait for anything else within one."""

    def __init__(self, engine: Engine, media: MediaStore) -> None:
        self.media = media
        self._engine = engine
        snapshot = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        # SQLite's transactions are snapshots anyway
        self._readers = engine.execution_options(**(snapshot if engine.dialect.name == "postgresql" else {}))
        self._writers = engine.execution_options(**{WRITES: True})

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one moment of the database, however many queries it makes; nothing is kept."""
        with Session(self._readers) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose changes are kept when the block ends, and dropped when it raises."""
        with Session(self._writers) as session, session.begin():
            yield session

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()


def open_store(database_url: str, data_dir: Path) -> Store:
    """Open the store of a migrated database; images lie below `data_dir`.  Raises DatabaseUnusable.

    Connections are made at first use, so this neither waits for a server nor fails without one.
    """
    return Store(open_engine(parse_url(database_url)), MediaStore(data_dir / "media"))
