"""Whether a model's cache can be shared by a group: tried on a real group before the first update relies on it."""

import torch

from training.logprobs import plain_scores, shared_scores
from training.policy import Policy
from training.rollouts import Rollout


@torch.no_grad()
def sharing_gap(policy: Policy, rollout: Rollout, temperature: float) -> float:
    """Largest difference of log-probabilities between the shared and the plain path over the rollout's first group."""
    group, completions = rollout.group_size, rollout.completions
    ids_BT, mask_BT = completions.ids_BT[:group], completions.mask_BT[:group]
    policy.model.eval()
    shared_BT, plain_BT = (
        score(policy, rollout.prompts[:1], ids_BT, mask_BT, temperature).logp_BT
        for score in (shared_scores, plain_scores)
    )
    return ((shared_BT - plain_BT).abs() * mask_BT).max().item()


def tolerance(policy: Policy) -> float:
    """What rounding explains: 1e-3 nats in float32, more in the half formats."""
    return 1e-3 if policy.model.dtype == torch.float32 else 0.1
