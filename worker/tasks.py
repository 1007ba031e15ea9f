"""The Celery task: it is given a run's id and nothing else."""

import os
from pathlib import Path

from celery import Celery
from celery.signals import worker_shutting_down

from app.queue import TASK, make_celery
from app.settings import read_settings, require_redis
from app.store import open_store
from worker.identity import owner
from worker.supervisor import execute

STOP_FILE = "VLMSCOPE_WORKER_STOP_FILE"
NAME = "VLMSCOPE_WORKER_NAME"


def stopping() -> bool:
    """Whether the worker shuts down: its main process cannot reach into a pool process otherwise."""
    return Path(os.environ[STOP_FILE]).exists()


def train(run_id: str) -> None:
    """Execute a waiting run; one that is not to be had, since the message was late or doubled, is left alone."""
    if stopping():
        return
    settings = read_settings()
    store = open_store(settings.database_url, settings.data_dir)  # after the fork: connections cannot be shared
    try:
        execute(store, settings, int(run_id), owner(os.environ[NAME]), stopping=stopping)
    finally:
        store.close()


def make_worker() -> Celery:
    """The application of a worker's pool, with the task and the hook that tells it to stop."""
    celery = make_celery(require_redis(read_settings()))
    celery.task(name=TASK)(train)
    worker_shutting_down.connect(_stop, weak=False)
    return celery


def _stop(**_: object) -> None:
    Path(os.environ[STOP_FILE]).touch()


def main() -> None:
    """Run the pool until a signal ends it."""
    make_worker().worker_main(
        ["worker", "--loglevel=INFO", "--without-gossip", "--without-mingle", f"--hostname={os.environ[NAME]}"]
    )


if __name__ == "__main__":
    main()
