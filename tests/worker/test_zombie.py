"""A supervisor that is frozen for longer than its lease, and wakes up when another has taken its place."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

from sqlalchemy import make_url

from app.processes import marked
from app.store import RunState
from tests.worker.conftest import EVERY_TEXT, reasons, shown, texts
from tests.worker.waiting import wait_for
from worker.child import MARKER
from worker.reaper import reap


def freeze(process: subprocess.Popen, database: str) -> None:
    """Stop a process, but not in the middle of a write: SQLite's one lock would be frozen with it."""
    for _ in range(100):
        process.send_signal(signal.SIGSTOP)
        with closing(sqlite3.connect(database, timeout=0.05, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
        time.sleep(0.02)
    raise AssertionError("the process is always writing")


def test_a_supervisor_that_wakes_up_too_late_disturbs_nothing(supervise, store, settings, run_id):
    argv = [sys.executable, "-m", "tests.worker.supervisor_program", str(run_id), "2", "slower"]
    zombie = subprocess.Popen(argv, env={**os.environ, **settings.environment()}, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: shown(store, run_id).step >= 1)
        freeze(zombie, make_url(settings.database_url).database)
        wait_for(lambda: reap(store, settings.runs_dir) == [run_id])
        assert any("its worker was not heard of" in reason for reason in reasons(store, run_id))
        assert not marked(MARKER, str(settings.runs_dir / str(run_id)))
        ended = []
        thread = threading.Thread(target=lambda: ended.append(supervise("slow")))
        thread.start()
        wait_for(lambda: shown(store, run_id).attempt == 2 and shown(store, run_id).step >= 2)
        zombie.send_signal(signal.SIGCONT)
        output, _ = zombie.communicate(timeout=30)
        thread.join(30)
    finally:
        zombie.kill()  # one that is still frozen would never end
        zombie.wait()
    assert output == "None"
    assert ended == [RunState.SUCCEEDED]
    assert shown(store, run_id).attempt == 2
    assert texts(store, run_id) == EVERY_TEXT
