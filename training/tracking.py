"""An optional mirror of the scalar metrics in a local trackio project; it never stops a run."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from training.config import RunConfig
from training.recorder import Recorder
from training.records import AnyRecord, EvalRecord, EventRecord, StartRecord, StepRecord

_REMOTE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_WEBHOOK_URL")
"""Variables by which trackio would send the metrics elsewhere: this mirror is a local one."""


class TrackioMirror:
    """Forwards every record to `inner`; logs the metrics of steps and evaluations to trackio besides.

    trackio takes a second to load, which it does when the run starts, and then writes from a thread of its own.
    The first failure is recorded as one warning, and the mirror is off from then on.
    """

    def __init__(self, inner: Recorder, config: RunConfig, *, run_name: str, directory: Path) -> None:
        self._inner = inner
        self._run: Any = None
        self._off = False
        self._config = config
        self._name = run_name
        self._directory = directory

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        self._inner.record(record, images=images)
        if isinstance(record, StartRecord):
            self._mirror(self._open)
        elif isinstance(record, StepRecord | EvalRecord):
            self._mirror(lambda: self._open().log(dict(record.metrics), step=record.step))

    def close(self) -> None:
        if self._run is not None:
            self._mirror(lambda: self._run.finish())
        self._inner.close()

    def _open(self) -> Any:
        if self._run is None:
            self._directory.mkdir(parents=True, exist_ok=True)  # trackio itself would only print that it cannot
            os.environ["TRACKIO_DIR"] = str(self._directory)  # read when trackio is imported
            for name in _REMOTE:
                os.environ.pop(name, None)
            import trackio

            project = self._config.tracking.trackio_project or self._config.project
            self._run = trackio.init(
                project=project,
                name=self._name,
                config=self._config.model_dump(mode="json"),
                resume="allow",
                embed=False,
            )
        return self._run

    def _mirror(self, action: Callable[[], object]) -> None:
        if self._off:
            return
        try:
            action()
        except Exception as error:  # an optional mirror: whatever goes wrong in it is not the run's affair
            self._off = True
            message = f"metrics are no longer mirrored to trackio: {error!r}"
            self._inner.record(EventRecord(level="warning", code="trackio_failed", message=message, time=time.time()))
