"""One optimizer step on a rollout: micro-batches within memory, gradients summed, clipped, applied if finite."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.algorithms.types import Algorithm, Batch
from training.config import RunConfig
from training.logprobs import ScoreFunction
from training.memory import if_memory_lasts
from training.metrics import Sums
from training.policy import Policy
from training.ranks import Ranks
from training.rollout_batches import RolloutPart, cut, smaller_budget
from training.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step is made of: this rank's part of a rollout, its advantages and log-probabilities.

    seed: of dropout, where a model has it.
    """

    rollout: Rollout
    advantages_PG: Tensor
    old_logp_BT: Tensor | None
    ref_logp_BT: Tensor | None
    seed: int


@dataclass(frozen=True, slots=True)
class Updated:
    """What one optimizer step did.

    loss and grad_norm are of the whole step; logp_BT are the policy's log-probabilities of this rank's completions
    before it, without graph, and sums this rank's metrics.  budget: tokens of a micro-batch for which memory sufficed.
    """

    loss: float
    grad_norm: float
    applied: bool
    logp_BT: Tensor
    sums: Sums
    budget: int | None


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    score: ScoreFunction,
    config: RunConfig,
    step: Step,
    *,
    ranks: Ranks,
    budget: int | None,
) -> Updated:
    """Forward, backward and AdamW step.  A step whose gradients are not finite changes nothing but is reported.

    Losses and gradients of all ranks add up to those of the step.  When memory runs out on any rank, the gradients are
    dropped and all ranks begin again with half the budget.  Raises OutOfMemory when one completion is too much.
    """
    while True:
        made = _Backward(policy, algorithm, score, config, step)
        optimizer.zero_grad(set_to_none=True)
        if made.run(ranks, budget):
            break
        budget = smaller_budget(step.rollout, budget, ranks, doing="training")
    ranks.sum_gradients(policy.model.parameters())
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), config.optimization.max_grad_norm)
    applied = bool(torch.isfinite(norm))
    if applied:
        optimizer.step()
    return Updated(sum(ranks.gather(made.loss)), float(norm), applied, made.logp_BT, made.sums, budget)


@dataclass(slots=True)
class _Backward:
    """Losses and gradients of a step's micro-batches as they add up."""

    policy: Policy
    algorithm: Algorithm
    score: ScoreFunction
    config: RunConfig
    step: Step
    loss: float = 0.0
    logp_BT: Tensor = field(init=False)
    sums: Sums = field(default_factory=Sums)

    def __post_init__(self) -> None:
        self.logp_BT = torch.zeros_like(self.step.rollout.completions.logp_BT)

    def run(self, ranks: Ranks, budget: int | None) -> bool:
        """Go through all micro-batches; False when memory ran out on any rank."""
        parts, mask_BT = cut(self.step.rollout, budget), self.step.rollout.completions.mask_BT
        own = len(mask_BT), int(mask_BT.sum()), len(parts)
        counts = [sum(column) for column in zip(*ranks.gather(own), strict=True)]
        torch.manual_seed(self.step.seed)

        def work() -> bool:
            for part in parts:
                self._add(part, *counts)
            return True

        return not ranks.any(ranks.together(lambda: if_memory_lasts(work)) is None)

    def _add(self, part: RolloutPart, step_completions: int, step_tokens: int, step_micro_batches: int) -> None:
        step, generation = self.step, self.config.generation
        batch = Batch(
            mask_BT=part.mask_BT,
            advantages_B=step.advantages_PG.flatten()[part.rows],
            old_logp_BT=None if step.old_logp_BT is None else part.of(step.old_logp_BT),
            ref_logp_BT=None if step.ref_logp_BT is None else part.of(step.ref_logp_BT),
            step_completions=step_completions,
            step_tokens=step_tokens,
            step_micro_batches=step_micro_batches,
            max_completion_length=generation.max_completion_length,
        )
        scores = self.score(self.policy, part.prompts, part.ids_BT, part.mask_BT, generation.temperature)
        result = self.algorithm.loss(self.config.algorithm, scores.logp_BT, batch)
        result.loss.backward()
        self.loss += result.loss.item()
        part.put(self.logp_BT, scores.logp_BT.detach())
        self.sums.add("entropy", (scores.entropy_BT * batch.mask_BT).sum().item(), float(batch.mask_BT.sum()))
        for name, (numerator, denominator) in result.sums.items():
            self.sums.add(name, float(numerator), denominator)
