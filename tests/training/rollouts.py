"""Rollouts for tests: sampled from a tiny model, with rewards by hand."""

import torch

from tests.training.prompts import uneven_prompts
from training.generation import Completions, sample
from training.policy import Policy
from training.prompts import PromptEncoder
from training.records import RewardValue
from training.rollouts import Rollout

G, T = 4, 6


def tiny_rollout(policy: Policy) -> Rollout:
    """Three prompts of different length with four completions each, cut to different lengths, one of them empty."""
    policy.model.eval()
    samples = uneven_prompts()
    prompts = [PromptEncoder(policy).encode(item) for item in samples]
    uniforms = torch.rand(len(prompts) * G, T, generator=torch.Generator().manual_seed(3))
    completions = sample(
        policy, prompts, num_generations=G, max_completion_length=T, temperature=0.9, uniforms_BT=uniforms
    )
    lengths_B = torch.tensor([6, 2, 5, 1, 3, 6, 0, 4, 6, 6, 1, 2])
    mask_BT = torch.arange(T) < lengths_B[:, None]
    completions = Completions(
        ids_BT=completions.ids_BT.where(mask_BT, policy.pad_id),
        mask_BT=mask_BT,
        logp_BT=completions.logp_BT * mask_BT,
        entropy_BT=completions.entropy_BT * mask_BT,
        ended_B=lengths_B < T,
    )
    rewards = [[RewardValue(name="by hand", value=value)] for value in (0.0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1)]
    return Rollout(samples, prompts, completions, [""] * len(rewards), rewards, torch.ones(1))
