"""Where a run's records go: the Recorder protocol, and the file recorder that every run uses."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from training.records import AnyRecord


class Recorder(Protocol):
    """Takes records in order.  A call returns when the record is safe from a crash of this process."""

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        """Keep a record; `images` maps the sha256 of each image that it mentions to the original bytes."""
        ...

    def close(self) -> None: ...


class NullRecorder:
    """Keeps nothing."""

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        del record, images

    def close(self) -> None:
        pass


def record_files(directory: Path) -> list[Path]:
    """The record files of a run, oldest attempt first."""
    return sorted((directory / "records").glob("attempt-*.jsonl"))


class FileRecorder:
    """Appends JSON lines to `DIR/records/attempt-NNNN.jsonl` and writes images by content hash, fsynced per record."""

    def __init__(self, directory: Path, *, attempt: int) -> None:
        self.directory = directory
        self._images = ImageRecorder(directory)
        (directory / "records").mkdir(exist_ok=True)
        self.path = directory / "records" / f"attempt-{attempt:04d}.jsonl"
        self._file = self.path.open("xb")

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        """Write the images first, then the line: a line never names an image that is not there."""
        self._images.record(record, images=images)
        self._file.write(record.model_dump_json().encode("utf-8", errors="replace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class ImageRecorder:
    """Writes the images of records to `DIR/images/<sha256>.<format>` and nothing else: for all processes but one."""

    def __init__(self, directory: Path) -> None:
        self.images = directory / "images"
        self.images.mkdir(parents=True, exist_ok=True)
        self._written = {path.stem for path in self.images.iterdir()}

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        formats = _image_formats(record)
        for sha256, data in (images or {}).items():
            self._write(sha256, formats[sha256], data)

    def close(self) -> None:
        pass

    def _write(self, sha256: str, image_format: str, data: bytes) -> None:
        if sha256 in self._written:
            return
        target = self.images / f"{sha256}.{image_format}"
        temporary = target.with_suffix(f".{os.getpid()}.tmp")  # two processes may write the same image
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
        self._written.add(sha256)


def _image_formats(record: AnyRecord) -> dict[str, str]:
    groups = getattr(record, "groups", [])
    return {image.sha256: image.format for group in groups for image in group.sample.images}
