"""Worker hosts and their devices, and the tokens of programs that use the interface."""

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Base
from app.store.tables.columns import BigId, CleanText, Document, Instant, Sha256


class Worker(Base):
    """A worker host; `last_seen` is its heartbeat."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(CleanText(200), primary_key=True)
    host: Mapped[str] = mapped_column(CleanText(255))
    pid: Mapped[int]
    versions: Mapped[dict[str, str]] = mapped_column(Document)
    registered_at: Mapped[datetime] = mapped_column(Instant)
    last_seen: Mapped[datetime] = mapped_column(Instant)


class Device(Base):
    """Something that a worker can train on."""

    __tablename__ = "devices"

    worker: Mapped[str] = mapped_column(ForeignKey("workers.name", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200))
    memory_bytes: Mapped[int | None] = mapped_column(BigId)


class ApiToken(Base):
    """Lets a program in; only the hash of the token is kept."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200))
    token_hash: Mapped[str] = mapped_column(Sha256, unique=True)
    created_at: Mapped[datetime] = mapped_column(Instant)
    expires_at: Mapped[datetime | None] = mapped_column(Instant)
    last_used_at: Mapped[datetime | None] = mapped_column(Instant)
    revoked_at: Mapped[datetime | None] = mapped_column(Instant)
