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
from training.rollouts import Rollout
from training.vision import EncodedPrompt

ScoreFunction = Callable[[Policy, Sequence[EncodedPrompt], Tensor, Tensor, float], TokenScores]


@dataclass(frozen=True, slots=True)
class Updated:
    """What one optimizer step did; `logp_BT` are the policy's log-probabilities before it, without graph."""

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
) -> Updated:
    """Forward, backward and AdamW step.  A step whose gradients are not finite changes nothing but is reported."""
    group, completions = rollout.group_size, rollout.completions
    mask_BT = completions.mask_BT
    size = config.optimization.micro_batch_prompts or len(rollout.prompts)
    starts = range(0, len(rollout.prompts), size)
    optimizer.zero_grad(set_to_none=True)
    losses, logps = 0.0, []
    for start in starts:
        prompts = rollout.prompts[start : start + size]
        rows = slice(start * group, (start + len(prompts)) * group)
        scores = score(policy, prompts, completions.ids_BT[rows], mask_BT[rows], config.generation.temperature)
        batch = Batch(
            mask_BT=mask_BT[rows],
            advantages_B=advantages_PG.flatten()[rows],
            old_logp_BT=None if old_logp_BT is None else old_logp_BT[rows],
            ref_logp_BT=None if ref_logp_BT is None else ref_logp_BT[rows],
            step_completions=len(mask_BT),
            step_tokens=int(mask_BT.sum()),
            step_micro_batches=len(starts),
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
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), config.optimization.max_grad_norm)
    applied = bool(torch.isfinite(norm))
    if applied:
        optimizer.step()
    return Updated(losses, float(norm), applied, torch.cat(logps))
