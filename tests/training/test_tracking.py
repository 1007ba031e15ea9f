"""The trackio mirror: what reaches trackio, and that its failure reaches nobody but the record."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from training.config import RunConfig
from training.records import EvalRecord, EventRecord, PhaseRecord, StartRecord, StepRecord
from training.tracking import TrackioMirror

CONFIG = RunConfig.model_validate({"tracking": {"trackio": True, "trackio_project": "mirrored"}})
START = StartRecord(attempt=1, resumed_from_step=None, max_steps=2, time=0.0)
STEPS = [StepRecord(step=n, metrics={"reward": n / 10}, groups=[], time=0.0) for n in (1, 2)]
EVAL = EvalRecord(step=2, metrics={"eval_reward": 0.75}, time=0.0)


class Kept:
    """A recorder in memory."""

    def __init__(self) -> None:
        self.records, self.closed = [], False

    def record(self, record, *, images=None) -> None:
        assert images is None
        self.records.append(record)

    def close(self) -> None:
        self.closed = True


MIRROR = """
import sys
from pathlib import Path
from tests.training.test_tracking import CONFIG, EVAL, START, STEPS, Kept
from training.tracking import TrackioMirror
inner = Kept()
mirror = TrackioMirror(inner, CONFIG, run_name="run-1", directory=Path(sys.argv[1]))
mirror.record(START)
assert "trackio" in sys.modules  # loaded before the first step, which it would hold up
for record in [*STEPS, EVAL]:
    mirror.record(record)
mirror.close()
assert inner.records == [START, *STEPS, EVAL], inner.records
assert inner.closed
"""


def test_metrics_of_steps_and_evaluations_stand_in_the_trackio_project(tmp_path: Path):
    # a process of its own: trackio reads its directory once, when it is imported
    elsewhere = {"TRACKIO_SERVER_URL": "http://127.0.0.1:9/", "TRACKIO_DIR": str(tmp_path / "elsewhere")}
    subprocess.run(
        [sys.executable, "-c", MIRROR, str(tmp_path)], check=True, timeout=120, env={**os.environ, **elsewhere}
    )
    [database] = tmp_path.glob("mirrored*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select step, metrics from metrics order by step, id").fetchall()
    text = " ".join(str(row) for row in rows)
    assert [row[0] for row in rows] == [1, 2, 2]
    assert "0.1" in text
    assert "0.75" in text


def failing_trackio(at: str) -> ModuleType:
    """A trackio that works until `at`: init, log or finish."""

    def call(name: str) -> None:
        if name == at:
            raise OSError(f"{name} failed")

    class Run:
        def log(self, *_: object, **__: object) -> None:
            call("log")

        def finish(self) -> None:
            call("finish")

    def init(**_: object) -> Run:
        call("init")
        return Run()

    module = ModuleType("trackio")
    module.init = init  # pyright: ignore[reportAttributeAccessIssue]
    return module


def warnings_of_a_run(directory: Path) -> list[str]:
    """Mirrors a whole run; everything else must have reached the recorder.  Returns the messages of the warnings."""
    inner = Kept()
    mirror = TrackioMirror(inner, CONFIG, run_name="run-1", directory=directory)
    records = [START, *STEPS, EVAL, PhaseRecord(name="saving", time=0.0)]
    for record in records:
        mirror.record(record)
    mirror.close()
    warnings = [record for record in inner.records if isinstance(record, EventRecord)]
    assert [record for record in inner.records if record not in warnings] == records
    assert inner.closed
    assert {(warning.level, warning.code) for warning in warnings} <= {("warning", "trackio_failed")}
    return [warning.message for warning in warnings]


@pytest.mark.parametrize("at", ["init", "log", "finish"])
def test_a_failing_trackio_warns_once_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str):
    monkeypatch.setitem(sys.modules, "trackio", failing_trackio(at))
    monkeypatch.setenv("TRACKIO_DIR", "")  # put back after the test
    [message] = warnings_of_a_run(tmp_path)
    assert message == f"metrics are no longer mirrored to trackio: OSError('{at} failed')"


def test_without_trackio_a_run_is_recorded_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "trackio", None)  # its import fails
    monkeypatch.setenv("TRACKIO_DIR", "")
    assert len(warnings_of_a_run(tmp_path)) == 1


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    [message] = warnings_of_a_run(tmp_path / "file")
    assert "FileExistsError" in message
