"""The Makefile installs once, one at a time, torch first; the slow test runs the real demo from a fresh copy."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project.repository import ROOT, files

# A Python that only writes down what pip was asked for; its venv holds a copy of itself.
FAKE_PYTHON = """#!/bin/bash
case "$*" in
    "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip --version") ;;
    "-m pip"*) sleep 0.1; echo "$*" >> pip.log ;;
    *) exec {python} "$@" ;;
esac
"""
TORCH_STEP = "-m pip install torch==2.13.0"
TRAIN_STEP = "-m pip install --editable .[train]"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Makefile, pyproject.toml and the fake Python."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    fake = tmp_path / "fake-python"
    fake.write_text(FAKE_PYTHON.format(python=sys.executable), encoding="utf-8")
    fake.chmod(0o755)
    return tmp_path


def start_make(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start make as from a new shell: neither a make above this test nor settings of an installation come along."""
    foreign = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VLMSCOPE_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.Popen(
        ["make", *arguments],
        cwd=folder,
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def install(folder: Path) -> subprocess.Popen[str]:
    return start_make(folder, "PYTHON=./fake-python", ".venv/train-" + key(folder))


def key(folder: Path) -> str:
    """The stamp's key, as make itself computes it."""
    made = start_make(folder, "-n", "-p", "help")
    printed, _ = made.communicate(timeout=30)
    return next(line.split(" := ")[1] for line in printed.splitlines() if line.startswith("KEY := "))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def pip_calls(folder: Path) -> list[str]:
    return (folder / "pip.log").read_text(encoding="utf-8").splitlines()


def test_torch_is_installed_before_what_depends_on_it(checkout: Path) -> None:
    assert install(checkout).wait(timeout=30) == 0
    assert pip_calls(checkout) == [TORCH_STEP, TRAIN_STEP]


def test_two_calls_at_once_install_once(checkout: Path) -> None:
    both = [install(checkout), install(checkout)]
    assert [process.wait(timeout=30) for process in both] == [0, 0]
    assert pip_calls(checkout) == [TORCH_STEP, TRAIN_STEP]


def test_changed_dependencies_are_installed_again(checkout: Path) -> None:
    install(checkout).wait(timeout=30)
    install(checkout).wait(timeout=30)
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# another dependency\n")
    install(checkout).wait(timeout=30)
    assert pip_calls(checkout) == [TORCH_STEP, TRAIN_STEP] * 2


def test_installed_test_tools_serve_the_demo_too(checkout: Path) -> None:
    start_make(checkout, "PYTHON=./fake-python", ".venv/dev-" + key(checkout)).wait(timeout=30)
    install(checkout).wait(timeout=30)
    assert pip_calls(checkout) == [TORCH_STEP, "-m pip install --editable .[dev]"]


def test_demo_hands_its_options_on(checkout: Path) -> None:
    made = start_make(checkout, "-n", "demo", "EXIT=1", "PRESET=demo-tags-grpo", "PORT=7999")
    printed, _ = made.communicate(timeout=30)
    assert printed.splitlines()[-1].split() == [
        "exec", ".venv/bin/vlmscope", "up", "--demo", "--preset", "demo-tags-grpo", "--port", "7999", "--exit",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_demo_from_a_fresh_copy_trains_and_ends_with_one_json_line(tmp_path: Path) -> None:
    folder = tmp_path / "vlmscope"
    for path in files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)
    try:
        made = start_make(folder, "demo", "EXIT=1", f"PORT={free_port()}")
        printed, errors = made.communicate(timeout=1400)
        assert made.returncode == 0, printed[-4000:] + errors[-4000:]
        result = json.loads(printed.splitlines()[-1])

        begun = time.monotonic()
        again = start_make(folder, ".venv/train-" + key(folder))
        assert again.wait(timeout=60) == 0
        assert time.monotonic() - begun < 5
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the environment alone takes more than a gigabyte

    assert result.keys() >= {
        "run", "state", "steps", "reward_first", "reward_last", "accuracy_before", "accuracy_after", "completions",
        "images", "seconds",
    }  # fmt: skip
    assert result["state"] == "succeeded"
    assert result["reward_last"] >= result["reward_first"] + 0.3
    assert result["accuracy_after"] >= max(0.90, result["accuracy_before"] + 0.08)
