"""One worker holds a run at a time, for as long as it renews, and an older attempt has no say."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.store import RunState, Store
from app.store.queries.logs import events
from app.store.queries.runs import RunDetail, get_run
from app.store.run_writes import (
    Claim,
    Owner,
    Renewal,
    claim,
    create_run,
    expired,
    finish,
    give_back,
    owned_runs,
    renew,
    request_cancel,
    started,
    waiting_runs,
)
from app.store.tables import Run
from training.config import RunConfig

OWNER = Owner(worker="w1", host="here", pid=4711, pid_started=1234.5, boot_id="b-1")


def take(store: Store, run_id: int, *, lease_seconds: float = 60, owner: Owner = OWNER) -> Claim | None:
    with store.write() as session:
        return claim(session, run_id, owner=owner, lease_seconds=lease_seconds)


def shown(store: Store, run_id: int) -> RunDetail:
    with store.read() as session:
        run = get_run(session, run_id)
    assert run is not None
    return run


def test_of_many_that_claim_at_once_one_wins(store: Store, run_id: int, config: RunConfig):
    with ThreadPoolExecutor(16) as pool:
        claims = [found for found in pool.map(lambda _: take(store, run_id), range(16)) if found is not None]
    assert claims == [Claim(run_id, attempt=1, config=config)]
    with store.read() as session:
        assert [event.code for event in events(session, run_id)] == ["state_queued", "state_starting"]


def test_a_claimed_run_shows_who_holds_it_until_when(store: Store, run_id: int):
    take(store, run_id, lease_seconds=60)
    with store.read() as session:
        (held,) = owned_runs(session)
        assert owned_runs(session, host="here") == [held]
        assert owned_runs(session, host="elsewhere") == []
        assert expired(session) == []
        assert waiting_runs(session) == []
    assert (held.run_id, held.attempt, held.state) == (run_id, 1, RunState.STARTING)
    assert (held.worker, held.host, held.pid, held.pid_started, held.boot_id) == ("w1", "here", 4711, 1234.5, "b-1")
    left = held.lease_expires_at - datetime.now(UTC)
    assert timedelta(seconds=50) < left <= timedelta(seconds=61)


def test_a_lease_that_is_not_renewed_expires_and_one_that_is_does_not(store: Store, config: RunConfig):
    with store.write() as session:
        silent, renewed = (create_run(session, config) for _ in range(2))
    for run_id in (silent, renewed):
        take(store, run_id, lease_seconds=0.05)
    with store.write() as session:
        assert renew(session, renewed, 1, lease_seconds=60) == Renewal(owned=True, cancel_requested=False)
    time.sleep(0.1)
    with store.read() as session:
        assert [run.run_id for run in expired(session)] == [silent]


def test_a_holder_learns_that_it_should_stop(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        assert started(session, run_id, 1) is True
        assert request_cancel(session, run_id, reason="enough") is RunState.CANCELLING
        assert renew(session, run_id, 1, lease_seconds=60) == Renewal(owned=True, cancel_requested=True)
        assert finish(session, run_id, 1, to=RunState.CANCELLED, reason="stopped after step 3") is True
    run = shown(store, run_id)
    assert (run.state, run.reason, run.lease_expires_at) == (RunState.CANCELLED, "stopped after step 3", None)
    assert run.cancel_requested_at is not None
    assert run.started_at is not None


def test_a_run_that_ends_before_it_sees_the_request_has_ended_as_it_ended(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        started(session, run_id, 1)
        request_cancel(session, run_id, reason="enough")
        assert finish(session, run_id, 1, to=RunState.SUCCEEDED, reason="all steps done", exit_code=0) is True
    assert shown(store, run_id).state is RunState.SUCCEEDED


def test_a_run_cancelled_while_it_starts_does_not_start(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        request_cancel(session, run_id, reason="enough")
        assert started(session, run_id, 1) is False


def test_an_older_attempt_has_no_say(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        give_back(session, run_id, 1, reason="the worker was lost", max_attempts=3)
    assert take(store, run_id) == Claim(run_id, 2, shown(store, run_id).config)
    with store.write() as session:
        assert renew(session, run_id, 1, lease_seconds=60) == Renewal(owned=False, cancel_requested=False)
        assert started(session, run_id, 1) is False
        assert finish(session, run_id, 1, to=RunState.FAILED, reason="late") is False
        assert give_back(session, run_id, 1, reason="late", max_attempts=3) is RunState.STARTING
    run = shown(store, run_id)
    assert (run.state, run.attempt) == (RunState.STARTING, 2)


def test_nobody_renews_a_run_that_was_given_back(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        give_back(session, run_id, 1, reason="shutting down", max_attempts=3)
        assert renew(session, run_id, 1, lease_seconds=60).owned is False


def test_attempts_are_used_up(store: Store, run_id: int):
    states = []
    for attempt in (1, 2, 3):
        taken = take(store, run_id)
        assert taken is not None
        assert taken.attempt == attempt
        with store.write() as session:
            started(session, run_id, attempt)
            states.append(give_back(session, run_id, attempt, reason="killed", max_attempts=3, exit_signal=9))
    assert states == [RunState.QUEUED, RunState.QUEUED, RunState.FAILED]
    run = shown(store, run_id)
    assert (run.reason, run.exit_signal) == ("killed (attempt 3 of 3)", 9)
    assert take(store, run_id) is None


def test_a_run_that_was_to_be_cancelled_is_not_run_again(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        request_cancel(session, run_id, reason="enough")
        assert give_back(session, run_id, 1, reason="the worker was lost", max_attempts=3) is RunState.CANCELLED


def test_there_is_no_run_to_give_back(store: Store):
    with pytest.raises(LookupError, match="no run 77"), store.write() as session:
        give_back(session, 77, 1, reason="x", max_attempts=3)


def test_a_new_attempt_forgets_how_the_last_one_ended(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        give_back(session, run_id, 1, reason="killed", max_attempts=3, exit_code=1, exit_signal=9)
    take(store, run_id)
    run = shown(store, run_id)
    assert (run.exit_code, run.exit_signal) == (None, None)


def test_a_run_cannot_succeed_before_it_runs(store: Store, run_id: int):
    take(store, run_id)
    with store.write() as session:
        assert finish(session, run_id, 1, to=RunState.SUCCEEDED, reason="?") is False


def test_runs_wait_in_the_order_of_priority_and_age(store: Store, config: RunConfig):
    with store.write() as session:
        first, second, urgent = (create_run(session, config) for _ in range(3))
        session.execute(update(Run).where(Run.id == urgent).values(priority=1))
        assert waiting_runs(session) == [urgent, first, second]


def test_a_wait_that_ends_in_cancel_or_claim_has_one_winner(store: Store, config: RunConfig):
    def cancel(run_id: int) -> RunState | None:
        with store.write() as session:
            return request_cancel(session, run_id, reason="enough")

    for _ in range(10):
        with store.write() as session:
            run_id = create_run(session, config)
        with ThreadPoolExecutor(2) as pool:
            taken, cancelled = pool.submit(take, store, run_id), pool.submit(cancel, run_id)
        expected = RunState.CANCELLED if taken.result() is None else RunState.CANCELLING
        assert cancelled.result() is expected
        assert shown(store, run_id).state is expected
