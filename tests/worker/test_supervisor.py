"""One run under its supervisor: how it ends in each case, and that its records are stored once each."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.processes import marked
from app.store import RunState
from app.store.queries.logs import log_lines
from app.store.run_writes import claim, owned_runs, request_cancel
from tests.worker.conftest import EVERY_TEXT, FAST, reasons, shown, texts
from tests.worker.waiting import wait_for
from worker.child import MARKER
from worker.identity import owner
from worker.supervisor import execute


def test_a_run_trains_to_its_end_and_all_its_records_are_stored(supervise, store, run_id):
    assert supervise() is RunState.SUCCEEDED
    run = shown(store, run_id)
    assert (run.state, run.step, run.attempt, run.exit_code) == (RunState.SUCCEEDED, 6, 1, 0)
    assert texts(store, run_id) == EVERY_TEXT


def test_the_childs_output_reaches_the_log(supervise, store, run_id):
    supervise()
    with store.read() as session:
        lines = [line.text for line in log_lines(session, run_id)]
    assert lines == ["attempt 1 from step 0", *(f"step {n}" for n in range(1, 7))]


def test_a_doubled_message_changes_nothing(supervise, store, run_id):
    supervise()
    assert supervise() is None
    assert shown(store, run_id).attempt == 1
    assert texts(store, run_id) == EVERY_TEXT


def test_a_run_that_another_holds_is_left_alone(supervise, store, run_id):
    with store.write() as session:
        assert claim(session, run_id, owner=owner("other"), lease_seconds=60) is not None
    assert supervise() is None


@pytest.mark.parametrize("code", [1, 2])
def test_a_fault_of_the_run_ends_it_with_its_own_message(supervise, store, run_id, code):
    assert supervise(f"exit{code}@3") is RunState.FAILED
    run = shown(store, run_id)
    assert run.reason == f"training failed (exit code {code}): the data is wrong"
    assert run.exit_code == code
    assert len(texts(store, run_id)) == 3 * 4


def test_a_killed_child_is_tried_again_and_nothing_is_lost_or_doubled(supervise, store, run_id):
    assert supervise("kill@3") is RunState.QUEUED
    assert "killed by SIGKILL" in shown(store, run_id).reason
    assert supervise("kill@3") is RunState.SUCCEEDED
    assert shown(store, run_id).attempt == 2
    assert texts(store, run_id) == EVERY_TEXT


def test_what_a_child_that_records_nothing_said_last_is_the_reason(supervise, store, run_id):
    assert supervise("silent") is RunState.FAILED
    assert shown(store, run_id).reason == "training failed (exit code 1): no model of that name"


def test_a_run_that_is_killed_three_times_without_a_checkpoint_has_failed(supervise, store, run_id):
    assert [supervise("stumble@1") for _ in range(3)] == [RunState.QUEUED, RunState.QUEUED, RunState.FAILED]
    assert shown(store, run_id).reason.endswith("(attempt 3 of 3)")


def test_a_run_that_gets_on_may_be_killed_more_often(supervise, store, run_id):
    ends = [supervise("stumble@2") for _ in range(4)]
    assert ends == [RunState.QUEUED, RunState.QUEUED, RunState.QUEUED, RunState.SUCCEEDED]
    assert texts(store, run_id) == EVERY_TEXT


def test_a_failure_of_the_worker_itself_is_told_and_tried_again(store, settings, run_id):
    def attempt() -> RunState | None:
        missing = [str(settings.data_dir / "missing")]
        return execute(
            store, settings, run_id, owner("w"), stopping=lambda: False, command=lambda *_: missing, timing=FAST
        )

    assert [attempt() for _ in range(3)] == [RunState.QUEUED, RunState.QUEUED, RunState.FAILED]
    assert shown(store, run_id).reason.startswith("the worker failed: FileNotFoundError")
    assert any(text.startswith("Traceback") for text in reasons(store, run_id))


def test_a_child_that_is_stopped_from_outside_goes_on_in_the_next_attempt(supervise, store, settings, run_id):
    ended = []
    thread = threading.Thread(target=lambda: ended.append(supervise("slow")))
    thread.start()
    wait_for(lambda: shown(store, run_id).step >= 1)
    [child] = marked(MARKER, str(settings.runs_dir / str(run_id)))
    os.kill(child, signal.SIGTERM)
    thread.join(20)
    assert ended == [RunState.QUEUED]
    assert shown(store, run_id).reason.startswith("the training process was told to stop from outside")
    assert supervise() is RunState.SUCCEEDED
    assert texts(store, run_id) == EVERY_TEXT


def test_the_lease_is_renewed_while_the_child_trains(supervise, store, settings, run_id):
    thread = threading.Thread(target=supervise, args=["slow"])
    thread.start()
    leases = set()

    def renewed() -> bool:
        with store.read() as session:
            leases.update(run.lease_expires_at for run in owned_runs(session))
        return len(leases) >= 3

    wait_for(renewed)
    [child] = marked(MARKER, str(settings.runs_dir / str(run_id)))
    environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    assert b"OMP_WAIT_POLICY=PASSIVE" in environment
    thread.join(20)


def test_cancel_stops_the_child_after_a_checkpoint(supervise, store, settings, run_id):
    ended = []
    thread = threading.Thread(target=lambda: ended.append(supervise("slow")))
    thread.start()
    wait_for(lambda: shown(store, run_id).step >= 1)
    with store.write() as session:
        assert request_cancel(session, run_id, reason="enough") is RunState.CANCELLING
    thread.join(20)
    assert ended == [RunState.CANCELLED]
    assert shown(store, run_id).exit_code == 75
    assert not marked(MARKER, str(settings.runs_dir / str(run_id)))


def test_a_child_that_ignores_the_request_is_killed_after_the_grace(supervise, store, settings, run_id):
    ended = []
    thread = threading.Thread(target=lambda: ended.append(supervise("deaf")))
    thread.start()
    wait_for(lambda: shown(store, run_id).step >= 1)
    with store.write() as session:
        request_cancel(session, run_id, reason="enough")
    thread.join(20)
    assert ended == [RunState.CANCELLED]
    assert not marked(MARKER, str(settings.runs_dir / str(run_id)))


def test_a_worker_that_shuts_down_hands_the_run_back_and_the_next_goes_on(supervise, store, run_id):
    assert supervise("slow", stopping=lambda: shown(store, run_id).step >= 2) is RunState.QUEUED
    assert shown(store, run_id).reason.startswith("handed back by a worker that shut down")
    assert supervise() is RunState.SUCCEEDED
    assert texts(store, run_id) == EVERY_TEXT


def test_the_supervisor_never_loads_torch():
    code = "import sys, worker.tasks, worker.host; print([m for m in ('torch', 'gradio') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert output.stdout.strip() == "[]"
