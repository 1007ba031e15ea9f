"""Recorded completions of a model with images, and TRL's loss over its own forward of them."""

import torch
from trl import GRPOTrainer, RLOOTrainer
from trl.trainer.utils import add_fused_lm_head

from tests.parity.peer import bare
from tests.training.prompts import uneven_prompts
from training.config import RunConfig
from training.encoding import join_prompts
from training.generation import Completions
from training.logprobs import ToScore, plain_scores
from training.policy import Policy
from training.prompts import PromptEncoder
from training.rollouts import Rollout
from training.token_masks import TokenMasks
from training.update import Experience

GROUP, LENGTH, TEMPERATURE = 4, 6, 0.9


def run_config(algorithm: dict[str, object]) -> RunConfig:
    return RunConfig.model_validate(
        {
            "algorithm": algorithm,
            "generation": {"num_generations": GROUP, "max_completion_length": LENGTH, "temperature": TEMPERATURE},
            "optimization": {"prompts_per_step": 3, "max_grad_norm": 1e9},
        }
    )


def recorded(policy: Policy) -> Experience:
    """Random completions of different length for three prompts, with old log-probabilities that are a little off."""
    generator = torch.Generator().manual_seed(1)
    samples = uneven_prompts()
    encoder = PromptEncoder(policy)
    prompts = [encoder.encode(sample) for sample in samples]
    for encoded in prompts:
        encoded.images["pixel_values"] = encoded.images["pixel_values"].to(policy.model.dtype)
    rows = len(prompts) * GROUP
    allowed = [i for i in range(len(policy.tokenizer)) if i not in policy.tokenizer.all_special_ids]
    ids = torch.tensor(allowed)[torch.randint(0, len(allowed), (rows, LENGTH), generator=generator)]
    lengths = torch.randint(1, LENGTH + 1, (rows,), generator=generator)
    lengths[0] = LENGTH
    mask = torch.arange(LENGTH) < lengths[:, None]
    completions = Completions(
        ids_BT=ids.where(mask, torch.tensor(policy.pad_id)),
        mask_BT=mask,
        logp_BT=torch.zeros(rows, LENGTH),
        entropy_BT=torch.zeros(rows, LENGTH),
        ended_B=torch.ones(rows, dtype=torch.bool),
    )
    rollout = Rollout(samples, prompts, completions, [""] * rows, [[]] * rows, torch.ones(0))
    advantages = torch.randn(len(prompts), GROUP, generator=generator)
    # far enough from the policy for some ratios to be clipped
    with torch.no_grad():
        logp = plain_scores(policy, ToScore(prompts, completions.ids_BT, mask, TEMPERATURE)).logp_BT
    old = logp + 0.3 * torch.randn(logp.shape, generator=generator)
    return Experience(rollout, advantages, TokenMasks(mask, None), ref_logp_BT=logp - 0.2, old_logp_BT=old)


def peers_loss(policy: Policy, experience: Experience, config: RunConfig) -> torch.Tensor:
    """The peer's loss; changes the model's forward for good."""
    rollout, algorithm = experience.rollout, config.algorithm
    repeated = [prompt for prompt in rollout.prompts for _ in range(GROUP)]
    inputs = join_prompts(policy.family, repeated, pad_id=policy.pad_id, device=policy.device)
    completion_mask = rollout.completions.mask_BT.long()
    assert experience.old_logp_BT is not None
    given = {
        "prompt_ids": inputs.pop("input_ids"),
        "prompt_mask": inputs.pop("attention_mask"),
        "completion_ids": rollout.completions.ids_BT,
        "completion_mask": completion_mask,
        "advantages": experience.advantages_PG.flatten(),
        "num_items_in_batch": completion_mask.sum(),
        "old_per_token_logps": experience.old_logp_BT,
        "old_logps": (experience.old_logp_BT * completion_mask).sum(1),
        "ref_per_token_logps": experience.ref_logp_BT,
        "num_images": [prompt.num_images for prompt in repeated],
        **{key: value for key, value in inputs.items() if key not in policy.family.types},
    }
    for key in policy.family.types:  # the peer hands them over for prompt and completion
        given[key] = torch.cat([inputs[key], torch.zeros_like(rollout.completions.ids_BT)], 1)
    trainer = GRPOTrainer if algorithm.name == "grpo" else RLOOTrainer
    options = {"loss_type": "grpo", "beta": algorithm.beta} if algorithm.name == "grpo" else {}
    one = bare(trainer, limit=LENGTH, **options)
    one.temperature = TEMPERATURE
    add_fused_lm_head(policy.model, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    return one._compute_loss(policy.model, given)
