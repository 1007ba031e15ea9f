"""Prompts are read once a step: with their graph before sampling, for sampling and for the update at the same weights.

The first update runs at the weights that sampled, so that its forward pass over the prompts would only repeat the
sampler's.  The graph is held while completions are sampled; the update needs as much memory for it anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from training.encoding import EncodedPrompt
from training.forward import Prefix, prefill
from training.logprobs import TokenScores, ToScore, shared_scores
from training.memory import if_memory_lasts
from training.policy import Policy


def read_ahead(policy: Policy, prompts: Sequence[EncodedPrompt]) -> Prefix | None:
    """The prompts with their graph; None when memory does not last, or when dropout makes the update's pass another."""
    if has_dropout(policy.model):
        return None
    return if_memory_lasts(lambda: prefill(policy, prompts))


@dataclass(slots=True)
class ContinuedScores:
    """`shared_scores` of prompts that were read ahead, once: a graph serves one backward pass.

    Asked again, or for other prompts, it reads them anew.
    """

    prefix: Prefix | None
    prompts: Sequence[EncodedPrompt]

    def __call__(self, policy: Policy, given: ToScore) -> TokenScores:
        prefix, self.prefix = self.prefix, None
        same = [id(prompt) for prompt in given.prompts] == [id(prompt) for prompt in self.prompts]
        return shared_scores(policy, given, prefix=prefix if same else None)


def has_dropout(model: nn.Module) -> bool:
    """Whether any module drops something in training: a Dropout layer, or attention with a rate of its own."""
    return any(
        (isinstance(module, nn.Dropout) and module.p > 0)
        or _rate(module, "attention_dropout")
        or _rate(module, "dropout")
        for module in model.modules()
    )


def _rate(module: nn.Module, name: str) -> bool:
    value = getattr(module, name, 0.0)
    return isinstance(value, float) and value > 0
