"""A model with images and the same completions: TRL's loss over its forward and our update give equal gradients."""

import copy
from dataclasses import replace

import pytest
import torch

pytest.importorskip("trl")

from tests.parity.whole_models import peers_loss, recorded, run_config
from tests.tiny_vlms import tiny_policy
from training.algorithms import ALGORITHMS
from training.logprobs import shared_scores
from training.policy import Policy
from training.ranks import Ranks
from training.update import update


@pytest.fixture(scope="module", params=["qwen2_5_vl", "smolvlm", "gemma3"])
def policy(request) -> Policy:
    """In double precision, and with nothing forbidden: the peer gives vision tokens a probability, we do not."""
    policy = tiny_policy(request.param)
    policy.model.double().train()
    return replace(policy, forbidden_ids=policy.forbidden_ids[:0])


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    "algorithm", [{"name": "grpo", "loss_type": "grpo", "beta": 0.05}, {"name": "rloo", "beta": 0}]
)
def test_loss_and_parameter_gradients(policy, algorithm):
    experience = recorded(policy)
    ours, theirs = (replace(policy, model=copy.deepcopy(policy.model)) for _ in range(2))
    config = run_config(algorithm)
    if not config.algorithm.beta:
        experience = replace(experience, ref_logp_BT=None)
    optimizer = torch.optim.SGD(ours.model.parameters(), lr=0.0)
    updated = update(
        ours, optimizer, ALGORITHMS[config.algorithm.name], shared_scores, config, experience,
        ranks=Ranks(cpu=True), budget=None, seed=0,
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
