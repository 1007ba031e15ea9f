"""One optimizer step on a rollout: micro-batches of whole groups, gradients summed, clipped, applied if finite."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.algorithms.types import Algorithm, Batch
from training.config import RunConfig
from training.logprobs import TokenScores
from training.metrics import Sums
from training.policy import Policy
from training.ranks import Ranks
from training.rollouts import Rollout
from training.vision import EncodedPrompt

ScoreFunction = Callable[[Policy, Sequence[EncodedPrompt], Tensor, Tensor, float], TokenScores]


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


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    score: ScoreFunction,
    config: RunConfig,
    rollout: Rollout,
    advantages_PG: Tensor,
    *,
    old_logp_BT: Tensor | None,
    ref_logp_BT: Tensor | None,
    sums: Sums,
    ranks: Ranks,
) -> Updated:
    """Forward, backward and AdamW step.  A step whose gradients are not finite changes nothing but is reported.

    rollout, advantages_PG and the log-probabilities are this rank's part of the step; losses and gradients of all
    ranks add up to those of the step.
    """
    mask_BT = rollout.completions.mask_BT
    starts = _starts(rollout, config)
    counts = ranks.gather((len(mask_BT), int(mask_BT.sum()), len(starts)))
    step_completions, step_tokens, step_micro_batches = (sum(column) for column in zip(*counts, strict=True))

    def backward() -> tuple[float, Tensor]:
        losses, logps = 0.0, []
        for start in starts:
            prompts, rows = _micro_batch(rollout, config, start)
            ids_BT, temperature = rollout.completions.ids_BT[rows], config.generation.temperature
            scores = score(policy, prompts, ids_BT, mask_BT[rows], temperature)
            batch = Batch(
                mask_BT=mask_BT[rows],
                advantages_B=advantages_PG.flatten()[rows],
                old_logp_BT=None if old_logp_BT is None else old_logp_BT[rows],
                ref_logp_BT=None if ref_logp_BT is None else ref_logp_BT[rows],
                step_completions=step_completions,
                step_tokens=step_tokens,
                step_micro_batches=step_micro_batches,
                max_completion_length=config.generation.max_completion_length,
            )
            result = algorithm.loss(config.algorithm, scores.logp_BT, batch)
            result.loss.backward()
            losses += result.loss.item()
            logps.append(scores.logp_BT.detach())
            tokens = float(batch.mask_BT.sum())
            sums.add("entropy", (scores.entropy_BT * batch.mask_BT).sum().item(), tokens)
            for name, (numerator, denominator) in result.sums.items():
                sums.add(name, float(numerator), denominator)
        return losses, torch.cat(logps)

    optimizer.zero_grad(set_to_none=True)
    loss, logp_BT = ranks.together(backward)
    ranks.sum_gradients(policy.model.parameters())
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), config.optimization.max_grad_norm)
    applied = bool(torch.isfinite(norm))
    if applied:
        optimizer.step()
    return Updated(sum(ranks.gather(loss)), float(norm), applied, logp_BT)


def _starts(rollout: Rollout, config: RunConfig) -> range:
    """First prompt of each micro-batch."""
    return range(0, len(rollout.prompts), config.optimization.micro_batch_prompts or len(rollout.prompts))


def _micro_batch(rollout: Rollout, config: RunConfig, start: int) -> tuple[Sequence[EncodedPrompt], slice]:
    prompts = rollout.prompts[start : start + (config.optimization.micro_batch_prompts or len(rollout.prompts))]
    return prompts, slice(start * rollout.group_size, (start + len(prompts)) * rollout.group_size)
