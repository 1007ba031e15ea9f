"""A rollout cut into micro-batches: how it is cut, what is tried when memory runs out, and a pass without gradients."""

from dataclasses import dataclass

import torch
from torch import Tensor

from training.encoding import EncodedPrompt
from training.logprobs import ScoreFunction, ToScore
from training.memory import if_memory_lasts, too_large
from training.micro_batches import padded_tokens, plan
from training.policy import Policy
from training.ranks import Ranks
from training.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class RolloutPart:
    """Some prompts with some of their completions.  rows: of the rollout, in group order; T: of the longest of them."""

    prompts: list[EncodedPrompt]
    rows: Tensor
    ids_BT: Tensor
    mask_BT: Tensor

    @property
    def size(self) -> int:
        """Tokens that the model reads for it, padding included."""
        return padded_tokens([len(prompt) for prompt in self.prompts], [self.mask_BT.shape[1]] * len(self.rows))

    @property
    def padding(self) -> int:
        return self.size - sum(len(prompt) for prompt in self.prompts) - int(self.mask_BT.sum())

    def to_score(self, temperature: float, *, entropy_graph: bool = False) -> ToScore:
        return ToScore(self.prompts, self.ids_BT, self.mask_BT, temperature, entropy_graph)

    def of(self, tensor_BT: Tensor) -> Tensor:
        """This part of a tensor over all completions of the rollout."""
        return tensor_BT[self.rows, : self.mask_BT.shape[1]]

    def put(self, tensor_BT: Tensor, values_BT: Tensor) -> None:
        """Write this part into a tensor over all completions of the rollout."""
        tensor_BT[self.rows, : self.mask_BT.shape[1]] = values_BT.to(tensor_BT.dtype)


def cut(rollout: Rollout, budget: int | None) -> list[RolloutPart]:
    """The micro-batches of at most `budget` padded tokens, one completion at least."""
    mask_BT = rollout.completions.mask_BT
    lengths_B = mask_BT.sum(1).tolist()
    parts = []
    for micro in plan([len(prompt) for prompt in rollout.prompts], lengths_B, budget):
        rows, length = torch.tensor(micro.rows, device=mask_BT.device), max(1, max(lengths_B[b] for b in micro.rows))
        ids_BT = rollout.completions.ids_BT[rows, :length]
        parts.append(RolloutPart([rollout.prompts[p] for p in micro.prompts], rows, ids_BT, mask_BT[rows, :length]))
    return parts


def smaller_budget(rollout: Rollout, budget: int | None, ranks: Ranks, *, doing: str) -> int:
    """Half of the budget, or of what the largest micro-batch of any rank cost when that is less.

    Raises OutOfMemory when no micro-batch had two completions.
    """
    parts = cut(rollout, budget)
    if max(ranks.gather(max(len(part.rows) for part in parts))) == 1:
        raise too_large(rollout.samples, rollout.prompts, doing=doing)
    most = max(ranks.gather(max(part.size for part in parts)))
    return max(1, (most if budget is None else min(most, budget)) // 2)


@torch.no_grad()
def score_rollout(
    policy: Policy, score: ScoreFunction, rollout: Rollout, *, temperature: float, ranks: Ranks, budget: int | None
) -> tuple[Tensor, int | None]:
    """Log-probabilities (B, T) of all completions without graph, and the budget for which memory sufficed."""

    def work(budget: int | None) -> Tensor:
        logp_BT = torch.zeros_like(rollout.completions.logp_BT)
        for part in cut(rollout, budget):
            part.put(logp_BT, score(policy, part.to_score(temperature)).logp_BT)
        return logp_BT

    while True:
        logp_BT = ranks.together(lambda budget=budget: if_memory_lasts(lambda: work(budget)))
        lasted = not ranks.any(logp_BT is None)
        if lasted and logp_BT is not None:
            return logp_BT, budget
        budget = smaller_budget(rollout, budget, ranks, doing="scoring with the reference model")
