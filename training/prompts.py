"""From a dataset's sample to token ids and pixels: each prompt goes through its processor once, alone, on copies."""

from collections import OrderedDict
from typing import Any

from jinja2 import TemplateError

from training.config import DataConfig
from training.datasets import Sample
from training.encoding import EncodedPrompt, placeholder_fault, split_encoding
from training.errors import DatasetError
from training.policy import Policy
from training.reserved import check_reserved
from training.resizing import bounded
from training.templates import ChatTemplate

BUDGET_BYTES = 1024 * 1024 * 1024


class PromptEncoder:
    """Renders and encodes samples; the newest encodings are kept, up to `budget` bytes, by the sample's content."""

    def __init__(self, policy: Policy, data: DataConfig | None = None, *, budget: int = BUDGET_BYTES) -> None:
        """data: bounds of images and prompts.  Raises ModelError for a processor without a usable chat template."""
        self._policy = policy
        self._data = data or DataConfig()
        self._template = ChatTemplate(policy.processor, policy.family)
        self._reserved = reserved_texts(policy.tokenizer)
        self._budget = budget
        self._size = 0
        self._kept: OrderedDict[str, EncodedPrompt] = OrderedDict()

    def encode(self, sample: Sample) -> EncodedPrompt:
        """Encode one sample.  Raises DatasetError that names the row for a prompt that the model cannot be given."""
        kept = self._kept.get(sample.key)
        if kept is not None:
            self._kept.move_to_end(sample.key)
            return kept
        kept = self._kept[sample.key] = self._encode(sample)
        self._size += kept.nbytes
        while self._size > self._budget and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= dropped.nbytes
        return kept

    def _encode(self, sample: Sample) -> EncodedPrompt:
        check_reserved(sample.messages, self._reserved, row=sample.row)
        policy, where = self._policy, f"row {sample.row}"
        images = [bounded(image.open(), self._data) for image in sample.images]
        try:
            text = self._template.render(sample.messages)
            encoding = policy.processor(
                text=[text],
                images=[images] if images else None,
                add_special_tokens=not _begins_with_bos(policy.tokenizer, text),
                return_tensors="pt",
            )
        except (ValueError, TypeError, LookupError, OSError, TemplateError) as error:
            raise DatasetError(f"{where}: the model's processor refuses this prompt: {error}") from error
        prompt = split_encoding(policy.family, dict(encoding), len(images))
        fault = placeholder_fault(policy.family, policy.model.config, prompt)
        if fault is not None:
            raise DatasetError(f"{where}: {fault}; correct the prompt's images or the model's processor")
        limit = self._data.max_prompt_length
        if limit is not None and len(prompt) > limit:
            raise DatasetError(
                f"{where}: the prompt has {len(prompt)} tokens, data.max_prompt_length = {limit}, and nothing is ever "
                "cut off; raise it, lower data.max_pixels or remove the row"
            )
        return prompt


def reserved_texts(tokenizer: Any) -> tuple[str, ...]:
    """Texts that the tokenizer turns into special tokens: images, turns, begin and end."""
    special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    return tuple(sorted(token for token in special | set(tokenizer.all_special_tokens) if token.strip()))


def _begins_with_bos(tokenizer: Any, text: str) -> bool:
    """A chat template that writes the begin token itself must not get a second one from the tokenizer."""
    return bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
