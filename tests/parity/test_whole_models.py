"""A model with images and the same completions: TRL's loss over its forward and our update give equal gradients."""

import copy
from dataclasses import replace

import pytest
import torch

pytest.importorskip("trl")
from trl import GRPOTrainer, RLOOTrainer
from trl.trainer.utils import add_fused_lm_head

from tests.parity.peer import bare
from tests.tiny_vlms import tiny_policy
from tests.training.prompts import uneven_prompts
from training.algorithms import ALGORITHMS
from training.config import RunConfig
from training.encoding import join_prompts
from training.generation import Completions
from training.logprobs import plain_scores, shared_scores
from training.metrics import Sums
from training.policy import Policy
from training.prompts import PromptEncoder
from training.ranks import Ranks
from training.rollouts import Rollout
from training.token_masks import TokenMasks
from training.update import Experience, update

GROUP, LENGTH, TEMPERATURE = 4, 6, 0.9


@pytest.fixture(scope="module", params=["qwen2_5_vl", "smolvlm", "gemma3"])
def policy(request) -> Policy:
    """In double precision, and with nothing forbidden: the peer gives vision tokens a probability, we do not."""
    policy = tiny_policy(request.param)
    policy.model.double().train()
    return replace(policy, forbidden_ids=policy.forbidden_ids[:0])


def recorded(policy: Policy) -> Experience:
    generator = torch.Generator().manual_seed(1)
    samples = uneven_prompts()
    encoder = PromptEncoder(policy)
    prompts = [encoder.encode(sample) for sample in samples]
    for prompt in prompts:
        prompt.images["pixel_values"] = prompt.images["pixel_values"].double()
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
        logp = plain_scores(policy, prompts, completions.ids_BT, mask, TEMPERATURE).logp_BT
    old = logp + 0.3 * torch.randn(logp.shape, generator=generator)
    return Experience(rollout, advantages, TokenMasks(mask, None), ref_logp_BT=logp - 0.2, old_logp_BT=old)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    "algorithm", [{"name": "grpo", "loss_type": "grpo", "beta": 0.05}, {"name": "rloo", "beta": 0}]
)
def test_loss_and_parameter_gradients(policy, algorithm):
    experience = recorded(policy)
    ours, theirs = (replace(policy, model=copy.deepcopy(policy.model)) for _ in range(2))
    config = RunConfig.model_validate(
        {
            "algorithm": algorithm,
            "generation": {"num_generations": GROUP, "max_completion_length": LENGTH, "temperature": TEMPERATURE},
            "optimization": {"prompts_per_step": 3, "max_grad_norm": 1e9},
        }
    )
    if not config.algorithm.beta:
        experience = replace(experience, ref_logp_BT=None)
    optimizer = torch.optim.SGD(ours.model.parameters(), lr=0.0)
    updated = update(
        ours, optimizer, ALGORITHMS[config.algorithm.name], shared_scores, config, experience,
        sums=Sums(), ranks=Ranks(cpu=True),
    )  # fmt: skip

    loss = peers_loss(theirs, experience, config)
    loss.backward()
    assert updated.loss == pytest.approx(loss.item(), rel=1e-5)
    mine, peers = gradients(ours.model), gradients(theirs.model)
    assert mine.keys() == peers.keys()
    assert any("vision" in name or "visual" in name for name in mine)
    scale = max(gradient.abs().max() for gradient in peers.values())
    for name, gradient in peers.items():
        assert (mine[name] - gradient).norm() <= 1e-5 * (gradient.norm() + 1e-3 * scale), name


def peers_loss(policy: Policy, experience: Experience, config: RunConfig) -> torch.Tensor:
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
