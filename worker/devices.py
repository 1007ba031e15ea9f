"""What this machine can train on, found without torch."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

from app.store.worker_writes import Device

_QUERY = ["--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"]


def devices() -> list[Device]:
    """CUDA devices as nvidia-smi lists them, else the CPU."""
    program = shutil.which("nvidia-smi")
    if program is not None:
        answer = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=30, check=False)
        rows = [line.split(", ") for line in answer.stdout.splitlines()] if answer.returncode == 0 else []
        if rows:
            return [Device(int(index), "cuda", name, int(mib) * 1024 * 1024) for index, name, mib in rows]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [Device(0, "cpu", f"{os.cpu_count()} x {platform.machine()}", memory)]


def versions() -> dict[str, str]:
    """Of Python and the packages that decide a run's numbers."""
    found = {"python": platform.python_version()}
    for package in ("vlmscope", "torch", "transformers", "accelerate"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
