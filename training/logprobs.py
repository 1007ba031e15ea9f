"""Log-probabilities of completions under a policy, with the prompt shared by its group or, for checking, without.

Logits are made of hidden states a chunk of tokens at a time and made again in the backward pass: a step's (B, T, V)
logits, by far the largest tensor of a trainer with a large vocabulary, never exist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from training.encoding import EncodedPrompt
from training.forward import Prefix, extend, prefill, stock_logits, whole
from training.head import head_logits
from training.policy import Policy

CHUNK = 2**24
"""Most logits that are held at once: 64 MiB in float32, some copies of it while they become log-probabilities."""


@dataclass(frozen=True, slots=True)
class TokenScores:
    """logp_BT: log-probability of each completion token in nats, with graph; entropy_BT: of the distribution there,
    with graph where `entropy_graph` asked for it.

    Both are of the distribution that is sampled from: at the temperature, without the forbidden tokens.  0 where the
    mask is.
    """

    logp_BT: Tensor
    entropy_BT: Tensor


@dataclass(frozen=True, slots=True)
class ToScore:
    """P prompts with their B = P*G completions in group order; temperature: of the distribution they are scored under.

    entropy_graph: whether the entropy, too, is to carry a graph.
    """

    prompts: Sequence[EncodedPrompt]
    ids_BT: Tensor
    mask_BT: Tensor
    temperature: float
    entropy_graph: bool = False

    def repeated_prompts(self) -> list[EncodedPrompt]:
        """The prompt of each completion."""
        return [prompt for prompt in self.prompts for _ in range(len(self.ids_BT) // len(self.prompts))]


ScoreFunction = Callable[[Policy, ToScore], TokenScores]


def shared_scores(policy: Policy, given: ToScore, *, prefix: Prefix | None = None) -> TokenScores:
    """Each of the P prompts runs through the model once; not at all where `prefix` has read them with their graph."""
    prefix = (prefix or prefill(policy, given.prompts)).repeated(len(given.ids_BT) // len(given.prompts))
    hidden_BTH = prefix.hidden_BH[:, None]
    if given.ids_BT.shape[1] > 1:
        _, rest_BTH = extend(policy, prefix, given.ids_BT[:, :-1], given.mask_BT[:, :-1])
        hidden_BTH = torch.cat([hidden_BTH, rest_BTH], 1)
    return scores_of(policy, hidden_BTH, given)


def plain_scores(policy: Policy, given: ToScore) -> TokenScores:
    """The same numbers with every prompt repeated for each of its completions."""
    hidden_BTH = whole(policy, given.repeated_prompts(), given.ids_BT, given.mask_BT)
    return scores_of(policy, hidden_BTH, given)


def stock_scores(policy: Policy, given: ToScore) -> TokenScores:
    """The same numbers by the model's own forward, head included, with all logits at once: the yardstick."""
    mask_BT = given.mask_BT
    logits_BTV = stock_logits(policy, given.repeated_prompts(), given.ids_BT, mask_BT)
    return _padded(mask_BT, *_token_scores(policy, given, logits_BTV[mask_BT], given.ids_BT[mask_BT]))


def scores_of(policy: Policy, hidden_BTH: Tensor, given: ToScore) -> TokenScores:
    """log softmax(z / temperature) at the given ids, z being the head's logits of the hidden states there.

    Padding is left out before the head.  More than CHUNK logits are made in parts, each again in the backward pass.
    """
    mask_BT = given.mask_BT
    hidden_NH, ids_N = hidden_BTH[mask_BT], given.ids_BT[mask_BT]
    tokens = max(1, CHUNK // policy.model.config.get_text_config().vocab_size)

    def score(hidden_MH: Tensor, ids_M: Tensor) -> tuple[Tensor, Tensor]:
        return _token_scores(policy, given, head_logits(policy.model, hidden_MH), ids_M)

    if len(ids_N) <= tokens:
        return _padded(mask_BT, *score(hidden_NH, ids_N))
    parts = zip(hidden_NH.split(tokens), ids_N.split(tokens), strict=True)
    scored = [checkpoint(score, hidden_MH, ids_M, use_reentrant=False) for hidden_MH, ids_M in parts]
    logp, entropies = zip(*scored, strict=True)
    return _padded(mask_BT, torch.cat(logp), torch.cat(entropies))


def _token_scores(policy: Policy, given: ToScore, logits_NV: Tensor, ids_N: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each id and entropy of the distribution it is from.

    A forbidden id has log-probability -inf, whose differences are NaN: an end token is looked up in its place.
    """
    logp_NV = log_distribution(policy, logits_NV, given.temperature)
    safe_N = torch.where(torch.isin(ids_N, policy.forbidden_ids), policy.end_ids[0], ids_N)
    entropy_N = entropy(logp_NV if given.entropy_graph else logp_NV.detach())
    return logp_NV.gather(-1, safe_N[:, None])[:, 0], entropy_N


def log_distribution(policy: Policy, logits: Tensor, temperature: float) -> Tensor:
    """(..., V) log-probabilities of what is sampled from, in float32 at least."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    allowed = wide.index_fill(-1, policy.forbidden_ids, float("-inf"))
    return (allowed / temperature).log_softmax(-1)


def entropy(logp: Tensor) -> Tensor:
    """-sum p log p over the last axis, in nats; tokens of probability 0 add nothing."""
    return -(logp.exp() * logp.clamp(min=-1e4)).sum(-1)


def _padded(mask_BT: Tensor, logp_N: Tensor, entropy_N: Tensor) -> TokenScores:
    blank_BT = logp_N.new_zeros(mask_BT.shape)
    return TokenScores(blank_BT.masked_scatter(mask_BT, logp_N), blank_BT.masked_scatter(mask_BT, entropy_N))
