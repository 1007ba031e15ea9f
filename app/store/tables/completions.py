"""Groups and completions: narrow rows to page and sort; texts, rewards and token statistics stand beside them."""

from sqlalchemy import Boolean, ForeignKey, Index, LargeBinary, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.doors import LONGEST_NOTE
from app.store.tables.base import WITHOUT_ROWID, Base
from app.store.tables.columns import BigId, CleanText, Number

UNSCORED_RANK = -1.7976931348623157e308
"""Sorts completions without a reward below all others: NULL would come last in one database and first in the other,
and no index serves a page that begins after NULL."""


class Group(Base):
    """All completions of one prompt at one step.  Within a run, the order of ids is the order of steps."""

    __tablename__ = "groups"
    __table_args__ = (Index(None, "run_id", "step", "id"), Index(None, "sample_id", "run_id", "step"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    step: Mapped[int]
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"))
    row: Mapped[int]  # of the run's split; the same prompt may stand in another row elsewhere
    reward_mean: Mapped[float | None] = mapped_column(Number)
    reward_std: Mapped[float | None] = mapped_column(Number)
    zero_signal: Mapped[bool] = mapped_column(Boolean)


class Completion(Base):
    """One sampled completion."""

    __tablename__ = "completions"
    __table_args__ = (
        Index(None, "run_id", "step", "id"),
        Index(None, "run_id", "reward_rank", "id"),
        Index(None, "run_id", "num_tokens", "id"),
        Index(None, "group_id", "index", unique=True),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    step: Mapped[int]
    group_id: Mapped[int] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"))
    index: Mapped[int]
    num_tokens: Mapped[int]
    finish_reason: Mapped[str] = mapped_column(String(20))
    reward: Mapped[float | None] = mapped_column(Number)
    reward_rank: Mapped[float] = mapped_column(Number)
    advantage: Mapped[float | None] = mapped_column(Number)


class CompletionBody(Base):
    """The text of a completion; the full-text index is over this table."""

    __tablename__ = "completion_bodies"

    completion_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("completions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    text: Mapped[str] = mapped_column(CleanText)
    truncated: Mapped[bool] = mapped_column(Boolean)


class Reward(Base):
    """What one reward function said of one completion; `position` is its place in the run's configuration."""

    __tablename__ = "rewards"
    __table_args__ = WITHOUT_ROWID

    completion_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("completions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    name_id: Mapped[int] = mapped_column(ForeignKey("names.id"))
    value: Mapped[float | None] = mapped_column(Number)
    error: Mapped[str | None] = mapped_column(CleanText(LONGEST_NOTE))
    parsed: Mapped[str | None] = mapped_column(CleanText(LONGEST_NOTE))


class CompletionTokens(Base):
    """Token ids, log-probabilities and entropies of a completion, packed by training.token_stats."""

    __tablename__ = "completion_tokens"

    completion_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("completions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    packed: Mapped[bytes] = mapped_column(LargeBinary)
