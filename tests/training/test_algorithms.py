"""Advantages and losses against numbers worked out by hand."""

import math

import pytest
import torch

from training.algorithms import grpo, rloo
from training.algorithms.statistics import without_signal
from training.algorithms.types import Batch, Scored
from training.config import GRPOConfig, RLOOConfig

NAN = float("nan")


def scored(*groups, kl=None) -> Scored:
    """One reward function of weight 1, a list of rewards for each group."""
    kl_PG = None if kl is None else torch.tensor(kl, dtype=torch.float64)
    return Scored(torch.tensor(groups, dtype=torch.float64)[..., None], torch.ones(1, dtype=torch.float64), kl_PG)


def batch(mask, advantages, *, completions=None, tokens=None, micro_batches=1, limit=4, **given) -> Batch:
    """given: old, sampling, ref, entropy, policy_mask as nested lists."""
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in given.items()}
    mask_BT = torch.tensor(mask, dtype=torch.float64)
    policy_mask_BT = tensors.get("policy_mask")
    return Batch(
        mask_BT=mask_BT,
        advantages_B=torch.tensor(advantages, dtype=torch.float64),
        old_logp_BT=tensors.get("old"),
        sampling_logp_BT=tensors.get("sampling", tensors.get("old", torch.zeros_like(mask_BT))),
        ref_logp_BT=tensors.get("ref"),
        entropy_BT=tensors.get("entropy", torch.zeros_like(mask_BT)),
        policy_mask_BT=policy_mask_BT,
        step_completions=completions or len(mask),
        step_tokens=tokens or int(mask_BT.sum()),
        step_policy_tokens=int((mask_BT if policy_mask_BT is None else policy_mask_BT).sum()),
        step_micro_batches=micro_batches,
        max_completion_length=limit,
    )


def test_grpo_advantages_are_centred_and_over_the_groups_sample_deviation():
    # mean 0.5, deviations of 0.5 each: sum of squares 1 over 3 -> std 0.57735
    a = grpo.advantages(GRPOConfig(), scored([1.0, 0.0, 1.0, 0.0]))
    expected = 0.5 / (math.sqrt(1 / 3) + 1e-4)
    assert a.tolist() == [pytest.approx([expected, -expected, expected, -expected])]


def test_grpo_without_scaling_leaves_the_centred_rewards():
    a = grpo.advantages(GRPOConfig(scale_rewards="none"), scored([3.0, 1.0], [2.0, 2.0]))
    assert a.tolist() == [[1.0, -1.0], [0.0, 0.0]]


def test_grpo_batch_scaling_takes_the_deviation_over_all_rewards():
    # rewards 3 1 2 2: mean 2, squares 1+1 over 3
    a = grpo.advantages(GRPOConfig(scale_rewards="batch"), scored([3.0, 1.0], [2.0, 2.0]))
    expected = 1 / (math.sqrt(2 / 3) + 1e-4)
    assert a.tolist() == [pytest.approx([expected, -expected]), [0.0, 0.0]]


def test_an_unscored_completion_has_no_advantage_and_does_not_move_the_others():
    a = grpo.advantages(GRPOConfig(scale_rewards="none"), scored([1.0, NAN, 0.0]))
    assert a.tolist() == [[0.5, 0.0, -0.5]]
    a = rloo.advantages(RLOOConfig(), scored([1.0, NAN, 0.0]))
    assert a.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize("rewards", [[NAN, NAN], [1.0, NAN], [0.3, 0.3]])
def test_a_group_without_signal_has_no_advantages(rewards):
    group = scored(rewards)
    assert without_signal(group.rewards_PG).tolist() == [True]
    assert grpo.advantages(GRPOConfig(), group).tolist() == [[0.0, 0.0]]
    assert rloo.advantages(RLOOConfig(), group).tolist() == [[0.0, 0.0]]


def test_rloo_baseline_is_the_mean_of_the_others():
    # 1 - (0 + 0.5)/2, 0 - (1 + 0.5)/2, 0.5 - (1 + 0)/2
    a = rloo.advantages(RLOOConfig(), scored([1.0, 0.0, 0.5]))
    assert a.tolist() == [pytest.approx([0.75, -0.75, 0.0])]


def test_rloo_clips_rewards_before_it_takes_the_kl_off():
    config = RLOOConfig(beta=0.5, reward_clip_range=(-1.0, 1.0))
    # clipped to 1 and -1, minus 0.5 * (2, 0): 0 and -1
    a = rloo.advantages(config, scored([7.0, -7.0], kl=[[2.0, 0.0]]))
    assert a.tolist() == [[1.0, -1.0]]


def test_rloo_whitens_over_the_whole_step():
    config = RLOOConfig(normalize_advantages=True)
    a = rloo.advantages(config, scored([1.0, 0.0], [3.0, 0.0]))  # raw: 1 -1 3 -3, std sqrt(20/3)
    std = math.sqrt(20 / 3) + 1e-4
    assert a.tolist() == [pytest.approx([1 / std, -1 / std]), pytest.approx([3 / std, -3 / std])]


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [
        # ratios 1 on policy, so l = -A: -1 on two tokens, +2 on one token
        ("grpo", (-1.0 + 2.0) / 2),
        ("bnpo", (-1.0 * 2 + 2.0) / 3),
        ("dapo", (-1.0 * 2 + 2.0) / 3),
        ("dr_grpo", (-1.0 * 2 + 2.0) / (2 * 4)),
    ],
)
def test_grpo_averages_token_losses_as_its_loss_type_says(loss_type, expected):
    logp = torch.tensor([[-1.0, -2.0], [-3.0, -9.0]], dtype=torch.float64)
    result = grpo.loss(GRPOConfig(loss_type=loss_type), logp, batch([[1, 1], [1, 0]], [1.0, -2.0]))
    assert result.loss.item() == pytest.approx(expected, abs=1e-12)


def test_grpo_clips_the_ratio_on_the_side_that_the_advantage_pushes_to():
    # ratio 2: A = 1 is held at 1.2; A = -1 keeps -2.  ratio 0.5: A = 1 keeps 0.5; A = -1 is held at 0.8
    log2 = math.log(2)
    logp = torch.tensor([[0.0], [0.0], [-log2], [-log2]], dtype=torch.float64)
    old = [[-log2], [-log2], [0.0], [0.0]]
    result = grpo.loss(GRPOConfig(), logp, batch([[1]] * 4, [1.0, -1.0, 1.0, -1.0], old=old))
    assert result.loss.item() == pytest.approx(-(1.2 - 2.0 + 0.5 - 0.8) / 4)
    assert [
        float(n) / d for n, d in (result.stats.sums["clip_ratio/high_mean"], result.stats.sums["clip_ratio/low_mean"])
    ] == [
        0.25,
        0.25,
    ]


def test_grpo_adds_k3_to_the_reference():
    # d = log p_ref - log p = log 2: 2 - log 2 - 1
    logp = torch.tensor([[-math.log(2)]], dtype=torch.float64)
    result = grpo.loss(GRPOConfig(beta=0.1), logp, batch([[1]], [0.0], ref=[[0.0]]))
    assert result.loss.item() == pytest.approx(0.1 * (1 - math.log(2)))


def test_on_policy_the_gradient_is_the_policy_gradient():
    logp = torch.tensor([[-1.0, -2.0]], dtype=torch.float64, requires_grad=True)
    grpo.loss(GRPOConfig(loss_type="dapo"), logp, batch([[1, 1]], [3.0])).loss.backward()
    assert logp.grad.tolist() == [[-1.5, -1.5]]
    logp.grad = None
    rloo.loss(RLOOConfig(), logp, batch([[1, 1]], [3.0])).loss.backward()
    assert logp.grad.tolist() == [[-3.0, -3.0]]


def test_rloo_takes_one_ratio_over_the_whole_completion():
    # log ratio 0.05 + 0.05 = 0.1 within the clip, padding ignored
    logp = torch.tensor([[-1.0, -1.0, 5.0]], dtype=torch.float64)
    result = rloo.loss(RLOOConfig(), logp, batch([[1, 1, 0]], [2.0], old=[[-1.05, -1.05, 0.0]]))
    assert result.loss.item() == pytest.approx(-2.0 * math.exp(0.1))


def test_a_very_unlikely_old_completion_does_not_overflow():
    logp = torch.zeros(1, 4096, dtype=torch.float32, requires_grad=True)
    old = torch.full((1, 4096), -10.0)
    result = rloo.loss(RLOOConfig(), logp, batch([[1] * 4096], [-1.0], old=old.tolist(), limit=4096))
    result.loss.backward()
    assert torch.isfinite(result.loss)
    assert torch.isfinite(logp.grad).all()


@pytest.mark.parametrize("loss_type", ["grpo", "dr_grpo", "dapo"])
def test_losses_of_micro_batches_add_up_to_the_loss_of_the_step(loss_type):
    config, logp = GRPOConfig(loss_type=loss_type), torch.randn(4, 3, dtype=torch.float64).abs().neg()
    mask, advantages = [[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], [1.0, -0.5, 0.25, 2.0]
    whole = grpo.loss(config, logp, batch(mask, advantages)).loss
    halves = [
        grpo.loss(
            config, logp[rows], batch(mask[rows], advantages[rows], completions=4, tokens=9, micro_batches=2)
        ).loss
        for rows in (slice(0, 2), slice(2, 4))
    ]
    torch.testing.assert_close(sum(halves), whole)
