"""REINFORCE Leave-One-Out (arXiv 2402.14740), with a clipped importance ratio over whole completions.

R_i  = clip(r_i) - beta sum_t (log p_old(y_it) - log p_ref(y_it))           k1, summed over the completion
A_i  = R_i - mean of R over the other scored completions of the prompt
w_i  = p(y_i | x) / p_old(y_i | x)
loss = -mean_i min(w_i A_i, clip(w_i, 1 - eps, 1 + eps_high) A_i)
"""

from torch import Tensor

from training.algorithms.correction import correction, on_policy_enough, weighted
from training.algorithms.entropy import with_entropy_bonus
from training.algorithms.ratio import clip_stats, clipped_objective, importance_ratio
from training.algorithms.statistics import EPSILON, nan_mean, nan_std, zero_where_undefined
from training.algorithms.types import Batch, Loss, Scored
from training.config import RLOOConfig


def advantages(config: RLOOConfig, scored: Scored) -> Tensor:
    """(P, G) rewards, clipped and with the KL taken off, minus the mean of the group's other scored completions."""
    r_PG = scored.rewards_PG
    if config.reward_clip_range is not None:
        r_PG = r_PG.clamp(*config.reward_clip_range)
    if scored.kl_PG is not None:
        r_PG = r_PG - config.beta * scored.kl_PG
    others_P1 = (~r_PG.isnan()).sum(1, keepdim=True) - 1
    baseline_PG = (r_PG.nansum(1, keepdim=True) - r_PG) / others_P1.clamp(min=1)
    a_PG = (r_PG - baseline_PG).masked_fill(others_P1 < 1, float("nan"))
    if config.normalize_advantages:
        a_PG = (a_PG - nan_mean(a_PG, (0, 1))) / (nan_std(a_PG, (0, 1)) + EPSILON)
    return zero_where_undefined(a_PG)


def loss(config: RLOOConfig, logp_BT: Tensor, batch: Batch) -> Loss:
    """The clipped objective per completion, averaged over completions.

    A ratio over a long completion is a product of many; its logarithm is clamped to +-20 before exp, so that it
    saturates instead of overflowing (the clip of the objective has long been reached there).
    """
    rho_BX, spread = correction(config, logp_BT, batch)
    by_token = config.correction.startswith("token")
    # weights of tokens leave the ratio's value as it is, and weigh each token's gradient
    change_BT = weighted(logp_BT - logp_BT.detach(), batch.policy_mask_BT, rho_BX if by_token else None)
    logp_B1 = ((logp_BT.detach() + change_BT) * batch.mask_BT).sum(1, keepdim=True)
    old_logp_B1 = None if batch.old_logp_BT is None else (batch.old_logp_BT * batch.mask_BT).sum(1, keepdim=True)
    w_B1, a_B1 = importance_ratio(logp_B1, old_logp_B1), batch.advantages_B[:, None]
    objective_B1 = clipped_objective(w_B1, a_B1, config.epsilon, config.clip_high)
    stats = clip_stats(w_B1, a_B1, batch.mask_BT, config.epsilon, config.clip_high)
    if batch.ref_logp_BT is not None:
        kl_BT = (logp_BT.detach() - batch.ref_logp_BT) * batch.mask_BT
        stats.sums["kl"] = (float(kl_BT.sum()), float(batch.mask_BT.sum()))
    l_B1 = weighted(-objective_B1, on_policy_enough(config, logp_BT, batch), None if by_token else rho_BX)
    return with_entropy_bonus(config, l_B1.sum() / batch.step_completions, batch, stats | spread)
