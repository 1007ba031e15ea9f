"""Faults that users of other trainers report, each with its small input: what goes wrong there must not here."""

import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from tests.tiny_vlms import tiny_policy
from tests.training.prompts import mixed_prompts
from training.checkpoint_files import newest_whole
from training.config import RunConfig
from training.control import NeverStop
from training.datasets import Access
from training.generation import decode, sample
from training.prompts import PromptEncoder
from training.recorder import record_files
from training.records import StepRecord, parse_record
from training.rewards import RewardSet
from training.run import run


@pytest.fixture
def train(model_path, tmp_path, monkeypatch):
    """train(name, reward, **sections): a run of two steps with one reward function; its steps and last weights."""

    def trained(name, reward, **sections):
        reward_set = RewardSet({"accuracy": reward}, [1.0], max_error_share=1.0)
        monkeypatch.setattr("training.run.build_rewards", lambda _: reward_set)
        base = {
            "model": {"path": model_path},
            "data": {"subset": "color"},
            "generation": {"num_generations": 4, "max_completion_length": 5},
            "optimization": {"max_steps": 2, "prompts_per_step": 2, "learning_rate": 1e-3},
            "resources": {"threads": 1, "device": "cpu"},
        }
        out, access = tmp_path / name, Access(roots=None)
        run(
            RunConfig.model_validate(base | sections),
            out=out,
            attempt=None,
            control=NeverStop(),
            cache=out,
            access=access,
        )
        [file] = record_files(out)
        records = [parse_record(line) for line in file.read_bytes().splitlines()]
        steps = [record for record in records if isinstance(record, StepRecord)]
        return steps, load_file(newest_whole(out / "checkpoints").path / "model.safetensors")

    return trained


def halves(completions):
    return [float(len(text) % 2) for text in completions]


@pytest.mark.parametrize("algorithm", [{"name": "grpo", "scale_rewards": "none"}, {"name": "rloo"}], ids=str)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_reward_that_is_no_number_moves_the_weights_no_more_than_none_at_all(train, algorithm, value):
    """TRL 20, ms-swift 8123: inf reaches the loss there, and the policy samples from NaN."""

    def spoilt(completions, by):
        return [by if index % 4 == 1 else reward for index, reward in enumerate(halves(completions))]

    steps, weights = train("spoilt", lambda completions: spoilt(completions, value), algorithm=algorithm)
    _, expected = train("none", lambda completions: spoilt(completions, None), algorithm=algorithm)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert [step.metrics["unscored"] for step in steps] == [2.0, 2.0]
    [cell] = steps[0].groups[0].completions[1].rewards
    assert cell.value is None
    assert str(value) in cell.error


def test_equal_rewards_move_nothing_and_are_counted(train, model_path):
    """TRL 24, VLM-R1 305: a loss of 0 is no fault when no group has a signal."""
    steps, weights = train("equal", lambda completions: [0.7 for _ in completions])
    before = load_file(f"{model_path}/model.safetensors")
    assert all(torch.equal(weights[name], before[name]) for name in before.keys() & weights.keys())
    assert [step.metrics["frac_reward_zero_std"] for step in steps] == [1.0, 1.0]
    assert [step.metrics["grad_norm"] for step in steps] == [0.0, 0.0]


def test_rloo_without_a_reference_and_with_several_iterations(train):
    """TRL 31: KeyError: 'old_logps'."""
    steps, _ = train("rloo", halves, algorithm={"name": "rloo", "beta": 0.0, "num_iterations": 3})
    assert all(step.metrics["grad_norm"] > 0 for step in steps)
    assert "kl" not in steps[0].metrics


def test_each_completion_is_scored_with_the_columns_of_its_own_prompt(train):
    """R1-V 83: the second prompt was scored with the first one's answer."""
    seen = []

    def reward(completions, prompts, answer, question):
        for messages, gold, text in zip(prompts, answer, question, strict=True):
            seen.append((messages[-1]["content"][-1]["text"], text, gold))
        return halves(completions)

    steps, _ = train("columns", reward)
    assert len(seen) == 2 * 2 * 4
    assert all(shown == column for shown, column, _ in seen)
    golds = [gold for _, _, gold in seen]
    assert golds == [group.sample.columns["answer"] for step in steps for group in step.groups for _ in range(4)]


def test_a_completion_of_the_end_token_alone_is_legal(train):
    """An empty text is scored, recorded and learned from like any other."""
    steps, weights = train(
        "empty", lambda completions: [float(not text) for text in completions],
        generation={"num_generations": 8, "max_completion_length": 1, "temperature": 100.0},
        optimization={"max_steps": 12, "prompts_per_step": 4, "learning_rate": 1e-3},
    )  # fmt: skip
    completions = [c for step in steps for group in step.groups for c in group.completions]
    empty = [c for c in completions if c.text == "" and c.finish_reason == "stop"]
    assert empty
    assert all((c.num_tokens, c.reward) == (1, 1.0) for c in empty)
    assert any(step.metrics["grad_norm"] > 0 for step in steps)
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_padding_with_the_end_token_makes_no_completion_longer_or_cut():
    """TRL 18: where pad is eos, a completion's end cannot be told from its ids."""
    policy = tiny_policy("qwen2_vl")
    encoder = PromptEncoder(policy)
    prompts = [encoder.encode(item) for item in mixed_prompts()]
    uniforms = torch.rand(len(prompts) * 32, 12, generator=torch.Generator().manual_seed(2))
    options = {"num_generations": 32, "max_completion_length": 12, "temperature": 100.0, "uniforms_BT": uniforms}
    usual = sample(policy, prompts, **options)
    same = sample(replace(policy, pad_id=int(policy.end_ids[0])), prompts, **options)
    assert torch.equal(usual.mask_BT, same.mask_BT)
    assert torch.equal(usual.ended_B, same.ended_B)
    assert decode(policy, usual) == decode(policy, same)
    assert int(usual.ended_B.sum()) > 0
    assert int(usual.mask_BT.sum(1).min()) < 12


def test_the_loss_of_a_step_does_not_depend_on_how_it_is_cut(train):
    """TRL 30: the gradient of dapo was off by the number of accumulated micro-batches."""
    optimization = {"max_steps": 1, "prompts_per_step": 4, "learning_rate": 1e-3}
    norms = []
    for size in (None, 1, 150):
        steps, _ = train(f"cut {size}", halves, optimization=optimization | {"micro_batch_tokens": size})
        norms.append((steps[0].metrics["loss"], steps[0].metrics["grad_norm"]))
    assert norms[1] == pytest.approx(norms[0], rel=1e-4, abs=1e-6)
    assert norms[2] == pytest.approx(norms[0], rel=1e-4, abs=1e-6)
