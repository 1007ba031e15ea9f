"""The base of all tables: constraint names are the same in every database, so that migrations can name them."""

from collections.abc import Mapping

from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

WITHOUT_ROWID: Mapping[str, bool] = {"sqlite_with_rowid": False}
"""For tables that are looked up by their composite key alone: on SQLite the key then is the table."""


class Base(DeclarativeBase):
    """A table of the store."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
