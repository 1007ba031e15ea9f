"""The reference model of the KL term: the policy as it was before its first update."""

import copy
from dataclasses import dataclass, replace

from torch import Tensor

from training.adapters import adapters_off, has_adapters
from training.logprobs import ScoreFunction, TokenScores, ToScore
from training.policy import Policy
from training.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores as a ScoreFunction does, under the reference: the policy with its adapters off, or a frozen copy of it."""

    score: ScoreFunction
    copy: Policy | None

    def __call__(self, policy: Policy, given: ToScore) -> TokenScores:
        if self.copy is not None:
            return self.score(self.copy, given)
        with adapters_off(policy.model):
            return self.score(policy, given)


def frozen_copy(policy: Policy) -> Policy | None:
    """The policy as it is now, or None when switching its adapters off gives that without a second model.

    What the policy never trains is shared with it and not copied.
    """
    if has_adapters(policy.model):
        return None
    shared = {id(p): p for p in policy.model.parameters() if not p.requires_grad}
    return replace(policy, model=copy.deepcopy(policy.model, shared).eval().requires_grad_(False))


def sampler_distance(rollout: Rollout, reference_BT: Tensor) -> float:
    """Largest distance in nats from the log-probabilities that were sampled with: rounding alone before any update."""
    gaps_BT = (rollout.completions.logp_BT - reference_BT) * rollout.completions.mask_BT
    return gaps_BT.abs().max().item()
