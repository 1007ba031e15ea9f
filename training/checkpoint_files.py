"""Checkpoint directories on disk: written whole or not at all, found and verified without torch."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from training.errors import CheckpointError

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A whole checkpoint: the step after which it was written, its directory and its size in bytes."""

    step: int
    path: Path
    bytes: int


def write_checkpoint(directory: Path, step: int, write: Callable[[Path], None]) -> CheckpointInfo:
    """Let `write` fill a temporary directory, then give it its name: a reader sees all of it or nothing.

    The manifest with the size and hash of every file comes last, and files and directories are fsynced before the
    rename.
    """
    directory.mkdir(parents=True, exist_ok=True)
    final, temporary = directory / f"step-{step:08d}", directory / f".tmp-step-{step:08d}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    write(temporary)
    files = sorted(path for path in temporary.iterdir() if path.is_file())
    manifest = {path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for path in files}
    (temporary / MANIFEST).write_text(json.dumps({"step": step, "files": manifest}, indent=1))
    for path in [*files, temporary / MANIFEST, temporary]:
        _fsync(path)
    shutil.rmtree(final, ignore_errors=True)
    temporary.rename(final)
    _fsync(directory)
    return CheckpointInfo(step, final, sum(entry["bytes"] for entry in manifest.values()))


def newest_whole(directory: Path) -> CheckpointInfo | None:
    """The newest checkpoint whose files are all there with the right hash; torn ones are passed over."""
    for path in sorted(directory.glob("step-*"), reverse=True):
        try:
            return verify(path)
        except CheckpointError:
            continue
    return None


def verify(path: Path) -> CheckpointInfo:
    """Check sizes and hashes.  Raises CheckpointError that names the file at fault."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        step, files = int(manifest["step"]), dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} has no readable {MANIFEST}: {error}") from error
    for name, expected in files.items():
        file = path / name
        if not file.is_file() or file.stat().st_size != expected["bytes"] or _sha256(file) != expected["sha256"]:
            raise CheckpointError(f"{file} is missing or not what the manifest says; the checkpoint is torn")
    return CheckpointInfo(step, path, sum(entry["bytes"] for entry in files.values()))


def prune(directory: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints, and what interrupted writes left behind."""
    for path in [*sorted(directory.glob("step-*"))[:-keep], *directory.glob(".tmp-*")]:
        shutil.rmtree(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
