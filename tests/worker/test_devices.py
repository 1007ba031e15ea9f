"""What a worker says that it can train on, with a program in the place of nvidia-smi."""

import os
from pathlib import Path

import pytest

from app.store.worker_writes import Device
from worker.devices import devices, versions


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts an nvidia-smi on the PATH that does what the given shell text says."""

    def put(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return put


def test_cuda_devices_are_those_that_nvidia_smi_lists(answer):
    answer("echo '0, NVIDIA H200, 143771'; echo '1, NVIDIA GB10, [N/A]'")
    assert devices() == [
        Device(0, "cuda", "NVIDIA H200", 143_771 * 1024 * 1024),
        Device(1, "cuda", "NVIDIA GB10", None),
    ]


@pytest.mark.parametrize("script", ["echo 'No devices were found'; exit 6", "exit 0"])
def test_without_a_cuda_device_it_is_the_cpu(answer, script):
    answer(script)
    [cpu] = devices()
    assert (cpu.index, cpu.kind) == (0, "cpu")
    assert cpu.memory_bytes is not None
    assert cpu.memory_bytes > 2**28


def test_versions_name_python_and_the_package():
    assert {"python", "vlmscope"} <= versions().keys()
