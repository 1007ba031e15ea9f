"""Whether a cheap path gives the model's own numbers: tried on a real group before the first update relies on it."""

from collections.abc import Callable

import torch

from training.logprobs import ScoreFunction, ToScore, plain_scores, shared_scores, stock_scores
from training.policy import Policy
from training.ranks import Ranks
from training.rollouts import Rollout

ROWS, TOKENS = 2, 128
"""Completions of the first group that are tried, and tokens of each."""


def choose_score(
    policy: Policy, rollout: Rollout, temperature: float, ranks: Ranks, *, refused: Callable[[str], None]
) -> ScoreFunction:
    """The cheapest path that gives the model's own numbers on every rank; `refused` is told of those that do not."""
    limit = tolerance(policy)
    for score, consequence in (
        (shared_scores, "prompts are repeated for every completion"),
        (plain_scores, "all logits of a micro-batch are held at once"),
    ):
        gap = ranks.together(lambda score=score: sharing_gap(policy, score, rollout, temperature))
        gap = max(ranks.gather(gap))
        if gap <= limit:
            return score
        refused(
            f"{score.__name__}: log-probabilities differ from the model's own by {gap:.2g} nats (limit {limit:.2g}) "
            f"on the first group: {consequence}"
        )
    return stock_scores


@torch.no_grad()
def sharing_gap(policy: Policy, score: ScoreFunction, rollout: Rollout, temperature: float) -> float:
    """Largest difference between log-probabilities of `score` and the model's own, on the beginning of a group.

    A few short rows tell, and the yardstick holds all their logits at once.
    """
    rows, completions = min(rollout.group_size, ROWS), rollout.completions
    ids_BT, mask_BT = completions.ids_BT[:rows, :TOKENS], completions.mask_BT[:rows, :TOKENS]
    policy.model.eval()
    given = ToScore(rollout.prompts[:1], ids_BT, mask_BT, temperature)
    ours_BT, own_BT = (path(policy, given).logp_BT for path in (score, stock_scores))
    return (ours_BT - own_BT).abs().max().item()


def tolerance(policy: Policy) -> float:
    """What rounding explains: 1e-3 nats in float32, more in the half formats."""
    return 1e-3 if policy.model.dtype == torch.float32 else 0.1
