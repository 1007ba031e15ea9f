"""The worker of a host: announces itself, keeps a Celery pool alive, gives lost runs back."""

import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from app.processes import tied_to_parent
from app.queue import Queue
from app.settings import Settings
from app.store import Store, open_store
from app.store.worker_writes import beat, register_worker
from worker.devices import devices, versions
from worker.reaper import reap, ring_for_waiting
from worker.tasks import NAME, STOP_FILE

_log = logging.getLogger(__name__)
POOL = ("worker.tasks",)
"""Module and arguments of the pool's process."""
BEAT_SECONDS, REAP_SECONDS, RING_SECONDS, RESTART_SECONDS = 5.0, 1.0, 5.0, 2.0


def run_host(settings: Settings) -> int:
    """Execute queued runs until SIGTERM or SIGINT; a run under way is handed back after a checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    store = open_store(settings.database_url, settings.data_dir)
    try:
        _Host(settings, store, stop).run()
    finally:
        store.close()
    return 0


class _Host:
    def __init__(self, settings: Settings, store: Store, stop: threading.Event) -> None:
        self._settings, self._store, self._stop = settings, store, stop
        self._queue = Queue(settings.redis_url)
        self._name = f"vlmscope@{socket.gethostname()}-{secrets.token_hex(3)}"
        self._stop_file = settings.data_dir / "workers" / f"{self._name}.stop"

    def run(self) -> None:
        self._stop_file.parent.mkdir(parents=True, exist_ok=True)
        with self._store.write() as session:
            host = socket.gethostname()
            register_worker(session, self._name, host, os.getpid(), versions(), devices())
        pool = self._start_pool()
        due = dict.fromkeys((self._beat, self._reap, self._ring), 0.0)
        periods = {self._beat: BEAT_SECONDS, self._reap: REAP_SECONDS, self._ring: RING_SECONDS}
        while not self._stop.wait(0.2):
            if pool.poll() is not None:
                _log.warning("the pool ended with code %s and is started again", pool.returncode)
                self._stop.wait(RESTART_SECONDS)
                pool = self._start_pool()
            for duty, period in periods.items():
                if time.monotonic() >= due[duty]:
                    self._try(duty)
                    due[duty] = time.monotonic() + period
        self._end(pool)

    def _try(self, duty: Callable[[], None]) -> None:
        try:
            duty()
        except OperationalError as error:
            _log.warning("the database does not answer: %s", error)

    def _beat(self) -> None:
        with self._store.write() as session:
            beat(session, self._name)

    def _reap(self) -> None:
        for run_id in reap(self._store, self._settings.runs_dir):
            _log.warning("run %s has lost its worker and waits again", run_id)
            self._queue.ring(run_id)

    def _ring(self) -> None:
        ring_for_waiting(self._store, self._queue, self._name)

    def _start_pool(self) -> subprocess.Popen[bytes]:
        """Celery, told by SIGTERM to shut down warmly should this process die."""
        command = tied_to_parent([sys.executable, "-m", *POOL], death_signal=signal.SIGTERM)
        variables = {**self._settings.environment(), NAME: self._name, STOP_FILE: str(self._stop_file)}
        return subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True)

    def _end(self, pool: subprocess.Popen[bytes]) -> None:
        """Warm shutdown: the pool waits for its run, which stops after a checkpoint."""
        self._stop_file.touch()
        if pool.poll() is None:
            pool.send_signal(signal.SIGTERM)
            pool.wait()
        self._stop_file.unlink(missing_ok=True)
