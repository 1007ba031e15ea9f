"""Two processes train as one: the same losses, gradients, metrics and completions, also where one rank has no image."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training import rank_program
from tests.training.rank_program import GENERATIONS, PROMPTS, STEPS
from training.recorder import record_files
from training.records import EvalRecord, ResultRecord, StepRecord, parse_record

TIMES = ("time/", "step_time", "tokens_per_second", "memory/", "eval_runtime", "tokens/padding_share")
SIGNS = "clip_ratio/"
"""Counted by the advantage's sign, which is that of rounding errors where all that is left of it is a KL of 0."""


def launch(*args: str, processes: int) -> subprocess.CompletedProcess[str]:
    # --multi_gpu selects the launcher of one process per device; --cpu would start a single process
    accelerate = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(processes)]
    command = [*accelerate, "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run(
        [sys.executable, *command, "-m", rank_program.__name__, *args],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def read(directory: Path) -> list:
    [file] = record_files(directory / "run")
    return [parse_record(line) for line in file.read_bytes().splitlines()]


def untimed(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not name.startswith((*TIMES, SIGNS))}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_two_processes_record_what_one_does(model_path, tmp_path, algorithm):
    rank_program.main(str(tmp_path / "one"), model_path, algorithm)
    done = launch(str(tmp_path / "two"), model_path, algorithm, processes=2)
    assert done.returncode == 0, done.stderr
    one, two = read(tmp_path / "one"), read(tmp_path / "two")
    assert [record.detail for record in two if record.kind == "phase"][1].endswith("on cpu, in 2 processes")
    assert [type(record) for record in two] == [type(record) for record in one]
    for ours, theirs in zip(two, one, strict=True):
        if isinstance(ours, StepRecord | EvalRecord):
            assert untimed(ours.metrics) == pytest.approx(untimed(theirs.metrics), rel=1e-4, abs=1e-5)
        if isinstance(ours, StepRecord):
            assert len(ours.groups) == PROMPTS
            for group, other in zip(ours.groups, theirs.groups, strict=True):
                assert group.sample == other.sample
                assert [c.text for c in group.completions] == [c.text for c in other.completions]
                assert [c.advantage for c in group.completions] == pytest.approx(
                    [c.advantage for c in other.completions], abs=1e-5
                )
    steps = [record for record in two if isinstance(record, StepRecord)]
    assert [record.step for record in steps] == list(range(1, STEPS + 1))
    assert sum(len(group.completions) for record in steps for group in record.groups) == STEPS * PROMPTS * GENERATIONS
    # the first rank has the only image of a step; it is stored although the pixels never left that rank
    assert sorted(path.name for path in (tmp_path / "two/run/images").iterdir()) == sorted(
        path.name for path in (tmp_path / "one/run/images").iterdir()
    )


@pytest.mark.slow
def test_a_failure_of_one_process_ends_all_and_is_told(model_path, tmp_path):
    done = launch(str(tmp_path), model_path, "grpo", "fail", processes=2)
    assert done.returncode != 0
    last = read(tmp_path)[-1]
    assert isinstance(last, ResultRecord)
    assert last.outcome == "failed"
    assert "process 1 of 2" in last.message
    assert "no image to look at" in last.message
