"""Estimators of KL(p || p_ref) at a token that was sampled from p (Schulman, joschu.net/blog/kl-approx.html).

With d = log p_ref - log p, clamped to +-20 as exp of more overflows:
k1 = -d                 unbiased, of either sign
k2 = d^2 / 2            biased, never negative
k3 = exp(d) - d - 1     unbiased, never negative
"""

import torch
from torch import Tensor

from training.algorithms.ratio import LIMIT


def _d(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return (ref_logp - logp).clamp(-LIMIT, LIMIT)


def k1(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return -_d(logp, ref_logp)


def k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return _d(logp, ref_logp).square() / 2


def k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    d = _d(logp, ref_logp)
    return torch.expm1(d) - d


ESTIMATORS = {"k1": k1, "k2": k2, "k3": k3}
