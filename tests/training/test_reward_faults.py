"""Runs whose reward functions misbehave: what is no number never reaches the weights."""

import math

import pytest
import torch
from safetensors.torch import load_file

from tests.training.runs import read, small_run, train
from training.records import StepRecord
from training.rewards import RewardSet

ALGORITHMS = [
    # without a scale, and without a reference: nothing hides a large reward, and old log-probabilities are needed
    pytest.param({"name": "grpo", "scale_rewards": "none", "num_iterations": 2}, 0.5, id="grpo"),
    pytest.param({"name": "rloo", "beta": 0.0, "num_iterations": 2}, 1.0, id="rloo"),
]


def broken(completions):
    """In each group of four two rewards that differ, 1 and 0, and after each one that is no usable number."""
    odd = [math.inf, math.nan, None, 1e300]
    return [odd[index // 2 % 4] if index % 2 else float(index % 4 == 0) for index in range(len(completions))]


@pytest.mark.parametrize(("algorithm", "gap"), ALGORITHMS)
def test_infinite_rewards_cost_their_completions_and_not_the_weights(model_path, tmp_path, monkeypatch, algorithm, gap):
    monkeypatch.setattr("training.run.build_rewards", lambda _: RewardSet({"broken": broken}, [1.0]))
    optimization = {"max_steps": 2, "prompts_per_step": 2, "learning_rate": 1e-2}
    train(small_run(model_path, algorithm=algorithm, optimization=optimization), tmp_path)
    steps = [record for record in read(tmp_path) if isinstance(record, StepRecord)]
    assert [record.metrics["unscored"] for record in steps] == [4.0, 4.0]
    for completion in (c for record in steps for group in record.groups for c in group.completions):
        assert completion.reward == (1.0, None, 0.0, None)[completion.index]
        assert completion.advantage == (gap, 0.0, -gap, 0.0)[completion.index]
    assert all(record.metrics["grad_norm"] > 0 for record in steps)
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
