"""Every family: sampler, shared path and plain path give the model's own numbers, whatever stands beside a prompt."""

from dataclasses import replace

import pytest
import torch

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.prompts import asked, drawn, mixed_prompts
from training.encoding import join_prompts, placeholder_fault
from training.forward import prefill
from training.generation import sample
from training.logprobs import ToScore, log_distribution, plain_scores, shared_scores
from training.prompts import PromptEncoder

G, T = 3, 8


@pytest.fixture(params=TINY_FAMILIES, scope="module")
def policy(request):
    return tiny_policy(request.param)


@pytest.fixture(scope="module")
def encoder(policy):
    return PromptEncoder(policy)


@pytest.fixture(scope="module")
def prompts(encoder):
    return [encoder.encode(item) for item in mixed_prompts()]


@pytest.fixture(scope="module")
def uniforms(prompts):
    return torch.rand(len(prompts) * G, T, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def completions(policy, prompts, uniforms):
    return sample(policy, prompts, num_generations=G, max_completion_length=T, temperature=0.8, uniforms_BT=uniforms)


@torch.no_grad()
def last_logits(policy, prompts):
    return prefill(policy, prompts).logits_BV


@pytest.fixture(scope="module")
def logits(policy, prompts):
    return last_logits(policy, prompts)


def test_the_prompts_need_padding_and_completions_have_many_tokens(prompts, completions):
    assert len({len(item) for item in prompts}) == 4
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
    given = ToScore(prompts, completions.ids_BT, mask, 0.8)
    shared, plain = shared_scores(policy, given), plain_scores(policy, given)
    torch.testing.assert_close(shared.logp_BT[mask], completions.logp_BT[mask], atol=1e-4, rtol=0)
    torch.testing.assert_close(shared.logp_BT[mask], plain.logp_BT[mask], atol=1e-4, rtol=0)
    torch.testing.assert_close(shared.entropy_BT[mask], completions.entropy_BT[mask], atol=1e-4, rtol=0)


def test_shared_and_plain_gradients_agree(policy, prompts, completions):
    weights = torch.randn(completions.ids_BT.shape, generator=torch.Generator().manual_seed(2)) * completions.mask_BT
    gradients = []
    for score in (shared_scores, plain_scores):
        policy.model.zero_grad(set_to_none=True)
        scores = score(policy, ToScore(prompts, completions.ids_BT, completions.mask_BT, 0.8))
        (scores.logp_BT * weights).sum().backward()
        gradients.append({name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None})
    shared, plain = gradients
    assert shared.keys() == plain.keys()
    assert any("vision" in name or "visual" in name for name in shared)
    largest = max(gradient.norm() for gradient in plain.values())
    for name, gradient in plain.items():
        assert (shared[name] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-6 * largest, name


def test_a_row_draws_the_same_alone_as_among_others(policy, prompts, completions, uniforms):
    rows = slice(2 * G, 3 * G)
    alone = sample(
        policy, prompts[2:3], num_generations=G, max_completion_length=T, temperature=0.8, uniforms_BT=uniforms[rows]
    )
    length = alone.ids_BT.shape[1]
    assert torch.equal(alone.ids_BT, completions.ids_BT[rows, :length])


def test_a_permuted_batch_gives_the_same_numbers(policy, prompts, logits):
    order = [3, 1, 0, 2]
    permuted = last_logits(policy, [prompts[index] for index in order])
    torch.testing.assert_close(permuted, logits[order], atol=1e-4, rtol=1e-4)


def test_the_width_of_the_padding_changes_nothing(policy, encoder, prompts, logits):
    long = encoder.encode(asked("is there a red shape? " * 30))
    padded = last_logits(policy, [prompts[2], long])
    torch.testing.assert_close(padded[0], logits[2], atol=1e-4, rtol=1e-4)


def test_other_images_and_another_order_of_images_change_the_numbers(policy, encoder, prompts, logits):
    swapped = asked("same color?", drawn(33, 70, 3), "or", drawn(40, 90, 2), "?")
    other = asked("same color?", drawn(40, 90, 2), "or", drawn(33, 70, 9), "?")
    changed = last_logits(policy, [encoder.encode(swapped), encoder.encode(other)])
    assert (changed - logits[2]).abs().amax(1).min() > 0.02


def test_no_vision_token_is_ever_sampled(policy, completions):
    sampled = completions.ids_BT[completions.mask_BT]
    assert not torch.isin(sampled, policy.forbidden_ids).any()
    written_for_an_image = set(PromptEncoder(policy).encode(asked(drawn(64, 64), "a")).ids.tolist())
    written_for_none = set(PromptEncoder(policy).encode(asked("a")).ids.tolist())
    newline = set(policy.tokenizer("\n\n\n").input_ids + policy.tokenizer("\n\n").input_ids)
    vision = written_for_an_image - written_for_none - newline
    assert policy.model.config.image_token_id in vision
    assert vision <= set(policy.forbidden_ids.tolist())


def test_placeholders_without_their_features_are_counted(policy, prompts):
    """What a policy that sampled an image token, or a cut inside an image, would leave behind."""
    config, item = policy.model.config, prompts[2]
    assert placeholder_fault(policy.family, config, item) is None
    first = int((item.ids == config.image_token_id).nonzero()[0])
    for ids in (
        torch.cat([item.ids[:first], item.ids[first + 1 :]]),
        torch.cat([item.ids, item.ids[first : first + 1]]),
    ):
        assert "its 2 images give" in str(placeholder_fault(policy.family, config, replace(item, ids=ids)))
    assert "0 image placeholders" in str(
        placeholder_fault(policy.family, config, replace(prompts[1], images=item.images))
    )
    assert "no image tensors" in str(placeholder_fault(policy.family, config, replace(item, images={})))
