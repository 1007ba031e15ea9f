"""Chunked log-probabilities: the numbers of the whole logits, which never exist."""

import math
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.tiny_vlms import tiny_policy
from tests.training.rollouts import tiny_rollout
from training import logprobs
from training.head import head_logits
from training.logprobs import ToScore, plain_scores, shared_scores, stock_scores

CHUNKED = (shared_scores, plain_scores)


@pytest.fixture(scope="module")
def policy():
    return tiny_policy("smolvlm")


@pytest.fixture(scope="module")
def given(policy):
    rollout = tiny_rollout(policy)
    completions = rollout.completions
    return ToScore(rollout.prompts, completions.ids_BT, completions.mask_BT, 0.9, entropy_graph=True)


def with_gradients(score, policy, given, *, chunk, monkeypatch):
    """logp, entropy and gradients of a weighted sum of both, with chunks of `chunk` tokens."""
    monkeypatch.setattr(logprobs, "CHUNK", chunk * policy.model.config.get_text_config().vocab_size)
    policy.model.zero_grad(set_to_none=True)
    scores = score(policy, given)
    weights = torch.randn(given.mask_BT.shape, generator=torch.Generator().manual_seed(0)) * given.mask_BT
    (weights * (scores.logp_BT + 0.5 * scores.entropy_BT)).sum().backward()
    return scores, {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("score", CHUNKED)
@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_give_the_numbers_and_gradients_of_all_logits_at_once(policy, given, score, chunk, monkeypatch):
    ours, gradients = with_gradients(score, policy, given, chunk=chunk, monkeypatch=monkeypatch)
    whole, expected = with_gradients(score, policy, given, chunk=10**6, monkeypatch=monkeypatch)
    torch.testing.assert_close(ours.logp_BT, whole.logp_BT, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours.entropy_BT, whole.entropy_BT, atol=1e-6, rtol=1e-6)
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-5, rtol=1e-4)


def test_chunks_give_the_numbers_of_the_models_own_head(policy, given, monkeypatch):
    stock, expected = with_gradients(stock_scores, policy, given, chunk=1, monkeypatch=monkeypatch)
    ours, gradients = with_gradients(plain_scores, policy, given, chunk=5, monkeypatch=monkeypatch)
    torch.testing.assert_close(ours.logp_BT, stock.logp_BT, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours.entropy_BT, stock.entropy_BT, atol=1e-6, rtol=1e-6)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-5, rtol=1e-4)


def test_entropy_carries_no_graph_unless_asked_for(policy, given):
    assert not shared_scores(policy, replace(given, entropy_graph=False)).entropy_BT.requires_grad
    assert shared_scores(policy, given).entropy_BT.requires_grad


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
def test_the_logits_of_a_batch_never_exist(policy, given, score, monkeypatch):
    vocabulary, hidden = policy.model.get_output_embeddings().weight.shape
    tokens = int(given.mask_BT.sum())
    for chunk, held in ((3, 3), (10**6, tokens)):
        with Largest(vocabulary, hidden) as largest:
            with_gradients(score, policy, given, chunk=chunk, monkeypatch=monkeypatch)
        assert largest.elements == held * vocabulary


def test_the_head_does_what_the_models_forward_does(policy):
    """Each of the three kinds by a class whose forward reads the field; a field alone changes nothing."""
    text = policy.model.config.get_text_config()
    hidden = torch.randn(3, text.hidden_size, generator=torch.Generator().manual_seed(0))
    text.logit_scale, text.logits_scaling, text.final_logit_softcapping = 3.0, 4.0, 0.5
    base = type(policy.model)

    class Scaled(base):
        def forward(self, logits):
            return logits * self.config.text_config.logit_scale

    class Divided(base):
        def forward(self, logits):
            return logits / self.config.text_config.logits_scaling

    class Capped(base):
        def forward(self, logits):
            cap = self.config.get_text_config().final_logit_softcapping
            return torch.tanh(logits / cap) * cap

    def value(kind: type) -> float:
        policy.model.__class__ = kind
        try:
            return head_logits(policy.model, hidden)[0, 0].item()
        finally:
            policy.model.__class__ = base

    with torch.no_grad():
        plain = policy.model.get_output_embeddings()(hidden)[0, 0].item()
        assert value(base) == plain
        assert value(Scaled) == pytest.approx(3 * plain, rel=1e-6)
        assert value(Divided) == pytest.approx(plain / 4, rel=1e-6)
        assert value(Capped) == pytest.approx(0.5 * math.tanh(plain / 0.5), rel=1e-5)
