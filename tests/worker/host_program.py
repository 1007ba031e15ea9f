"""`vlmscope worker`, whose pool starts the small child program in the place of the trainer."""

import sys

from app.settings import read_settings
from tests.worker.conftest import command
from worker import host, supervisor, tasks


def main() -> int:
    if sys.argv[1:] == ["pool"]:
        supervisor.execute.__kwdefaults__["command"] = command("slow")
        tasks.main()
        return 0
    host.POOL = ("tests.worker.host_program", "pool")
    return host.run_host(read_settings())


if __name__ == "__main__":
    sys.exit(main())
