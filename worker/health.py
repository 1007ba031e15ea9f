"""Health check of a container: `python -m worker.health` exits 0 when a worker of this host was heard of lately."""

import socket
import sys
from datetime import timedelta

from sqlalchemy.orm import Session

from app.settings import read_settings
from app.store import open_store
from app.store.clock import now
from app.store.queries.workers import list_workers

# several heartbeats, so that one that is late does not count as a dead worker
SILENCE = timedelta(seconds=60)


def alive(session: Session, host: str) -> bool:
    """Whether a worker of that host was heard of within SILENCE."""
    since = now(session) - SILENCE
    return any(worker.host == host and worker.last_seen >= since for worker in list_workers(session))


def main() -> int:
    """0 when alive, else 1.  Raises where the database does not answer, which ends the check with 1 too."""
    settings = read_settings()
    store = open_store(settings.database_url, settings.data_dir)
    try:
        with store.read() as session:
            return 0 if alive(session, socket.gethostname()) else 1
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
