"""From samples to token ids and pixels: one tokenisation, in any template, and nothing that is given is changed."""

import copy
from collections.abc import Sequence

import pytest
import torch
from tokenizers.processors import TemplateProcessing

from tests.tiny_vlms import tiny_policy
from tests.training.prompts import asked, drawn, mixed_prompts
from training.config import DataConfig
from training.datasets import Sample
from training.datasets.messages import place_images, read_messages
from training.errors import DatasetError
from training.forward import prefill
from training.policy import Policy, make_policy
from training.prompts import PromptEncoder

STRINGS = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LISTS = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Is it "}, {"type": "image"}, {"type": "text", "text": "?"}]},
    {"role": "assistant", "content": "no"},
    {"role": "user", "content": "What is it?"},
]


@pytest.fixture
def policy() -> Policy:
    return tiny_policy("smolvlm")


def chat(messages: Sequence[dict], *images, row: int = 5) -> Sample:
    placed = place_images(read_messages(messages, "messages", row=row), len(images), row=row, field="data.messages")
    return Sample(row, repr(messages), placed, images, {"answer": "red"})


def text_of(policy: Policy, sample: Sample, **data) -> str:
    return policy.tokenizer.decode(PromptEncoder(policy, DataConfig(**data)).encode(sample).ids)


def refusal(policy: Policy, sample: Sample, **data) -> str:
    with pytest.raises(DatasetError) as caught:
        text_of(policy, sample, **data)
    return str(caught.value)


IMAGE = "<fake_token_around_image><global-img><image><image><image><image><fake_token_around_image>"


@pytest.mark.parametrize("template", [STRINGS, LISTS])
def test_turns_and_image_places_are_kept_by_templates_for_strings_and_for_blocks(policy, template):
    policy.processor.chat_template = template
    assert text_of(policy, chat(TURNS, drawn(64, 64))) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\nIs it {IMAGE}?<|im_end|>\n"
        "<|im_start|>assistant\nno<|im_end|>\n"
        "<|im_start|>user\nWhat is it?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_template_may_want_blocks_from_the_user_and_strings_from_the_others(policy):
    policy.processor.chat_template = LISTS
    expected = text_of(policy, chat(TURNS, drawn(64, 64)))
    user = "{% if m['role'] == 'user' %}{% for c in m['content'] %}"
    others = "{% endfor %}{% else %}{{ m['content']|trim }}{% endif %}<|im_end|>"
    policy.processor.chat_template = LISTS.replace("{% for c in m['content'] %}", user).replace(
        "{% endfor %}<|im_end|>", others
    )
    assert text_of(policy, chat(TURNS, drawn(64, 64))) == expected


def test_a_string_template_gets_what_stands_around_an_image_in_the_family():
    policy = tiny_policy("qwen2_5_vl")
    blocks = text_of(policy, asked("Is it", drawn(64, 64), "?"))
    policy.processor.chat_template = STRINGS
    assert text_of(policy, asked("Is it", drawn(64, 64), "?")) == blocks


@pytest.mark.parametrize("template", [STRINGS, LISTS])
@pytest.mark.parametrize("prefill", ["The color is", "Answer: ", "<answer>"])
def test_an_assistants_message_at_the_end_stays_open(policy, template, prefill):
    policy.processor.chat_template = template
    sample = chat([{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": prefill}])
    assert text_of(policy, sample) == (f"<|im_start|>user\nWhat is it?<|im_end|>\n<|im_start|>assistant\n{prefill}")


@pytest.mark.parametrize("family", ["smolvlm", "gemma3"])
@pytest.mark.parametrize("writes_it", [True, False])
def test_the_begin_token_stands_once_whoever_writes_it(family, writes_it):
    policy = tiny_policy(family)
    tokenizer = policy.tokenizer
    tokenizer.bos_token = "<|endoftext|>"
    begin = ("<|endoftext|>", tokenizer.bos_token_id)
    tokenizer._tokenizer.post_processor = TemplateProcessing(single=f"{begin[0]} $A", special_tokens=[begin])
    policy.processor.chat_template = ("{{ bos_token }}" if writes_it else "") + policy.processor.chat_template
    prompt = PromptEncoder(policy).encode(asked(drawn(64, 64), "what color?"))
    assert prompt.ids[0] == tokenizer.bos_token_id
    assert (prompt.ids == tokenizer.bos_token_id).sum() == 1
    for types in prompt.types.values():  # no second tokenisation that could be one place off
        assert torch.equal(types == 1, prompt.ids == policy.model.config.image_token_id)


def test_a_template_that_refuses_is_a_refusal_of_the_row(policy):
    policy.processor.chat_template = (
        LISTS + "{% if messages|length > 1 %}{{ raise_exception('one turn only') }}{% endif %}"
    )
    assert refusal(policy, chat(TURNS, drawn(64, 64))) == (
        "row 5: the model's processor refuses this prompt: one turn only"
    )


@pytest.mark.parametrize("token", ["<image>", "<|im_end|>", "<global-img>", "<|endoftext|>"])
def test_a_special_token_typed_as_text_is_refused_and_never_becomes_one(policy, token):
    message = refusal(policy, asked(drawn(64, 64), f"what is {token} here?", row=7))
    assert message.startswith(f"row 7: the text holds {token!r}")
    assert "take it out of the row" in message


def test_placeholders_that_do_not_fit_the_models_features_are_refused_by_the_row(policy):
    policy.processor.image_seq_len = 3
    assert refusal(policy, asked(drawn(64, 64), "a", row=2)) == (
        "row 2: its 1 images give 4 image features and the token ids hold 3 image placeholders; "
        "correct the prompt's images or the model's processor"
    )


def test_a_prompt_is_never_cut(policy):
    sample = asked(drawn(64, 64), "what color?", row=4)
    length = len(PromptEncoder(policy).encode(sample))
    assert len(PromptEncoder(policy, DataConfig(max_prompt_length=length)).encode(sample)) == length
    message = refusal(policy, sample, max_prompt_length=length - 1)
    assert message.startswith(f"row 4: the prompt has {length} tokens, data.max_prompt_length = {length - 1}")


@pytest.mark.parametrize(("bounds", "tokens"), [({}, 4), ({"max_pixels": 1024}, 1), ({"min_pixels": 4000}, 4)])
def test_images_are_brought_between_the_runs_bounds_before_the_processor_sees_them(bounds, tokens):
    """64 x 64 pixels in patches of 16, four of which are a token; what is stored keeps its bytes."""
    policy = tiny_policy("qwen2_vl")
    image = drawn(64, 64)
    before = image.data
    prompt = PromptEncoder(policy, DataConfig(**bounds)).encode(asked(image, "a"))
    assert (prompt.ids == policy.model.config.image_token_id).sum() == tokens
    assert (image.data, image.width) == (before, 64)


def test_a_processor_that_rewrites_its_inputs_changes_no_sample(policy, monkeypatch):
    stock = type(policy.processor)

    class Rewriting(stock):
        def apply_chat_template(self, conversation, *rest, **options):
            text = super().apply_chat_template(conversation, *rest, **options)
            for message in conversation:
                message["content"].clear() if isinstance(message["content"], list) else None
            conversation.clear()
            return text

        def __call__(self, images=None, text=None, **options):
            encoding = super().__call__(images=images, text=text, **options)
            text[0] = "rewritten"
            for picture in (images or [[]])[0]:
                picture.paste(0, (0, 0, *picture.size))
            return encoding

    sample = mixed_prompts()[3]
    untouched, pixels = copy.deepcopy(sample.messages), [image.open().tobytes() for image in sample.images]
    expected = PromptEncoder(policy).encode(sample)
    policy.processor.__class__ = Rewriting
    again = PromptEncoder(policy).encode(sample)
    assert sample.messages == untouched
    assert [image.open().tobytes() for image in sample.images] == pixels
    assert torch.equal(again.ids, expected.ids)
    assert torch.equal(again.images["pixel_values"], expected.images["pixel_values"])


def test_each_prompt_is_tokenised_once(policy, monkeypatch):
    calls = []
    encode = type(policy.processor).__call__
    monkeypatch.setattr(type(policy.processor), "__call__", lambda *a, **k: calls.append(1) or encode(*a, **k))
    encoder = PromptEncoder(policy)
    for _ in range(3):
        for item in mixed_prompts():
            encoder.encode(item)
    assert len(calls) == 4


def test_only_so_many_bytes_of_encodings_are_kept(policy):
    items = mixed_prompts()
    size = PromptEncoder(policy).encode(items[0]).nbytes
    encoder = PromptEncoder(policy, budget=2 * size)
    first = encoder.encode(items[0])
    assert encoder.encode(items[0]) is first
    encoder.encode(items[3])
    assert encoder.encode(items[0]) is not first


@torch.no_grad()
@pytest.mark.parametrize("change", ["right padding", "no pad token"])
@pytest.mark.parametrize("family", ["smolvlm", "qwen2_5_vl", "gemma3"])
def test_padding_side_and_pad_token_of_the_users_tokenizer_do_not_matter(family, change):
    policy = tiny_policy(family)
    expected = prefill(policy, [PromptEncoder(policy).encode(item) for item in mixed_prompts()]).logits_BV
    if change == "right padding":
        policy.tokenizer.padding_side = "right"
    else:
        policy.tokenizer.pad_token = None
    other = make_policy(policy.model, policy.processor)
    logits = prefill(other, [PromptEncoder(other).encode(item) for item in mixed_prompts()]).logits_BV
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    assert other.tokenizer.padding_side == ("right" if change == "right padding" else "left")
    assert other.pad_id == (policy.pad_id if change == "right padding" else int(policy.end_ids[0]))


def test_every_end_token_of_model_and_tokenizer_ends_a_completion(policy):
    """Qwen, Gemma and Phi name more than one."""
    second, own = policy.tokenizer.pad_token_id, policy.tokenizer.eos_token_id
    policy.model.generation_config.eos_token_id = [second, own]
    several = make_policy(policy.model, policy.processor)
    assert several.end_ids.tolist() == [second, own]
    assert not {second, own} & set(several.forbidden_list())
    policy.model.generation_config.eos_token_id = second
    assert make_policy(policy.model, policy.processor).end_ids.tolist() == [second, own]
