"""Small real programs for process tests: run as `python -m tests.up.programs NAME ARGS`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from app.processes import tied_to_parent
from app.up.child import Service
from app.up.console import Console
from app.up.interrupts import Interrupts
from app.up.tree import MARKER, Interrupted, Tree

ENDLESS = 300  # seconds; a test that fails must not leave a process for ever


def program(*arguments: object) -> tuple[str, ...]:
    """The command line of one of these programs."""
    return (sys.executable, "-m", "tests.up.programs", *map(str, arguments))


def service(name: str, folder: Path, mark: str, *arguments: object, stop_seconds: float = 10.0) -> Service:
    """A service that runs a program; it is ready when the file `NAME.ready` is there."""
    return Service(
        name=name,
        argv=program(*(arguments or ("serve", folder, name))),
        ready=lambda _pid: (folder / f"{name}.ready").exists(),
        environment={MARKER: mark},
        stop_seconds=stop_seconds,
    )


def serve(folder: str, name: str) -> None:
    """Gets ready, and ends at SIGTERM with a line in the journal."""

    def end(*_: object) -> None:
        with (Path(folder) / "journal").open("a") as journal:
            journal.write(f"{name} ended\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    (Path(folder) / f"{name}.ready").write_text(str(os.getpid()))
    time.sleep(ENDLESS)


def stubborn(folder: str, name: str) -> None:
    """Ignores SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (Path(folder) / f"{name}.ready").touch()
    time.sleep(ENDLESS)


def mute(*_: str) -> None:
    """Never gets ready."""
    time.sleep(ENDLESS)


def crash(code: str) -> None:
    sys.stdout.write("the reason of the crash\n")
    sys.exit(int(code))


def crash_once(folder: str, name: str) -> None:
    """Crashes at its first start and serves from the second on."""
    crashed = Path(folder) / "crashed"
    if not crashed.exists():
        (Path(folder) / f"{name}.ready").touch()
        crashed.touch()
        crash("3")
    serve(folder, name)


def launcher(folder: str, name: str) -> None:
    """A worker's shape: its child has a session of its own, ends when its death pipe closes, and has a tied helper."""
    read_end, _write_end = os.pipe()
    subprocess.Popen(program("runner", folder, read_end), pass_fds=[read_end], start_new_session=True)
    os.close(read_end)
    subprocess.Popen(tied_to_parent(program("stubborn", folder, "helper")), start_new_session=True)
    while not all((Path(folder) / f"{part}.ready").exists() for part in ("runner", "helper")):
        time.sleep(0.02)
    serve(folder, name)


def runner(folder: str, death_pipe: str) -> None:
    (Path(folder) / "runner.ready").touch()
    os.read(int(death_pipe), 1)


def parent(folder: str) -> None:
    """Starts a tied child and waits."""
    subprocess.Popen(tied_to_parent(program("stubborn", folder, "tied")), start_new_session=True)
    time.sleep(ENDLESS)


def tree(folder: str, mark: str, last: str) -> None:
    """What `vlmscope up` does, with small programs in place of broker, worker and web server."""
    root = Path(folder)
    interrupts = Interrupts()
    stages = [
        [service("first", root, mark)],
        [service("worker", root, mark, "launcher", root, "worker"), service("last", root, mark, last, root, "last")],
    ]
    running = Tree(stages, root / "logs", mark, Console(), interrupts)
    try:
        running.start()
        (root / "tree.ready").touch()
        while not interrupts.stop:
            running.tick()
            time.sleep(0.02)
    except Interrupted:
        pass
    finally:
        running.stop()


PROGRAMS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (serve, stubborn, mute, crash, crash_once, launcher, runner, parent, tree)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
