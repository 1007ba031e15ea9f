"""One optimizer step on a rollout: micro-batches of whole groups, gradients summed, clipped, applied if finite."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from training.algorithms.types import Algorithm, Batch
from training.config import RunConfig
from training.encoding import EncodedPrompt
from training.logprobs import TokenScores
from training.metrics import Sums
from training.policy import Policy
from training.ranks import Ranks
from training.rollouts import Rollout
from training.token_masks import TokenMasks


class ScoreFunction(Protocol):
    """Log-probabilities of completions, by the shared path or the plain one."""

    def __call__(
        self,
        policy: Policy,
        prompts: Sequence[EncodedPrompt],
        ids_BT: Tensor,
        mask_BT: Tensor,
        temperature: float,
        *,
        entropy_graph: bool = False,
    ) -> TokenScores: ...


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
    before it, without graph.
    """

    loss: float
    grad_norm: float
    applied: bool
    logp_BT: Tensor


@dataclass(frozen=True, slots=True)
class _Counts:
    """Sizes of the whole step, over all ranks."""

    completions: int
    tokens: int
    policy_tokens: int
    micro_batches: int


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    score: ScoreFunction,
    config: RunConfig,
    experience: Experience,
    *,
    sums: Sums,
    ranks: Ranks,
) -> Updated:
    """Forward, backward and AdamW step.  A step whose gradients are not finite changes nothing but is reported.

    Losses and gradients of all ranks add up to those of the step.
    """
    starts = _starts(experience.rollout, config)
    counts = _count(experience, len(starts), ranks)

    def backward() -> tuple[float, Tensor]:
        losses, logps = 0.0, []
        for start in starts:
            prompts, rows = _micro_batch(experience.rollout, config, start)
            scores = score(
                policy,
                prompts,
                experience.rollout.completions.ids_BT[rows],
                experience.rollout.completions.mask_BT[rows],
                config.generation.temperature,
                entropy_graph=config.algorithm.entropy_coef > 0,
            )
            batch = _batch(experience, rows, scores, counts, config)
            result = algorithm.loss(config.algorithm, scores.logp_BT, batch)
            result.loss.backward()
            losses += result.loss.item()
            logps.append(scores.logp_BT.detach())
            entropy = (scores.entropy_BT.detach() * batch.mask_BT).sum().item()
            sums.add("entropy", entropy, float(batch.mask_BT.sum()))
            sums.add_stats(result.stats)
        return losses, torch.cat(logps)

    optimizer.zero_grad(set_to_none=True)
    loss, logp_BT = ranks.together(backward)
    ranks.sum_gradients(policy.model.parameters())
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), config.optimization.max_grad_norm)
    applied = bool(torch.isfinite(norm))
    if applied:
        optimizer.step()
    return Updated(sum(ranks.gather(loss)), float(norm), applied, logp_BT)


def _count(experience: Experience, micro_batches: int, ranks: Ranks) -> _Counts:
    masks = experience.masks
    learned_BT = masks.loss_BT if masks.policy_BT is None else masks.policy_BT
    own = (len(masks.loss_BT), int(masks.loss_BT.sum()), int(learned_BT.sum()), micro_batches)
    return _Counts(*(sum(column) for column in zip(*ranks.gather(own), strict=True)))


def _batch(experience: Experience, rows: slice, scores: TokenScores, counts: _Counts, config: RunConfig) -> Batch:
    def part(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor[rows]

    return Batch(
        mask_BT=experience.masks.loss_BT[rows],
        advantages_B=experience.advantages_PG.flatten()[rows],
        old_logp_BT=part(experience.old_logp_BT),
        sampling_logp_BT=experience.rollout.completions.logp_BT[rows],
        ref_logp_BT=part(experience.ref_logp_BT),
        entropy_BT=scores.entropy_BT,
        policy_mask_BT=part(experience.masks.policy_BT),
        step_completions=counts.completions,
        step_tokens=counts.tokens,
        step_policy_tokens=counts.policy_tokens,
        step_micro_batches=counts.micro_batches,
        max_completion_length=config.generation.max_completion_length,
    )


def _starts(rollout: Rollout, config: RunConfig) -> range:
    """First prompt of each micro-batch."""
    return range(0, len(rollout.prompts), config.optimization.micro_batch_prompts or len(rollout.prompts))


def _micro_batch(rollout: Rollout, config: RunConfig, start: int) -> tuple[Sequence[EncodedPrompt], slice]:
    prompts = rollout.prompts[start : start + (config.optimization.micro_batch_prompts or len(rollout.prompts))]
    return prompts, slice(start * rollout.group_size, (start + len(prompts)) * rollout.group_size)
