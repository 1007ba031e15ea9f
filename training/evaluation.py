"""Greedy evaluation on held-out rows."""

from collections.abc import Sequence

from training.config import RunConfig
from training.datasets import Dataset, Sample
from training.decoding import sample_in_parts
from training.generation import decode
from training.metrics import Outcome
from training.policy import Policy
from training.prompts import PromptEncoder
from training.rewards import RewardSet
from training.rollouts import score

BATCH = 64
"""Prompts per decode batch."""


def evaluate(
    policy: Policy,
    encoder: PromptEncoder,
    dataset: Dataset,
    rows: Sequence[int],
    rewards: RewardSet,
    config: RunConfig,
    *,
    step: int,
) -> list[Outcome]:
    """The rows' most likely completions, one each, in batches."""
    policy.model.eval()
    outcomes, at_once = [], config.generation.at_once
    for start in range(0, len(rows), BATCH):
        samples: list[Sample] = [dataset[row] for row in rows[start : start + BATCH]]
        prompts = [encoder.encode(item) for item in samples]
        completions, at_once = sample_in_parts(
            policy,
            samples,
            prompts,
            num_generations=1,
            max_completion_length=config.generation.max_completion_length,
            temperature=config.generation.temperature,
            uniforms_BT=None,
            at_once=at_once,
        )
        texts = decode(policy, completions)
        outcomes.append(Outcome.of(score(rewards, samples, prompts, completions, texts, step=step)))
    return outcomes
