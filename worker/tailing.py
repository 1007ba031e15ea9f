"""Follows the files that a training process writes: record lines into the store, output lines into its log."""

from pathlib import Path

from app.store import Store
from app.store.ingest import Cursor, cursor, ingest
from app.store.run_writes import add_log_lines
from training.recorder import record_files
from training.records import AnyRecord, ResultRecord, parse_record

CHUNK = 8 * 1024 * 1024
"""Bytes of records that go into one transaction."""


class RecordTail:
    """Stores new whole lines of all attempts' record files, in their order, each exactly once."""

    def __init__(self, store: Store, run_id: int, attempt: int, directory: Path) -> None:
        self._store, self._run_id, self._attempt, self._directory = store, run_id, attempt, directory
        with store.read() as session:
            self._cursor = cursor(session, run_id)
        self._known_images: set[str] = set()
        self.failure = ""

    def pump(self) -> None:
        """Store what is there.  Raises StaleAttempt when another attempt holds the run."""
        for file in record_files(self._directory):
            number = int(file.stem.removeprefix("attempt-"))
            if number < self._cursor.attempt_file or number > self._attempt:
                continue
            if number > self._cursor.attempt_file:
                self._cursor = Cursor(number, 0)
            while self._pump_chunk(file):
                pass

    def _pump_chunk(self, file: Path) -> bool:
        with file.open("rb") as lines:
            lines.seek(self._cursor.offset)
            chunk = lines.read(CHUNK)
            if len(chunk) == CHUNK and b"\n" not in chunk:
                chunk += lines.readline()
        whole = chunk[: chunk.rfind(b"\n") + 1]
        if not whole:
            return False
        records = [parse_record(line) for line in whole.splitlines()]
        self._put_images(records)
        end = Cursor(self._cursor.attempt_file, self._cursor.offset + len(whole))
        with self._store.write() as session:
            ingest(session, self._run_id, self._attempt, records, end, self._store.media)
        self._cursor = end
        if isinstance(records[-1], ResultRecord):
            self.failure = records[-1].message
        return True

    def _put_images(self, records: list[AnyRecord]) -> None:
        for record in records:
            for group in getattr(record, "groups", []):
                for image in group.sample.images:
                    if image.sha256 not in self._known_images:
                        self._store.media.put_file(self._directory / "images" / f"{image.sha256}.{image.format}")
                        self._known_images.add(image.sha256)


class OutputTail:
    """Stores new whole lines of one attempt's output."""

    def __init__(self, store: Store, run_id: int, attempt: int, file: Path) -> None:
        self._store, self._run_id, self._attempt, self._file = store, run_id, attempt, file
        self._offset = 0
        self.last_line = ""

    def pump(self, *, final: bool = False) -> None:
        """Store what is there; `final` takes a last line without its end too."""
        while self._pump_chunk(final=final):
            pass

    def _pump_chunk(self, *, final: bool) -> bool:
        with self._file.open("rb") as lines:
            lines.seek(self._offset)
            chunk = lines.read(CHUNK)
        end = chunk.rfind(b"\n") + 1
        if (final and len(chunk) < CHUNK) or (end == 0 and len(chunk) == CHUNK):
            end = len(chunk)
        if end == 0:
            return False
        texts = [_last_state(line) for line in chunk[:end].decode("utf-8", errors="replace").split("\n")]
        texts = [text for text in texts if text.strip()]
        with self._store.write() as session:
            add_log_lines(session, self._run_id, self._attempt, texts)
        self._offset += end
        self.last_line = texts[-1].strip() if texts else self.last_line
        return True


def _last_state(line: str) -> str:
    """Of a line that was written over and over, as progress bars do, what is seen in the end."""
    return line.rstrip("\r").rsplit("\r", 1)[-1]
