"""The same recorded rollouts through TRL's loss and ours: value and gradient agree to 1e-5 for what both have.

Where we differ on purpose, a test at the end states the difference and its reason.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from training.algorithms import ALGORITHMS
from training.algorithms.types import Batch, Scored
from training.config import GRPOConfig, RLOOConfig

pytest.importorskip("trl")
from trl import GRPOTrainer, RLOOTrainer

from tests.parity.peer import bare, peer_advantages, peer_correction, peer_loss

PROMPTS, GROUP, LENGTH, LIMIT = 4, 4, 24, 32
ROWS = PROMPTS * GROUP


class Recorded:
    """A rollout with completions of many lengths, drifted weights, a reference and a sampler that is a little off."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)

        def noise(scale: float) -> Tensor:
            return scale * torch.randn(ROWS, LENGTH, generator=generator, dtype=torch.float64)

        lengths = torch.randint(1, LENGTH + 1, (ROWS,), generator=generator)
        lengths[3] = LENGTH
        self.mask_BT = (torch.arange(LENGTH) < lengths[:, None]).long()
        self.logp_BT = noise(1.0).abs().neg() - 0.1
        self.old_BT = self.logp_BT + noise(0.25)
        self.ref_BT = self.logp_BT + noise(0.3)
        self.sampling_BT = self.old_BT + noise(0.1)
        self.entropy_BT = noise(1.0).abs()
        self.advantages_B = torch.randn(ROWS, generator=generator, dtype=torch.float64)


DATA = Recorded()


def slices(micro_batches: int) -> list[slice]:
    size = ROWS // micro_batches
    return [slice(start, start + size) for start in range(0, ROWS, size)]


def micro_batch(config, rows: slice, mask_BT, logp_BT, *, old: bool, micro_batches: int, policy_mask_BT=None) -> Batch:
    return Batch(
        mask_BT=mask_BT[rows].bool(),
        advantages_B=DATA.advantages_B[rows],
        old_logp_BT=DATA.old_BT[rows] if old else None,
        sampling_logp_BT=DATA.sampling_BT[rows],
        ref_logp_BT=DATA.ref_BT[rows] if config.beta else None,
        entropy_BT=DATA.entropy_BT[rows] * logp_BT[rows].square(),
        policy_mask_BT=None if policy_mask_BT is None else policy_mask_BT[rows],
        step_completions=ROWS,
        step_tokens=int(mask_BT.sum()),
        step_policy_tokens=int((mask_BT if policy_mask_BT is None else policy_mask_BT).sum()),
        step_micro_batches=micro_batches,
        max_completion_length=LIMIT,
    )


def ours(config, micro_batches: int, *, mask_BT=None, old: bool, policy_mask_BT=None) -> tuple[float, Tensor]:
    mask_BT = DATA.mask_BT if mask_BT is None else mask_BT
    logp_BT = DATA.logp_BT.clone().requires_grad_()
    total = 0.0
    for rows in slices(micro_batches):
        batch = micro_batch(
            config, rows, mask_BT, logp_BT, old=old, micro_batches=micro_batches, policy_mask_BT=policy_mask_BT
        )
        result = ALGORITHMS[config.name].loss(config, logp_BT[rows], batch)
        result.loss.backward()
        total += result.loss.item()
    assert logp_BT.grad is not None
    return total, logp_BT.grad


def peers(trainer, micro_batches: int, *, mask_BT=None, old: bool, correction=None, **options) -> tuple[float, Tensor]:
    mask_BT = DATA.mask_BT if mask_BT is None else mask_BT
    logp_BT = DATA.logp_BT.clone().requires_grad_()
    total = 0.0
    for rows in slices(micro_batches):
        inputs = {
            "completion_mask": mask_BT[rows],
            "advantages": DATA.advantages_B[rows],
            "num_items_in_batch": mask_BT.sum(),
            "ref_per_token_logps": DATA.ref_BT[rows],
        }
        if trainer is RLOOTrainer:  # it always has them, and its caller divides by the accumulation steps
            before = DATA.old_BT if old else DATA.logp_BT
            inputs["old_logps"] = (before * mask_BT).sum(1)[rows]
        elif old:
            inputs["old_per_token_logps"] = DATA.old_BT[rows]
        if options.get("off_policy_mask_threshold") is not None:
            inputs["sampling_per_token_logps"] = DATA.sampling_BT[rows]
        if correction is not None:
            inputs["importance_sampling_ratio"] = correction[rows]
        entropy_BT = DATA.entropy_BT[rows] * logp_BT[rows].square()
        loss = peer_loss(
            trainer, logp_BT[rows], entropy_BT, inputs, micro_batches=micro_batches, limit=LIMIT, **options
        )
        loss = loss / micro_batches if trainer is RLOOTrainer else loss
        loss.backward()
        total += loss.item()
    assert logp_BT.grad is not None
    return total, logp_BT.grad


def assert_equal(mine: tuple[float, Tensor], theirs: tuple[float, Tensor]) -> None:
    assert mine[1].abs().max() > 1e-6  # a loss without gradient would agree with anything
    assert mine[0] == pytest.approx(theirs[0], rel=1e-5, abs=1e-12)
    torch.testing.assert_close(mine[1], theirs[1], rtol=1e-5, atol=1e-10)


CASES = {
    "grpo": ({"loss_type": "grpo"}, {"loss_type": "grpo"}),
    "bnpo": ({"loss_type": "bnpo"}, {"loss_type": "bnpo"}),
    "dr_grpo": ({"loss_type": "dr_grpo"}, {"loss_type": "dr_grpo"}),
    "dapo": ({"loss_type": "dapo", "epsilon_high": 0.28}, {"loss_type": "dapo", "epsilon_high": 0.28}),
    "sapo": ({"loss_type": "sapo"}, {"loss_type": "sapo"}),
    "luspo": ({"loss_type": "luspo"}, {"loss_type": "luspo"}),
    "luspo, sequence": (
        {"loss_type": "luspo", "importance_sampling_level": "sequence"},
        {"loss_type": "luspo", "importance_sampling_level": "sequence"},
    ),
    # the peer's bound is epsilon_high itself, ours 1 + epsilon_high as in the paper
    "cispo": ({"loss_type": "cispo", "epsilon_high": 0.1}, {"loss_type": "cispo", "epsilon_high": 1.1}),
    "gspo": (
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-2, "epsilon_high": 4e-2},
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 3e-2, "epsilon_high": 4e-2},
    ),
    "delta": ({"loss_type": "grpo", "delta": 1.3}, {"loss_type": "grpo", "delta": 1.3}),
    "kl": (
        {"beta": 0.04, "use_bias_correction_kl": False},
        {"beta": 0.04, "use_bias_correction_kl": False},
    ),
    "kl, bias corrected": ({"beta": 0.04}, {"beta": 0.04}),
    "kl, bias corrected, sequence": (
        {"beta": 0.04, "importance_sampling_level": "sequence", "loss_type": "grpo"},
        {"beta": 0.04, "importance_sampling_level": "sequence", "loss_type": "grpo"},
    ),
    **{
        f"{loss}, {level}, kl": (
            {"loss_type": loss, "importance_sampling_level": level, "beta": 0.1},
            {"loss_type": loss, "importance_sampling_level": level, "beta": 0.1},
        )
        for loss in ("grpo", "bnpo", "dr_grpo", "dapo", "sapo", "luspo")
        for level in ("token", "sequence")
    },
    "sapo, temperatures": (
        {"loss_type": "sapo", "sapo_temperature_pos": 2.0, "sapo_temperature_neg": 0.7},
        {"loss_type": "sapo", "sapo_temperature_pos": 2.0, "sapo_temperature_neg": 0.7},
    ),
    "vespo": ({"loss_type": "vespo"}, {"loss_type": "vespo"}),
    "vespo, kl": (
        {"loss_type": "vespo", "beta": 0.1, "vespo_k_pos": 1.5, "vespo_lambda_neg": 1.0},
        {"loss_type": "vespo", "beta": 0.1, "vespo_k_pos": 1.5, "vespo_lambda_neg": 1.0},
    ),
    "off-policy mask": ({"off_policy_threshold": 0.02}, {"off_policy_mask_threshold": 0.02}),
}


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_grpo_objectives(case, micro_batches):
    mine, theirs = CASES[case]
    assert_equal(
        ours(GRPOConfig(**mine), micro_batches, old=True), peers(GRPOTrainer, micro_batches, old=True, **theirs)
    )


@pytest.mark.parametrize("case", ["grpo", "dapo", "cispo", "sapo", "gspo", "kl, bias corrected"])
def test_grpo_on_policy(case):
    """Without old log-probabilities the ratio is 1 and carries the gradient."""
    mine, theirs = CASES[case]
    assert_equal(ours(GRPOConfig(**mine), 2, old=False), peers(GRPOTrainer, 2, old=False, **theirs))


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"])
def test_masked_truncated_completions(loss_type):
    """A row without any token left counts in the means over completions, as the peer's does, and moves nothing."""
    mask_BT = DATA.mask_BT.clone()
    mask_BT[[3, 5]] = 0
    mine = ours(GRPOConfig(loss_type=loss_type), 1, old=True, mask_BT=mask_BT)
    assert mine[1][[3, 5]].abs().max() == 0
    assert_equal(mine, peers(GRPOTrainer, 1, old=True, mask_BT=mask_BT, loss_type=loss_type))


@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_importance_correction(mode):
    low, high = (0.9, 1.15) if mode.startswith("token") else (0.6, 1.5)
    weights = peer_correction(DATA.old_BT, DATA.sampling_BT, DATA.mask_BT, mode=mode, low=low, high=high)
    unbounded = weights[(weights != 0) & (weights != low) & (weights != high)]
    assert 0 < len(unbounded) < weights.numel()  # some are bounded, some are not
    enabled = {"use_vllm": True, "vllm_importance_sampling_correction": True}
    for loss_type in ("dapo", "grpo", "cispo", *(["vespo"] if mode.startswith("token") else [])):
        high_clip = {"cispo": {"epsilon_high": 1.2}}.get(loss_type, {})
        config = GRPOConfig(loss_type=loss_type, correction=mode, correction_min=low, correction_max=high)
        theirs = peers(GRPOTrainer, 2, old=True, correction=weights, loss_type=loss_type, **enabled, **high_clip)
        assert_equal(ours(config, 2, old=True), theirs)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_entropy_bonus_and_top_entropy_tokens(share):
    logged_BT = DATA.entropy_BT * DATA.logp_BT.square()
    threshold = torch.quantile(logged_BT[DATA.mask_BT.bool()], 1 - share)
    policy_mask_BT = DATA.mask_BT.bool() & (logged_BT >= threshold) if share < 1 else None
    config = GRPOConfig(entropy_coef=0.01, top_entropy_quantile=share)
    mine = ours(config, 1, old=True, policy_mask_BT=policy_mask_BT)
    assert_equal(mine, peers(GRPOTrainer, 1, old=True, entropy_coef=0.01, top_entropy_quantile=share))


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_rloo(old, micro_batches):
    config = RLOOConfig(beta=0.0, epsilon=0.3, epsilon_high=0.9)
    theirs = {"epsilon_low": 0.3, "epsilon_high": 0.9}
    assert_equal(ours(config, micro_batches, old=old), peers(RLOOTrainer, micro_batches, old=old, **theirs))


NAN = float("nan")
REWARDS_PGK = torch.tensor(
    [
        [[1.0, 0.5], [0.0, 0.5], [1.0, 0.0], [0.25, 1.0]],
        [[NAN, NAN], [0.0, 1.0], [1.0, NAN], [0.0, 0.0]],
        [[3.0, -2.0], [0.0, -2.5], [1.0, NAN], [NAN, 0.0]],
    ],
    dtype=torch.float64,
)
WEIGHTS_K = torch.tensor([1.0, 0.5], dtype=torch.float64)
SCORED = Scored(REWARDS_PGK, WEIGHTS_K)


@pytest.mark.parametrize(
    "options",
    [
        {"scale_rewards": "group"},
        {"scale_rewards": "batch"},
        {"scale_rewards": "none"},
        {"multi_objective_aggregation": "normalize_then_sum"},
    ],
    ids=str,
)
def test_grpo_advantages(options):
    mine = ALGORITHMS["grpo"].advantages(GRPOConfig(**options), SCORED)
    torch.testing.assert_close(mine, peer_advantages(GRPOTrainer, REWARDS_PGK, WEIGHTS_K, **options), rtol=1e-6, atol=0)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("clip", [None, (-0.5, 1.0)])
def test_rloo_advantages_with_the_kl_in_the_reward(normalize, clip):
    generator = torch.Generator().manual_seed(3)
    shape = (12, 5)
    ref, old = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    mask = (torch.rand(shape, generator=generator) < 0.7).long()
    config = RLOOConfig(beta=0.1, normalize_advantages=normalize, reward_clip_range=clip)
    kl_PG = ((old - ref) * mask).sum(1).view(3, 4)
    theirs = peer_advantages(
        RLOOTrainer, REWARDS_PGK, WEIGHTS_K, beta=0.1, normalize_advantages=normalize, reward_clip_range=clip,
        old_per_token_logps=old, ref_per_token_logps=ref, completion_mask=mask, mode="train",
    )  # fmt: skip
    mine = ALGORITHMS["rloo"].advantages(config, replace(SCORED, kl_PG=kl_PG))
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-12)


def test_cispo_bounds_the_ratio_at_one_plus_epsilon_as_its_paper_does():
    """The peer's bound is epsilon_high alone: at its default of 0.2 every weight, on policy too, becomes 0.2."""
    generous = {"loss_type": "cispo", "epsilon_high": 0.2}
    mine, theirs = ours(GRPOConfig(**generous), 1, old=False), peers(GRPOTrainer, 1, old=False, **generous)
    torch.testing.assert_close(mine[1] * 0.2, theirs[1])


def test_a_group_of_equal_rewards_has_no_advantage_at_all():
    """The mean of equal numbers may differ from them by rounding, and 1e-4 does not hide it from the peer."""
    rewards_PGK = torch.full((1, 7, 1), 0.7)
    mine = ALGORITHMS["grpo"].advantages(GRPOConfig(), Scored(rewards_PGK, torch.ones(1)))
    assert mine.tolist() == [[0.0] * 7]
    assert peer_advantages(GRPOTrainer, rewards_PGK, torch.ones(1)).abs().max() > 1e-4


def test_a_long_completion_saturates_the_sequence_ratio_of_rloo_and_does_not_overflow():
    """300 tokens that each became e times as likely: exp(300) is infinite in float32, and so is the peer's loss."""
    logp_BT, mask_BT = torch.full((1, 300), -1.0, requires_grad=True), torch.ones(1, 300)
    inputs = {"completion_mask": mask_BT, "advantages": torch.tensor([-1.0]), "old_logps": torch.tensor([-600.0])}
    theirs = peer_loss(RLOOTrainer, logp_BT, torch.zeros(1, 300), inputs)
    assert theirs.isinf()
    old_BT = torch.full((1, 300), -2.0)
    batch = Batch(
        mask_BT.bool(), torch.tensor([-1.0]), old_BT, old_BT, None, torch.zeros(1, 300), None,
        step_completions=1, step_tokens=300, step_policy_tokens=300, step_micro_batches=1, max_completion_length=300,
    )  # fmt: skip
    result = ALGORITHMS["rloo"].loss(RLOOConfig(), logp_BT, batch)
    assert result.loss.item() == pytest.approx(torch.tensor(20.0).exp().item())


def test_the_entropy_bonus_is_the_mean_over_the_step_however_it_is_cut():
    """The peer takes the mean of each micro-batch's mean: tokens of short micro-batches weigh more."""
    config = GRPOConfig(entropy_coef=1.0)
    whole, cut = ours(config, 1, old=True), ours(config, 4, old=True)
    assert_equal(cut, whole)
    theirs = peers(GRPOTrainer, 1, old=True, entropy_coef=1.0), peers(GRPOTrainer, 4, old=True, entropy_coef=1.0)
    assert theirs[0][0] != pytest.approx(theirs[1][0], rel=1e-5)


METRICS = {
    "token": {"loss_type": "grpo"},
    "sequence": {"loss_type": "grpo", "importance_sampling_level": "sequence"},
    "cispo": {"loss_type": "cispo", "epsilon_high": 0.1},
    "vespo": {"loss_type": "vespo"},
    "kl": {"beta": 0.1},
    "bonus": {"entropy_coef": 0.01},
}


@pytest.mark.parametrize("case", METRICS)
def test_metrics_have_the_peers_names_and_values(case):
    config = GRPOConfig(**METRICS[case])
    rows = slice(0, ROWS)
    batch = micro_batch(config, rows, DATA.mask_BT, DATA.logp_BT, old=True, micro_batches=1)
    stats = ALGORITHMS["grpo"].loss(config, DATA.logp_BT, batch).stats
    mine = {name: top / bottom for name, (top, bottom) in stats.sums.items()} | stats.lows | stats.highs
    theirs = METRICS[case] | ({"epsilon_high": 1.1} if case == "cispo" else {})
    one = bare(GRPOTrainer, limit=LIMIT, **theirs)
    one._get_per_token_logps_and_entropies = lambda *_, **__: (DATA.logp_BT, DATA.entropy_BT, None)
    blank = torch.zeros(ROWS, 1, dtype=torch.long)
    one._compute_loss(
        one.model,
        {
            "prompt_ids": blank,
            "prompt_mask": blank,
            "completion_ids": torch.zeros(DATA.mask_BT.shape, dtype=torch.long),
            "completion_mask": DATA.mask_BT,
            "advantages": DATA.advantages_B,
            "num_items_in_batch": DATA.mask_BT.sum(),
            "old_per_token_logps": DATA.old_BT,
            "ref_per_token_logps": DATA.ref_BT,
        },
    )
    # entropy is added by the update; the bonus's coefficient is a constant of the configuration
    peers_metrics = {name: values[0] for name, values in one._metrics["train"].items()}
    wanted = {n: value for n, value in peers_metrics.items() if n not in ("entropy", "entropy_coef")}
    assert mine == pytest.approx(wanted, rel=1e-6)
