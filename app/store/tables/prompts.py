"""Prompts and their images: written once, by content hash, and shared by all runs."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import WITHOUT_ROWID, Base
from app.store.tables.columns import BigId, Document, Instant, Sha256


class Sample(Base):
    """One prompt with the other columns of its dataset row; the same prompt has the same key in every run."""

    __tablename__ = "samples"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(Sha256, unique=True)
    messages: Mapped[list[dict[str, Any]]] = mapped_column(Document)
    columns: Mapped[dict[str, Any]] = mapped_column(Document)


class Image(Base):
    """An image whose original bytes lie in the media store; width and height are those of the upright picture."""

    __tablename__ = "images"

    sha256: Mapped[str] = mapped_column(Sha256, primary_key=True)
    width: Mapped[int]
    height: Mapped[int]
    format: Mapped[str] = mapped_column(String(8))
    bytes: Mapped[int] = mapped_column(BigId)
    created_at: Mapped[datetime] = mapped_column(Instant)


class SampleImage(Base):
    """Which images a prompt shows, in which order."""

    __tablename__ = "sample_images"
    __table_args__ = (Index(None, "sha256"), WITHOUT_ROWID)

    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(ForeignKey("images.sha256"))


class RunImage(Base):
    """Which images a run has shown, and since which step: what its count of distinct images counts."""

    __tablename__ = "run_images"
    __table_args__ = WITHOUT_ROWID

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    sha256: Mapped[str] = mapped_column(ForeignKey("images.sha256"), primary_key=True)
    first_step: Mapped[int]
