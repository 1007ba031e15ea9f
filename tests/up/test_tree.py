"""The tree's services: order, readiness, restart, end."""

import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.processes import marked
from app.up.child import Child, Service
from app.up.console import Console
from app.up.interrupts import Interrupts
from app.up.tree import MARKER, Interrupted, StartFailed, Tree
from tests.up.programs import service
from tests.up.waiting import until


class Asked(Interrupts):
    """Interrupts without signal handlers."""

    def __init__(self) -> None:
        self.count = 0


class Running:
    """A tree whose output can be read, stopped at the test's end."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.output = io.StringIO()
        self.interrupts = Asked()
        self.trees: list[Tree] = []

    def tree(self, *stages: list[Service]) -> Tree:
        tree = Tree(stages, self.folder / "logs", self.mark, Console(self.output), self.interrupts)
        self.trees.append(tree)
        return tree

    def service(self, name: str, *arguments: object, stop_seconds: float = 10.0) -> Service:
        return service(name, self.folder, self.mark, *arguments, stop_seconds=stop_seconds)


@pytest.fixture
def running(tmp_path: Path, mark: str) -> Iterator[Running]:
    running = Running(tmp_path, mark)
    yield running
    running.interrupts.count = 2
    for tree in running.trees:
        tree.stop()


def test_a_stage_starts_when_the_one_before_is_ready_and_stops_before_it(running: Running, tmp_path: Path) -> None:
    tree = running.tree([running.service("one")], [running.service("two")])
    tree.start()
    assert (tmp_path / "one.ready").stat().st_mtime_ns < (tmp_path / "two.ready").stat().st_mtime_ns
    tree.stop()
    assert (tmp_path / "journal").read_text() == "two ended\none ended\n"
    assert running.output.getvalue() == ""


def test_service_that_ends_before_it_is_ready_fails_the_start_with_its_last_words(running: Running) -> None:
    tree = running.tree([running.service("web", "crash", 4)])
    with pytest.raises(StartFailed) as failed:
        tree.start()
    message = str(failed.value)
    assert "web ended with code 4" in message
    assert "the reason of the crash" in message
    assert "logs/web.log" in message


def test_service_that_never_gets_ready_fails_the_start(running: Running, tmp_path: Path) -> None:
    slow = Service(
        "slow", running.service("slow").argv, lambda _pid: False, environment={MARKER: running.mark}, start_seconds=0.2
    )
    with pytest.raises(StartFailed, match="slow was not ready after 0 s"):
        running.tree([slow]).start()


def test_interrupt_during_the_start_ends_the_wait(running: Running) -> None:
    running.interrupts.count = 1
    with pytest.raises(Interrupted):
        running.tree([running.service("one")]).start()


def test_crashed_service_starts_again_with_a_message(running: Running, tmp_path: Path) -> None:
    tree = running.tree([running.service("web", "crash_once", tmp_path, "web")])
    tree.start()

    def back() -> bool:
        tree.tick()
        return (tmp_path / "web.ready").read_text() != ""

    assert until(back)
    assert running.output.getvalue() == (
        f"web ended with code 3; its output is in {tmp_path}/logs/web.log\n    the reason of the crash\n"
        "web starts again in 1 s\n"
    )


def test_killed_service_is_named_with_the_signal(running: Running, tmp_path: Path) -> None:
    tree = running.tree([running.service("web")])
    tree.start()
    [[child]] = tree.stages
    child.kill()
    tree.tick()
    assert "web was killed by signal 9 (Killed)" in running.output.getvalue()


def test_delay_before_a_restart_doubles_up_to_half_a_minute(running: Running, tmp_path: Path) -> None:
    child = Child(running.service("web", "crash", 1), tmp_path / "web.log")
    child.start()
    assert until(lambda: not child.running())
    child.collect()
    assert [child.schedule_restart() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_service_that_ignores_the_request_to_stop_is_killed_after_its_time(running: Running, tmp_path: Path) -> None:
    tree = running.tree([running.service("web", "stubborn", tmp_path, "web", stop_seconds=0.3)])
    tree.start()
    tree.stop()
    assert running.output.getvalue() == "web did not stop within 0 s: killed\n"
    assert marked(MARKER, running.mark) == []


def test_second_interrupt_waits_for_nobody(running: Running, tmp_path: Path) -> None:
    tree = running.tree([running.service("web", "stubborn", tmp_path, "web", stop_seconds=60)])
    tree.start()
    running.interrupts.count = 2
    began = time.monotonic()
    tree.stop()
    assert time.monotonic() - began < 5
    assert marked(MARKER, running.mark) == []


def test_output_of_all_starts_is_kept_and_a_large_log_is_set_aside(running: Running, tmp_path: Path) -> None:
    child = Child(running.service("web", "crash", 1), tmp_path / "web.log")
    for _ in range(2):
        child.start()
        assert until(lambda: not child.running())
        child.collect()
    assert (tmp_path / "web.log").read_text() == "the reason of the crash\n" * 2
    with (tmp_path / "web.log").open("ab") as log:
        log.truncate(30_000_000)
    child.start()
    assert until(lambda: not child.running())
    child.kill()
    assert (tmp_path / "web.log").read_text() == "the reason of the crash\n"
    assert (tmp_path / "web.old.log").stat().st_size == 30_000_000
