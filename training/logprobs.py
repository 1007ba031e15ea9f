"""Log-probabilities of completions under a policy, with the prompt shared by its group or, for checking, without."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.encoding import EncodedPrompt
from training.forward import extend, prefill, whole
from training.policy import Policy


@dataclass(frozen=True, slots=True)
class TokenScores:
    """logp_BT: log-probability of each completion token in nats, with graph; entropy_BT: of the distribution there,
    with graph where `entropy_graph` asked for it.

    Both are of the distribution that is sampled from: at the temperature, without the forbidden tokens.
    """

    logp_BT: Tensor
    entropy_BT: Tensor


def shared_scores(
    policy: Policy,
    prompts: Sequence[EncodedPrompt],
    ids_BT: Tensor,
    mask_BT: Tensor,
    temperature: float,
    *,
    entropy_graph: bool = False,
) -> TokenScores:
    """Scores of B = P*G completions in group order; each of the P prompts runs through the model once."""
    prefix = prefill(policy, prompts, len(ids_BT) // len(prompts))
    first_B1V = prefix.logits_BV[:, None]
    if ids_BT.shape[1] == 1:
        return scores_of(policy, first_B1V, ids_BT, temperature, entropy_graph=entropy_graph)
    _, rest_BTV = extend(policy, prefix, ids_BT[:, :-1], mask_BT[:, :-1])
    logits_BTV = torch.cat([first_B1V, rest_BTV], 1)
    return scores_of(policy, logits_BTV, ids_BT, temperature, entropy_graph=entropy_graph)


def plain_scores(
    policy: Policy,
    prompts: Sequence[EncodedPrompt],
    ids_BT: Tensor,
    mask_BT: Tensor,
    temperature: float,
    *,
    entropy_graph: bool = False,
) -> TokenScores:
    """The same numbers with every prompt repeated for each of its completions."""
    group = len(ids_BT) // len(prompts)
    repeated = [prompt for prompt in prompts for _ in range(group)]
    logits_BTV = whole(policy, repeated, ids_BT, mask_BT)
    return scores_of(policy, logits_BTV, ids_BT, temperature, entropy_graph=entropy_graph)


def scores_of(
    policy: Policy, logits_BTV: Tensor, ids_BT: Tensor, temperature: float, *, entropy_graph: bool = False
) -> TokenScores:
    """log softmax(z / temperature) at the given ids, forbidden tokens at probability 0.

    Padding holds forbidden ids, whose log-probability is -inf and whose differences are NaN: an end token is looked up
    there instead, and the caller's mask takes it out.
    """
    logp_BTV = log_distribution(policy, logits_BTV, temperature)
    safe_BT = torch.where(torch.isin(ids_BT, policy.forbidden_ids), policy.end_ids[0], ids_BT)
    logp_BT = logp_BTV.gather(-1, safe_BT[..., None])[..., 0]
    with torch.set_grad_enabled(entropy_graph and torch.is_grad_enabled()):
        return TokenScores(logp_BT, entropy(logp_BTV))


def log_distribution(policy: Policy, logits: Tensor, temperature: float) -> Tensor:
    """(..., V) log-probabilities of what is sampled from, in float32 at least."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    allowed = wide.index_fill(-1, policy.forbidden_ids, float("-inf"))
    return (allowed / temperature).log_softmax(-1)


def entropy(logp: Tensor) -> Tensor:
    """-sum p log p over the last axis, in nats; tokens of probability 0 add nothing."""
    return -(logp.exp() * logp.clamp(min=-1e4)).sum(-1)
