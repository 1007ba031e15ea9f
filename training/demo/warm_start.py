"""A short supervised phase that half teaches a new model its task, stopped by a target and not by a count.

Reinforcement learning from random weights never sees a reward: nothing right is ever sampled.  The warm start ends as
soon as whole right answers have the target probability, which leaves the rest to be learned from rewards.
"""

import math
import random
from collections.abc import Callable, Sequence

import torch

from training.datasets import Dataset, Sample
from training.errors import ModelError
from training.forward import stack_completions
from training.logprobs import ToScore, shared_scores
from training.policy import Policy
from training.prompts import PromptEncoder

BATCH, LEARNING_RATE, HORIZON, MOST_STEPS = 64, 2e-3, 150, 600
ROWS = 1024
"""Of the dataset, which are drawn from again and again: a prompt that was encoded once is kept."""


def warm_start(
    policy: Policy,
    dataset: Dataset,
    answer: str,
    *,
    target: float,
    seed: int,
    progress: Callable[[int, float], None],
) -> int:
    """Train until the running mean probability of a whole right answer passes `target`; returns the steps taken.

    answer: form of the completion, such as "<answer>{answer}</answer>"; progress is called with the step and the mean.
    Raises ModelError when the target is not met within MOST_STEPS.
    """
    encoder, rng = PromptEncoder(policy), random.Random(seed)
    rows = rng.sample(range(len(dataset)), min(ROWS, len(dataset)))
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=LEARNING_RATE, weight_decay=0.0, betas=(0.9, 0.98))
    policy.model.train()
    mean = 0.0
    for step in range(1, MOST_STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * _shape(step)
        samples = [dataset[row] for row in rng.choices(rows, k=BATCH)]
        mean = 0.8 * mean + 0.2 * _supervised_step(policy, encoder, optimizer, samples, answer)
        progress(step, mean)
        if mean > target:
            return step
    raise ModelError(f"the warm start reached {mean:.2f} of {target} in {MOST_STEPS} steps; try another seed")


def _shape(step: int) -> float:
    """Twenty steps up, then a cosine to a tenth over HORIZON steps."""
    return min(1.0, step / 20) * (0.1 + 0.45 * (1 + math.cos(math.pi * min(step / HORIZON, 1))))


def _supervised_step(
    policy: Policy, encoder: PromptEncoder, optimizer: torch.optim.Optimizer, samples: Sequence[Sample], answer: str
) -> float:
    """One step of cross-entropy on the right answers; returns their mean probability before it."""
    end = policy.end_ids[:1].cpu()
    texts = [answer.format(answer=sample.columns["answer"]) for sample in samples]
    rows = [torch.cat([torch.tensor(policy.tokenizer(text).input_ids), end]) for text in texts]
    ids_BT, mask_BT = stack_completions(rows, policy.pad_id)
    given = ToScore([encoder.encode(sample) for sample in samples], ids_BT, mask_BT, temperature=1.0)
    logp_BT = shared_scores(policy, given).logp_BT * mask_BT
    optimizer.zero_grad(set_to_none=True)
    (-logp_BT.sum() / mask_BT.sum()).backward()
    torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
    optimizer.step()
    return logp_BT.detach().sum(1).exp().mean().item()
