"""A small byte-level BPE tokenizer, trained on the spot: any text round-trips, whole answers are one token."""

from collections.abc import Iterable, Mapping, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END, PAD, START = "<|im_end|>", "<|endoftext|>", "<|im_start|>"

_WORDS = [
    "circle",
    "rectangle",
    "triangle",
    "square",
    "star",
    "red",
    "green",
    "blue",
    "gray",
    "teal",
    "black",
    "yellow",
    "brown",
    "white",
    "orange",
    "purple",
    "yes",
    "no",
    "system",
    "user",
    "assistant",
    "Which",
    "same",
    "different",
    "left",
    "right",
]
_PHRASES = [
    "<think>", "</think>", "<answer>", "</answer>", "\n", "\n\n", "Answer:", " Answer with one word.",
    "You are a helpful assistant.", "How many", " shapes are there?", " first image", " second image",
]  # fmt: skip
_SEED_TEXT = [*_WORDS, *(f" {w}" for w in _WORDS), *_PHRASES, *(f"{s}{n}" for s in ("", " ") for n in range(21))]


def chat_template(image: str) -> str:
    """ChatML; an image block anywhere in a message's content becomes `image` in that place; strings work as content."""
    return (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
        "{% if c['type'] == 'image' %}" + image + "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}"
        "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def make_tokenizer(
    corpus: Iterable[str],
    *,
    image: str,
    specials: Sequence[str],
    named: Mapping[str, str] | None = None,
    vocab_size: int = 768,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer.

    image: what the chat template writes for an image; specials: the family's special tokens; named: those that its
    processor looks up by attribute, such as {"image_token": "<image>"}.
    """
    bpe = Tokenizer(models.BPE(unk_token=None))
    digits, bytes_ = pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, bytes_])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, START, END, *specials],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*corpus, *_SEED_TEXT * 50], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
        # transformers takes either named tokens (a dict) or unnamed ones (a list)
        extra_special_tokens=dict(named) if named else [START, *specials],
    )
    tokenizer.chat_template = chat_template(image)
    return tokenizer
