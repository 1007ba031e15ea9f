"""Importance ratios, clipping and its metrics, shared by the clipped objectives."""

import torch
from torch import Tensor


def importance_ratio(logp: Tensor, old_logp: Tensor | None) -> Tensor:
    """exp(log p - log p_old), of the shape of its arguments.

    Without `old_logp` the completions were sampled by the current weights: the ratio is 1 and carries the gradient.
    The difference is clamped to +-20 first: exp of more overflows to infinity in float32 long before it means anything.
    """
    old = logp.detach() if old_logp is None else old_logp
    return (logp - old).clamp(-20.0, 20.0).exp()


def clipped_objective(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """min(w A, clip(w, 1 - low, 1 + high) A), PPO's surrogate (arXiv 1707.06347, eq. 7)."""
    return torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def clip_sums(
    ratio: Tensor, advantages: Tensor, mask: Tensor, low: float, high: float
) -> dict[str, tuple[Tensor, float]]:
    """Share of entries at which the clip is active, from below (A < 0), from above (A > 0) and in all."""
    ratio, total = ratio.detach(), float(mask.sum())
    is_low = ((ratio < 1 - low) & (advantages < 0)) * mask
    is_high = ((ratio > 1 + high) & (advantages > 0)) * mask
    return {
        "clip_ratio/low_mean": (is_low.sum(), total),
        "clip_ratio/high_mean": (is_high.sum(), total),
        "clip_ratio/region_mean": (is_low.sum() + is_high.sum(), total),
    }
