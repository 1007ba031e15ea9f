"""The real `vlmscope up`: refusals, a whole start, every way to end."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.command import message, vlmscope
from tests.up.installation import Installation, installation
from tests.up.waiting import until

SMALL_RUN = """
name = "small"

[data]
subset = "color"

[optimization]
max_steps = 60
prompts_per_step = 4
learning_rate = 1e-4

[generation]
num_generations = 4
max_completion_length = 4

[checkpoint]
save_steps = 5
"""


@pytest.fixture
def ours(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    cache = tmp_path_factory.getbasetemp() / "models"  # one warm start for all tests here
    with installation(tmp_path, cache) as started:
        yield started


def test_taken_port_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = vlmscope("up", "--data-dir", tmp_path / "data", "--port", port, folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith(f"vlmscope: cannot listen on http://127.0.0.1:{port}: Address already in use.")
    assert "--port" in message(done)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--preset", "demo-colour"], "there is no preset 'demo-colour'; expected one of demo-color-grpo, "),
        (["--exit"], "--exit ends with the demo run, and there is none: add --demo"),
    ],
)
def test_order_that_cannot_be_meant_is_refused_before_anything_starts(
    options: list[str], expected: str, tmp_path: Path
) -> None:
    done = vlmscope("up", *options, folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith(f"vlmscope: {expected}")
    assert list(tmp_path.iterdir()) == []


def test_demo_without_torch_is_refused_with_the_remedy(tmp_path: Path) -> None:
    done = vlmscope("up", "--demo", folder=tmp_path, without=("torch",))
    assert done.returncode == 2
    assert (
        message(done)
        == "vlmscope: training needs torch, which is not installed here: pip install '.[train]' in the repository"
    )


def test_start_serves_with_a_worker_and_ctrl_c_leaves_nothing(ours: Installation, tmp_path: Path) -> None:
    started = ours.start()
    ours.wait_until_up()
    assert ours.get("/ready").status_code == 200
    [worker] = ours.get("/workers").json()
    assert worker["pid"] == ours.find("worker")
    assert ours.find(str(ours.data_dir / "broker" / "valkey.conf")) in ours.processes()

    second = vlmscope("up", "--data-dir", ours.data_dir, "--port", ours.port + 1, folder=tmp_path)
    assert second.returncode == 2
    assert f"already runs on {ours.data_dir} (process {started.pid}, {ours.address})" in message(second)

    assert ours.interrupt() == 0
    assert ours.processes() == []
    assert started.communicate()[0] == b""
    assert ours.said().splitlines()[-1] == "stopped"


def test_killed_web_server_comes_back(ours: Installation) -> None:
    ours.start()
    ours.wait_until_up()
    os.kill(ours.find("web"), signal.SIGKILL)
    assert until(lambda: "web starts again in 1 s" in ours.said())
    assert until(lambda: _answers(ours), seconds=60)
    assert ours.interrupt() == 0


@pytest.mark.slow
def test_ctrl_c_hands_the_run_back_and_the_next_start_finishes_it(ours: Installation) -> None:
    ours.start()
    ours.wait_until_up()
    run_id = ours.submit(SMALL_RUN)
    ours.wait_for_run(run_id, "running", step=7)
    assert ours.interrupt() == 0
    assert ours.processes() == []
    assert list((ours.data_dir / "runs" / run_id / "checkpoints").iterdir())

    ours.start()
    ours.wait_until_up(times=2)
    run = ours.wait_for_run(run_id, "succeeded", "failed", "cancelled")
    assert (run["state"], run["step"], run["attempt"]) == ("succeeded", 60, 2)
    assert run["completions"] == 60 * 4 * 4
    assert ours.interrupt() == 0


@pytest.mark.slow
def test_kill_of_the_parent_leaves_no_process_and_the_next_start_finishes_the_run(ours: Installation) -> None:
    ours.start()
    ours.wait_until_up()
    run_id = ours.submit(SMALL_RUN)
    ours.wait_for_run(run_id, "running", step=7)
    ours.kill()
    assert until(lambda: not ours.processes(), seconds=30)

    ours.start()
    ours.wait_until_up(times=2)
    run = ours.wait_for_run(run_id, "succeeded", "failed", "cancelled")
    assert (run["state"], run["step"], run["attempt"]) == ("succeeded", 60, 2)
    assert run["completions"] == 60 * 4 * 4
    assert ours.interrupt() == 0


@pytest.mark.slow
def test_second_ctrl_c_ends_a_run_under_way_at_once(ours: Installation) -> None:
    ours.start()
    ours.wait_until_up()
    run_id = ours.submit(SMALL_RUN)
    ours.wait_for_run(run_id, "running", step=2)
    ours.process.send_signal(signal.SIGINT)
    assert until(lambda: "Ctrl-C again: at once" in ours.said())
    began = time.monotonic()
    assert ours.interrupt() == 130
    assert time.monotonic() - began < 5
    assert ours.processes() == []


@pytest.mark.slow
def test_demo_with_exit_prints_one_json_line_and_leaves_nothing(ours: Installation) -> None:
    printed, _ = (process := ours.start("--demo", "--exit")).communicate(timeout=500)
    assert process.returncode == 0, ours.said()
    assert ours.processes() == []
    [line] = printed.decode().splitlines()
    summary = json.loads(line)
    assert summary["state"] == "succeeded"
    assert summary["reward_last"] - summary["reward_first"] >= 0.3
    assert summary["accuracy_after"] >= max(0.9, summary["accuracy_before"] + 0.08)
    assert summary["completions"] == summary["steps"] * 16 * 8
    assert ours.said().splitlines()[-1].startswith("reward ")


def _answers(ours: Installation) -> bool:
    try:
        return ours.get("/ready").status_code == 200
    except httpx.TransportError:
        return False
