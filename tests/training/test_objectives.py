"""Options of the objectives against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from tests.training.test_algorithms import NAN, batch, scored
from training.algorithms import grpo, rloo
from training.algorithms.kl import k1, k2, k3
from training.algorithms.overlong import punished
from training.algorithms.types import Scored
from training.config import GRPOConfig, RLOOConfig, RunConfig
from training.generation import Completions
from training.token_masks import token_masks

LOG2 = math.log(2)
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")


def logps(*rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


def test_gdpo_normalises_each_reward_before_it_sums():
    # reward a: 1 0 -> +-0.5 over 0.7071; reward b: 10 0 -> the same, so b cannot drown a
    rewards = torch.tensor([[[1.0, 0.0], [0.0, 10.0]], [[1.0, 10.0], [0.0, 0.0]]], dtype=torch.float64)
    group = Scored(rewards, torch.tensor([2.0, 1.0], dtype=torch.float64))
    a = grpo.advantages(GRPOConfig(multi_objective_aggregation="normalize_then_sum"), group)
    a_z, b_z = 0.5 / (math.sqrt(0.5) + 1e-4), 5 / (math.sqrt(50) + 1e-4)
    first, second = 2 * a_z - b_z, 2 * a_z + b_z  # the sums are these and their negatives, of mean 0
    std = math.sqrt((2 * first**2 + 2 * second**2) / 3)
    expected = [[first, -first], [second, -second]]
    assert a.tolist() == [pytest.approx([x / (std + 1e-4) for x in row]) for row in expected]


def test_gspo_takes_the_mean_log_ratio_of_a_completion():
    # log ratios 0.3 and 0.1 -> exp(0.2), each token's gradient is half of A w
    logp = logps([-1.0, -2.0, 7.0])
    config = GRPOConfig(importance_sampling_level="sequence", loss_type="grpo", epsilon_high=0.5)
    result = grpo.loss(config, logp, batch([[1, 1, 0]], [2.0], old=[[-1.3, -2.1, 0.0]]))
    assert result.loss.item() == pytest.approx(-2 * math.exp(0.2))
    result.loss.backward()
    assert logp.grad.tolist() == [pytest.approx([-math.exp(0.2), -math.exp(0.2), 0.0])]


def test_kl_estimators():
    p, ref = torch.tensor(-1.0), torch.tensor(-1.0 + LOG2)
    assert [k(p, ref).item() for k in (k1, k2, k3)] == pytest.approx([-LOG2, LOG2**2 / 2, 1 - LOG2])
    far = torch.tensor(-1e4)
    assert all(torch.isfinite(k(far, ref)) for k in (k1, k2, k3))


@pytest.mark.parametrize(("estimator", "expected"), [("k1", -LOG2), ("k2", LOG2**2 / 2), ("k3", 1 - LOG2)])
def test_the_kl_term_is_the_estimator_that_was_chosen(estimator, expected):
    # on policy the ratio of the bias correction is 1
    config = GRPOConfig(beta=0.5, kl_estimator=estimator)
    result = grpo.loss(config, logps([-LOG2]), batch([[1]], [0.0], ref=[[0.0]]))
    assert result.loss.item() == pytest.approx(0.5 * expected)
    assert result.stats.sums["kl"] == (pytest.approx(expected), 1.0)


def test_the_bias_correction_weighs_the_kl_by_the_ratio():
    # ratio 2 at the only token
    config = GRPOConfig(beta=0.5)
    result = grpo.loss(config, logps([-LOG2]), batch([[1]], [0.0], ref=[[0.0]], old=[[-2 * LOG2]]))
    assert result.loss.item() == pytest.approx(0.5 * 2 * (1 - LOG2))


def test_delta_bounds_the_ratio_where_the_advantage_is_negative():
    # ratio 4, A = -1: -min(min(4, 3) * -1, 1.2 * -1) = 3
    result = grpo.loss(GRPOConfig(delta=3.0), logps([0.0]), batch([[1]], [-1.0], old=[[-2 * LOG2]]))
    assert result.loss.item() == pytest.approx(3.0)


def test_cispo_keeps_the_gradient_of_a_token_whose_weight_is_clipped():
    logp = logps([-1.0])
    result = grpo.loss(GRPOConfig(loss_type="cispo"), logp, batch([[1]], [2.0], old=[[-1.0 - LOG2]]))
    result.loss.backward()
    assert logp.grad.tolist() == [[pytest.approx(-2 * 1.2)]]
    assert result.stats.sums["cispo_clip_ratio"] == (1.0, 1.0)


def test_sapo_has_the_policy_gradient_on_policy():
    # 4/tau sigmoid(tau (w - 1)) has the slope 1 at w = 1, for both temperatures
    logp = logps([-1.0], [-1.0])
    config = GRPOConfig(loss_type="sapo", sapo_temperature_pos=3.0, sapo_temperature_neg=0.5)
    grpo.loss(config, logp, batch([[1], [1]], [1.0, -1.0])).loss.backward()
    assert logp.grad.flatten().tolist() == pytest.approx([-0.5, 0.5])


def test_vespo_weighs_a_completion_by_the_product_of_its_ratios():
    # ratios 2 and 1/4: W = 1/2; phi = e^3 W^2 e^-1.5 for A > 0, e^2 W^3 e^-1 for A < 0
    old = [[-1.0 - LOG2, -1.0 + 2 * LOG2]] * 2
    logp = logps([-1.0, -1.0], [-1.0, -1.0])
    result = grpo.loss(GRPOConfig(loss_type="vespo"), logp, batch([[1, 1]] * 2, [2.0, -1.0], old=old))
    result.loss.backward()
    positive, negative = math.exp(1.5) / 4, math.exp(1.0) / 8
    assert logp.grad.tolist() == [pytest.approx([-2 * positive / 4] * 2), pytest.approx([negative / 4] * 2)]
    assert result.stats.sums["vespo/phi_seq_mean"] == (pytest.approx(positive + negative), 2.0)


def test_luspo_sums_over_tokens():
    result = grpo.loss(
        GRPOConfig(loss_type="luspo"), logps([-1.0, -1.0], [-1.0, 0.0]), batch([[1, 1], [1, 0]], [1.0, -3.0])
    )
    assert result.loss.item() == pytest.approx((-1 - 1 + 3) / 2)


def test_the_entropy_bonus_is_taken_off_the_loss():
    result = grpo.loss(GRPOConfig(entropy_coef=0.1), logps([-1.0, -1.0]), batch([[1, 1]], [1.0], entropy=[[0.4, 0.8]]))
    assert result.loss.item() == pytest.approx(-1.0 - 0.1 * 0.6)
    assert result.stats.sums["policy_loss"] == (pytest.approx(-1.0), 1.0)
    # over the tokens that the policy learns from: the second alone
    given = {"entropy": [[0.4, 0.8]], "policy_mask": [[0.0, 1.0]]}
    result = rloo.loss(RLOOConfig(entropy_coef=0.1), logps([-1.0, -1.0]), batch([[1, 1]], [1.0], **given))
    assert result.loss.item() == pytest.approx(-1.0 - 0.1 * 0.8)


@pytest.mark.parametrize(
    ("mode", "reduction", "expected"),
    [
        # log-ratios to the sampler: log 2 and log 4 -> 2, 4; sum 8; mean of logs 2^1.5
        ("token_truncate", "sum", [2.0, 3.0]),
        ("token_mask", "sum", [2.0, 0.0]),
        ("sequence_truncate", "sum", [3.0, 3.0]),
        ("sequence_mask", "sum", [0.0, 0.0]),
        ("sequence_mask", "mean", [2**1.5, 2**1.5]),
    ],
)
def test_the_correction_weighs_each_tokens_gradient(mode, reduction, expected):
    given = {"old": [[-1.0, -1.0]], "sampling": [[-1.0 - LOG2, -1.0 - 2 * LOG2]]}
    options = {"correction": mode, "correction_reduction": reduction}
    logp = logps([-1.0, -1.0])
    result = grpo.loss(GRPOConfig(**options), logp, batch([[1, 1]], [1.0], **given))
    result.loss.backward()
    assert logp.grad.tolist() == [pytest.approx([-x / 2 for x in expected])]
    spread = {"token": (2.0, 4.0), "sequence": (8.0, 8.0) if reduction == "sum" else (2**1.5, 2**1.5)}
    low, high = spread[mode.partition("_")[0]]
    name = "sampling/importance_sampling_ratio"
    assert result.stats.lows[f"{name}/min"] == pytest.approx(low)
    assert result.stats.highs[f"{name}/max"] == pytest.approx(high)
    # RLOO: the gradient of each token of the one ratio
    logp = logps([-1.0, -1.0])
    rloo.loss(RLOOConfig(**options), logp, batch([[1, 1]], [1.0], **given)).loss.backward()
    assert logp.grad.tolist() == [pytest.approx([-x for x in expected])]


@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
@pytest.mark.parametrize(("config", "algorithm"), [(GRPOConfig, grpo), (RLOOConfig, rloo)])
def test_a_token_without_a_sampler_log_probability_is_not_corrected(config, algorithm, mode):
    """As vLLM leaves out some: one NaN must neither spread nor cost its completion."""
    gradients = []
    for sampled in (NAN, -1.0):
        logp = logps([-1.0, -1.0])
        given = {"old": [[-1.0, -1.0]], "sampling": [[-1.2, sampled]]}
        options = config(correction=mode, off_policy_threshold=0.5)
        algorithm.loss(options, logp, batch([[1, 1]], [-1.0], **given)).loss.backward()
        gradients.append(logp.grad.tolist())
    assert gradients[0] == gradients[1]
    assert gradients[0][0][0] > 0


@pytest.mark.parametrize("mode", ["token_truncate", "sequence_truncate"])
def test_the_spread_of_the_correction_leaves_out_padding_and_completions_without_tokens(mode):
    # one token of ratio 2 and a last position that is padding; a second completion without any token
    given = {"old": [[-1.0, 0.0], [0.0, 0.0]], "sampling": [[-1.0 - LOG2, 0.0], [0.0, 0.0]]}
    config = GRPOConfig(correction=mode)
    stats = grpo.loss(config, logps([-1.0, 0.0], [0.0, 0.0]), batch([[1, 0], [0, 0]], [1.0, 1.0], **given)).stats
    name = "sampling/importance_sampling_ratio"
    assert stats.sums[f"{name}/mean"] == (pytest.approx(2.0), 1.0)
    assert stats.lows[f"{name}/min"] == pytest.approx(2.0)


def test_the_extreme_shares_of_the_clip_leave_out_completions_without_tokens():
    # ratios 0.5 with A < 0: the only completion that counts is clipped at both of its tokens
    given = {"old": [[LOG2, LOG2], [0.0, 0.0]]}
    result = grpo.loss(GRPOConfig(), logps([0.0, 0.0], [0.0, 0.0]), batch([[1, 1], [0, 0]], [-1.0, -1.0], **given))
    assert result.stats.lows == {"clip_ratio/low_min": 1.0}


@pytest.mark.parametrize("rewards", [[math.inf, 1.0, 0.0], [-math.inf, 1.0, 0.0], [math.inf, -math.inf, 0.0]])
def test_an_infinite_total_gives_no_infinite_advantage(rewards):
    """None comes from a reward function, see its tests; this is the last door before the loss."""
    configs = [GRPOConfig(scale_rewards=scale) for scale in ("group", "batch", "none")]
    for config in (*configs, GRPOConfig(multi_objective_aggregation="normalize_then_sum")):
        assert grpo.advantages(config, scored(rewards)).isfinite().all()
    for config in (RLOOConfig(), RLOOConfig(normalize_advantages=True)):
        a = rloo.advantages(config, scored(rewards))
        assert a.isfinite().all()
        assert a.abs().max() < 1e6


def test_the_off_policy_mask_drops_only_completions_of_negative_advantage():
    # both fell by 1 nat a token since they were sampled
    logp = logps([-2.0, -2.0], [-2.0, -2.0])
    given = {"old": [[-2.0, -2.0]] * 2, "sampling": [[-1.0, -1.0]] * 2}
    for config, algorithm in ((GRPOConfig, grpo), (RLOOConfig, rloo)):
        logp.grad = None
        algorithm.loss(
            config(off_policy_threshold=0.9), logp, batch([[1, 1]] * 2, [1.0, -1.0], **given)
        ).loss.backward()
        assert logp.grad[0].abs().min() > 0
        assert logp.grad[1].tolist() == [0.0, 0.0]
        logp.grad = None
        algorithm.loss(
            config(off_policy_threshold=1.1), logp, batch([[1, 1]] * 2, [1.0, -1.0], **given)
        ).loss.backward()
        assert logp.grad[1].abs().min() > 0


def test_overlong_completions_lose_reward_over_the_buffer():
    # limit 10, buffer 4: nothing up to 6, all of it at 10; an unscored completion stays unscored
    group = scored([1.0, 1.0, 1.0, NAN])
    lengths = torch.tensor([[6, 8, 10, 10]])
    after = punished(GRPOConfig(overlong_buffer=4, overlong_penalty=2.0), group, lengths, limit=10)
    assert after.rewards_PG[0, :3].tolist() == [1.0, 0.0, -1.0]
    assert after.rewards_PG[0, 3].isnan()
    assert punished(GRPOConfig(), group, lengths, limit=10) is group


def completions(lengths, ended, entropy) -> Completions:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    zeros = torch.zeros(mask.shape)
    return Completions(zeros.long(), mask, zeros, torch.tensor(entropy), torch.tensor(ended))


def alone(array: np.ndarray) -> list[np.ndarray]:
    return [array]


def test_cut_completions_leave_the_loss_where_the_config_says_so():
    cut = completions([2, 1], [False, True], [[0.0, 0.0], [0.0, 0.0]])
    config = RunConfig.model_validate({"algorithm": {"name": "rloo", "mask_truncated_completions": True}})
    assert token_masks(config, cut, alone).loss_BT.tolist() == [[False, False], [True, False]]
    assert token_masks(RunConfig(), cut, alone).loss_BT.tolist() == [[True, True], [True, False]]


def test_the_policy_learns_from_the_tokens_of_the_highest_entropy_of_the_whole_step():
    own = completions([3, 2], [True, True], [[0.1, 0.9, 0.2], [0.8, 0.3, 9.0]])
    config = RunConfig.model_validate({"algorithm": {"name": "grpo", "top_entropy_quantile": 0.4}})
    masks = token_masks(config, own, alone)
    assert masks.policy_BT.tolist() == [[False, True, False], [True, False, False]]
    # another rank holds four tokens of higher entropy: none of ours is among the top 40 % of nine
    masks = token_masks(config, own, lambda array: [array, np.array([2.0, 3.0, 4.0, 5.0])])
    assert masks.policy_BT.tolist() == [[False, False, False], [False, False, False]]


def test_a_token_that_the_policy_does_not_learn_from_has_no_gradient_in_rloo_and_stays_in_the_ratio():
    # log ratio 0.05 + 0.05 with the second token, which alone does not move
    given = {"policy_mask": [[1.0, 0.0]], "old": [[-1.05, -1.05]]}
    logp = logps([-1.0, -1.0])
    result = rloo.loss(RLOOConfig(), logp, batch([[1, 1]], [2.0], **given))
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-2 * math.exp(0.1))
    assert logp.grad.tolist() == [pytest.approx([-2 * math.exp(0.1), 0.0])]


def test_a_masked_token_has_no_policy_gradient_and_keeps_its_kl():
    given = {"policy_mask": [[1.0, 0.0]], "ref": [[-1.0, -1.5]]}
    logp = logps([-1.0, -1.0])
    config = GRPOConfig(beta=1.0, kl_estimator="k2", use_bias_correction_kl=False)
    grpo.loss(config, logp, batch([[1, 1]], [1.0], **given)).loss.backward()
    assert logp.grad.tolist() == [pytest.approx([-0.5, 0.25])]  # k2: d^2/2 with d = -0.5 has the slope 0.5


@pytest.mark.parametrize(
    ("loss_type", "level"),
    [(loss, "token") for loss in LOSSES] + [(loss, "sequence") for loss in LOSSES if loss not in ("cispo", "vespo")],
)
def test_a_micro_batch_without_any_token_is_no_division_by_zero(loss_type, level):
    logp = logps([-1.0, -1.0])
    config = GRPOConfig(loss_type=loss_type, importance_sampling_level=level, beta=0.1, entropy_coef=0.1)
    result = grpo.loss(config, logp, batch([[0, 0]], [1.0], old=[[-1.0, -2.0]], ref=[[-1.0, -1.0]]))
    result.loss.backward()
    assert result.loss.item() == 0.0
    assert logp.grad.tolist() == [[0.0, 0.0]]
    assert all(math.isfinite(value) for value in [*result.stats.lows.values(), *result.stats.highs.values()])


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ({"name": "grpo", "loss_type": "gpro"}, "'dr_grpo', 'dapo'"),
        ({"name": "grpo", "loss_type": "sapo", "delta": 3.0}, "delta belongs to loss_type grpo, bnpo"),
        ({"name": "grpo", "delta": 1.1}, "above the upper clip bound 1.2"),
        ({"name": "grpo", "epsilon": -0.1}, "greater than or equal to 0"),
        (
            {"name": "grpo", "multi_objective_aggregation": "normalize_then_sum", "scale_rewards": "none"},
            "scale_rewards",
        ),
        ({"name": "grpo", "top_entropy_quantile": 0.0}, "greater than 0"),
        (
            {"name": "grpo", "loss_type": "sapo", "epsilon_high": 0.3},
            "epsilon_high belongs to loss_type .*cispo, and loss_type is sapo; leave it empty",
        ),
        ({"name": "grpo", "sapo_temperature_neg": 2.0}, "belongs to loss_type sapo"),
        ({"name": "grpo", "loss_type": "cispo", "importance_sampling_level": "sequence"}, "ratios of tokens"),
        ({"name": "grpo", "beta": 0.1, "kl_estimator": "k1", "use_bias_correction_kl": False}, "0 in expectation"),
        ({"name": "rloo", "correction_min": 1.0, "correction_max": 1.0}, "expected correction_min < correction_max"),
        ({"name": "rloo", "overlong_buffer": 257}, "max_completion_length = 256"),
        ({"name": "grpo", "loss_type": "vespo", "importance_sampling_level": "sequence"}, "ratios of tokens"),
        ({"name": "grpo", "loss_type": "vespo", "correction": "sequence_mask"}, "weight of the sequence"),
        ({"name": "grpo", "vespo_k_neg": 1.0}, "leave it at 3.0"),
        ({"name": "grpo", "num_iterations": 0}, "greater than or equal to 1"),
        ({"name": "rloo", "correction": "sequence"}, "'sequence_truncate'"),
        ({"name": "rloo", "reward_clip_range": [1.0, -1.0]}, "swap them"),
        ({"name": "ppo"}, "'grpo', 'rloo'"),
    ],
)
def test_options_that_make_no_sense_are_refused_when_the_config_is_read(algorithm, said):
    with pytest.raises(ValidationError, match=said):
        RunConfig.model_validate({"algorithm": algorithm})
