"""What this machine can train on, found without torch."""

import logging
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

from app.store.worker_writes import Device

_log = logging.getLogger(__name__)
_QUERY = ["--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"]


def devices() -> list[Device]:
    """CUDA devices as nvidia-smi lists them, else the CPU."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _cuda_devices() or [Device(0, "cpu", f"{os.cpu_count()} x {platform.machine()}", memory)]


def _cuda_devices() -> list[Device]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=30, check=True)
    except (subprocess.SubprocessError, OSError) as error:  # a driver that hangs or does not match
        _log.warning("no CUDA devices, since nvidia-smi does not answer: %s", error)
        return []
    return [_cuda_device(*line.split(", ")) for line in answer.stdout.splitlines()]


def _cuda_device(index: str, name: str, mebibytes: str) -> Device:
    """Of one line; boards that share the memory of the CPU answer [N/A]."""
    return Device(int(index), "cuda", name, int(mebibytes) * 1024 * 1024 if mebibytes.isdecimal() else None)


def versions() -> dict[str, str]:
    """Of Python and the packages that decide a run's numbers."""
    found = {"python": platform.python_version()}
    for package in ("vlmscope", "torch", "transformers", "accelerate"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
