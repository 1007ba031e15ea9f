"""However the parent ends, no process of its tree is left: looked up in /proc by the marker in their environment."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.processes import marked
from app.up.tree import MARKER
from tests.up.programs import program
from tests.up.waiting import until

# first, worker with its runner and its tied helper, last
TREE_SIZE = 5


def start_tree(folder: Path, mark: str, last: str = "serve") -> subprocess.Popen[bytes]:
    """A tree in a process group of its own, as a shell starts a command."""
    tree = subprocess.Popen(program("tree", folder, mark, last), process_group=0, stderr=subprocess.DEVNULL)
    assert until((folder / "tree.ready").exists)
    assert len(marked(MARKER, mark)) == TREE_SIZE
    return tree


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_to_the_process_group_ends_everything_in_order(
    number: signal.Signals, tmp_path: Path, mark: str
) -> None:
    tree = start_tree(tmp_path, mark)
    os.killpg(tree.pid, number)  # what the terminal's Ctrl-C does
    assert tree.wait(timeout=20) == 0
    assert marked(MARKER, mark) == []
    ends = (tmp_path / "journal").read_text().splitlines()
    assert sorted(ends[:2]) == ["last ended", "worker ended"]
    assert ends[2:] == ["first ended"]


def test_second_signal_ends_a_stubborn_tree_at_once(tmp_path: Path, mark: str) -> None:
    tree = start_tree(tmp_path, mark, last="stubborn")
    tree.send_signal(signal.SIGINT)
    assert until(lambda: "worker ended" in _journal(tmp_path))
    with pytest.raises(subprocess.TimeoutExpired):
        tree.wait(timeout=0.5)
    tree.send_signal(signal.SIGINT)
    assert tree.wait(timeout=5) == 0
    assert marked(MARKER, mark) == []


def test_kill_of_the_parent_leaves_no_process(tmp_path: Path, mark: str) -> None:
    tree = start_tree(tmp_path, mark)
    tree.kill()
    tree.wait()
    assert until(lambda: not marked(MARKER, mark), seconds=10)
    assert not (tmp_path / "journal").exists()  # nobody was asked: the kernel did it


def test_signal_during_the_start_ends_everything(tmp_path: Path, mark: str) -> None:
    tree = subprocess.Popen(program("tree", tmp_path, mark, "mute"), stderr=subprocess.DEVNULL)
    assert until((tmp_path / "worker.ready").exists)
    tree.send_signal(signal.SIGINT)
    assert tree.wait(timeout=20) == 0
    assert marked(MARKER, mark) == []


def _journal(folder: Path) -> str:
    path = folder / "journal"
    return path.read_text() if path.exists() else ""
