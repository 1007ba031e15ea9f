"""Whole small runs: records, resume to the last bit, first-step identities, standalone use of `run`."""

import hashlib
import json

import pytest
import torch

from tests.training.runs import StopAfter, read, rollouts, small_run, train, weights
from training.checkpoint_files import newest_whole
from training.errors import CheckpointError
from training.records import StepRecord
from training.rewards import RewardSet
from training.token_stats import unpack

pytestmark = pytest.mark.usefixtures("parity_reward")

EVERYTHING = {
    "name": "grpo", "beta": 0.05, "num_iterations": 2, "dynamic_sampling_rounds": 2, "overlong_buffer": 3,
    "mask_truncated_completions": True, "top_entropy_quantile": 0.5, "entropy_coef": 0.01,
    "correction": "token_truncate", "off_policy_threshold": 1.0,
}  # fmt: skip
ALGORITHMS = [
    pytest.param(EVERYTHING, id="everything"),
    pytest.param({"name": "grpo", "beta": 0.05, "num_iterations": 2}, id="grpo"),
    pytest.param({"name": "rloo", "beta": 0.05}, id="rloo"),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("stop_after", [1, 4])
def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(model_path, tmp_path, algorithm, stop_after):
    config = small_run(model_path, algorithm=algorithm)
    assert train(config, tmp_path / "whole") == "finished"
    assert train(config, tmp_path / "cut", StopAfter(stop_after)) == "stopped"
    assert train(config, tmp_path / "cut") == "finished"
    assert rollouts(tmp_path / "cut") == rollouts(tmp_path / "whole")
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_killed_run_goes_on_from_its_last_checkpoint_and_says_which_steps_are_void(model_path, tmp_path):
    config = small_run(model_path)
    train(config, tmp_path / "whole")

    class Killed(BaseException):
        pass

    class KillAfterThree(StopAfter):
        def stop_requested(self) -> bool:
            if super().stop_requested():
                raise Killed
            return False

    with pytest.raises(Killed):
        train(config, tmp_path / "cut", KillAfterThree(3))
    train(config, tmp_path / "cut")
    starts = [r for r in read(tmp_path / "cut") if r.kind == "start"]
    assert [(r.attempt, r.resumed_from_step) for r in starts] == [(1, None), (2, 2)]
    assert [r[0] for r in rollouts(tmp_path / "cut")] == [1, 2, 3, 3, 4, 5, 6]
    assert rollouts(tmp_path / "cut")[3:] == rollouts(tmp_path / "whole")[2:]
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_the_first_step_has_ratio_one_and_a_sampler_that_agrees(model_path, tmp_path):
    train(small_run(model_path, algorithm={"name": "grpo", "beta": 0.1}), tmp_path)
    first = next(r for r in read(tmp_path) if isinstance(r, StepRecord))
    assert first.metrics["clip_ratio/region_mean"] == 0
    assert first.metrics["kl"] == pytest.approx(0, abs=1e-10)
    assert 0 < first.metrics["reward"] < 1
    assert first.metrics["grad_norm"] > 0
    assert first.metrics["sampling/sampling_logp_difference/max"] < 1e-4


def test_a_step_tells_what_it_took(model_path, tmp_path):
    train(small_run(model_path), tmp_path)
    for record in read(tmp_path):
        if isinstance(record, StepRecord):
            metrics, lengths = record.metrics, [c.num_tokens for group in record.groups for c in group.completions]
            assert metrics["tokens/trained"] == sum(lengths)
            # every prompt once and every completion at its longest, against what of it is no padding
            assert 0 <= metrics["tokens/padding_share"] < 0.9
            assert metrics["memory/peak_bytes"] > 1e8
            phases = [metrics[f"time/{name}"] for name in ("encode", "generate", "reward", "advantages", "update")]
            assert sum(phases) == pytest.approx(metrics["step_time"], rel=0.05)
            assert metrics["tokens_per_second"] > 0


def test_every_completion_of_every_step_is_recorded_with_its_images(model_path, tmp_path):
    train(small_run(model_path), tmp_path)
    steps = [r for r in read(tmp_path) if isinstance(r, StepRecord)]
    assert [r.step for r in steps] == [1, 2, 3, 4, 5, 6]
    for record in steps:
        assert len(record.groups) == 3
        for group in record.groups:
            assert [c.index for c in group.completions] == [0, 1, 2, 3]
            for image in group.sample.images:
                data = (tmp_path / "images" / f"{image.sha256}.{image.format}").read_bytes()
                assert hashlib.sha256(data).hexdigest() == image.sha256
            for completion in group.completions:
                assert len(unpack(completion.tokens).ids) == completion.num_tokens
                assert (completion.finish_reason == "length") <= (completion.num_tokens == 5)


def test_micro_batches_do_not_change_the_update(model_path, tmp_path):
    for name, tokens in (("all", None), ("one", 1)):
        optimization = {"max_steps": 1, "prompts_per_step": 3, "learning_rate": 1e-3, "micro_batch_tokens": tokens}
        train(
            small_run(model_path, optimization=optimization, algorithm={"name": "grpo", "beta": 0.1}), tmp_path / name
        )
    losses, norms = zip(
        *(
            (r.metrics["loss"], r.metrics["grad_norm"])
            for name in ("all", "one")
            for r in read(tmp_path / name)
            if isinstance(r, StepRecord)
        ),
        strict=True,
    )
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert norms[0] == pytest.approx(norms[1], rel=1e-4, abs=1e-6)


def test_groups_without_signal_give_way_to_other_prompts(model_path, tmp_path, monkeypatch):
    """A reward that only some rows can tell apart: with the rounds, every group that is trained on has a signal."""

    def accuracy(completions, answer, step):
        return [float(gold < "c" and len(text) % 2) for text, gold in zip(completions, answer, strict=True)]

    monkeypatch.setattr("training.run.build_rewards", lambda _: RewardSet({"accuracy": accuracy}, [1.0]))
    shares, extra = {}, {}
    for rounds in (0, 8):
        algorithm = {"name": "grpo", "dynamic_sampling_rounds": rounds}
        train(small_run(model_path, algorithm=algorithm), tmp_path / str(rounds))
        steps = [r for r in read(tmp_path / str(rounds)) if isinstance(r, StepRecord)]
        shares[rounds] = [r.metrics["frac_reward_zero_std"] for r in steps]
        extra[rounds] = sum(r.metrics.get("dynamic_sampling/extra_groups", 0.0) for r in steps)
        assert all(len(r.groups) == 3 for r in steps)
        assert all([c.index for c in group.completions] == [0, 1, 2, 3] for r in steps for group in r.groups)
    assert max(shares[0]) > 0
    assert sum(shares[8]) < sum(shares[0]) / 2
    assert extra == {0: 0, 8: pytest.approx(extra[8])}
    assert extra[8] >= sum(shares[0]) * 3 / 2


def test_what_is_recorded_of_a_replaced_group_is_its_own(model_path, tmp_path):
    train(small_run(model_path, algorithm={"name": "grpo", "dynamic_sampling_rounds": 3}), tmp_path)
    for record in read(tmp_path):
        if isinstance(record, StepRecord):
            for group in record.groups:
                for completion in group.completions:
                    assert len(unpack(completion.tokens).ids) == completion.num_tokens
                    assert completion.reward == len(completion.text) % 2
                signs = {(c.reward > 0.5, c.advantage > 0) for c in group.completions if c.advantage}
                assert signs <= {(True, True), (False, False)}


def test_epochs_decide_the_length_and_the_records_say_so(model_path, tmp_path):
    optimization = {"epochs": 2, "prompts_per_step": 3, "learning_rate": 1e-3}
    train(small_run(model_path, data={"subset": "color", "limit": 5}, optimization=optimization), tmp_path)
    records = read(tmp_path)
    [training] = [r for r in records if r.kind == "phase" and r.name == "training"]
    assert training.max_steps == 4
    assert training.detail == "4 steps of 3 prompts, 2.4 passes over 5 rows"
    steps = [r for r in records if isinstance(r, StepRecord)]
    assert [r.metrics["epoch"] for r in steps] == pytest.approx([0.6, 1.2, 1.8, 2.4])
    rows = [group.sample.row for r in steps for group in r.groups]
    assert sorted(rows[:5]) == sorted(rows[5:10]) == [0, 1, 2, 3, 4]


def test_another_configuration_does_not_go_on_from_this_checkpoint(model_path, tmp_path):
    train(small_run(model_path), tmp_path)
    with pytest.raises(CheckpointError, match="seed"):
        train(small_run(model_path, seed=1), tmp_path)
    assert read(tmp_path)[-1].kind == "result"
    assert read(tmp_path)[-1].outcome == "failed"


def test_a_torn_checkpoint_is_passed_over(model_path, tmp_path):
    train(small_run(model_path), tmp_path)
    newest = newest_whole(tmp_path / "checkpoints")
    assert newest.step == 6
    file = newest.path / "optimizer.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    assert newest_whole(tmp_path / "checkpoints").step == 4


def test_a_finished_run_called_again_trains_nothing(model_path, tmp_path):
    train(small_run(model_path), tmp_path)
    before = weights(tmp_path)
    assert train(small_run(model_path), tmp_path) == "finished"
    assert weights(tmp_path) == before
    assert len(rollouts(tmp_path)) == 6


def test_the_trained_model_opens_again_and_is_the_last_checkpoint(model_path, tmp_path):
    from safetensors.torch import load_file

    train(small_run(model_path), tmp_path)
    saved = load_file(tmp_path / "model" / "model.safetensors")
    last = load_file(newest_whole(tmp_path / "checkpoints").path / "model.safetensors")
    assert all(torch.equal(saved[name], last[name]) for name in saved.keys() & last.keys())
    assert json.loads((tmp_path / "model" / "config.json").read_text())["model_type"] == "smolvlm"
