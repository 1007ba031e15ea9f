"""Importance ratios, clipping and its metrics, shared by the clipped objectives."""

import torch
from torch import Tensor

from training.algorithms.statistics import masked_mean
from training.algorithms.types import Stats

LIMIT = 20.0
"""Log-ratios are clamped to +-LIMIT: exp of more overflows to infinity in float32 long before it means anything."""


def importance_ratio(logp: Tensor, old_logp: Tensor | None) -> Tensor:
    """exp(log p - log p_old), of the shape of its arguments.

    Without `old_logp` the completions were sampled by the current weights: the ratio is 1 and carries the gradient.
    """
    old = logp.detach() if old_logp is None else old_logp
    return (logp - old).clamp(-LIMIT, LIMIT).exp()


def sequence_ratio(logp_BT: Tensor, old_logp_BT: Tensor | None, mask_BT: Tensor) -> Tensor:
    """(B, 1) GSPO's ratio exp(mean_t (log p - log p_old)), arXiv 2507.18071 eq. 5; 1 where there are no tokens."""
    old_BT = logp_BT.detach() if old_logp_BT is None else old_logp_BT
    return masked_mean(logp_BT - old_BT, mask_BT)[:, None].clamp(-LIMIT, LIMIT).exp()


def clipped_objective(
    ratio: Tensor, advantages: Tensor, low: float, high: float, *, delta: float | None = None
) -> Tensor:
    """min(min(w, delta) A, clip(w, 1 - low, 1 + high) A): PPO's surrogate (arXiv 1707.06347, eq. 7).

    delta, when given, bounds the ratio where A < 0 (INTELLECT-2, arXiv 2505.07291, section 3.4).
    """
    bounded = ratio if delta is None else ratio.clamp(max=delta)
    return torch.minimum(bounded * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def clip_stats(ratio_BX: Tensor, advantages_B1: Tensor, mask_BT: Tensor, low: float, high: float) -> Stats:
    """Shares of tokens at which the clip is active: from below (A < 0), from above (A > 0) and in all.

    ratio_BX: (B, T), or (B, 1) for a ratio per completion, whose shares are of completions.  The least and largest
    shares are those of single completions that have tokens.
    """
    ratio_BX = ratio_BX.detach()
    is_low = (ratio_BX < 1 - low) & (advantages_B1 < 0)
    is_high = (ratio_BX > 1 + high) & (advantages_B1 > 0)
    counted = mask_BT.bool() if ratio_BX.shape[1] == mask_BT.shape[1] else mask_BT.bool().any(1, keepdim=True)
    total, has_tokens_B = float(counted.sum()), counted.any(1)
    if not total:
        return Stats()
    low_B, high_B = (masked_mean(x_BX.float(), counted)[has_tokens_B] for x_BX in (is_low, is_high))
    return Stats(
        sums={
            "clip_ratio/low_mean": (float((is_low & counted).sum()), total),
            "clip_ratio/high_mean": (float((is_high & counted).sum()), total),
            "clip_ratio/region_mean": (float(((is_low | is_high) & counted).sum()), total),
        },
        lows={"clip_ratio/low_min": float(low_B.min())},
        highs={"clip_ratio/high_max": float(high_B.max())},
    )
