"""Numbers over steps: scalar metrics, and the distribution of each reward."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import WITHOUT_ROWID, Base
from app.store.tables.columns import CleanText, Document, Number

LONGEST_NAME = 200

MEAN_REWARD = "reward"
"""The metric that lists and sparklines show: the mean total reward of a step."""


class Name(Base):
    """The name of a metric or a reward, written once: rows refer to it by number."""

    __tablename__ = "names"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(LONGEST_NAME), unique=True)


class Metric(Base):
    """One value of one metric."""

    __tablename__ = "metrics"
    __table_args__ = WITHOUT_ROWID

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name_id: Mapped[int] = mapped_column(ForeignKey("names.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float] = mapped_column(Number)


class RewardHistogram(Base):
    """How one reward was spread over the completions of one step: counting on the fly would read them all."""

    __tablename__ = "reward_histograms"
    __table_args__ = WITHOUT_ROWID

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name_id: Mapped[int] = mapped_column(ForeignKey("names.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    scored: Mapped[int]
    missing: Mapped[int]
    mean: Mapped[float | None] = mapped_column(Number)
    std: Mapped[float | None] = mapped_column(Number)
    low: Mapped[float | None] = mapped_column(Number)
    high: Mapped[float | None] = mapped_column(Number)
    bins: Mapped[list[int]] = mapped_column(Document)
