"""Which tokens of a step the loss is made of, and which of them the policy learns from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.config import RunConfig
from training.generation import Completions


@dataclass(frozen=True, slots=True)
class TokenMasks:
    """loss_BT: tokens of the loss.  policy_BT: those of them whose policy term counts, None for all."""

    loss_BT: Tensor
    policy_BT: Tensor | None


def token_masks(
    config: RunConfig, completions: Completions, gather: Callable[[np.ndarray], list[np.ndarray]]
) -> TokenMasks:
    """Masks of this rank's completions; `gather` collects every rank's array.

    Completions that were cut leave the loss where the config says so.  The policy learns from the tokens above the
    (1 - q) quantile of the step's entropies, q being `top_entropy_quantile` (arXiv 2506.01939): of the sampler's
    entropies, which are the policy's before its update.
    """
    loss_BT = completions.mask_BT
    if config.algorithm.mask_truncated_completions:
        loss_BT = loss_BT & completions.ended_B[:, None]
    share = config.algorithm.top_entropy_quantile
    if share == 1.0:
        return TokenMasks(loss_BT, None)
    entropies = np.concatenate(gather(completions.entropy_BT[loss_BT].cpu().numpy()))
    if not len(entropies):
        return TokenMasks(loss_BT, torch.zeros_like(loss_BT))
    threshold = float(np.quantile(entropies, 1 - share))
    return TokenMasks(loss_BT, loss_BT & (completions.entropy_BT >= threshold))
