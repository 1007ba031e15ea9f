"""The records that the trainer hands to an algorithm, and what it takes back."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Scored:
    """All completions of one step with their rewards, before advantages.

    rewards_PGK: what each reward function gave, NaN where it gave nothing.  weights_K: the functions' weights.
    kl_PG: sum over a completion's tokens of log p - log p_ref in nats, or None without a reference model.
    """

    rewards_PGK: Tensor
    weights_K: Tensor
    kl_PG: Tensor | None = None

    @property
    def rewards_PG(self) -> Tensor:
        """Weighted sum over the functions that gave a value, NaN where none did."""
        total_PG = (self.rewards_PGK * self.weights_K).nansum(-1)
        return total_PG.masked_fill(self.rewards_PGK.isnan().all(-1), torch.nan)


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of completions; everything but the policy's log-probabilities.

    mask_BT: 1 for the tokens of the loss (up to and including the end of sequence).  old_logp_BT: the policy's
    log-probabilities before the first update on this batch; None means that they are the current ones (the ratio is
    exactly 1).  sampling_logp_BT: the sampler's.  ref_logp_BT: the reference model's, or None.  entropy_BT: of the
    policy's distributions, with graph where the config asks for a bonus.  policy_mask_BT: 1 for the tokens whose
    policy term counts, None for all.
    `step_...` count the whole step (completions, tokens of the loss, tokens whose policy term counts, micro-batches),
    so that the losses of its micro-batches, on all ranks, add up to the loss of the step.
    """

    mask_BT: Tensor
    advantages_B: Tensor
    old_logp_BT: Tensor | None
    sampling_logp_BT: Tensor
    ref_logp_BT: Tensor | None
    entropy_BT: Tensor
    policy_mask_BT: Tensor | None
    step_completions: int
    step_tokens: int
    step_policy_tokens: int
    step_micro_batches: int
    max_completion_length: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a loss says of its micro-batch beside its value, in a form that adds up over micro-batches and ranks.

    sums: name -> (numerator, denominator) of a mean.  lows and highs: name -> the least and the largest value.
    """

    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    lows: dict[str, float] = field(default_factory=dict)
    highs: dict[str, float] = field(default_factory=dict)

    def __or__(self, other: "Stats") -> "Stats":
        return Stats(self.sums | other.sums, self.lows | other.lows, self.highs | other.highs)


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar loss to differentiate, and what the step's metrics are made of."""

    loss: Tensor
    stats: Stats


class Algorithm(Protocol):
    """What a module in this package offers.  `config` is the algorithm's own config class."""

    def advantages(self, config: Any, scored: Scored) -> Tensor:
        """Advantages of shape (P, G); 0 where a completion is unscored or its group has no signal."""
        ...

    def loss(self, config: Any, logp_BT: Tensor, batch: Batch) -> Loss:
        """The loss of one micro-batch under the policy's log-probabilities."""
        ...
