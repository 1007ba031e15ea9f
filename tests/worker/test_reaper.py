"""Which runs are taken from their holders, and for which a worker rings."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.queue import Queue
from app.store import RunState
from app.store.run_writes import Owner, claim, create_run, request_cancel
from tests.worker.conftest import shown
from training.config import RunConfig
from worker.child import ATTEMPT_MARKER
from worker.identity import boot_id, owner, start_time
from worker.reaper import reap, ring_for_waiting


def held_by(store, run_id: int, holder: Owner, *, lease: float = 60) -> None:
    with store.write() as session:
        assert claim(session, run_id, owner=holder, lease_seconds=lease) is not None


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a process that has nothing to do with any run."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid


def test_a_living_holder_keeps_its_run(store, settings, run_id):
    held_by(store, run_id, owner("w"))
    assert reap(store, settings.runs_dir) == []


def test_a_holder_whose_pid_is_another_processs_now_has_died(store, settings, run_id, stranger):
    held_by(store, run_id, replace(owner("w"), pid=stranger, pid_started=1.0))
    assert reap(store, settings.runs_dir) == [run_id]
    assert shown(store, run_id).reason == "its worker process died (attempt 1 of 20)"
    assert start_time(stranger) is not None


def test_a_holder_of_before_the_restart_of_the_machine_has_died(store, settings, run_id):
    held_by(store, run_id, replace(owner("w"), boot_id=f"another{boot_id()}"))
    assert reap(store, settings.runs_dir) == [run_id]


@pytest.mark.parametrize("unknown", ["", f"{boot_id().partition('/')[0]}/pid:[1]"], ids=["no /proc", "container"])
def test_a_holder_of_which_nothing_can_be_known_keeps_its_run_until_the_lease_is_over(
    store, settings, run_id, stranger, unknown
):
    held_by(store, run_id, replace(owner("w"), pid=stranger, pid_started=1.0, boot_id=unknown), lease=1)
    assert reap(store, settings.runs_dir) == []
    time.sleep(1.1)
    assert reap(store, settings.runs_dir) == [run_id]


def test_another_hosts_run_is_taken_when_its_lease_is_over(store, settings, run_id):
    held_by(store, run_id, Owner("w", "elsewhere", pid=1, pid_started=1.0, boot_id="another"), lease=1)
    assert reap(store, settings.runs_dir) == []
    time.sleep(1.1)
    assert reap(store, settings.runs_dir) == [run_id]
    assert shown(store, run_id).reason.startswith("its worker was not heard of")


def test_what_a_dead_supervisor_left_running_is_ended_before_the_run_waits_again(store, settings, run_id, stranger):
    held_by(store, run_id, replace(owner("w"), pid=stranger, pid_started=1.0))
    environment = {**os.environ, ATTEMPT_MARKER: f"1:{settings.runs_dir / str(run_id)}"}
    program = [sys.executable, "-c", "print(flush=True); input()"]
    orphan = subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert orphan.stdout is not None
    orphan.stdout.readline()
    reap(store, settings.runs_dir)
    assert orphan.wait(5) == -9


class Bell(Queue):
    """Keeps the ids that it is to ring for."""

    def __init__(self) -> None:
        super().__init__(None)
        self.rung: list[int] = []

    def ring(self, run_id: int) -> bool:
        self.rung.append(run_id)
        return True


def test_a_worker_rings_for_a_waiting_run_unless_it_has_one_itself(store, run_id):
    with store.write() as session:
        second = create_run(session, RunConfig())
    bell = Bell()
    ring_for_waiting(store, bell, "w")
    held_by(store, run_id, owner("w"))
    ring_for_waiting(store, bell, "w")
    assert bell.rung == [run_id]
    ring_for_waiting(store, bell, "another worker of this host")
    assert bell.rung == [run_id, second]


def test_a_cancelled_run_whose_holder_has_died_does_not_wait_again(store, settings, run_id, stranger):
    held_by(store, run_id, replace(owner("w"), pid=stranger, pid_started=1.0))
    with store.write() as session:
        request_cancel(session, run_id, reason="enough")
    assert reap(store, settings.runs_dir) == []
    assert shown(store, run_id).state is RunState.CANCELLED
