"""Models without a row: taken when every number agrees, and refused with what is missing."""

from dataclasses import replace

import pytest
import torch

from tests.other_vlms import other_policy
from tests.tiny_vlms import tiny_policy
from tests.training.prompts import asked, drawn, mixed_prompts
from training import encoding
from training.errors import ModelError
from training.forward import prefill
from training.generic import with_family
from training.policy import make_policy
from training.prompts import PromptEncoder
from training.vision import UNTRIED, Join


@torch.no_grad()
@pytest.mark.parametrize(("name", "join"), [("aya_vision", Join.ROWS), ("idefics2", Join.SAMPLES)])
def test_a_model_without_a_row_gets_one_that_holds_for_other_prompts_too(name, join):
    policy = with_family(other_policy(name))
    assert set(policy.family.images.values()) == {join}
    encoder = PromptEncoder(policy)
    prompts = [encoder.encode(item) for item in [*mixed_prompts(), asked(drawn(64, 64, 8), "what color?")]]
    together = prefill(policy, prompts).logits_BV
    for row, item in enumerate(prompts):
        torch.testing.assert_close(prefill(policy, [item]).logits_BV[0], together[row], atol=1e-4, rtol=1e-4)
    assert (together[0] - together[4]).abs().max() > 0.02
    assert policy.model.config.image_token_id in policy.forbidden_list()


@pytest.mark.parametrize("name", ["qwen2_5_vl", "gemma3", "smolvlm", "internvl"])
def test_trying_finds_what_the_table_declares(name):
    policy = tiny_policy(name)
    found = with_family(replace(policy, family=UNTRIED)).family
    assert (found.images, found.types, found.mrope) == (
        policy.family.images,
        policy.family.types,
        policy.family.mrope,
    )


def test_a_known_family_is_not_tried_again():
    policy = tiny_policy("llava")
    assert with_family(policy) is policy


def test_a_layout_that_no_simple_rule_joins_is_refused():
    with pytest.raises(
        ModelError, match=r"'llava_next' has no row .* joined by rows, .* joined by samples, .* Add a row"
    ):
        with_family(replace(tiny_policy("llava_next"), family=UNTRIED))


def test_a_row_that_fits_the_shapes_and_not_the_numbers_is_refused(monkeypatch):
    """Gemma's images joined in the wrong order: every shape is right."""
    policy = tiny_policy("gemma3")
    join = encoding._join_images
    monkeypatch.setattr(encoding, "_join_images", lambda rule, tensors: join(rule, tensors[::-1]))
    with pytest.raises(ModelError, match="alone and in a batch differ by"):
        with_family(replace(policy, family=UNTRIED))


def test_a_processor_that_takes_no_text_alone_is_refused_in_its_own_words():
    with pytest.raises(ModelError, match=r"'paligemma' has no row .*`images` are expected"):
        with_family(other_policy("paligemma"))


def test_a_model_without_an_image_token_or_a_chat_template_is_refused(monkeypatch):
    policy = replace(tiny_policy("llava"), family=UNTRIED)
    policy.processor.chat_template = policy.tokenizer.chat_template = None
    with pytest.raises(ModelError, match=r"no chat template; add chat_template.jinja"):
        with_family(policy)
    monkeypatch.setattr(type(policy.model.config), "attribute_map", {})
    with pytest.raises(ModelError, match="'llava' has no image_token_id"):
        with_family(policy)


def test_every_token_that_a_processor_writes_for_images_is_forbidden(monkeypatch):
    """Also where the tokenizer does not know it as special."""
    policy = tiny_policy("smolvlm")
    plain = policy.tokenizer("red").input_ids[0]
    assert plain not in policy.forbidden_list()
    monkeypatch.setattr(type(policy.processor), "image_token_ids", [plain], raising=False)
    assert plain in make_policy(policy.model, policy.processor).forbidden_list()
