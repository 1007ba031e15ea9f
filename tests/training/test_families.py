"""Every family: the sampler, the shared path and the plain path give the model's own numbers."""

import pytest
import torch

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.prompts import prompt, uneven_prompts
from training.encoding import join_prompts
from training.forward import prefill
from training.generation import sample
from training.logprobs import log_distribution, plain_scores, shared_scores
from training.prompts import PromptEncoder

G, T = 4, 12


@pytest.fixture(params=TINY_FAMILIES, scope="module")
def policy(request):
    return tiny_policy(request.param)


@pytest.fixture(scope="module")
def prompts(policy):
    encoder = PromptEncoder(policy)
    return [encoder.encode(item) for item in uneven_prompts()]


@pytest.fixture(scope="module")
def completions(policy, prompts):
    uniforms = torch.rand(len(prompts) * G, T, generator=torch.Generator().manual_seed(1))
    return sample(policy, prompts, num_generations=G, max_completion_length=T, temperature=0.8, uniforms_BT=uniforms)


def test_the_output_depends_on_the_image(policy):
    encoder = PromptEncoder(policy)
    one, other = (encoder.encode(prompt("what color?", picture)) for picture in (0, 3))
    with torch.no_grad():
        logits = [prefill(policy, [item], 1).logits_BV for item in (one, other)]
    assert (logits[0] - logits[1]).abs().max() > 0.05


def test_the_prompts_need_padding_and_completions_have_many_tokens(prompts, completions):
    assert len({len(item) for item in prompts}) == 3
    assert completions.mask_BT.sum(1).max() == T


@torch.no_grad()
def test_sampler_agrees_with_the_models_own_unpadded_forward(policy, prompts, completions):
    """One row at a time, no padding, no positions given: what stock transformers computes."""
    for b, mask in enumerate(completions.mask_BT):
        item, ids = prompts[b // G], completions.ids_BT[b, mask]
        inputs = join_prompts(policy.family, [item], pad_id=policy.pad_id, device=policy.device)
        inputs["input_ids"] = torch.cat([inputs["input_ids"], ids[None]], 1)
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        for key in policy.family.types:
            inputs[key] = torch.cat([inputs[key], torch.zeros_like(ids)[None]], 1)
        if hasattr(policy.model.model, "rope_deltas"):
            policy.model.model.rope_deltas = None
        logits = policy.model(**inputs, use_cache=False).logits[0, len(item) - 1 : -1]
        logp = log_distribution(policy, logits, 0.8).gather(-1, ids[:, None])[:, 0]
        torch.testing.assert_close(completions.logp_BT[b, mask], logp, atol=1e-4, rtol=0)


@torch.no_grad()
def test_sampler_trainer_and_plain_path_agree(policy, prompts, completions):
    mask = completions.mask_BT
    arguments = (policy, prompts, completions.ids_BT, mask, 0.8)
    shared, plain = shared_scores(*arguments), plain_scores(*arguments)
    torch.testing.assert_close(shared.logp_BT[mask], completions.logp_BT[mask], atol=1e-4, rtol=0)
    torch.testing.assert_close(shared.logp_BT[mask], plain.logp_BT[mask], atol=1e-5, rtol=0)
    torch.testing.assert_close(shared.entropy_BT[mask], completions.entropy_BT[mask], atol=1e-4, rtol=0)


def test_shared_and_plain_gradients_agree(policy, prompts, completions):
    weights = torch.randn(completions.ids_BT.shape, generator=torch.Generator().manual_seed(2)) * completions.mask_BT
    gradients = []
    for score in (shared_scores, plain_scores):
        policy.model.zero_grad(set_to_none=True)
        scores = score(policy, prompts, completions.ids_BT, completions.mask_BT, 0.8)
        (scores.logp_BT * weights).sum().backward()
        gradients.append({name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None})
    shared, plain = gradients
    assert shared.keys() == plain.keys()
    assert any("vision" in name or "visual" in name for name in shared)
    largest = max(gradient.norm() for gradient in plain.values())
    for name, gradient in plain.items():
        assert (shared[name] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-6 * largest, name


@torch.no_grad()
def test_a_row_draws_the_same_alone_as_among_others(policy, prompts, completions):
    uniforms = torch.rand(len(prompts) * G, T, generator=torch.Generator().manual_seed(1))[G : 2 * G]
    alone = sample(
        policy, prompts[1:2], num_generations=G, max_completion_length=T, temperature=0.8, uniforms_BT=uniforms
    )
    length = alone.ids_BT.shape[1]
    assert torch.equal(alone.ids_BT, completions.ids_BT[G : 2 * G, :length])


def test_no_forbidden_token_is_ever_sampled(policy, completions):
    sampled = completions.ids_BT[completions.mask_BT]
    assert not torch.isin(sampled, policy.forbidden_ids).any()
    image_token = getattr(policy.model.config, "image_token_id", None) or policy.model.config.image_token_index
    assert image_token in policy.forbidden_ids


@torch.no_grad()
def test_prompts_with_none_one_and_two_images_share_a_batch(policy):
    encoder = PromptEncoder(policy)
    mixed = [prompt("say yes"), prompt("what color?", 0), prompt("same color?", 1, 2)]
    encoded = [encoder.encode(item) for item in mixed]
    together = prefill(policy, encoded, 1).logits_BV
    for row, item in enumerate(encoded):
        torch.testing.assert_close(prefill(policy, [item], 1).logits_BV[0], together[row], atol=1e-4, rtol=1e-4)
