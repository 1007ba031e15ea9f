"""One step's rollout: prompts, their sampled completions, rewards and advantages, and the records they become."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.datasets import Sample
from training.generation import Completions, token_ids
from training.records import CompletionRecord, GroupRecord, RewardValue
from training.rewards import RewardSet
from training.token_stats import TokenStats, pack
from training.vision import EncodedPrompt


@dataclass(frozen=True, slots=True)
class Rollout:
    """P prompts with G completions each; `rewards` has one list of values per completion, in group order."""

    samples: Sequence[Sample]
    prompts: Sequence[EncodedPrompt]
    completions: Completions
    texts: Sequence[str]
    rewards: Sequence[Sequence[RewardValue]]
    rewards_PG: Tensor

    @property
    def group_size(self) -> int:
        return len(self.texts) // len(self.samples)


def score(
    rewards: RewardSet,
    samples: Sequence[Sample],
    prompts: Sequence[EncodedPrompt],
    completions: Completions,
    texts: Sequence[str],
    *,
    step: int,
) -> Rollout:
    """Run the reward functions over all completions; a total is NaN where no function gave a value."""
    group = len(texts) // len(samples)
    repeated = [sample for sample in samples for _ in range(group)]
    values = rewards.score(
        prompts=[list(sample.messages) for sample in repeated],
        completions=list(texts),
        completion_ids=token_ids(completions),
        images=[list(sample.images) for sample in repeated],
        columns=[sample.columns for sample in repeated],
        step=step,
    )
    totals = torch.tensor([total(row, rewards.weights) for row in values])
    return Rollout(samples, prompts, completions, texts, values, totals.view(len(samples), group))


def total(values: Sequence[RewardValue], weights: Sequence[float]) -> float:
    """Weighted sum of the scored values; NaN when there are none."""
    scored = [weight * row.value for row, weight in zip(values, weights, strict=True) if row.value is not None]
    return sum(scored) if scored else float("nan")


def records(rollout: Rollout, advantages_PG: Tensor) -> list[GroupRecord]:
    """What is kept of the step: one record per group with all its completions."""
    completions, group = rollout.completions, rollout.group_size
    lengths = completions.mask_BT.sum(1).tolist()
    ended, totals = completions.ended_B.tolist(), rollout.rewards_PG.flatten().tolist()
    ids, logp = completions.ids_BT.cpu().numpy(), completions.logp_BT.cpu().numpy()
    entropy, advantages = completions.entropy_BT.cpu().numpy(), advantages_PG.flatten().tolist()

    def completion(b: int) -> CompletionRecord:
        length = lengths[b]
        return CompletionRecord(
            index=b % group,
            text=rollout.texts[b],
            num_tokens=length,
            finish_reason="stop" if ended[b] else "length",
            rewards=list(rollout.rewards[b]),
            reward=None if totals[b] != totals[b] else totals[b],
            advantage=advantages[b],
            tokens=pack(TokenStats(ids[b, :length], logp[b, :length], entropy[b, :length])),
        )

    return [
        GroupRecord(sample=sample.record(), completions=[completion(p * group + g) for g in range(group)])
        for p, sample in enumerate(rollout.samples)
    ]


def image_bytes(rollout: Rollout) -> dict[str, bytes]:
    """Original bytes of every image of the step by content hash."""
    return {image.sha256: image.data for sample in rollout.samples for image in sample.images}
