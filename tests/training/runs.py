"""Whole small runs, and what they left on disk."""

import hashlib

from training.checkpoint_files import newest_whole
from training.config import RunConfig
from training.control import NeverStop
from training.datasets import Access
from training.recorder import record_files
from training.records import StepRecord, parse_record
from training.run import run

ACCESS = Access(roots=None)


def small_run(model_path: str, **changes) -> RunConfig:
    base = {
        "model": {"path": model_path},
        "data": {"subset": "color"},
        "rewards": [{"name": "accuracy"}],
        "generation": {"num_generations": 4, "max_completion_length": 5},
        "optimization": {"max_steps": 6, "prompts_per_step": 3, "learning_rate": 1e-3},
        "checkpoint": {"save_steps": 2},
        "resources": {"threads": 1, "device": "cpu"},
    }
    return RunConfig.model_validate(base | changes)


class StopAfter:
    """Asks to stop before step `steps` + 1."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def stop_requested(self) -> bool:
        self._left -= 1
        return self._left < 0


def train(config, out, control=None):
    return run(config, out=out, attempt=None, control=control or NeverStop(), cache=out / "cache", access=ACCESS)


def read(out):
    return [parse_record(line) for file in record_files(out) for line in file.read_bytes().splitlines()]


def weights(out) -> str:
    info = newest_whole(out / "checkpoints")
    return hashlib.sha256((info.path / "model.safetensors").read_bytes()).hexdigest()


def rollouts(out) -> list:
    return [
        (r.step, [(g.sample.key, [c.text for c in g.completions]) for g in r.groups])
        for r in read(out)
        if isinstance(r, StepRecord)
    ]
