"""Tied processes and the sweep by marker."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.processes import kill_marked, marked, tied_to_parent
from app.up.tree import MARKER
from tests.up.programs import program
from tests.up.waiting import until


def start(mark: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(program(*arguments), env={**os.environ, MARKER: mark})


def test_tied_child_runs_the_command_with_its_arguments_and_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a b", "--flag", ""]
    done = subprocess.run(tied_to_parent(command), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "['a b', '--flag', '']\n")


def test_tied_child_dies_with_a_killed_parent_although_it_has_its_own_session(tmp_path: Path, mark: str) -> None:
    parent = start(mark, "parent", tmp_path)
    assert until((tmp_path / "tied.ready").exists)
    assert len(marked(MARKER, mark)) == 2
    parent.kill()
    parent.wait()
    assert until(lambda: not marked(MARKER, mark), seconds=5)


def test_tied_child_does_not_start_when_its_parent_is_gone_already() -> None:
    someone_else = 1
    command = tied_to_parent([sys.executable, "-c", "print('started')"])
    assert command[4] == str(os.getpid())
    command[4] = str(someone_else)
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_death_signal_can_be_one_that_lets_the_child_clean_up() -> None:
    show = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    command = tied_to_parent([sys.executable, "-c", show], death_signal=signal.SIGTERM)
    assert subprocess.run(command, capture_output=True, text=True).stdout == "15\n"


def test_other_threads_may_not_tie_a_child_to_themselves() -> None:
    refusals: list[str] = []

    def ask() -> None:
        with pytest.raises(RuntimeError, match="main thread") as refused:
            tied_to_parent(["true"])
        refusals.append(str(refused.value))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(refusals) == 1


def test_sweep_kills_what_left_its_session_and_spares_everyone_else(tmp_path: Path, mark: str) -> None:
    (tmp_path / "other").mkdir()
    ours = start(mark, "parent", tmp_path)
    stranger = start(f"{mark}-longer", "stubborn", tmp_path / "other", "stranger")
    assert until(lambda: (tmp_path / "tied.ready").exists() and (tmp_path / "other" / "stranger.ready").exists())
    assert kill_marked(MARKER, mark, spare=[ours.pid]) == 1
    assert ours.poll() is None
    assert kill_marked(MARKER, mark) == 1
    assert ours.wait() == -signal.SIGKILL
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_sweep_finds_nothing_where_nothing_is_marked(tmp_path: Path) -> None:
    assert marked(MARKER, str(tmp_path)) == []
    assert kill_marked(MARKER, str(tmp_path)) == 0
