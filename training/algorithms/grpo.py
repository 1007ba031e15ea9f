"""Group Relative Policy Optimization (arXiv 2402.03300), with Dr. GRPO (2503.20783) and DAPO (2503.14476) as options.

A_i   = (r_i - mean_j r_j) / (std_j r_j + 1e-4)                            over the G completions of a prompt
w_it  = p(y_it | x, y_i<t) / p_old(y_it | x, y_i<t)
l_it  = -min(w_it A_i, clip(w_it, 1 - eps, 1 + eps_high) A_i) + beta KL_it
KL_it = p_ref/p - log(p_ref/p) - 1                                          the k3 estimator, at each token
loss  = an average of l_it over the tokens of the step, by `loss_type`
"""

import torch
from torch import Tensor

from training.algorithms.ratio import clip_sums, clipped_objective, importance_ratio
from training.algorithms.statistics import EPSILON, nan_mean, nan_std, without_signal
from training.algorithms.types import Batch, Loss, Scored
from training.config import GRPOConfig


def advantages(config: GRPOConfig, scored: Scored) -> Tensor:
    """(P, G) rewards minus the group's mean, over the standard deviation that `scale_rewards` names."""
    r_PG = scored.rewards_PG
    centred_PG = r_PG - nan_mean(r_PG, 1)
    if config.scale_rewards == "group":
        centred_PG = centred_PG / (nan_std(r_PG, 1) + EPSILON)
    elif config.scale_rewards == "batch":
        centred_PG = centred_PG / (nan_std(r_PG, (0, 1)) + EPSILON)
    return centred_PG.nan_to_num(0.0).masked_fill(without_signal(r_PG)[:, None], 0.0)


def loss(config: GRPOConfig, logp_BT: Tensor, batch: Batch) -> Loss:
    """The clipped objective per token, plus the KL to the reference, averaged by `loss_type`."""
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    a_B1, mask_BT = batch.advantages_B[:, None], batch.mask_BT
    w_BT = importance_ratio(logp_BT, batch.old_logp_BT)
    l_BT = -clipped_objective(w_BT, a_B1, config.epsilon, high)
    sums = clip_sums(w_BT, a_B1, mask_BT, config.epsilon, high)
    if batch.ref_logp_BT is not None:
        kl_BT = k3(logp_BT, batch.ref_logp_BT)
        l_BT = l_BT + config.beta * kl_BT
        sums["kl"] = ((kl_BT.detach() * mask_BT).sum(), float(mask_BT.sum()))
    return Loss(AVERAGES[config.loss_type](l_BT, batch), sums)


def k3(logp_BT: Tensor, ref_logp_BT: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = log p_ref - log p: unbiased and never negative (joschu.net/blog/kl-approx.html)."""
    d_BT = (ref_logp_BT - logp_BT).clamp(-20.0, 20.0)
    return torch.expm1(d_BT) - d_BT


def per_completion(l_BT: Tensor, batch: Batch) -> Tensor:
    """Mean over a completion's tokens, then over completions (GRPO, arXiv 2402.03300 eq. 3)."""
    lengths_B = batch.mask_BT.sum(1).clamp(min=1)
    return ((l_BT * batch.mask_BT).sum(1) / lengths_B).sum() / batch.step_completions


def per_micro_batch_token(l_BT: Tensor, batch: Batch) -> Tensor:
    """Mean over the tokens of the micro-batch (BNPO): depends on how a step is cut into micro-batches."""
    return (l_BT * batch.mask_BT).sum() / batch.mask_BT.sum().clamp(min=1) / batch.step_micro_batches


def by_constant(l_BT: Tensor, batch: Batch) -> Tensor:
    """Sum over tokens, over completions times the length limit (Dr. GRPO, arXiv 2503.20783): no length bias."""
    return (l_BT * batch.mask_BT).sum() / (batch.step_completions * batch.max_completion_length)


def per_token(l_BT: Tensor, batch: Batch) -> Tensor:
    """Mean over all tokens of the step (DAPO, arXiv 2503.14476 eq. 8)."""
    return (l_BT * batch.mask_BT).sum() / max(batch.step_tokens, 1)


AVERAGES = {"grpo": per_completion, "bnpo": per_micro_batch_token, "dr_grpo": by_constant, "dapo": per_token}
