"""Whole runs on a device that is too small: the same weights, the smaller sizes recorded and kept."""

import json

import pytest
import torch
from safetensors.torch import load_file

from tests.training.runs import StopAfter, read, small_run, train
from tests.training.test_memory import CUDA, Device
from training import decoding
from training.checkpoint_files import newest_whole
from training.errors import OutOfMemory
from training.generation import sample
from training.records import EventRecord, ResultRecord, StepRecord

GRPO = {"name": "grpo", "beta": 0.05, "loss_type": "grpo"}


pytestmark = pytest.mark.usefixtures("parity_reward")


def shrink(monkeypatch, *, tokens: int, rows: int) -> None:
    """A device that trains on `tokens` padded tokens and samples `rows` completions at once."""

    def sampled(policy, prompts, *, num_generations, **options):
        if len(prompts) * num_generations > rows:
            raise CUDA
        return sample(policy, prompts, num_generations=num_generations, **options)

    monkeypatch.setattr(decoding, "sample", sampled)
    monkeypatch.setattr("training.sharing.shared_scores", Device(tokens, CUDA))


def events(out) -> list[str]:
    return [r.message for r in read(out) if isinstance(r, EventRecord) and r.code == "out_of_memory"]


def test_a_small_device_trains_to_the_same_weights_and_keeps_the_sizes_that_fit(model_path, tmp_path, monkeypatch):
    # a large epsilon: with a small one AdamW turns the rounding of a gradient near 0 into a whole step
    optimization = {"max_steps": 4, "prompts_per_step": 3, "learning_rate": 1e-3, "adam_epsilon": 1e-3}
    config = small_run(model_path, algorithm=GRPO, optimization=optimization)
    train(config, tmp_path / "large")
    assert events(tmp_path / "large") == []
    shrink(monkeypatch, tokens=40, rows=4)
    train(config, tmp_path / "cut", StopAfter(2))
    train(config, tmp_path / "cut")
    assert len(events(tmp_path / "cut")) == 2  # one for sampling and one for the update, none after the resume
    progress = json.loads((newest_whole(tmp_path / "cut" / "checkpoints").path / "state.json").read_text())["progress"]
    assert progress["at_once"] == 6
    assert progress["micro_batch_tokens"] <= 40
    large, cut = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("large", "cut"))
    for name, tensor in large.items():
        torch.testing.assert_close(cut[name], tensor, atol=1e-5, rtol=1e-4, msg=name)
    rewards = [
        [r.metrics["reward"] for r in read(tmp_path / run) if isinstance(r, StepRecord)] for run in ("large", "cut")
    ]
    assert rewards[0] == rewards[1]


def test_a_device_that_holds_not_even_one_completion_ends_the_run_with_the_row_and_the_remedy(
    model_path, tmp_path, monkeypatch
):
    shrink(monkeypatch, tokens=10**6, rows=0)
    with pytest.raises(OutOfMemory, match="while sampling, with one completion at a time"):
        train(small_run(model_path), tmp_path)
    result = read(tmp_path)[-1]
    assert isinstance(result, ResultRecord)
    assert "64 x 64 pixels. Lower" in (result.message or "")


def test_activation_checkpointing_trains_to_the_same_weights(model_path, tmp_path):
    optimization = {"max_steps": 2, "prompts_per_step": 3, "learning_rate": 1e-3, "adam_epsilon": 1e-3}
    for name, on in (("plain", False), ("recomputed", True)):
        config = small_run(model_path, algorithm=GRPO, optimization=optimization | {"activation_checkpointing": on})
        train(config, tmp_path / name)
    plain, recomputed = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("plain", "recomputed"))
    for name, tensor in plain.items():
        torch.testing.assert_close(recomputed[name], tensor, atol=1e-6, rtol=1e-5, msg=name)
