"""The entropy bonus: loss = policy loss - coef * mean entropy of the tokens that the policy learns from."""

from torch import Tensor

from training.algorithms.correction import weighted
from training.algorithms.types import Batch, Loss, Stats
from training.config.algorithms import Objective


def with_entropy_bonus(config: Objective, policy_loss: Tensor, batch: Batch, stats: Stats) -> Loss:
    """The micro-batch's loss with its part of the step's mean entropy (nats a token) taken off, where asked for."""
    if not config.entropy_coef:
        return Loss(policy_loss, stats)
    h_BT = weighted(batch.entropy_BT * batch.mask_BT, batch.policy_mask_BT)
    mean = h_BT.sum() / max(batch.step_policy_tokens, 1)
    part = {"policy_loss": (policy_loss.item(), 1 / batch.step_micro_batches)}
    return Loss(policy_loss - config.entropy_coef * mean, stats | Stats(sums=part))
