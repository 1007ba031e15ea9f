"""Group Relative Policy Optimization (arXiv 2402.03300); every option changes one term of it.

A_i   = (r_i - mean_j r_j) / (std_j r_j + 1e-4)                            over the G completions of a prompt
w_it  = p(y_it | x, y_i<t) / p_old(y_it | x, y_i<t)                        one a completion at the sequence level (GSPO)
l_it  = -min(w_it A_i, clip(w_it, 1 - eps, 1 + eps_high) A_i) + beta KL_it
loss  = an average of l_it over the tokens of the step, by `loss_type`
"""

from torch import Tensor

from training.algorithms.averages import AVERAGES
from training.algorithms.correction import correction, on_policy_enough, weighted
from training.algorithms.entropy import with_entropy_bonus
from training.algorithms.kl import ESTIMATORS
from training.algorithms.objectives import CORRECTED, OBJECTIVES, clipped
from training.algorithms.ratio import importance_ratio, sequence_ratio
from training.algorithms.statistics import EPSILON, nan_mean, nan_std, without_signal, zero_where_undefined
from training.algorithms.types import Batch, Loss, Scored
from training.config import GRPOConfig


def advantages(config: GRPOConfig, scored: Scored) -> Tensor:
    """(P, G) rewards minus the group's mean, over the standard deviation that `scale_rewards` names; or GDPO's."""
    if config.multi_objective_aggregation == "normalize_then_sum":
        return _decoupled(scored)
    r_PG = scored.rewards_PG
    centred_PG = r_PG - nan_mean(r_PG, 1)
    if config.scale_rewards == "group":
        centred_PG = centred_PG / (nan_std(r_PG, 1) + EPSILON)
    elif config.scale_rewards == "batch":
        centred_PG = centred_PG / (nan_std(r_PG, (0, 1)) + EPSILON)
    return zero_where_undefined(centred_PG).masked_fill(without_signal(r_PG)[:, None], 0.0)


def _decoupled(scored: Scored) -> Tensor:
    """GDPO (arXiv 2601.05242): z_k = (r_k - mean r_k) / (std r_k + 1e-4) in the group, s = sum_k w_k z_k, whitened."""
    r_PGK = scored.rewards_PGK
    z_PGK = (r_PGK - nan_mean(r_PGK, 1)) / (nan_std(r_PGK, 1) + EPSILON)
    s_PG = Scored(z_PGK, scored.weights_K).rewards_PG
    a_PG = (s_PG - nan_mean(s_PG, (0, 1))) / (nan_std(s_PG, (0, 1)) + EPSILON)
    return zero_where_undefined(a_PG)


def loss(config: GRPOConfig, logp_BT: Tensor, batch: Batch) -> Loss:
    """The objective per token, weighted and with the KL to the reference, averaged by `loss_type`."""
    if config.importance_sampling_level == "token":
        w_BX = importance_ratio(logp_BT, batch.old_logp_BT)
    else:
        w_BX = sequence_ratio(logp_BT, batch.old_logp_BT, batch.mask_BT)
    objective_BX, stats = OBJECTIVES.get(config.loss_type, clipped)(config, w_BX, logp_BT, batch)
    rho_BX, spread = correction(config, logp_BT, batch)
    kept_B1 = on_policy_enough(config, logp_BT, batch)
    outer_BX = None if config.loss_type in CORRECTED else rho_BX
    l_BX = weighted(-objective_BX, kept_B1, batch.policy_mask_BT, outer_BX)
    if batch.ref_logp_BT is not None:
        kl_BT = ESTIMATORS[config.kl_estimator](logp_BT, batch.ref_logp_BT)
        if config.use_bias_correction_kl:
            kl_BT = kl_BT * w_BX
        l_BX = l_BX + config.beta * kl_BT
        stats.sums["kl"] = (float((kl_BT.detach() * batch.mask_BT).sum()), float(batch.mask_BT.sum()))
    return with_entropy_bonus(config, AVERAGES[config.loss_type](l_BX, batch), batch, stats | spread)
