"""Column types: the doors are part of them, so that no write can go round."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Double, Enum, Integer, LargeBinary, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from app.store.doors import LONGEST_TEXT, clean_json, clean_text, finite

# only a column of type INTEGER is SQLite's own row id; there it holds 64 bits
BigId = BigInteger().with_variant(Integer, "sqlite")


class CleanText(TypeDecorator[str]):
    """Text through the text door."""

    impl = Text
    cache_ok = True

    def __init__(self, longest: int = LONGEST_TEXT) -> None:
        super().__init__()
        self.longest = longest

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else clean_text(value, longest=self.longest)


class Number(TypeDecorator[float]):
    """A double through the number door: NaN and infinity become NULL."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        del dialect
        return finite(value)


class Document(TypeDecorator[Any]):
    """JSON through both doors; not JSONB, which would reorder the keys of a message."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        del dialect
        return clean_json(value)


class Instant(TypeDecorator[datetime]):
    """A moment: aware and in UTC on this side, also where the database keeps no zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Sha256(TypeDecorator[str]):
    """A content hash: 64 hexadecimal digits on this side, 32 bytes in the table."""

    impl = LargeBinary(32)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        del dialect
        return None if value is None else bytes.fromhex(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else bytes(value).hex()


def word(enum: type[StrEnum]) -> TypeEngine[Any]:
    """A column that holds the values of an enumeration as plain words."""
    return Enum(enum, native_enum=False, length=16, values_callable=lambda members: [str(m) for m in members])
