"""What GRPO's variants maximise at a token (or completion), from the importance ratio w and the advantage A."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from training.algorithms.correction import correction
from training.algorithms.ratio import LIMIT, clip_stats, clipped_objective
from training.algorithms.types import Batch, Stats
from training.config import GRPOConfig

LOG_LEAST = math.log(1e-8)
"""Least log-weight of a sequence in VESPO, as in its authors' code."""

Objective = Callable[[GRPOConfig, Tensor, Tensor, Batch], tuple[Tensor, Stats]]
"""(config, w_BX, logp_BT, batch) -> objective (B, X) or (B, T), and its metrics; X is T, or 1 per completion."""


def clipped(config: GRPOConfig, w_BX: Tensor, logp_BT: Tensor, batch: Batch) -> tuple[Tensor, Stats]:
    """min(min(w, delta) A, clip(w, 1 - eps, 1 + eps_high) A)."""
    del logp_BT
    a_B1 = batch.advantages_B[:, None]
    objective_BX = clipped_objective(w_BX, a_B1, config.epsilon, config.clip_high, delta=config.delta)
    return objective_BX, clip_stats(w_BX, a_B1, batch.mask_BT, config.epsilon, config.clip_high)


def cispo(config: GRPOConfig, w_BX: Tensor, logp_BT: Tensor, batch: Batch) -> tuple[Tensor, Stats]:
    """sg(min(w, 1 + eps_high)) A log p: no token loses its gradient (CISPO, arXiv 2506.13585 eq. 4)."""
    a_B1, most = batch.advantages_B[:, None], 1 + config.clip_high
    is_clipped_BX = (w_BX.detach() > most) & (a_B1 > 0)
    counted = batch.mask_BT.bool() if w_BX.shape[1] == logp_BT.shape[1] else batch.mask_BT.bool().any(1, keepdim=True)
    stats = Stats({"cispo_clip_ratio": (float((is_clipped_BX & counted).sum()), float(counted.sum()))})
    return w_BX.detach().clamp(max=most) * a_B1 * logp_BT, stats


def sapo(config: GRPOConfig, w_BX: Tensor, logp_BT: Tensor, batch: Batch) -> tuple[Tensor, Stats]:
    """4/tau sigmoid(tau (w - 1)) A, tau by the sign of A: a soft gate for a clip (SAPO, arXiv 2511.20347)."""
    del logp_BT
    a_B1 = batch.advantages_B[:, None]
    tau_B1 = torch.where(a_B1 > 0, config.sapo_temperature_pos, config.sapo_temperature_neg).to(w_BX.dtype)
    return 4 / tau_B1 * torch.sigmoid(tau_B1 * (w_BX - 1)) * a_B1, Stats()


def vespo(config: GRPOConfig, w_BX: Tensor, logp_BT: Tensor, batch: Batch) -> tuple[Tensor, Stats]:
    """sg(phi(W)) A log p, phi(W) = exp(lambda) W^k exp(-lambda W), k and lambda by the sign of A (arXiv 2602.10693).

    W = prod_t w_t rho_t over the completion, rho_t the sampler's correction of tokens; phi(1) = 1.
    """
    a_B1, (rho_BX, _) = batch.advantages_B[:, None], correction(config, logp_BT, batch)
    log_w_BT = w_BX.detach().log() * batch.mask_BT
    if rho_BX is not None:
        log_w_BT = log_w_BT + rho_BX.log().clamp(LOG_LEAST, LIMIT) * batch.mask_BT
    log_w_B1 = log_w_BT.sum(1, keepdim=True).clamp(LOG_LEAST, LIMIT)
    k_B1 = torch.where(a_B1 >= 0, config.vespo_k_pos, config.vespo_k_neg)
    lambda_B1 = torch.where(a_B1 >= 0, config.vespo_lambda_pos, config.vespo_lambda_neg)
    phi_B1 = (lambda_B1 + k_B1 * log_w_B1 - lambda_B1 * log_w_B1.exp()).exp()
    counted_B1 = batch.mask_BT.bool().any(1, keepdim=True)
    stats = Stats({"vespo/phi_seq_mean": (float(phi_B1[counted_B1].sum()), float(counted_B1.sum()))})
    return phi_B1.to(logp_BT.dtype) * a_B1 * logp_BT, stats


OBJECTIVES: dict[str, Objective] = {"cispo": cispo, "sapo": sapo, "vespo": vespo}
"""By loss type; all others are clipped."""

CORRECTED = ("vespo",)
"""Those whose weight holds the sampler's correction."""
