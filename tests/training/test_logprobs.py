"""Chunked log-probabilities: the numbers of the whole logits, which never exist."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.tiny_vlms import tiny_policy
from tests.training.rollouts import tiny_rollout
from training import logprobs
from training.head import head_logits
from training.logprobs import plain_scores, shared_scores, stock_scores

CHUNKED = (shared_scores, plain_scores)


@pytest.fixture(scope="module")
def policy():
    return tiny_policy("smolvlm")


@pytest.fixture(scope="module")
def arguments(policy):
    rollout = tiny_rollout(policy)
    return policy, rollout.prompts, rollout.completions.ids_BT, rollout.completions.mask_BT, 0.9


def with_gradients(score, arguments, *, chunk, monkeypatch):
    """logp, entropy and gradients of a weighted sum of both, with chunks of `chunk` tokens."""
    policy, mask_BT = arguments[0], arguments[3]
    monkeypatch.setattr(logprobs, "CHUNK", chunk * policy.model.config.get_text_config().vocab_size)
    policy.model.zero_grad(set_to_none=True)
    scores = score(*arguments, entropy_graph=True)
    weights = torch.randn(mask_BT.shape, generator=torch.Generator().manual_seed(0)) * mask_BT
    (weights * (scores.logp_BT + 0.5 * scores.entropy_BT)).sum().backward()
    return scores, {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("score", CHUNKED)
@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_give_the_numbers_and_gradients_of_all_logits_at_once(arguments, score, chunk, monkeypatch):
    ours, gradients = with_gradients(score, arguments, chunk=chunk, monkeypatch=monkeypatch)
    whole, expected = with_gradients(score, arguments, chunk=10**6, monkeypatch=monkeypatch)
    torch.testing.assert_close(ours.logp_BT, whole.logp_BT, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours.entropy_BT, whole.entropy_BT, atol=1e-6, rtol=1e-6)
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-5, rtol=1e-4)


def test_chunks_give_the_numbers_of_the_models_own_head(arguments, monkeypatch):
    stock, expected = with_gradients(stock_scores, arguments, chunk=1, monkeypatch=monkeypatch)
    ours, gradients = with_gradients(plain_scores, arguments, chunk=5, monkeypatch=monkeypatch)
    torch.testing.assert_close(ours.logp_BT, stock.logp_BT, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours.entropy_BT, stock.entropy_BT, atol=1e-6, rtol=1e-6)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-5, rtol=1e-4)


def test_entropy_carries_no_graph_unless_asked_for(arguments):
    assert not shared_scores(*arguments).entropy_BT.requires_grad
    assert shared_scores(*arguments, entropy_graph=True).entropy_BT.requires_grad


class Largest(TorchDispatchMode):
    """Elements of the largest logits that any operation makes, backward included; the head's matrix is none."""

    def __init__(self, vocabulary: int, hidden: int) -> None:
        super().__init__()
        self.elements = 0
        self._vocabulary, self._matrix = vocabulary, {vocabulary, hidden}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            shape = tensor.shape if isinstance(tensor, torch.Tensor) else ()
            if self._vocabulary in shape and set(shape) != self._matrix:
                self.elements = max(self.elements, tensor.numel())
        return out


@pytest.mark.parametrize("score", CHUNKED)
def test_the_logits_of_a_batch_never_exist(arguments, score, monkeypatch):
    vocabulary, hidden = arguments[0].model.get_output_embeddings().weight.shape
    tokens = int(arguments[3].sum())
    for chunk, held in ((3, 3), (10**6, tokens)):
        with Largest(vocabulary, hidden) as largest:
            with_gradients(score, arguments, chunk=chunk, monkeypatch=monkeypatch)
        assert largest.elements == held * vocabulary


def test_the_head_caps_logits_where_the_family_does(policy, monkeypatch):
    text = policy.model.config.get_text_config()
    hidden = torch.randn(3, text.hidden_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = policy.model.get_output_embeddings()(hidden)
        monkeypatch.setattr(text, "final_logit_softcapping", 0.5, raising=False)
        capped = head_logits(policy.model, hidden)
    assert plain.abs().max() > 0.5
    assert capped[0, 0].item() == pytest.approx(0.5 * math.tanh(plain[0, 0].item() / 0.5), rel=1e-5)
