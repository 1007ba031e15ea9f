"""Weights that correct for completions that were sampled by another distribution than the trainer computes.

token       rho_it = p_old(y_it) / p_sampler(y_it)
sequence    rho_i  = exp(sum_t log rho_it), or exp(mean_t log rho_it), which does not spread with length
truncate    min(max(rho, low), high)                (truncated importance sampling, fengyao.notion.site/off-policy-rl)
mask        rho where low <= rho <= high, else 0    (masked importance sampling, arXiv 2510.26788)
"""

from torch import Tensor

from training.algorithms.ratio import LIMIT
from training.algorithms.statistics import masked_mean
from training.algorithms.types import Batch, Stats
from training.config.algorithms import Objective


def correction(config: Objective, logp_BT: Tensor, batch: Batch) -> tuple[Tensor | None, Stats]:
    """Weights of shape (B, T) or (B, 1) without graph, None when they are off; and their spread before the bounds."""
    if config.correction == "off":
        return None, Stats()
    level, _, kind = config.correction.partition("_")
    old_BT = logp_BT.detach() if batch.old_logp_BT is None else batch.old_logp_BT
    d_BX = _known(old_BT - batch.sampling_logp_BT) * batch.mask_BT
    counted = batch.mask_BT.bool()
    if level == "sequence":
        summed = config.correction_reduction == "sum"
        d_BX = (d_BX.sum(1) if summed else masked_mean(d_BX, batch.mask_BT))[:, None]
        counted = counted.any(1, keepdim=True)
    rho_BX = d_BX.clamp(-LIMIT, LIMIT).exp()
    low, high = config.correction_min, config.correction_max
    if kind == "truncate":
        bounded_BX = rho_BX.clamp(low, high)
    else:
        bounded_BX = rho_BX.masked_fill((rho_BX < low) | (rho_BX > high), 0.0)
    return bounded_BX, _stats(rho_BX[counted])


def _stats(rho: Tensor) -> Stats:
    if not len(rho):
        return Stats()
    name = "sampling/importance_sampling_ratio"
    return Stats(
        sums={f"{name}/mean": (float(rho.sum()), float(len(rho)))},
        lows={f"{name}/min": float(rho.min())},
        highs={f"{name}/max": float(rho.max())},
    )


def on_policy_enough(config: Objective, logp_BT: Tensor, batch: Batch) -> Tensor | None:
    """(B, 1) 0 for completions with A < 0 and mean_t (log p_sampler - log p) above the threshold, else 1.

    The off-policy sequence mask of DeepSeek-V3.2 (arXiv 2512.02556, section 3.1); None when it is off.
    """
    if config.off_policy_threshold is None:
        return None
    drift_B = masked_mean(_known(batch.sampling_logp_BT - logp_BT.detach()), batch.mask_BT)
    keep_B = (batch.advantages_B >= 0) | (drift_B <= config.off_policy_threshold)
    return keep_B[:, None].to(logp_BT.dtype)


def _known(gap_BT: Tensor) -> Tensor:
    """A token that the sampler gave no log-probability (NaN) counts as one where both agree."""
    return gap_BT.nan_to_num(nan=0.0)


def weighted(l_BX: Tensor, *weights: Tensor | None) -> Tensor:
    """l times all weights that are given."""
    for weight in weights:
        if weight is not None:
            l_BX = l_BX * weight
    return l_BX
