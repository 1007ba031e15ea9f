"""Runs move along the table of legal moves and no other way; every move says why."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.store import IllegalMove, RunState, Store
from app.store.queries.logs import events
from app.store.queries.runs import get_run
from app.store.run_writes import create_run, move, request_cancel
from app.store.states import FINAL, LEGAL_MOVES
from app.store.tables import Run
from training.config import RunConfig

PAIRS = list(itertools.product(RunState, RunState))


def put_in(store: Store, run_id: int, state: RunState) -> None:
    with store.write() as session:
        session.execute(update(Run).where(Run.id == run_id).values(state=state))


def state_of(store: Store, run_id: int) -> RunState:
    with store.read() as session:
        run = get_run(session, run_id)
    assert run is not None
    return run.state


def test_every_pair_of_states_moves_exactly_when_the_table_says_so(store: Store, run_id: int):
    for before, after in PAIRS:
        put_in(store, run_id, before)
        with store.read() as session:
            known = len(events(session, run_id))
        if after in LEGAL_MOVES[before]:
            with store.write() as session:
                assert move(session, run_id, frm={before}, to=after, reason="because") is True
            assert state_of(store, run_id) is after
        else:
            with pytest.raises(IllegalMove, match=f"from {before} to {after}"), store.write() as session:
                move(session, run_id, frm={before}, to=after, reason="because")
            assert state_of(store, run_id) is before
        with store.read() as session:
            assert len(events(session, run_id)) - known == (after in LEGAL_MOVES[before])


def test_a_run_that_is_elsewhere_stays_there(store: Store, run_id: int):
    with store.write() as session:
        assert move(session, run_id, frm={RunState.RUNNING}, to=RunState.FAILED, reason="no") is False
        assert move(session, 999, frm={RunState.QUEUED}, to=RunState.STARTING, reason="no") is False
        assert move(session, run_id, frm={RunState.QUEUED}, to=RunState.STARTING, reason="no", attempt=7) is False
    with store.read() as session:
        assert [event.code for event in events(session, run_id)] == ["state_queued"]
    assert state_of(store, run_id) is RunState.QUEUED


def test_a_move_leaves_its_reason_in_the_run_and_an_event(store: Store, run_id: int):
    with store.write() as session:
        move(session, run_id, frm={RunState.QUEUED}, to=RunState.CANCELLED, reason="a person said so")
    with store.read() as session:
        run, found = get_run(session, run_id), events(session, run_id)
    assert run is not None
    assert run.reason == "a person said so"
    assert run.ended_at is not None
    assert abs(run.ended_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert [(event.level, event.code, event.message) for event in found] == [
        ("info", "state_queued", "submitted"),
        ("info", "state_cancelled", "a person said so"),
    ]


def test_a_failure_is_an_error_event(store: Store, run_id: int):
    put_in(store, run_id, RunState.RUNNING)
    with store.write() as session:
        move(session, run_id, frm={RunState.RUNNING}, to=RunState.FAILED, reason="CUDA out of memory")
    with store.read() as session:
        assert [event.level for event in events(session, run_id)] == ["info", "error"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RunState.DRAFT, RunState.CANCELLED),
        (RunState.QUEUED, RunState.CANCELLED),
        (RunState.STARTING, RunState.CANCELLING),
        (RunState.RUNNING, RunState.CANCELLING),
        (RunState.CANCELLING, RunState.CANCELLING),
        *((state, state) for state in sorted(FINAL)),
    ],
)
def test_a_request_to_cancel_answers_with_the_state_afterwards(
    store: Store, run_id: int, before: RunState, after: RunState
):
    put_in(store, run_id, before)
    with store.write() as session:
        assert request_cancel(session, run_id, reason="enough") is after
    assert state_of(store, run_id) is after


def test_nothing_is_cancelled_where_there_is_no_run(store: Store):
    with store.write() as session:
        assert request_cancel(session, 5, reason="enough") is None


def test_a_new_run_waits_or_is_a_draft(store: Store, config: RunConfig):
    with store.write() as session:
        draft = create_run(session, config, state=RunState.DRAFT)
        with pytest.raises(ValueError, match="not running"):
            create_run(session, config, state=RunState.RUNNING)
    assert state_of(store, draft) is RunState.DRAFT
