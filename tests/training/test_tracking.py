"""The trackio mirror: what reaches trackio, and that its failure reaches nobody but the record."""

import sqlite3
import subprocess
import sys
from pathlib import Path

from training.config import RunConfig
from training.records import EvalRecord, EventRecord, PhaseRecord, StepRecord
from training.tracking import TrackioMirror

CONFIG = RunConfig.model_validate({"tracking": {"trackio": True, "trackio_project": "mirrored"}})
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
from tests.training.test_tracking import CONFIG, EVAL, STEPS, Kept
from training.tracking import TrackioMirror
inner = Kept()
mirror = TrackioMirror(inner, CONFIG, run_name="run-1", directory=Path(sys.argv[1]))
for record in [*STEPS, EVAL]:
    mirror.record(record)
mirror.close()
assert inner.records == [*STEPS, EVAL], inner.records
assert inner.closed
"""


def test_metrics_of_steps_and_evaluations_stand_in_the_trackio_project(tmp_path: Path):
    # a process of its own: trackio reads its directory once, when it is imported
    subprocess.run([sys.executable, "-c", MIRROR, str(tmp_path)], check=True, timeout=120)
    [database] = tmp_path.glob("mirrored*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select step, metrics from metrics order by step, id").fetchall()
    text = " ".join(str(row) for row in rows)
    assert [row[0] for row in rows] == [1, 2, 2]
    assert "0.1" in text
    assert "0.75" in text


def test_a_failing_mirror_warns_once_and_stops_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)  # its import fails
    inner = Kept()
    mirror = TrackioMirror(inner, CONFIG, run_name="run-1", directory=tmp_path)
    for record in STEPS:
        mirror.record(record)
    mirror.record(PhaseRecord(name="saving", time=0.0))
    mirror.close()
    warnings = [record for record in inner.records if isinstance(record, EventRecord)]
    assert [(w.level, w.code) for w in warnings] == [("warning", "trackio_failed")]
    assert [r for r in inner.records if isinstance(r, StepRecord)] == STEPS
    assert inner.closed
