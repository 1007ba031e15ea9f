"""Our trainer on the benchmark's workload: CPU seconds of each step, whole and by phase."""

import io
import json
import resource
import time
from collections.abc import Mapping
from pathlib import Path

import torch

from tests.benchmarks.workload import QUESTIONS, Setting, build_model, picture, processor_and_config, reward
from training.config import RunConfig
from training.control import NeverStop
from training.datasets import Access, open_dataset
from training.policy import make_policy
from training.ranks import Ranks
from training.recorder import FileRecorder, NullRecorder, Recorder
from training.records import AnyRecord, StepRecord
from training.rewards import RewardSet
from training.trainer import Data, Trainer


class Timed:
    """Passes records on, and notes the CPU time between steps and the metrics of each."""

    def __init__(self, inner: Recorder) -> None:
        self.inner = inner
        self.seconds: list[float] = []
        self.metrics: list[Mapping[str, float]] = []
        self._last = time.process_time()

    def record(self, record: AnyRecord, *, images: Mapping[str, bytes] | None = None) -> None:
        self.inner.record(record, images=images)
        now = time.process_time()
        if isinstance(record, StepRecord):
            self.seconds.append(now - self._last)
            self.metrics.append(record.metrics)
        self._last = now

    def close(self) -> None:
        self.inner.close()


def write_rows(setting: Setting, folder: Path, steps: int) -> Path:
    """New prompts for every step: nothing that is kept from an earlier one may help."""
    path = folder / "rows.jsonl"
    rows = []
    for row in range(setting.prompts * steps):
        names = []
        for number in range(setting.images):
            names.append(f"{row}-{number}.png")
            buffer = io.BytesIO()
            picture(setting, row, number).save(buffer, "PNG")
            (folder / names[-1]).write_bytes(buffer.getvalue())
        rows.append({"question": QUESTIONS[row % len(QUESTIONS)], "answer": "red", "image": names})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config_of(setting: Setting, source: str, steps: int) -> RunConfig:
    return RunConfig.model_validate(
        {
            "data": {"source": source, "shuffle": False},
            "algorithm": {"name": setting.algorithm, "beta": 0.0},
            "generation": {"num_generations": setting.num_generations, "max_completion_length": setting.length},
            "optimization": {
                "max_steps": steps, "prompts_per_step": setting.prompts, "learning_rate": 1e-5,
                "lr_scheduler": "constant",
            },
            "resources": {"threads": 1, "device": "cpu"},
        }
    )  # fmt: skip


def run(setting: Setting, folder: Path, *, steps: int, recorded: bool = True) -> Timed:
    """Train; `recorded` False leaves out what the dashboard needs, to see what it costs."""
    config = config_of(setting, str(write_rows(setting, folder, steps)), steps)
    policy = make_policy(build_model(), processor_and_config()[0])
    data = Data(train=open_dataset(config.data, access=Access(roots=None)), held_out=None)
    timed = Timed(FileRecorder(folder, attempt=1) if recorded else NullRecorder())
    rewards = RewardSet({"accuracy": reward}, [1.0])
    trainer = Trainer(config, policy, data, rewards, timed, ranks=Ranks(cpu=True), out=folder)
    torch.manual_seed(0)
    trainer.train(NeverStop())
    timed.close()
    return timed


def peak_memory() -> int:
    """Bytes of this process at its largest so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
