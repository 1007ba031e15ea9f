"""Runs are found by state, project and words; an overview counts them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import update

from app.store import RunState, Store
from app.store.queries.runs import get_run, list_runs, overview, projects, run_exists
from app.store.run_writes import create_run, request_cancel
from app.store.tables import Run
from training.config import RLOOConfig, RunConfig

CONFIGS = (
    RunConfig(name="Farben", project="demo", tags=("grün", "50_x")),
    RunConfig(name="shapes", project="demo", algorithm=RLOOConfig()),
    RunConfig(name="colour shapes", project="other"),
)


def submit(store: Store) -> list[int]:
    with store.write() as session:
        return [create_run(session, config) for config in CONFIGS]


def test_runs_are_found_by_state_project_and_words(store: Store):
    ids = submit(store)
    with store.write() as session:
        request_cancel(session, ids[1], reason="enough")

    def found(**query: Any) -> list[str]:
        with store.read() as session:
            return [run.name for run in list_runs(session, **query).items]

    assert found() == ["colour shapes", "shapes", "Farben"]
    assert found(limit=1) == ["colour shapes"]
    assert found(states=[RunState.CANCELLED]) == ["shapes"]
    assert found(states=[RunState.CANCELLED, RunState.QUEUED], project="demo") == ["shapes", "Farben"]
    assert found(states=[]) == []
    assert found(text="SHAPES") == ["colour shapes", "shapes"]
    assert found(text="shapes colour") == ["colour shapes"]
    assert found(text="GRÜN") == found(text="50_") == ["Farben"]
    assert found(text="rloo") == ["shapes"]
    assert found(text="%") == found(text="\\") == found(text="5_x") == []
    assert found(text=" ") == found()


def test_an_overview_counts_every_state_and_recent_failures(store: Store):
    ids = submit(store)
    now = datetime.now(UTC)
    with store.write() as session:
        for run_id, ended in ((ids[0], now), (ids[1], now - timedelta(days=2))):
            session.execute(update(Run).where(Run.id == run_id).values(state=RunState.FAILED, ended_at=ended))
    with store.read() as session:
        found = overview(session)
        assert projects(session) == ["demo", "other"]
    assert {state: count for state, count in found.counts.items() if count} == {RunState.FAILED: 2, RunState.QUEUED: 1}
    assert set(found.counts) == set(RunState)
    assert found.failed_last_day == 1


def test_there_is_no_such_run(store: Store):
    with store.read() as session:
        assert get_run(session, 1) is None
        assert run_exists(session, 1) is False
    (first, *_) = submit(store)
    with store.read() as session:
        assert run_exists(session, first) is True
