"""Reads numbers over steps: series thinned out for a plot, sparklines, evaluations, reward histograms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from app.store.histograms import TOTAL
from app.store.tables import Metric, Name, RewardHistogram
from app.store.tables.metrics import MEAN_REWARD

Point = tuple[int, float]

_SPARKLINE_POINTS = 32
_EVAL_PREFIX = "eval_"


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One evaluation: after which step, and its metrics."""

    step: int
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """How one reward was spread over a step: `bins` are counts of equal width between `low` and `high`."""

    step: int
    scored: int
    missing: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    bins: list[int]


def metric_names(session: Session, run_id: int) -> list[str]:
    """Every metric that the run has a value of, by name."""
    return sorted(_names_of(session, run_id).values())


def series(session: Session, run_id: int, names: Sequence[str], *, max_points: int = 1000) -> dict[str, list[Point]]:
    """Points (step, value) of each metric, in the order of steps; a name without values has an empty list.

    A longer series keeps the smallest and the largest value of each stretch, so that no spike is lost.
    """
    points: dict[str, list[Point]] = {name: [] for name in names}
    rows = session.execute(
        select(Name.name, Metric.step, Metric.value)
        .join(Name, Name.id == Metric.name_id)
        .where(Metric.run_id == run_id, Name.name.in_(points))
        .order_by(Metric.name_id, Metric.step)
    )
    for name, step, value in rows:
        points[name].append((step, value))
    return {name: thin(found, max_points) for name, found in points.items()}


def thin(points: list[Point], max_points: int) -> list[Point]:
    """At most `max_points` points: the first, the last, and lowest and highest of equal stretches in between."""
    if len(points) <= max_points:
        return points
    stretches = max((max_points - 2) // 2, 0)
    inner = points[1:-1]
    kept = [points[0]]
    for place in range(stretches):
        stretch = inner[place * len(inner) // stretches : (place + 1) * len(inner) // stretches]
        kept += sorted({min(stretch, key=_value), max(stretch, key=_value)})
    return [*kept, points[-1]]


def sparklines(session: Session, steps: Mapping[int, int]) -> dict[int, list[float]]:
    """Mean rewards of runs at a few steps each, evenly spread up to the step given for the run."""
    name_id = session.scalar(select(Name.id).where(Name.name == MEAN_REWARD))
    # one look into the index per point: an IN over whole keys would make SQLite walk the table
    wanted = [and_(Metric.run_id == run_id, Metric.step.in_(_spread(last))) for run_id, last in steps.items() if last]
    lines: dict[int, list[float]] = {run_id: [] for run_id in steps}
    if name_id is not None and wanted:
        found = select(Metric.run_id, Metric.step, Metric.value).where(Metric.name_id == name_id, or_(*wanted))
        for run_id, _, value in sorted(session.execute(found).all()):
            lines[run_id].append(value)
    return lines


def evals(session: Session, run_id: int) -> list[EvalRow]:
    """The first and the newest evaluation of a run; one entry when there is but one."""
    ids = {key: name for key, name in _names_of(session, run_id).items() if name.startswith(_EVAL_PREFIX)}
    if not ids:
        return []
    of_run = (Metric.run_id == run_id, Metric.name_id.in_(ids))
    first, last = session.execute(select(func.min(Metric.step), func.max(Metric.step)).where(*of_run)).one()
    found: dict[int, dict[str, float]] = defaultdict(dict)
    rows = session.execute(
        select(Metric.step, Metric.name_id, Metric.value).where(*of_run, Metric.step.in_((first, last)))
    )
    for step, name_id, value in rows:
        found[step][ids[name_id]] = value
    return [EvalRow(step, dict(sorted(metrics.items()))) for step, metrics in sorted(found.items())]


def histograms(
    session: Session, run_id: int, name: str = TOTAL, *, first: int = 0, last: int | None = None, limit: int = 1000
) -> list[HistogramRow]:
    """The spread of one reward over steps `first` to `last`; TOTAL is the weighted sum of all."""
    statement = (
        select(
            RewardHistogram.step,
            RewardHistogram.scored,
            RewardHistogram.missing,
            RewardHistogram.mean,
            RewardHistogram.std,
            RewardHistogram.low,
            RewardHistogram.high,
            RewardHistogram.bins,
        )
        .join(Name, Name.id == RewardHistogram.name_id)
        .where(RewardHistogram.run_id == run_id, Name.name == name, RewardHistogram.step >= first)
        .order_by(RewardHistogram.step)
        .limit(limit)
    )
    if last is not None:
        statement = statement.where(RewardHistogram.step <= last)
    return [HistogramRow(*row) for row in session.execute(statement)]


def _names_of(session: Session, run_id: int) -> dict[int, str]:
    """The names in use, found by one look into the index per known name instead of a walk over all values."""
    used = select(Metric.step).where(Metric.run_id == run_id, Metric.name_id == Name.id).exists()
    return dict(session.execute(select(Name.id, Name.name).where(used)).all())


def _spread(last: int) -> Iterable[int]:
    if last <= _SPARKLINE_POINTS:
        return range(1, last + 1)
    return sorted({1 + round(place * (last - 1) / (_SPARKLINE_POINTS - 1)) for place in range(_SPARKLINE_POINTS)})


def _value(point: Point) -> float:
    return point[1]
