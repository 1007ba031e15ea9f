"""INSERT ... ON CONFLICT, which both databases have and each spells in its own dialect."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.store.tables import Base


def insert_or_ignore(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; one whose key is there already changes nothing.

    Give the rows in the order of their key: two transactions that wait for each other's rows in turn would deadlock.
    """
    if rows:
        session.execute(insert_for(session, table).on_conflict_do_nothing(), list(rows))


def insert_or_replace(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; one whose primary key is there already takes the new values."""
    if not rows:
        return
    statement = insert_for(session, table)
    keys = [column.name for column in table.__table__.primary_key]
    values = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    session.execute(statement.on_conflict_do_update(index_elements=keys, set_=values), list(rows))


def insert_for(session: Session, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that knows ON CONFLICT."""
    on = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    return on.insert(table)
