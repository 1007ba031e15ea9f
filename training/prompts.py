"""From a dataset's sample to token ids and pixels: each prompt goes through its processor once, alone, on copies."""

import copy
from collections import OrderedDict
from typing import Any

from training.datasets import Sample
from training.errors import DatasetError
from training.policy import Policy
from training.vision import EncodedPrompt, split_encoding


class PromptEncoder:
    """Renders and encodes samples, with the newest `capacity` encodings kept by the sample's content hash."""

    def __init__(self, policy: Policy, *, capacity: int = 256) -> None:
        self._policy = policy
        self._capacity = capacity
        self._kept: OrderedDict[str, EncodedPrompt] = OrderedDict()

    def encode(self, sample: Sample) -> EncodedPrompt:
        """Encode one sample.  Raises DatasetError that names the row when the processor refuses it."""
        kept = self._kept.get(sample.key)
        if kept is None:
            kept = self._encode(sample)
            self._kept[sample.key] = kept
            if len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(sample.key)
        return kept

    def _encode(self, sample: Sample) -> EncodedPrompt:
        # processors were seen to rewrite the lists that they are given
        messages: list[Any] = copy.deepcopy(list(sample.messages))
        images = [image.open() for image in sample.images]
        processor = self._policy.processor
        try:
            text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            encoding = processor(
                text=[text],
                images=[images] if images else None,
                add_special_tokens=not _begins_with_bos(processor.tokenizer, text),
                return_tensors="pt",
            )
        except (ValueError, TypeError, IndexError, OSError) as error:
            raise DatasetError(f"row {sample.row}: the processor refuses this prompt: {error}") from error
        return split_encoding(self._policy.family, dict(encoding), len(images))


def _begins_with_bos(tokenizer: Any, text: str) -> bool:
    """A chat template that writes the begin token itself must not get a second one from the tokenizer."""
    return bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
