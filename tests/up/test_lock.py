"""One `vlmscope up` per data directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.up.lock import AlreadyRunning, lock
from tests.up.waiting import until

HOLD = """
import sys, time
from pathlib import Path
from app.up.lock import lock
with lock(Path(sys.argv[1]), address="http://127.0.0.1:7777"):
    Path(sys.argv[1], "held").touch()
    time.sleep(300)
"""


def test_second_holder_is_refused_with_who_holds_it_and_the_remedy(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)])
    assert until((tmp_path / "held").exists)
    with pytest.raises(AlreadyRunning) as refused, lock(tmp_path, address=""):
        pass
    for part in (str(tmp_path), f"process {holder.pid}", "http://127.0.0.1:7777", "--data-dir DIR --port PORT"):
        assert part in str(refused.value)
    holder.kill()
    holder.wait()
    with lock(tmp_path, address="here"):
        assert "here" in (tmp_path / "up.lock").read_text()


def test_lock_is_free_after_the_block_and_makes_the_directory(tmp_path: Path) -> None:
    for _ in range(2):
        with lock(tmp_path / "new" / "data", address=""):
            pass
