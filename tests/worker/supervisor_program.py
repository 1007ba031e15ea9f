"""One supervisor in a process of its own, to be frozen: argv is the run's id, the seconds of a lease, then faults."""

import sys
from dataclasses import replace

from app.settings import read_settings
from app.store import open_store
from tests.worker.conftest import FAST, command
from worker.identity import owner
from worker.supervisor import execute


def main() -> int:
    run_id, lease, *faults = sys.argv[1:]
    settings = read_settings()
    store = open_store(settings.database_url, settings.data_dir)
    timing = replace(FAST, lease=float(lease))
    end = execute(
        store, settings, int(run_id), owner("z"), stopping=lambda: False, command=command(*faults), timing=timing
    )
    sys.stdout.write(str(end))
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
