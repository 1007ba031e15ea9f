"""The records that the trainer hands to an algorithm, and what it takes back."""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Scored:
    """All completions of one step with their rewards, before advantages.

    rewards_PG: weighted sum of the reward functions, NaN where nothing was scored.
    kl_PG: sum over a completion's tokens of log p - log p_ref in nats, or None without a reference model.
    """

    rewards_PG: Tensor
    kl_PG: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of completions; everything but the policy's log-probabilities.

    mask_BT: 1 for tokens up to and including the end of sequence.  old_logp_BT: the log-probabilities that the
    completions were sampled with; None means that they are the current ones (the ratio is exactly 1).
    `step_completions`, `step_tokens` and `step_micro_batches` count the whole step, so that the losses of its
    micro-batches add up to the loss of the step.
    """

    mask_BT: Tensor
    advantages_B: Tensor
    old_logp_BT: Tensor | None
    ref_logp_BT: Tensor | None
    step_completions: int
    step_tokens: int
    step_micro_batches: int
    max_completion_length: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar loss to differentiate, and sums over the micro-batch that the step's metrics are made of.

    `sums` holds name -> (numerator, denominator); the trainer adds both over micro-batches and divides at the end.
    """

    loss: Tensor
    sums: dict[str, tuple[Tensor, float]]


class Algorithm(Protocol):
    """What a module in this package offers.  `config` is the algorithm's own config class."""

    def advantages(self, config: Any, scored: Scored) -> Tensor:
        """Advantages of shape (P, G); 0 where a completion is unscored or its group has no signal."""
        ...

    def loss(self, config: Any, logp_BT: Tensor, batch: Batch) -> Loss:
        """The loss of one micro-batch under the policy's log-probabilities."""
        ...
