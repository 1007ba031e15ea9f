"""Databases for tests: each a copy of one that was migrated once."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine, make_url, text

_numbers = itertools.count(1)


@contextmanager
def postgres_database(server_url: str, *, template: str | None = None) -> Iterator[str]:
    """A database of its own on a server, empty or a copy of `template`; yields its URL."""
    name = f"vlmscope_test_{os.getpid()}_{next(_numbers)}"
    source = "template0" if template is None else make_url(template).database
    engine = create_engine(server_url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{source}"'))
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        engine.dispose()
