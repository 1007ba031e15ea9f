"""Memory: micro-batches, out-of-memory errors and activation checkpointing change no number."""

import pytest
import torch

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.rollouts import G, T, tiny_rollout
from training.activations import checkpointed
from training.algorithms import ALGORITHMS
from training.config import RunConfig
from training.decoding import sample_in_parts
from training.errors import OutOfMemory
from training.generation import sample
from training.logprobs import ToScore, plain_scores, shared_scores
from training.memory import if_memory_lasts, is_out_of_memory, peak_bytes
from training.micro_batches import padded_tokens
from training.ranks import Ranks
from training.rollout_batches import score_rollout
from training.token_masks import TokenMasks
from training.update import Experience, update

RANKS = Ranks(cpu=True)


@pytest.fixture(scope="module")
def policy():
    return tiny_policy("smolvlm")


@pytest.fixture(scope="module")
def rollout(policy):
    return tiny_rollout(policy)


class Device:
    """A score function on a device that holds micro-batches of so many padded tokens."""

    def __init__(self, tokens: int, error: RuntimeError) -> None:
        self.tokens = tokens
        self.error = error
        self.seen: list[int] = []

    def __call__(self, policy, given):
        rows, length = given.ids_BT.shape
        self.seen.append(padded_tokens([len(p) for p in given.prompts], [length] * rows))
        if self.seen[-1] > self.tokens:
            raise self.error
        return shared_scores(policy, given)


CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: not enough memory: you tried to allocate"
)


def experience_of(rollout, algorithm):
    rewards_PG = rollout.scored.rewards_PG.float()
    advantages_PG = rewards_PG - rewards_PG.mean(1, keepdim=True)
    noise_BT = 0.3 * torch.randn(rollout.completions.logp_BT.shape, generator=torch.Generator().manual_seed(1))
    reference_BT = (rollout.completions.logp_BT + noise_BT) if algorithm["name"] == "grpo" else None
    masks = TokenMasks(rollout.completions.mask_BT, None)
    return Experience(rollout, advantages_PG, masks, reference_BT, rollout.completions.logp_BT - noise_BT)


def updated(rollout, *, score, budget, algorithm, dropout=0.0):
    """One update of a fresh policy: what it reports, and its gradients."""
    policy = tiny_policy("smolvlm")
    policy.model.train()
    for layer in policy.model.get_decoder().layers:
        layer.self_attn.attention_dropout = dropout
    config = RunConfig.model_validate({"algorithm": algorithm, "optimization": {"max_grad_norm": 1e9}})
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.1)
    name = algorithm["name"]
    result = update(
        policy,
        optimizer,
        ALGORITHMS[name],
        score,
        config,
        experience_of(rollout, algorithm),
        ranks=RANKS,
        budget=budget,
        seed=5,
    )
    return result, {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


def assert_same(one, other):
    (first, gradients), (second, expected) = one, other
    assert first.loss == pytest.approx(second.loss, rel=1e-5, abs=1e-7)
    assert first.grad_norm == pytest.approx(second.grad_norm, rel=1e-5)
    torch.testing.assert_close(first.logp_BT, second.logp_BT, atol=1e-5, rtol=1e-5)
    known = {name: value for name, value in second.sums.metrics().items() if name != "tokens/padding_share"}
    for name, value in known.items():
        assert first.sums.metrics()[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    assert gradients.keys() == expected.keys()
    for key, gradient in expected.items():
        torch.testing.assert_close(gradients[key], gradient, atol=1e-5, rtol=1e-4)


LOSSES = [
    {"name": "grpo", "beta": 0.1, "loss_type": "grpo"},
    {"name": "grpo", "beta": 0.1, "loss_type": "dapo"},
    {"name": "grpo", "beta": 0.1, "loss_type": "dr_grpo"},
    {"name": "rloo"},
]


@pytest.mark.parametrize("algorithm", LOSSES, ids=lambda a: a.get("loss_type", a["name"]))
def test_any_cut_gives_the_same_loss_and_gradients(rollout, algorithm):
    whole = updated(rollout, score=shared_scores, budget=None, algorithm=algorithm)
    for budget in (1, 60, 120):
        assert_same(updated(rollout, score=shared_scores, budget=budget, algorithm=algorithm), whole)


@pytest.mark.parametrize("error", [CUDA, CPU], ids=["cuda", "cpu"])
def test_out_of_memory_halves_the_micro_batch_and_repeats_the_step(rollout, error):
    algorithm = LOSSES[0]
    device = Device(60, error)
    small = updated(rollout, score=device, budget=None, algorithm=algorithm)
    assert_same(small, updated(rollout, score=shared_scores, budget=None, algorithm=algorithm))
    assert small[0].budget is not None
    assert 15 <= small[0].budget <= 60
    assert max(device.seen[-3:]) <= 60


def test_gradients_from_before_the_error_are_dropped(rollout):
    """The error comes late: the longest prompt is first, so this device fails on the second micro-batch only."""
    seen = []

    def score(policy, given):
        seen.append(len(given.ids_BT))
        if len(seen) == 2:
            raise CUDA
        return shared_scores(policy, given)

    algorithm = LOSSES[0]
    late = updated(rollout, score=score, budget=70, algorithm=algorithm)
    assert len(seen) > 3
    assert_same(late, updated(rollout, score=shared_scores, budget=None, algorithm=algorithm))


def test_dropout_is_the_same_when_a_step_is_repeated(rollout):
    calls = []

    def fails_once(policy, given):
        calls.append(torch.rand(()).item())  # draws from the stream that dropout draws from
        if len(calls) == 1:
            raise CUDA
        return shared_scores(policy, given)

    updated(rollout, score=fails_once, budget=None, algorithm=LOSSES[0], dropout=0.2)
    assert calls[0] == calls[1]


def test_one_completion_too_many_names_the_longest_prompt_and_what_to_lower(rollout):
    with pytest.raises(OutOfMemory) as raised:
        updated(rollout, score=Device(10, CUDA), budget=None, algorithm=LOSSES[0])
    message, longest = str(raised.value), max(rollout.prompts, key=len)
    assert f"row 1: {len(longest)} tokens, 64 x 64 pixels" in message
    assert "activation_checkpointing" in message
    assert isinstance(raised.value, MemoryError)


def test_the_reference_pass_is_cut_and_halved_too(policy, rollout):
    def scored(score, budget):
        return score_rollout(policy, score, rollout, temperature=0.9, ranks=RANKS, budget=budget)

    whole_BT, budget = scored(shared_scores, None)
    assert budget is None
    small_BT, budget = scored(Device(60, CUDA), None)
    assert budget is not None
    assert budget <= 60
    torch.testing.assert_close(small_BT, whole_BT, atol=1e-5, rtol=1e-5)


def test_other_errors_are_no_matter_of_memory():
    def broken():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="multiplied"):
        if_memory_lasts(broken)
    assert is_out_of_memory(CUDA)
    assert is_out_of_memory(CPU)


def sampled(policy, rollout, at_once, uniforms):
    return sample_in_parts(
        policy, rollout.samples, rollout.prompts, num_generations=G, max_completion_length=T, temperature=0.9,
        uniforms_BT=uniforms, at_once=at_once,
    )  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 3, 4, 9])
@pytest.mark.parametrize("greedy", [False, True])
def test_sampling_in_parts_draws_the_same(policy, rollout, at_once, greedy):
    uniforms = None if greedy else torch.rand(3 * G, T, generator=torch.Generator().manual_seed(9))
    policy.model.eval()
    whole, _ = sampled(policy, rollout, None, uniforms)
    parts, kept = sampled(policy, rollout, at_once, uniforms)
    assert kept == at_once
    assert torch.equal(parts.ids_BT, whole.ids_BT)
    assert torch.equal(parts.mask_BT, whole.mask_BT)
    assert torch.equal(parts.ended_B, whole.ended_B)
    torch.testing.assert_close(parts.logp_BT, whole.logp_BT, atol=1e-5, rtol=0)


def test_out_of_memory_halves_what_is_sampled_at_once(policy, rollout, monkeypatch):
    rows = []

    def on_a_small_device(policy, prompts, *, num_generations, **options):
        rows.append(len(prompts) * num_generations)
        if rows[-1] > 4:
            raise CUDA
        return sample(policy, prompts, num_generations=num_generations, **options)

    uniforms = torch.rand(3 * G, T, generator=torch.Generator().manual_seed(9))
    whole, _ = sampled(policy, rollout, None, uniforms)
    monkeypatch.setattr("training.decoding.sample", on_a_small_device)
    small, kept = sampled(policy, rollout, None, uniforms)
    assert kept == 6
    assert rows == [12, 4, 4, 4]  # six at once are one whole group
    assert torch.equal(small.ids_BT, whole.ids_BT)


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_activation_checkpointing_changes_no_gradient(family):
    policy = tiny_policy(family)
    rollout = tiny_rollout(policy)
    completions = rollout.completions
    weights = torch.randn(completions.ids_BT.shape, generator=torch.Generator().manual_seed(2))
    policy.model.train()
    for score in (shared_scores, plain_scores):
        found = []
        for path in (score, checkpointed(score)):
            policy.model.zero_grad(set_to_none=True)
            kept = Kept()
            with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor):
                scores = path(policy, ToScore(rollout.prompts, completions.ids_BT, completions.mask_BT, 0.9))
            (scores.logp_BT * weights).sum().backward()
            gradients = {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}
            found.append((gradients, kept.bytes))
        (plain, much), (recomputed, little) = found
        assert plain.keys() == recomputed.keys()
        for name, gradient in plain.items():
            torch.testing.assert_close(recomputed[name], gradient, atol=1e-5, rtol=1e-5, msg=name)
        assert little < 0.6 * much
    assert all("forward" not in vars(module) for module in policy.model.modules())


class Kept:
    """Bytes that autograd keeps for the backward pass, one tensor counted once."""

    def __init__(self) -> None:
        self.bytes = 0
        self._seen: dict[int, torch.Tensor] = {}

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen[storage.data_ptr()] = tensor
            self.bytes += storage.nbytes()
        return tensor


def test_the_peak_is_at_least_what_was_just_held():
    block = torch.ones(20 * 2**20, dtype=torch.uint8)
    assert peak_bytes(torch.device("cpu")) > block.numel()
