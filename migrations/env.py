"""Alembic's entry: migrates the connection that app.store.migrate hands over, else the database of the settings."""

from alembic import context
from sqlalchemy import Connection

from app.settings import read_settings
from app.store.engines import WRITES, open_engine, parse_url
from app.store.tables import Base

# full-text indexes are made by migrations alone: tables cannot describe them
_FULL_TEXT = "completion_texts"


def include_name(name: str | None, kind: str, parents: object) -> bool:
    """Whether comparing tables and database looks at something."""
    del parents
    return not (kind in ("table", "index") and name is not None and name.startswith((_FULL_TEXT, f"ix_{_FULL_TEXT}")))


def migrate(connection: Connection) -> None:
    """Run migrations within one transaction, on SQLite too."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        transactional_ddl=True,
        include_name=include_name,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    connection = context.config.attributes.get("connection")
    if connection is not None:
        migrate(connection)
        return
    engine = open_engine(parse_url(read_settings().database_url), statement_seconds=0)
    with engine.execution_options(**{WRITES: True}).connect() as connection:
        migrate(connection)
    engine.dispose()


main()
