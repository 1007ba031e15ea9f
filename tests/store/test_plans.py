"""With a hundred thousand completions every page is read through an index: no table is walked, no run is sorted."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from app.store import Store
from app.store.queries.completions import get_group, groups, list_completions, steps
from app.store.queries.logs import events, log_lines
from app.store.queries.metrics import metric_names, series
from app.store.queries.pages import encode
from app.store.queries.runs import get_run, list_runs
from tests.store.bulk import PER_RUN, fill

BIG = (
    "completions",
    "groups",
    "completion_bodies",
    "rewards",
    "metrics",
    "reward_histograms",
    "run_events",
    "log_lines",
)
LAST_PAGE = encode("step down", 0, (1 << 32) + 40_000)

READS: dict[str, Callable[[Session, int], object]] = {
    "newest completions": lambda s, run: list_completions(s, run),
    "deep in the list": lambda s, run: list_completions(s, run, after=LAST_PAGE),
    "oldest completions": lambda s, run: list_completions(s, run, descending=False),
    "best completions": lambda s, run: list_completions(s, run, sort="reward"),
    "worst, next page": lambda s, run: list_completions(
        s, run, sort="reward", descending=False, after=encode("reward up", 3.0, (run << 32) + 9)
    ),
    "longest, next page": lambda s, run: list_completions(
        s, run, sort="num_tokens", after=encode("num_tokens down", 500, (run << 32) + 9)
    ),
    "one step": lambda s, run: list_completions(s, run, step=250),
    "best of a step": lambda s, run: list_completions(s, run, step=250, sort="reward"),
    "common word": lambda s, run: list_completions(s, run, query="red"),
    "rare word": lambda s, run: list_completions(s, run, query="40001"),
    "word in a step": lambda s, run: list_completions(s, run, query="red", step=250),
    "groups": lambda s, run: groups(s, run),
    "groups of a step": lambda s, run: groups(s, run, step=250),
    "one group": lambda s, run: get_group(s, (run << 32) + 77),
    "steps": lambda s, run: steps(s, run),
    "run": lambda s, run: get_run(s, run),
    "runs": lambda s, _: list_runs(s),
    "metric names": lambda s, run: metric_names(s, run),
    "series": lambda s, run: series(s, run, ["reward"]),
    "log": lambda s, run: log_lines(s, run, tail=True),
    "events": lambda s, run: events(s, run),
}
# a few rows are sorted, or hits of a search that come in no order
SORTED = {"runs", "best of a step", "common word", "rare word", "word in a step"}


class Plans:
    """Collects how the database carries out the statements of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.is_sqlite = session.get_bind().dialect.name == "sqlite"
        self.statements: list[tuple[str, Any]] = []

    def of(self, read: Callable[[Session], object]) -> list[tuple[str, list[str]]]:
        """Each statement with one line per step of its plan."""
        connection = self.session.connection()
        self.statements.clear()
        event.listen(connection, "before_cursor_execute", self._keep)
        read(self.session)
        event.remove(connection, "before_cursor_execute", self._keep)
        return [(statement, self._plan(statement, parameters)) for statement, parameters in list(self.statements)]

    def _plan(self, statement: str, parameters: Any) -> list[str]:
        explain = "EXPLAIN QUERY PLAN" if self.is_sqlite else "EXPLAIN (FORMAT JSON)"
        rows = self.session.connection().exec_driver_sql(f"{explain} {statement}", parameters).all()
        return [row[3] for row in rows] if self.is_sqlite else list(_nodes(rows[0][0][0]["Plan"]))

    def _keep(self, *arguments: Any) -> None:
        _, _, statement, parameters, *_ = arguments
        self.statements.append((statement, parameters))


def _nodes(plan: dict[str, Any]) -> Iterator[str]:
    yield f"{plan['Node Type']} {plan.get('Relation Name', '')}".rstrip()
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)


def faults(name: str, statement: str, plan: list[str]) -> list[str]:
    """Steps of a plan that read a whole table, or sort what a LIMIT then cuts."""
    walks = {f"{kind} {table}" for table in BIG for kind in ("SCAN", "Seq Scan on", "Seq Scan")}
    bad = [line for line in plan if line in walks or line.startswith(tuple(f"SCAN {table} USING" for table in BIG))]
    if "LIMIT" in statement and name not in SORTED:
        bad += [line for line in plan if "TEMP B-TREE" in line or "Sort" in line]
    return bad


def test_every_page_is_read_through_an_index(store: Store):
    first, second = fill(store, runs=2)
    assert PER_RUN * 2 > 100_000
    found: dict[str, list[str]] = {}
    with store.read() as session:
        plans = Plans(session)
        for name, read in READS.items():
            statements = plans.of(lambda s, read=read: read(s, first))
            assert statements, name
            found[name] = [fault for statement, plan in statements for fault in faults(name, statement, plan)]
        rows = list_completions(session, second, query="red", sort="reward", limit=3).items
    assert {name: bad for name, bad in found.items() if bad} == {}
    assert [row.reward for row in rows] == [100.0] * 3
