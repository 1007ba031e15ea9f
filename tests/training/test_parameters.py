"""What is trained: frozen parts stay as they are, adapters alone move, exports are the trained model."""

import hashlib
import json
from dataclasses import replace

import pytest
import torch
from peft import PeftModel
from pydantic import ValidationError
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText, AutoProcessor

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.rollouts import tiny_rollout
from tests.training.runs import StopAfter, read, rollouts, small_run, train
from training.adapters import adapter_tensors, adapters_off, add_adapters
from training.checkpoint_files import newest_whole
from training.checkpoints import restore_weights
from training.config import ModelConfig, ParametersConfig
from training.datasets import Access
from training.errors import CheckpointError, ModelError
from training.export import export_checkpoint
from training.forward import stock_logits
from training.logprobs import ToScore, plain_scores, shared_scores
from training.model_parts import PARTS, ModelParts, freeze, trainable_counts
from training.policy import load_policy
from training.processors import load_processor
from training.records import EventRecord, StepRecord
from training.reference import frozen_copy

CPU = torch.device("cpu")
LORA = {"method": "lora", "lora_rank": 4, "lora_alpha": 8.0, "lora_targets": list(PARTS)}


pytestmark = pytest.mark.usefixtures("parity_reward")


def moved(policy) -> None:
    """Adapters as training leaves them: B is 0 at first, and an adapter with B = 0 shows nothing."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, tensor in adapter_tensors(policy.model).items():
            if ".lora_B." in name:
                tensor.copy_(0.1 * torch.randn(tensor.shape, generator=generator))


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_every_parameter_of_every_family_belongs_to_the_right_part(family):
    model = tiny_policy(family).model
    parts = ModelParts.of(model)
    by_part = {part: [n for n, _ in model.named_parameters() if parts.part_of(n) == part] for part in PARTS}
    assert all(by_part.values())
    assert all("language_model." in n or "text_model." in n for n in by_part["language"])
    assert all("visual." in n or "vision_" in n for n in by_part["vision"])
    bridge = ("merger", "connector", "projector", "image_newline")
    assert all(any(word in n for word in bridge) for n in by_part["projector"])
    counts = trainable_counts(model)
    assert sum(total for _, total in counts.values()) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("frozen", [("vision",), ("projector",), ("language",), ("vision", "projector")])
def test_shared_and_plain_gradients_agree_with_frozen_parts(frozen):
    policy = tiny_policy("qwen2_5_vl")
    freeze(policy.model, frozen)
    assert_paths_agree(policy)
    parts = ModelParts.of(policy.model)
    with_gradient = {parts.part_of(name) for name, p in policy.model.named_parameters() if p.grad is not None}
    assert with_gradient == set(PARTS) - set(frozen)


@pytest.mark.parametrize("family", ["smolvlm", "qwen2_5_vl", "llava_next"])
def test_shared_and_plain_gradients_agree_with_adapters(family):
    policy = tiny_policy(family)
    add_adapters(policy.model, ParametersConfig.model_validate(LORA), seed=0)
    moved(policy)
    assert_paths_agree(policy)
    gradients = {name for name, p in policy.model.named_parameters() if p.grad is not None}
    assert gradients == adapter_tensors(policy.model).keys()


def assert_paths_agree(policy) -> None:
    rollout = tiny_rollout(policy)
    completions = rollout.completions
    weights = torch.randn(completions.ids_BT.shape, generator=torch.Generator().manual_seed(2))
    gradients = []
    for score in (plain_scores, shared_scores):
        policy.model.zero_grad(set_to_none=True)
        scores = score(policy, ToScore(rollout.prompts, completions.ids_BT, completions.mask_BT, 0.9))
        (scores.logp_BT * weights).sum().backward()
        gradients.append({name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None})
    plain, shared = gradients
    assert plain.keys() == shared.keys()
    largest = max(gradient.norm() for gradient in plain.values())
    for name, gradient in plain.items():
        assert (shared[name] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-6 * largest, name


def test_new_adapters_change_nothing_and_switched_off_they_give_the_base():
    policy, base = tiny_policy("gemma3"), tiny_policy("gemma3")
    add_adapters(policy.model, ParametersConfig(method="lora", lora_targets=("language", "vision")), seed=0)
    rollout = tiny_rollout(base)
    given = ToScore(rollout.prompts, rollout.completions.ids_BT, rollout.completions.mask_BT, 0.9)
    with torch.no_grad():
        expected = shared_scores(base, given).logp_BT
        assert torch.equal(shared_scores(policy, given).logp_BT, expected)
        moved(policy)
        assert not torch.allclose(shared_scores(policy, given).logp_BT, expected, atol=1e-2)
        with adapters_off(policy.model):
            assert torch.equal(shared_scores(policy, given).logp_BT, expected)
        assert not torch.allclose(shared_scores(policy, given).logp_BT, expected, atol=1e-2)
    assert all(p.requires_grad for p in adapter_tensors(policy.model).values())


def test_a_frozen_copy_is_the_policy_and_shares_what_is_never_trained():
    policy = tiny_policy("smolvlm")
    freeze(policy.model, ("vision",))
    reference = frozen_copy(policy)
    assert reference is not None
    pairs = zip(policy.model.named_parameters(), reference.model.parameters(), strict=True)
    for (name, own), copied in pairs:
        assert torch.equal(own, copied)
        assert (own is copied) == ("vision_model" in name)
        assert not copied.requires_grad
    assert policy.model.get_output_embeddings().weight.requires_grad


def test_a_part_without_linear_layers_is_refused_as_a_target():
    with pytest.raises(ModelError, match="projector has no linear layer"):
        add_adapters(tiny_policy("gemma3").model, ParametersConfig(method="lora", lora_targets=("projector",)), seed=0)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"freeze": list(PARTS)}, "nothing would be trained"),
        ({"freeze": ["vision", "vision"]}, "twice"),
        ({"method": "lora", "freeze": ["vision"]}, "leave freeze empty"),
        ({"quantization": "4bit"}, "use method lora"),
        ({"freeze": ["tower"]}, "language"),
    ],
)
def test_contradictions_are_refused_when_the_configuration_is_read(parameters, said):
    with pytest.raises(ValidationError, match=said):
        ParametersConfig.model_validate(parameters)


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_quantized_weights_are_refused_on_a_cpu_with_the_remedy(model_path, bits):
    config = ParametersConfig(method="lora", quantization=bits)
    with pytest.raises(ModelError, match=rf"{bits} expects a CUDA device, got cpu; use quantization = none"):
        load_policy(ModelConfig(path=model_path), model_path, device=CPU, parameters=config)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_a_quantized_base_trains_adapters_and_exports_what_it_computes(model_path, tmp_path, bits):
    config = ParametersConfig.model_validate(LORA | {"quantization": bits})
    device = torch.device("cuda")
    policy = load_policy(ModelConfig(path=model_path), model_path, device=device, parameters=config)
    moved(policy)
    rollout = tiny_rollout(policy)
    given = ToScore(rollout.prompts, rollout.completions.ids_BT, rollout.completions.mask_BT, 0.9)
    shared_scores(policy, given).logp_BT.sum().backward()
    assert all(p.grad is not None for p in adapter_tensors(policy.model).values())
    policy.save(tmp_path)
    exported = load_policy(ModelConfig(path=str(tmp_path)), str(tmp_path), device=device)
    with torch.no_grad():
        ours, theirs = (shared_scores(p, given).logp_BT[rollout.completions.mask_BT] for p in (policy, exported))
    assert (ours - theirs).abs().mean() < 0.1  # bfloat16, and 8-bit activations on one side


RUNS = {
    "lora": {"parameters": LORA | {"lora_dropout": 0.1}},
    "frozen": {"parameters": {"freeze": ["vision", "projector"]}},
}


def fingerprint(out) -> dict[str, str]:
    info = newest_whole(out / "checkpoints")
    names = ("model.safetensors", "adapters.safetensors", "optimizer.safetensors")
    files = [info.path / name for name in names if (info.path / name).exists()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("run", RUNS)
def test_an_interrupted_run_ends_with_the_same_bits(model_path, tmp_path, run):
    changes = RUNS[run] | {"algorithm": {"name": "grpo", "beta": 0.05, "num_iterations": 2}}
    config = small_run(model_path, **changes)
    assert train(config, tmp_path / "whole") == "finished"
    assert train(config, tmp_path / "cut", StopAfter(3)) == "stopped"
    assert train(config, tmp_path / "cut") == "finished"
    assert rollouts(tmp_path / "cut") == rollouts(tmp_path / "whole")
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")
    steps = [r for r in read(tmp_path / "whole") if isinstance(r, StepRecord)]
    assert steps[-1].metrics["kl"] > 1e-6
    assert not [r for r in read(tmp_path / "whole") if isinstance(r, EventRecord) and r.level == "warning"]


def test_frozen_parts_do_not_move_and_the_record_says_what_is_trained(model_path, tmp_path):
    train(small_run(model_path, **RUNS["frozen"]), tmp_path)
    before, after = (load_file(f"{path}/model.safetensors") for path in (model_path, tmp_path / "model"))
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all("text_model" in name or "lm_head" in name for name in changed)
    [said] = [r.message for r in read(tmp_path) if isinstance(r, EventRecord) and r.code == "trainable_parameters"]
    counts = trainable_counts(tiny_policy("smolvlm").model)
    assert said == (
        f"language {counts['language'][1]:,} of {counts['language'][1]:,}, vision 0 of {counts['vision'][1]:,}, "
        f"projector 0 of {counts['projector'][1]:,}"
    )


def test_adapters_leave_a_plain_model_and_a_peft_directory_that_agree(model_path, tmp_path):
    config = small_run(model_path, parameters=LORA, algorithm={"name": "grpo", "beta": 0.05})
    train(config, tmp_path)
    [first, *_] = [r for r in read(tmp_path) if isinstance(r, StepRecord)]
    assert first.metrics["kl"] == pytest.approx(0, abs=1e-10)
    checkpoint = newest_whole(tmp_path / "checkpoints")
    assert not (checkpoint.path / "model.safetensors").exists()

    trained = load_policy(
        ModelConfig(path=model_path), model_path, device=CPU, parameters=config.parameters, seed=config.seed
    )
    fresh = {name: tensor.clone() for name, tensor in adapter_tensors(trained.model).items()}
    saved = load_file(checkpoint.path / "adapters.safetensors")
    assert fresh.keys() == saved.keys()
    assert all(not torch.equal(saved[name], fresh[name]) for name in fresh)
    trained.model.load_state_dict(saved, strict=False)
    rollout = tiny_rollout(trained)
    prompts = [prompt for prompt in rollout.prompts for _ in range(rollout.group_size)]
    arguments = prompts, rollout.completions.ids_BT, rollout.completions.mask_BT

    plain = AutoModelForImageTextToText.from_pretrained(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["model_type"] == "smolvlm"
    assert not [name for name in plain.state_dict() if "lora" in name or "base_layer" in name]
    base = AutoModelForImageTextToText.from_pretrained(model_path)
    adapted = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
    with torch.no_grad():
        expected = stock_logits(trained, *arguments)
        policies = [replace(trained, model=model.eval()) for model in (plain, adapted.base_model.model)]
        for policy in policies:
            torch.testing.assert_close(stock_logits(policy, *arguments), expected, atol=2e-4, rtol=1e-4)
        with adapted.disable_adapter():
            assert (stock_logits(policies[1], *arguments) - expected).abs().max() > 1e-3
    assert load_processor(str(tmp_path / "model")).tokenizer.get_vocab() == trained.tokenizer.get_vocab()


@pytest.mark.parametrize("run", RUNS)
def test_a_checkpoint_exports_to_what_the_run_itself_wrote(model_path, tmp_path, run):
    train(small_run(model_path, **RUNS[run]), tmp_path)
    arguments = {"cache": tmp_path / "cache", "access": Access(roots=None)}
    assert export_checkpoint(tmp_path, tmp_path / "last", step=None, **arguments) == 6
    assert export_checkpoint(tmp_path, tmp_path / "fourth", step=4, **arguments) == 4
    own, last, fourth = (load_file(path / "model" / "model.safetensors") for path in
                         (tmp_path, tmp_path / "last", tmp_path / "fourth"))  # fmt: skip
    assert own.keys() == last.keys() == fourth.keys()
    assert all(torch.equal(own[name], last[name]) for name in own)
    assert any(not torch.equal(own[name], fourth[name]) for name in own)
    assert (tmp_path / "last" / "adapter").exists() == (run == "lora")
    with pytest.raises(CheckpointError, match="step-00000005"):
        export_checkpoint(tmp_path, tmp_path / "fifth", step=5, **arguments)


def test_a_checkpoint_with_other_adapters_is_refused(model_path, tmp_path):
    train(small_run(model_path, parameters=LORA), tmp_path)
    other = load_policy(
        ModelConfig(path=model_path), model_path, device=CPU, parameters=ParametersConfig(method="lora")
    )
    with pytest.raises(CheckpointError, match="another model"):
        restore_weights(newest_whole(tmp_path / "checkpoints"), other.model)


def test_stock_classes_open_the_processor_too(tmp_path):
    """SmolVLM's stock processor needs torchvision; LLaVA's does not."""
    policy = tiny_policy("llava")
    add_adapters(policy.model, ParametersConfig(method="lora"), seed=0)
    policy.save(tmp_path)
    processor = AutoProcessor.from_pretrained(tmp_path)
    assert type(processor).__name__ == "LlavaProcessor"
    assert type(AutoModelForImageTextToText.from_pretrained(tmp_path)) is type(policy.model)
