"""One optimizer step on a rollout: micro-batches within memory, gradients summed, clipped, applied if finite."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.algorithms.types import Algorithm, Batch
from training.config import OptimizationConfig, RunConfig
from training.logprobs import ScoreFunction, TokenScores
from training.memory import if_memory_lasts
from training.metrics import Sums
from training.policy import Policy
from training.ranks import Ranks
from training.rollout_batches import RolloutPart, cut, smaller_budget
from training.rollouts import Rollout
from training.token_masks import TokenMasks


@dataclass(frozen=True, slots=True)
class Experience:
    """What all updates on one rollout learn from: this rank's part of the step.

    old_logp_BT: the policy's log-probabilities before the first update, None in that update.
    """

    rollout: Rollout
    advantages_PG: Tensor
    masks: TokenMasks
    ref_logp_BT: Tensor | None
    old_logp_BT: Tensor | None = None


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


def make_optimizer(policy: Policy, config: OptimizationConfig) -> torch.optim.Optimizer:
    """AdamW over what is trained."""
    return torch.optim.AdamW(
        [parameter for parameter in policy.model.parameters() if parameter.requires_grad],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay,
    )


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    score: ScoreFunction,
    config: RunConfig,
    experience: Experience,
    *,
    ranks: Ranks,
    budget: int | None,
    seed: int,
) -> Updated:
    """Forward, backward and AdamW step.  A step whose gradients are not finite changes nothing but is reported.

    Losses and gradients of all ranks add up to those of the step.  When memory runs out on any rank, the gradients are
    dropped and all ranks begin again with half the budget.  seed: of dropout, where a model has it.  Raises OutOfMemory
    when one completion is too much.
    """
    while True:
        made = _Backward(policy, algorithm, score, config, experience)
        optimizer.zero_grad(set_to_none=True)
        if made.run(ranks, budget, seed):
            break
        budget = smaller_budget(experience.rollout, budget, ranks, doing="training")
    ranks.sum_gradients(policy.model.parameters())
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), config.optimization.max_grad_norm)
    applied = bool(torch.isfinite(norm))
    if applied:
        optimizer.step()
    return Updated(sum(ranks.gather(made.loss)), float(norm), applied, made.logp_BT, made.sums, budget)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Sizes of the whole step, over all ranks."""

    completions: int
    tokens: int
    policy_tokens: int
    micro_batches: int


@dataclass(slots=True)
class _Backward:
    """Losses and gradients of a step's micro-batches as they add up."""

    policy: Policy
    algorithm: Algorithm
    score: ScoreFunction
    config: RunConfig
    experience: Experience
    loss: float = 0.0
    logp_BT: Tensor = field(init=False)
    sums: Sums = field(default_factory=Sums)

    def __post_init__(self) -> None:
        self.logp_BT = torch.zeros_like(self.experience.rollout.completions.logp_BT)

    def run(self, ranks: Ranks, budget: int | None, seed: int) -> bool:
        """Go through all micro-batches; False when memory ran out on any rank."""
        parts = cut(self.experience.rollout, budget)
        counts = self._count(len(parts), ranks)
        torch.manual_seed(seed)

        def work() -> bool:
            for part in parts:
                self._add(part, counts)
            return True

        return not ranks.any(ranks.together(lambda: if_memory_lasts(work)) is None)

    def _count(self, micro_batches: int, ranks: Ranks) -> _Counts:
        masks = self.experience.masks
        learned_BT = masks.loss_BT if masks.policy_BT is None else masks.policy_BT
        own = (len(masks.loss_BT), int(masks.loss_BT.sum()), int(learned_BT.sum()), micro_batches)
        return _Counts(*(sum(column) for column in zip(*ranks.gather(own), strict=True)))

    def _add(self, part: RolloutPart, counts: _Counts) -> None:
        temperature, entropy_graph = self.config.generation.temperature, self.config.algorithm.entropy_coef > 0
        scores = self.score(self.policy, part.to_score(temperature, entropy_graph=entropy_graph))
        batch = self._batch(part, scores, counts)
        result = self.algorithm.loss(self.config.algorithm, scores.logp_BT, batch)
        result.loss.backward()
        self.loss += result.loss.item()
        part.put(self.logp_BT, scores.logp_BT.detach())
        entropy = (scores.entropy_BT.detach() * batch.mask_BT).sum().item()
        self.sums.add("entropy", entropy, float(batch.mask_BT.sum()))
        self.sums.add("tokens/padding_share", part.padding, part.size)
        self.sums.add_stats(result.stats)

    def _batch(self, part: RolloutPart, scores: TokenScores, counts: _Counts) -> Batch:
        experience = self.experience

        def of(tensor_BT: Tensor | None) -> Tensor | None:
            return None if tensor_BT is None else part.of(tensor_BT)

        return Batch(
            mask_BT=part.of(experience.masks.loss_BT),
            advantages_B=experience.advantages_PG.flatten()[part.rows],
            old_logp_BT=of(experience.old_logp_BT),
            sampling_logp_BT=part.of(experience.rollout.completions.logp_BT),
            ref_logp_BT=of(experience.ref_logp_BT),
            entropy_BT=scores.entropy_BT,
            policy_mask_BT=of(experience.masks.policy_BT),
            step_completions=counts.completions,
            step_tokens=counts.tokens,
            step_policy_tokens=counts.policy_tokens,
            step_micro_batches=counts.micro_batches,
            max_completion_length=self.config.generation.max_completion_length,
        )
