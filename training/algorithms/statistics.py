"""Means and standard deviations that leave out unscored completions (NaN) or masked tokens."""

import torch
from torch import Tensor

EPSILON = 1e-4
"""Added to a standard deviation before dividing by it, as in TRL and verl."""


def nan_mean(x: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """Mean over the entries that are not NaN, dimension kept; NaN when there are none."""
    return x.nanmean(dim, keepdim=True)


def nan_std(x: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """Bessel-corrected standard deviation over the entries that are not NaN, dimension kept; 0 for fewer than two."""
    count = (~x.isnan()).sum(dim, keepdim=True)
    squares = (x - nan_mean(x, dim)).square().nansum(dim, keepdim=True)
    return (squares / (count - 1).clamp(min=1)).sqrt()


def masked_mean(x_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """(B,) mean over each row's tokens; 0 for a row without any."""
    return (x_BT * mask_BT).sum(1) / mask_BT.sum(1).clamp(min=1)


def zero_where_undefined(advantages_PG: Tensor) -> Tensor:
    """What is not a finite number moves nothing."""
    return advantages_PG.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def without_signal(rewards: Tensor) -> Tensor:
    """True for groups whose scored rewards are all equal, or of which fewer than two are scored.

    (P,) for totals of shape (P, G), (P, K) for the values of K reward functions, of shape (P, G, K).
    """
    scored = ~rewards.isnan()
    low = torch.where(scored, rewards, torch.inf).amin(1)
    high = torch.where(scored, rewards, -torch.inf).amax(1)
    return (scored.sum(1) < 2) | (low == high)
