"""How token losses become one number; over micro-batches and ranks the results add up to the loss of the step.

Each takes l of shape (B, T), or (B, 1) for a loss per completion that stands for each of its tokens.
"""

from torch import Tensor

from training.algorithms.statistics import masked_mean
from training.algorithms.types import Batch


def per_completion(l_BX: Tensor, batch: Batch) -> Tensor:
    """Mean over a completion's tokens, then over completions (GRPO, arXiv 2402.03300 eq. 3)."""
    return masked_mean(l_BX, batch.mask_BT).sum() / batch.step_completions


def per_micro_batch_token(l_BX: Tensor, batch: Batch) -> Tensor:
    """Mean over the tokens of the micro-batch (BNPO): depends on how a step is cut into micro-batches."""
    return (l_BX * batch.mask_BT).sum() / batch.mask_BT.sum().clamp(min=1) / batch.step_micro_batches


def by_constant(l_BX: Tensor, batch: Batch) -> Tensor:
    """Sum over tokens, over completions times the length limit (Dr. GRPO, arXiv 2503.20783): no length bias."""
    return (l_BX * batch.mask_BT).sum() / (batch.step_completions * batch.max_completion_length)


def per_token(l_BX: Tensor, batch: Batch) -> Tensor:
    """Mean over all tokens of the step (DAPO, arXiv 2503.14476 eq. 8)."""
    return (l_BX * batch.mask_BT).sum() / max(batch.step_tokens, 1)


def sum_per_completion(l_BX: Tensor, batch: Batch) -> Tensor:
    """Sum over a completion's tokens, then the mean over completions (LUSPO, arXiv 2602.05261)."""
    return (l_BX * batch.mask_BT).sum() / batch.step_completions


AVERAGES = {
    "grpo": per_completion,
    "bnpo": per_micro_batch_token,
    "dr_grpo": by_constant,
    "dapo": per_token,
    "cispo": per_token,
    "vespo": per_token,
    "sapo": per_completion,
    "luspo": sum_per_completion,
}
"""By loss type."""
