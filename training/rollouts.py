"""One step's rollout: prompts, their sampled completions, rewards and advantages, and the records they become."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.algorithms.types import Scored
from training.datasets import Sample
from training.encoding import EncodedPrompt
from training.generation import Completions, token_ids
from training.records import CompletionRecord, GroupRecord, RewardValue
from training.rewards import RewardSet
from training.token_stats import TokenStats, pack


@dataclass(frozen=True, slots=True)
class Rollout:
    """P prompts with G completions each; `rewards` has one list of values per completion, in group order.

    weights_K: weights of the reward functions.  extra_groups: groups that were sampled and given up for these.
    """

    samples: Sequence[Sample]
    prompts: Sequence[EncodedPrompt]
    completions: Completions
    texts: Sequence[str]
    rewards: Sequence[Sequence[RewardValue]]
    weights_K: Tensor
    extra_groups: int = 0

    @property
    def group_size(self) -> int:
        return len(self.texts) // len(self.samples)

    @property
    def scored(self) -> Scored:
        """The rewards as numbers; not finite ones never come this far."""
        values = [[torch.nan if row.value is None else row.value for row in rows] for rows in self.rewards]
        rewards_PGK = torch.tensor(values, dtype=torch.float64).view(len(self.samples), self.group_size, -1)
        return Scored(rewards_PGK, self.weights_K)


def score(
    rewards: RewardSet,
    samples: Sequence[Sample],
    prompts: Sequence[EncodedPrompt],
    completions: Completions,
    texts: Sequence[str],
    *,
    step: int,
) -> Rollout:
    """Run the reward functions over all completions."""
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
    weights_K = torch.tensor(rewards.weights, dtype=torch.float64)
    return Rollout(samples, prompts, completions, texts, values, weights_K)


def records(rollout: Rollout, advantages_PG: Tensor) -> list[GroupRecord]:
    """What is kept of the step: one record per group with all its completions."""
    completions, group = rollout.completions, rollout.group_size
    lengths = completions.mask_BT.sum(1).tolist()
    ended, totals = completions.ended_B.tolist(), rollout.scored.rewards_PG.flatten().tolist()
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
