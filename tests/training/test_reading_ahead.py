"""Prompts that are read once a step, for sampling and for the update, change no number."""

import pytest
import torch
from torch import nn

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.prompts import mixed_prompts
from training import reading_ahead
from training.forward import prefill
from training.generation import sample
from training.logprobs import ToScore, shared_scores
from training.prompts import PromptEncoder
from training.reading_ahead import ContinuedScores, has_dropout, read_ahead

G, T = 3, 5


@pytest.fixture(scope="module", params=TINY_FAMILIES)
def policy(request):
    return tiny_policy(request.param)


@pytest.fixture(scope="module")
def prompts(policy):
    return [PromptEncoder(policy).encode(item) for item in mixed_prompts()]


def sampled(policy, prompts, prefix=None):
    uniforms = torch.rand(len(prompts) * G, T, generator=torch.Generator().manual_seed(5))
    return sample(
        policy,
        prompts,
        num_generations=G,
        max_completion_length=T,
        temperature=1.0,
        uniforms_BT=uniforms,
        prefix=prefix,
    )


def gradients(policy, score, prompts, completions):
    policy.model.zero_grad(set_to_none=True)
    logp_BT = score(policy, ToScore(prompts, completions.ids_BT, completions.mask_BT, 1.0)).logp_BT
    (logp_BT * torch.linspace(-1, 1, logp_BT.numel()).view_as(logp_BT)).sum().backward()
    return logp_BT.detach(), {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


def test_sampling_leaves_the_prefix_as_it_was_and_the_update_goes_on_from_it(policy, prompts):
    expected = sampled(policy, prompts)
    prefix = read_ahead(policy, prompts)
    completions = sampled(policy, prompts, prefix)
    assert torch.equal(completions.ids_BT, expected.ids_BT)
    assert torch.equal(completions.logp_BT, expected.logp_BT)
    ahead_BT, ahead = gradients(policy, ContinuedScores(prefix, prompts), prompts, completions)
    again_BT, again = gradients(policy, shared_scores, prompts, completions)
    torch.testing.assert_close(ahead_BT, again_BT, rtol=1e-6, atol=1e-6)
    assert ahead.keys() == again.keys()
    scale = max(gradient.abs().max() for gradient in again.values())
    for name, gradient in again.items():
        torch.testing.assert_close(ahead[name], gradient, rtol=1e-4, atol=1e-5 * float(scale))


def test_a_graph_serves_once_and_only_its_own_prompts(monkeypatch):
    policy = tiny_policy("smolvlm")
    prompts = [PromptEncoder(policy).encode(item) for item in mixed_prompts()]
    completions = sampled(policy, prompts)
    reads = []
    monkeypatch.setattr("training.logprobs.prefill", lambda *a: reads.append(len(a[1])) or prefill(*a))
    scores = ContinuedScores(read_ahead(policy, prompts), prompts)
    gradients(policy, scores, prompts, completions)
    assert reads == []
    gradients(policy, scores, prompts, completions)
    assert reads == [4]
    scores = ContinuedScores(read_ahead(policy, prompts), prompts)
    gradients(policy, scores, prompts[:2], completions.rows(range(2 * G)))
    assert reads == [4, 2]


def test_with_dropout_nothing_is_read_ahead():
    """The update's pass is another one than the sampler's then."""
    policy = tiny_policy("smolvlm")
    prompts = [PromptEncoder(policy).encode(item) for item in mixed_prompts()]
    assert not has_dropout(policy.model)
    policy.model.get_decoder().layers[0].self_attn.attention_dropout = 0.1
    assert read_ahead(policy, prompts) is None
    assert has_dropout(nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5)))


def test_memory_that_does_not_last_for_the_graph_is_no_failure(monkeypatch):
    def exhausted(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(reading_ahead, "prefill", exhausted)
    assert read_ahead(tiny_policy("smolvlm"), []) is None
