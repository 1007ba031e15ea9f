"""Sampling completions: prompts are read once, finished rows leave the batch, every draw is reproducible."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from training.encoding import EncodedPrompt
from training.forward import Prefix, extend, prefill
from training.logprobs import entropy, log_distribution
from training.policy import Policy

COMPACT_BELOW = 0.75
"""The decode batch is cut to its unfinished rows once fewer than this share of them is left."""


@dataclass(frozen=True, slots=True)
class Completions:
    """B completions, right-padded to the longest.

    ids_BT and mask_BT (True up to and including the end token); logp_BT and entropy_BT of the distribution that each
    token was drawn from, in nats, 0 in the padding; ended_B is False for completions that were cut at the limit.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    logp_BT: Tensor
    entropy_BT: Tensor
    ended_B: Tensor

    def rows(self, index: Tensor | Sequence[int]) -> "Completions":
        """Some of them, cut to the longest."""
        rows = torch.as_tensor(index, device=self.ids_BT.device)
        length = int(self.mask_BT[rows].sum(1).max())
        cut = [tensor[rows, :length] for tensor in (self.ids_BT, self.mask_BT, self.logp_BT, self.entropy_BT)]
        return Completions(*cut, ended_B=self.ended_B[rows])

    @staticmethod
    def joined(parts: Sequence["Completions"], *, pad_id: int) -> "Completions":
        """The completions of all parts in their order, padded to the longest of any."""
        if len(parts) == 1:
            return parts[0]
        longest = max(part.ids_BT.shape[1] for part in parts)

        def rows(tensors: Sequence[Tensor], value: float = 0) -> Tensor:
            return torch.cat([pad(tensor, (0, longest - tensor.shape[1]), value=value) for tensor in tensors])

        return Completions(
            ids_BT=rows([part.ids_BT for part in parts], pad_id),
            mask_BT=rows([part.mask_BT for part in parts]),
            logp_BT=rows([part.logp_BT for part in parts]),
            entropy_BT=rows([part.entropy_BT for part in parts]),
            ended_B=torch.cat([part.ended_B for part in parts]),
        )


@torch.no_grad()
def sample(
    policy: Policy,
    prompts: Sequence[EncodedPrompt],
    *,
    num_generations: int,
    max_completion_length: int,
    temperature: float,
    uniforms_BT: Tensor | None,
    prefix: Prefix | None = None,
) -> Completions:
    """Draw G completions for each of P prompts, or the most likely ones when `uniforms_BT` is None.

    uniforms_BT: (P*G, max_completion_length) in [0, 1), one for each possible token.  A token is the point where the
    cumulated distribution passes its uniform: what a row draws does not depend on the rows beside it.
    prefix: the prompts where they have been read already.
    """
    prefix = (prefix or prefill(policy, prompts)).repeated(num_generations)
    rows_B = torch.arange(len(prompts) * num_generations, device=policy.device)
    shape = (len(rows_B), max_completion_length)
    ids_BT = torch.full(shape, policy.pad_id, device=policy.device)
    logp_BT = torch.zeros(shape, device=policy.device)
    entropy_BT = torch.zeros(shape, device=policy.device)
    mask_BT = torch.zeros(shape, dtype=torch.bool, device=policy.device)
    ended_B = torch.zeros(len(rows_B), dtype=torch.bool, device=policy.device)
    for t in range(max_completion_length):
        logp_RV = log_distribution(policy, prefix.logits_BV, temperature)
        ids_R = logp_RV.argmax(-1) if uniforms_BT is None else draw(logp_RV, uniforms_BT[rows_B, t])
        open_R = ~ended_B[rows_B]
        written = rows_B[open_R]
        ids_BT[written, t] = ids_R[open_R]
        logp_BT[written, t] = logp_RV.gather(-1, ids_R[:, None])[:, 0][open_R]
        entropy_BT[written, t] = entropy(logp_RV)[open_R]
        mask_BT[written, t] = True
        ended_B[rows_B] |= torch.isin(ids_R, policy.end_ids)
        open_R = ~ended_B[rows_B]
        if t + 1 == max_completion_length or not open_R.any():
            break
        if open_R.float().mean() < COMPACT_BELOW:
            keep = open_R.nonzero()[:, 0]
            prefix, rows_B, ids_R = prefix.select(keep), rows_B[keep], ids_R[keep]
        prefix, _ = extend(policy, prefix, ids_R[:, None], torch.ones_like(ids_R[:, None]))
    length = int(mask_BT.sum(1).max())
    return Completions(ids_BT[:, :length], mask_BT[:, :length], logp_BT[:, :length], entropy_BT[:, :length], ended_B)


def uniforms(shape: tuple[int, int, int], seed: int, step: int, number: int) -> Tensor:
    """(P, G, T) numbers in [0, 1): one for every token that a step can sample in its `number`-th round of sampling."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step + number * 1_000_000_007)
    return torch.rand(shape, generator=generator)


def draw(logp_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """(B,) ids by inverting the cumulated distribution; a token of probability 0 is never drawn."""
    cumulated_BV = logp_BV.double().exp().cumsum(-1)
    target_B1 = uniform_B.double()[:, None] * cumulated_BV[:, -1:]
    return torch.searchsorted(cumulated_BV, target_B1, right=True)[:, 0]


def token_ids(completions: Completions) -> list[list[int]]:
    """The tokens of each completion without padding."""
    lengths = completions.mask_BT.sum(1).tolist()
    return [row[:length] for row, length in zip(completions.ids_BT.tolist(), lengths, strict=True)]


def decode(policy: Policy, completions: Completions) -> list[str]:
    """The completions' texts without special tokens."""
    return policy.tokenizer.batch_decode(token_ids(completions), skip_special_tokens=True)
