"""DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13), taken off the reward before advantages.

R(y) = 0                                  |y| <= L - buffer
       -penalty (|y| - (L - buffer)) / buffer     up to -penalty at the limit L
"""

import torch
from torch import Tensor

from training.algorithms.types import Scored
from training.config.algorithms import Objective


def punished(config: Objective, scored: Scored, lengths_PG: Tensor, *, limit: int) -> Scored:
    """The rewards with one more column, the punishment, of weight 1; an unscored completion stays unscored.

    lengths_PG: tokens of each completion; limit: the most that it may have.
    """
    buffer = config.overlong_buffer
    if not buffer:
        return scored
    over_PG = (lengths_PG - (limit - buffer)).clamp(min=0).to(scored.rewards_PGK.dtype) / buffer
    column_PG = (-config.overlong_penalty * over_PG).masked_fill(scored.rewards_PG.isnan(), torch.nan)
    return Scored(
        torch.cat([scored.rewards_PGK, column_PG[..., None]], -1),
        torch.cat([scored.weights_K, scored.weights_K.new_ones(1)]),
        scored.kl_PG,
    )
