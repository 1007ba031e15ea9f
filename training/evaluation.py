"""Greedy evaluation on held-out rows."""

from collections.abc import Iterator, Sequence

from training.config import RunConfig
from training.datasets import Dataset, Sample
from training.generation import decode, sample
from training.metrics import completion_metrics, finite, reward_metrics
from training.policy import Policy
from training.prompts import PromptEncoder
from training.rewards import RewardSet
from training.rollouts import Rollout, score

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
) -> dict[str, float]:
    """Means over the rows' most likely completions, named as the training metrics with eval_ before them."""
    policy.model.eval()
    sums: dict[str, float] = {}
    weights: dict[str, int] = {}
    for rollout in _rollouts(policy, encoder, dataset, rows, rewards, config, step=step):
        metrics = finite(reward_metrics(rollout, rewards.names) | completion_metrics(rollout))
        for name in metrics:
            if name == "reward" or name.endswith("/mean") or name.endswith("mean_length") or name.endswith("_ratio"):
                sums[name] = sums.get(name, 0.0) + metrics[name] * len(rollout.samples)
                weights[name] = weights.get(name, 0) + len(rollout.samples)
    return {f"eval_{name}": sums[name] / weights[name] for name in sums}


def _rollouts(
    policy: Policy,
    encoder: PromptEncoder,
    dataset: Dataset,
    rows: Sequence[int],
    rewards: RewardSet,
    config: RunConfig,
    *,
    step: int,
) -> Iterator[Rollout]:
    for start in range(0, len(rows), BATCH):
        samples: list[Sample] = [dataset[row] for row in rows[start : start + BATCH]]
        prompts = [encoder.encode(item) for item in samples]
        completions = sample(
            policy,
            prompts,
            num_generations=1,
            max_completion_length=config.generation.max_completion_length,
            temperature=config.generation.temperature,
            uniforms_BT=None,
        )
        yield score(rewards, samples, prompts, completions, decode(policy, completions), step=step)
